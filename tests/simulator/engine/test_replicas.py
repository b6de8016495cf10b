"""Replicas: when each of them learns of the changes of an object."""

from __future__ import annotations

from typing import Any

from cloudid_servers.provider_simulator.engine.behaviour import Replica
from cloudid_servers.provider_simulator.engine.replicas import Replication, Table

from ..cloud import ASSIGNMENT, BASE, NAMED, UPSERT, Cloud, code_of, read


def test_readers_and_lists_learn_of_an_object_later(cloud: Cloud) -> None:
    cloud.behave(delays={"reads": 10, "lists": 30})
    made = cloud.application(uniqueName="our-key")
    path, condition = f"/applications/{made['id']}", f"appId eq '{made['appId']}'"
    assert cloud.graph("PATCH", NAMED, {"displayName": "new"}, headers=UPSERT).status == 204
    for _ in range(2):
        assert [cloud.graph("GET", each).status for each in (path, NAMED)] == [404, 404]
        cloud.wait(5)
    assert read(cloud.graph("GET", path), 200)["displayName"] == "new"
    assert cloud.listed("/applications", condition) == []
    cloud.wait(20)
    assert len(cloud.listed("/applications", condition)) == 1


def test_readers_and_lists_learn_of_changes_and_deletions_later(cloud: Cloud) -> None:
    made = cloud.application()
    path, condition = f"/applications/{made['id']}", f"appId eq '{made['appId']}'"
    cloud.behave(delays={"reads": 10, "lists": 30})
    cloud.graph("PATCH", path, {"displayName": "new"})
    assert read(cloud.graph("GET", path), 200)["displayName"] == "made"
    assert cloud.graph("DELETE", path).status == 204
    assert cloud.graph("GET", path).status == 200
    assert cloud.graph("DELETE", path).status == 404, "a replica's memory cannot be deleted"
    cloud.wait(10)
    assert cloud.graph("GET", path).status == 404
    assert len(cloud.listed("/applications", condition)) == 1
    cloud.wait(20)
    assert cloud.listed("/applications", condition) == []


def test_what_every_reader_knows_stays_known_when_they_become_slower(cloud: Cloud) -> None:
    path = f"/applications/{cloud.application()['id']}"
    cloud.behave(delays={"reads": 10})
    for _ in range(2):
        cloud.wait(20)
        cloud.graph("PATCH", path, {"displayName": "new"})
    cloud.behave(delays={"reads": 300})
    assert cloud.graph("GET", path).status == 200


def test_an_object_that_has_not_reached_writers_cannot_be_changed_or_referred_to(cloud: Cloud) -> None:
    cloud.behave(delays={"writes": 10})
    made = cloud.application()
    path = f"/applications/{made['id']}"
    for method, target in (("POST", f"{path}/addPassword"), ("POST", f"{path}/removePassword"), ("DELETE", path)):
        assert code_of(cloud.graph(method, target, {}), 404) == "Request_ResourceNotFound"
    assert cloud.graph("GET", path).status == 200
    cloud.wait(10)
    principal = cloud.principal(made)
    reference = {"@odata.id": f"{BASE}/graph/v1.0/directoryObjects/{principal['id']}"}
    members = f"/groups/{cloud.world['groups'][0]['id']}/members/$ref"
    assert code_of(cloud.graph("POST", members, reference), 404) == "Request_ResourceNotFound"
    cloud.wait(10)
    assert cloud.graph("POST", members, reference).status == 204


def test_a_new_application_without_a_replica_for_writers_gets_several_errors(cloud: Cloud) -> None:
    cloud.behave(delays={"writes": 10})
    made = [cloud.application(f"fresh-{number}") for number in range(12)]
    refusals = [cloud.graph("POST", "/servicePrincipals", {"appId": each["appId"]}) for each in made]
    assert {refusal.status for refusal in refusals} == {400, 403, 404}
    cloud.wait(10)
    for each in made:
        cloud.principal(each)


def test_the_resource_manager_learns_of_a_principal_later(cloud: Cloud) -> None:
    principal = cloud.principal(cloud.application())
    cloud.behave(delays={"assignments": 10})
    fresh = cloud.principal(cloud.application())
    assert code_of(cloud.assign(fresh), 400) == "PrincipalNotFound"
    assert cloud.assign(principal).status == 201
    cloud.wait(10)
    assert cloud.assign(fresh, ASSIGNMENT.replace("1", "2")).status == 201


