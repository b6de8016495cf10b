"""The application that a role keeps."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from cloudid_core.effects import Commit, ListKeys
from cloudid_core.health.problems import HealthProblem
from cloudid_core.store import keys
from cloudid_core.system import stored_rules
from cloudid_core.testing import Fault, FaultKind
from tests.engines import CONFIG, CREDS, EVERYTHING, ROLE, SecretsEngine, configured_engine


@pytest.fixture
def engine() -> SecretsEngine:
    """With a role that keeps an application with one assignment and one membership."""
    engine = configured_engine()
    engine.role(persist_app=True, azure_groups=engine.groups(0))
    return engine


def kinds(engine: SecretsEngine) -> Counter[str]:
    return Counter(made.kind for made in engine.alive())


def settle(engine: SecretsEngine) -> None:
    """Let the settle time pass, with background work."""
    engine.converge()
    assert engine.intents() == []


def wait(engine: SecretsEngine) -> None:
    """Let two minutes pass, as a server does."""
    for _ in range(3):
        engine.tick()
        engine.advance(60)


KEPT = (403, "application_kept")
WHOLE = Counter(application=1, principal=1, assignment=1, membership=1)


def test_the_application_is_made_with_the_role_and_without_a_password(engine: SecretsEngine) -> None:
    assert kinds(engine) == WHOLE
    assert engine.intents() == []
    (application,) = engine.alive("application")
    assert engine.shown_role()["application_object_id"] == application.id


def test_all_credentials_are_passwords_of_the_one_application(engine: SecretsEngine) -> None:
    got = [engine.must("GET", CREDS).data for _ in range(2)]
    assert len({each["client_id"] for each in got}) == 1
    assert len({each["client_secret"] for each in got}) == 2
    assert kinds(engine) == WHOLE + Counter(password=2)
    engine.revoke_all()
    assert kinds(engine) == WHOLE


@pytest.mark.parametrize("fields", [{"ttl": 60}, {}, {"permanently_delete": True}, {"persist_app": True}])
def test_a_write_of_other_fields_does_not_touch_the_application(engine: SecretsEngine, fields: dict[str, Any]) -> None:
    """The provider is only asked whether what the role refers to still exists."""
    before, since = engine.simulator.ledger.as_json(), len(engine.trace)
    engine.must("POST", ROLE, fields)
    assert engine.simulator.ledger.as_json() == before
    assert all(each.startswith("GET ") for each in engine.calls(since))


def test_a_change_of_grants_and_groups_touches_only_the_difference(engine: SecretsEngine) -> None:
    """New grants come first; the old ones go afterwards; what stays is not touched."""
    (kept,) = engine.alive("assignment")
    roles = [*engine.grants(), *engine.grants("Contributor")]
    engine.must("POST", ROLE, {"azure_roles": roles, "azure_groups": engine.groups(0, 1)})
    assert kinds(engine) == WHOLE + Counter(assignment=1, membership=1)
    assert kept in engine.alive("assignment")
    engine.must("POST", ROLE, {"azure_roles": engine.grants("Contributor"), "azure_groups": engine.groups(1)})
    assert kinds(engine) == WHOLE + Counter(assignment=1, membership=1)
    settle(engine)
    assert kinds(engine) == WHOLE
    assert kept not in engine.alive("assignment")
    (membership,) = engine.alive("membership")
    assert membership.id.startswith(engine.group(1)["id"])


def test_tags_and_audience_are_changed_at_the_application(engine: SecretsEngine) -> None:
    engine.must("POST", ROLE, {"tags": "new", "sign_in_audience": "CloudADMultipleOrgs"})
    (made,) = engine.alive("application")
    application = engine.simulator.world.directory.applications.get(made.id)
    assert application is not None
    assert (application.tags, application.sign_in_audience) == (("new",), "AzureADMultipleOrgs")
    assert engine.intents() == []


@pytest.mark.parametrize("purge", [False, True])
@pytest.mark.parametrize("end", ["delete", "turn off"])
def test_the_application_is_removed_with_the_role_or_with_persist_app(
    engine: SecretsEngine, end: str, purge: bool
) -> None:
    """The last version of the role decides whether the application is purged."""
    engine.must("POST", ROLE, {"permanently_delete": purge})
    engine.must("GET", CREDS)
    if end == "delete":
        engine.must("DELETE", ROLE)
    else:
        engine.must("POST", ROLE, {"persist_app": False})
        assert engine.shown_role()["application_object_id"] == ""
    settle(engine)
    assert not engine.alive()
    assert engine.is_clean() is purge
    engine.revoke_all()
    assert engine.leases() == []


def test_persist_app_makes_a_new_application_when_it_is_set_again(engine: SecretsEngine) -> None:
    (first,) = engine.alive("application")
    engine.must("POST", ROLE, {"persist_app": False})
    engine.must("POST", ROLE, {"persist_app": True})
    settle(engine)
    assert kinds(engine) == WHOLE
    assert first not in engine.alive("application")


def test_an_existing_application_can_replace_the_persistent_one(engine: SecretsEngine) -> None:
    other = engine.other_application
    assert engine.refused("POST", ROLE, {"application_object_id": other["object_id"]}) == (400, "fields_exclusive")
    engine.must("POST", ROLE, {"application_object_id": other["object_id"], "persist_app": False})
    settle(engine)
    assert not engine.alive()
    assert engine.must("GET", CREDS).data["client_id"] == other["client_id"]


CALLS = [
    ("PATCH", "/graph/v1.0/applications"),
    ("PATCH", "/graph/v1.0/servicePrincipals"),
    ("PUT", "/arm/subscriptions/[^/]+/providers/Microsoft.Authorization/roleAssignments"),
    ("POST", "/graph/v1.0/groups/[^/]+/members"),
]


@pytest.mark.parametrize("method, path", CALLS)
def test_a_role_that_cannot_have_its_application_is_not_stored(method: str, path: str) -> None:
    """Everything that was made for it goes, and is not even kept among the deleted items."""
    engine = configured_engine()
    engine.fail(method=method, path=path, after_work=True, status=403, code="Forbidden")
    reply = engine.write_role(azure_roles=engine.grants(), azure_groups=engine.groups(0), persist_app=True)
    assert (reply.status, reply.codes) == (502, ["provider_permission_denied"])
    assert engine.ask("GET", ROLE).status == 404
    engine.heal()
    wait(engine)
    assert engine.is_clean()
    settle(engine)


@pytest.mark.parametrize("method, path", CALLS[2:])
def test_a_change_that_fails_leaves_everything_as_it_was(engine: SecretsEngine, method: str, path: str) -> None:
    before, shown = engine.alive(), engine.shown_role()
    engine.fail(method=method, path=path, after_work=True, status=403, code="Forbidden")
    roles = [*engine.grants(), *engine.grants("Contributor")]
    assert engine.write_role(azure_roles=roles, azure_groups=engine.groups(0, 1)).status == 502
    assert engine.shown_role() == shown
    engine.heal()
    wait(engine)
    assert engine.alive() == before
    settle(engine)


def test_a_change_waits_until_an_earlier_one_is_through(engine: SecretsEngine) -> None:
    """What the earlier one removes could otherwise be what the later one has just made."""
    engine.must("POST", ROLE, {"azure_groups": engine.groups(1)})
    response = engine.ask("POST", ROLE, {"azure_groups": engine.groups(0)}).response
    assert (response.status, response.headers["retry-after"]) == (503, "30")
    engine.must("POST", ROLE, {"ttl": 60})
    engine.tick()
    engine.must("POST", ROLE, {"azure_groups": engine.groups(0)})
    settle(engine)
    (membership,) = engine.alive("membership")
    assert membership.id.startswith(engine.group(0)["id"])


def test_a_role_can_be_deleted_while_a_change_is_not_finished(engine: SecretsEngine) -> None:
    engine.must("POST", ROLE, {"azure_groups": engine.groups(1), "azure_roles": engine.grants("Contributor")})
    engine.must("DELETE", ROLE)
    settle(engine)
    assert not engine.alive()


def test_a_role_can_be_deleted_when_its_application_is_already_gone(engine: SecretsEngine) -> None:
    """Then the role can still be deleted, and its leases end."""
    engine.must("GET", CREDS)
    directory = engine.simulator.world.directory
    (made,) = engine.alive("application")
    application = directory.applications.get(made.id)
    assert application is not None
    directory.delete_application(application)
    assert engine.ask("GET", CREDS).status == 502
    engine.must("DELETE", ROLE)
    engine.revoke_all()
    settle(engine)
    assert (engine.leases(), engine.alive()) == ([], [])


def test_a_404_for_a_new_application_is_retried_and_for_an_old_one_is_an_error(engine: SecretsEngine) -> None:
    """Later on, an application that the provider does not know is gone."""
    missing: dict[str, Any] = {"status": 404, "code": "Request_ResourceNotFound"}
    engine.fail(method="POST", path="/graph/v1.0/applications/[^/]+/addPassword", times=2, **missing)
    engine.must("GET", CREDS)
    engine.advance(3600)
    engine.fail(method="POST", path="/graph/v1.0/applications/[^/]+/addPassword", times=1, **missing)
    assert engine.refused("GET", CREDS) == (502, "provider_refused")


def test_two_roles_have_two_applications(engine: SecretsEngine) -> None:
    engine.must("POST", "cloud/roles/other", {"azure_roles": engine.grants(), "persist_app": True})
    engine.must("DELETE", ROLE)
    settle(engine)
    assert kinds(engine) == Counter(application=1, principal=1, assignment=1)


def test_a_role_that_cannot_be_stored_leaves_no_application() -> None:
    """The application was made, but the role could not be stored."""
    engine = configured_engine()
    probe = configured_engine()
    probe.role(persist_app=True)
    last = max(number for number, (_, effect) in enumerate(probe.trace) if type(effect) is Commit)
    engine.inject(Fault(last, FaultKind.FAIL))
    assert engine.write_role(azure_roles=engine.grants(), persist_app=True).status == 503
    assert engine.ask("GET", ROLE).status == 404
    settle(engine)
    assert engine.is_clean()


@pytest.mark.parametrize("ceiling", [{}, EVERYTHING])
@pytest.mark.parametrize("path", ["cloud/roles/thief", "cloud/static-roles/thief"])
def test_no_role_gives_out_secrets_of_an_application_that_another_role_keeps(
    engine: SecretsEngine, path: str, ceiling: dict[str, Any]
) -> None:
    """A ceiling that allows every application does not allow the rights of another team's role."""
    engine.must("POST", CONFIG, ceiling)
    (kept,) = engine.alive("application")
    for object_id in (kept.id, kept.id.upper()):
        assert engine.refused("POST", path, {"application_object_id": object_id}) == KEPT
    shown = engine.shown_role()["application_object_id"]
    engine.must("POST", ROLE, {"application_object_id": shown, "ttl": 60})


