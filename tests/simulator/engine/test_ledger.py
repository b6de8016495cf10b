"""The ledger: what was created through the API, and what of it is alive, deleted or purged."""

from __future__ import annotations

from typing import Any

from ..cloud import ASSIGNMENT, BASE, NOON, Cloud


def alive(cloud: Cloud) -> list[str]:
    return [made.kind for made in cloud.simulator.ledger.alive()]


def soft_deleted(cloud: Cloud) -> list[str]:
    return [made.kind for made in cloud.simulator.ledger.soft_deleted()]


def create_everything(cloud: Cloud) -> tuple[Any, Any]:
    application = cloud.application("robot", uniqueName="key")
    cloud.password(f"/applications/{application['id']}", displayName="one")
    principal = cloud.principal(application)
    cloud.password(f"/servicePrincipals/{principal['id']}")
    members = f"/groups/{cloud.world['groups'][0]['id']}/members"
    reference = {"@odata.id": f"{BASE}/graph/v1.0/directoryObjects/{principal['id']}"}
    assert cloud.graph("POST", f"{members}/$ref", reference).status == 204
    assert cloud.assign(principal).status == 201
    return application, principal


def test_the_initial_world_has_no_entries(cloud: Cloud) -> None:
    cloud.create("box", groups=["box-group"])
    assert cloud.json("GET", "/simulator/ledger") == []


def test_an_entry_says_what_was_created_when_and_by_whom(cloud: Cloud) -> None:
    application, principal = create_everything(cloud)
    entries = cloud.json("GET", "/simulator/ledger")
    assert [(entry["kind"], entry["of"]) for entry in entries] == [
        ("application", []),
        ("password", [application["id"]]),
        ("principal", [application["id"]]),
        ("password", [principal["id"]]),
        ("membership", [cloud.world["groups"][0]["id"], principal["id"]]),
        ("assignment", [principal["id"]]),
    ]
    assert entries[0] == {
        "kind": "application",
        "id": application["id"],
        "of": [],
        "display_name": "robot",
        "unique_name": "key",
        "made_at": NOON,
        "made_by": cloud.world["applications"][0]["client_id"],
        "deleted_at": None,
        "purged_at": None,
    }
    assert (entries[1]["display_name"], entries[5]["id"]) == ("one", f"{cloud.subscription}{ASSIGNMENT}")


def test_everything_of_an_application_is_deleted_with_it_except_assignments(cloud: Cloud) -> None:
    application, principal = create_everything(cloud)
    cloud.wait(5)
    assert cloud.graph("DELETE", f"/applications/{application['id']}").status == 204
    assert alive(cloud) == ["assignment"]
    assert soft_deleted(cloud) == ["application", "principal"]
    assert {entry.deleted_at for entry in cloud.simulator.ledger.entries} == {None, NOON + 5}
    cloud.wait(5)
    for each in (principal, application):
        assert cloud.graph("DELETE", f"/directory/deletedItems/{each['id']}").status == 204
    assert soft_deleted(cloud) == []
    assert cloud.simulator.ledger.entries[0].purged_at == NOON + 10
    assert cloud.ask_arm("DELETE", f"{cloud.subscription}{ASSIGNMENT}").status == 200
    assert alive(cloud) == []


def test_what_belongs_to_a_principal_is_deleted_with_it(cloud: Cloud) -> None:
    _, principal = create_everything(cloud)
    assert cloud.graph("DELETE", f"/servicePrincipals/{principal['id']}").status == 204
    assert alive(cloud) == ["application", "password", "assignment"]


def test_a_membership_that_is_added_again_has_a_second_entry(cloud: Cloud) -> None:
    _, principal = create_everything(cloud)
    members = f"/groups/{cloud.world['groups'][0]['id']}/members"
    assert cloud.graph("DELETE", f"{members}/{principal['id']}/$ref").status == 204
    assert "membership" not in alive(cloud)
    reference = {"@odata.id": f"{BASE}/graph/v1.0/directoryObjects/{principal['id']}"}
    cloud.graph("POST", f"{members}/$ref", reference)
    entries = [entry for entry in cloud.simulator.ledger.entries if entry.kind == "membership"]
    assert [entry.deleted_at for entry in entries] == [NOON, None]


def test_a_password_of_an_initial_application_has_an_entry(cloud: Cloud) -> None:
    path = f"/applications/{cloud.world['applications'][0]['object_id']}"
    password = cloud.password(path)
    assert alive(cloud) == ["password"]
    assert cloud.graph("POST", f"{path}/removePassword", {"keyId": password["keyId"]}).status == 204
    assert (alive(cloud), soft_deleted(cloud)) == ([], [])


def test_an_object_has_an_entry_even_if_the_answer_is_lost(cloud: Cloud) -> None:
    cloud.json("POST", "/simulator/faults", [{"match": {"family": "graph"}, "action": {"drop": True}}])
    cloud.graph("POST", "/applications", {"displayName": "undone"})
    action = {"drop": True, "after_work": True}
    cloud.json("POST", "/simulator/faults", [{"match": {"family": "graph"}, "action": action}])
    cloud.graph("POST", "/applications", {"displayName": "lost"})
    assert [made.display_name for made in cloud.simulator.ledger.alive()] == ["lost"]