def test_lists_of_assignments_lag(cloud: Cloud) -> None:
    principal = cloud.principal(cloud.application())
    cloud.behave(delays={"lists": 10})
    listing = f"{cloud.subscription}/providers/Microsoft.Authorization/roleAssignments"
    cloud.assign(principal)
    assert cloud.arm(f"{cloud.subscription}{ASSIGNMENT}").status == 200
    own = read(cloud.arm(listing), 200)["value"]
    assert principal["id"] not in [each["properties"]["principalId"] for each in own]
    cloud.wait(10)
    assert cloud.ask_arm("DELETE", f"{cloud.subscription}{ASSIGNMENT}").status == 200
    assert len(read(cloud.arm(listing), 200)["value"]) == len(own) + 1


def test_the_token_endpoint_learns_of_applications_and_passwords_later(cloud: Cloud) -> None:
    cloud.behave(delays={"sign_in": 10})
    made = cloud.application()
    cloud.principal(made)
    path = f"/applications/{made['id']}"

    def numbers(password: Any) -> Any:
        answer = cloud.sign_in(client_id=made["appId"], client_secret=password["secretText"])
        return [] if answer.status == 200 else read(answer, answer.status)["error_codes"]

    first = cloud.password(path)
    assert numbers(first) == [700016]
    cloud.wait(9)
    second = cloud.password(path)
    cloud.wait(1)
    assert (numbers(first), numbers(second)) == ([], [7000215])
    cloud.wait(9)
    cloud.graph("POST", f"{path}/removePassword", {"keyId": first["keyId"]})
    assert (numbers(first), numbers(second)) == ([], [])
    cloud.wait(10)
    assert (numbers(first), numbers(second)) == ([7000215], [])


def test_front_ends_disagree_until_all_know_the_change(cloud: Cloud) -> None:
    made = cloud.application()
    cloud.principal(made)
    cloud.behave(delays={"sign_in": [0, 60]}, front_ends=4)
    secret = cloud.password(f"/applications/{made['id']}")["secretText"]

    def statuses() -> set[int]:
        return {cloud.sign_in(client_id=made["appId"], client_secret=secret).status for _ in range(40)}

    cloud.wait(30)
    assert statuses() == {200, 401}
    cloud.wait(30)
    assert statuses() == {200}


def test_deleted_items_show_a_deletion_later(cloud: Cloud) -> None:
    made = cloud.application()
    cloud.behave(delays={"bin": 10})
    cloud.graph("DELETE", f"/applications/{made['id']}")
    path = f"/directory/deletedItems/{made['id']}"
    assert code_of(cloud.graph("DELETE", path), 404) == "Request_ResourceNotFound"
    cloud.wait(10)
    assert cloud.graph("DELETE", path).status == 204


def test_each_object_has_a_delay_of_its_own_and_keeps_it(cloud: Cloud) -> None:
    cloud.behave(delays={"reads": [0, 100]})
    made = [f"/applications/{cloud.application(f'a-{number}')['id']}" for number in range(20)]
    counts = []
    for _ in range(5):
        counts.append(sum(cloud.graph("GET", path).status == 200 for path in made))
        cloud.wait(25)
    assert counts == sorted(counts)
    assert 0 < counts[2] < 20 == counts[4]


def test_a_table_forgets_values_that_no_replica_shows_any_more() -> None:
    now = [0.0]
    replication = Replication(0, lambda: now[0])
    table: Table[str] = Table(replication)
    table.put("a", "first")
    table.put("a", None)
    assert (list(table.all(Replica.LISTS)), table.count) == ([], 0)
    slow = {**replication.behaviour.delays, Replica.LISTS: (10.0, 10.0)}
    replication.behaviour = type(replication.behaviour)(delays=slow)
    for second in range(30):
        now[0] = second
        table.put("b", str(second))
        assert table.get("b", Replica.LISTS) == (str(second - 10) if second >= 10 else None)
    assert len(table._histories["b"]) == 11
    table.put("b", None)
    assert (table.get("b"), table.get("b", Replica.LISTS), table.count) == (None, "19", 0)
    now[0] = 40
    table.put("c", "x")
    assert table._histories.keys() == {"c"}