def test_no_role_gives_out_secrets_of_an_application_that_a_lease_keeps(engine: SecretsEngine) -> None:
    (kept,) = engine.alive("application")
    engine.must("POST", "cloud/roles/fresh", {"azure_roles": engine.grants()})
    engine.must("GET", "cloud/creds/fresh")
    (made,) = (each for each in engine.alive("application") if each.id != kept.id)
    assert engine.refused("POST", "cloud/roles/thief", {"application_object_id": made.id}) == KEPT


def test_health_lists_no_more_for_many_roles_that_keep_an_application(engine: SecretsEngine) -> None:
    listed = []
    for name in ("second", "third"):
        engine.must("POST", f"cloud/roles/{name}", {"azure_roles": engine.grants(), "persist_app": True})
        since = len(engine.trace)
        engine.perform(stored_rules.look(engine.context))
        effects = [effect for _, effect in engine.trace[since:] if isinstance(effect, ListKeys)]
        listed.append([effect for effect in effects if effect.prefix.startswith(keys.TARGETS)])
    assert listed[0] == listed[1] != []


def test_health_names_a_stored_role_that_points_at_an_application_which_another_role_keeps(
    engine: SecretsEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (kept,) = engine.alive("application")
    with monkeypatch.context() as earlier:
        earlier.setattr("cloudid_core.secrets_engine.roles.refuse_kept", lambda *_: None)
        engine.must("POST", "cloud/roles/thief", {"application_object_id": kept.id})
    engine.perform(engine.service.upkeep())
    [occurrence] = engine.service.context.node.problems[HealthProblem.APPLICATION_KEPT]
    named = {"mount": "cloud", "role": "thief", "path": "roles/thief"}
    assert occurrence == {**named, "keeper": ROLE.rpartition("/")[2], "keeping_mount": "cloud"}
