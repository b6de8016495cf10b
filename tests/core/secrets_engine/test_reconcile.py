"""Reconciliation: what is reported, what never is, and how much a repair does."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

import pytest
from attrs import evolve

from cloudid_core.effects import CallProvider, Commit
from cloudid_core.leases.record import ending, find_lease
from cloudid_core.mounts import change_mounts, mount_table
from cloudid_core.provider import client as provider_client
from cloudid_core.provider import objects
from cloudid_core.provider.provisioned import Provisioned
from cloudid_core.secrets_engine import ownership, reconcile
from cloudid_core.store.changes import Changes
from cloudid_core.store.records import Found
from cloudid_core.tokens.encoding import time_ordered_id
from cloudid_core.values import rfc3339
from tests.engines import CREDS, NO_ID, ROLE, SecretsEngine, configured_engine
from tests.installation import SETTLE_TIME

from .interleaving import interleaved

RECONCILE = "cloud/reconcile"
TEAM = "team/reconcile"


@pytest.fixture
def engine() -> SecretsEngine:
    return configured_engine()


def settle(engine: SecretsEngine) -> None:
    engine.advance(SETTLE_TIME + 1)


def report(engine: SecretsEngine, path: str = RECONCILE) -> dict[str, Any]:
    data: dict[str, Any] = engine.must("GET", path).data
    return data


def found(engine: SecretsEngine, what: str = "unaccounted", path: str = RECONCILE) -> list[tuple[str, str]]:
    """Kinds and ids of what is reported."""
    return [(each["kind"], each["id"]) for each in report(engine, path)[what]]


def is_clean(engine: SecretsEngine, path: str = RECONCILE) -> bool:
    told = report(engine, path)
    return not (told["unaccounted"] or told["missing"] or told["too_fresh"] or told["unexamined"])


def repair(engine: SecretsEngine, path: str = RECONCILE, **fields: Any) -> dict[str, Any]:
    """What a repair answers: 202 with the path of the report if it has begun something, otherwise 200."""
    reply = engine.ask("POST", path, fields)
    data: dict[str, Any] = reply.data
    begun = bool(data["repaired"])
    assert (reply.status, data.pop("path", None)) == ((202, path) if begun else (200, None)), reply.body
    return data


def issue(engine: SecretsEngine) -> str:
    lease_id: str = engine.must("GET", CREDS).body["lease_id"]
    return lease_id


def lose(engine: SecretsEngine, lease_id: str) -> Provisioned:
    """Delete the entries of a lease, as the service never does; what the lease held."""
    records = engine.context.records
    lease = engine.perform(find_lease(engine.context, lease_id))
    assert lease is not None
    engine.perform(records.commit(lease.record.removal))
    return lease.record.provisioned


def second_mount(engine: SecretsEngine) -> None:
    """Another engine of the same service, in the same tenant, under the same root application."""
    engine.must("POST", "sys/mounts/team", {"type": "cloud"})
    engine.must("POST", "team/config", engine.config)


def leak(engine: SecretsEngine, number: int = 0) -> str:
    """An application with our marker, made long ago."""
    made_at = engine.clock - 10 * SETTLE_TIME + number
    name = f"{engine.context.marker_prefix}{time_ordered_id(made_at, bytes(10))}"
    return engine.simulator.world.directory.add_application(name).id


def existing(engine: SecretsEngine) -> None:
    engine.role(application_object_id=engine.other_application["object_id"])


# What is unaccounted for


@pytest.mark.parametrize("preset", ["immediate", "realistic"])
def test_what_is_accounted_for_is_not_reported(engine: SecretsEngine, preset: str) -> None:
    """Neither in the beginning, nor once it has settled; by none of the mounts of a service."""
    engine.behave(preset=preset)
    second_mount(engine)
    existing(engine)
    engine.must("POST", "cloud/roles/fresh", {"azure_roles": engine.grants()})
    engine.must("POST", "team/roles/kept", {"azure_roles": engine.grants(), "persist_app": True})
    for creds in (CREDS, "cloud/creds/fresh", "team/creds/kept"):
        engine.must("GET", creds)
    for _ in range(2):
        assert is_clean(engine)
        assert is_clean(engine, TEAM)
        settle(engine)


def test_an_application_that_nothing_accounts_for_is_reported_once_it_has_settled(engine: SecretsEngine) -> None:
    """With its principal, which is not mentioned by itself."""
    engine.role()
    held = lose(engine, issue(engine))
    assert found(engine, "too_fresh") == [("application", held.application_id)]
    assert found(engine) == []
    settle(engine)
    told = report(engine)
    assert told["too_fresh"] == []
    assert told["unaccounted"] == [
        {
            "kind": "application",
            "id": held.application_id,
            "display_name": held.unique_name,
            "made_at": rfc3339.show(int(held.made_at * 1000) / 1000),
        }
    ]


def test_a_password_that_nothing_accounts_for_is_reported_with_its_application(engine: SecretsEngine) -> None:
    existing(engine)
    kept, lost = issue(engine), issue(engine)
    held = lose(engine, lost)
    settle(engine)
    (told,) = report(engine)["unaccounted"]
    assert (told["kind"], told["id"], told["display_name"]) == ("password", held.password_key_id, held.password_name)
    assert told["application_object_id"] == engine.other_application["object_id"]
    assert engine.lease(kept) is not None


def test_passwords_of_persisted_applications_are_searched(engine: SecretsEngine) -> None:
    engine.role(persist_app=True)
    issue(engine)
    held = lose(engine, issue(engine))
    settle(engine)
    assert found(engine) == [("password", held.password_key_id)]


def test_a_principal_without_application_is_reported(engine: SecretsEngine) -> None:
    name = f"{engine.context.marker_prefix}{time_ordered_id(engine.clock, bytes(10))}"
    directory = engine.simulator.world.directory
    principal = directory.add_principal(name, "Application")
    settle(engine)
    assert found(engine) == [("principal", principal.id)]
    assert repair(engine) == {"repaired": 1, "left": 0}
    engine.converge()
    assert directory.principals.get(principal.id) is None


def test_another_application_of_the_same_name_is_reported(engine: SecretsEngine) -> None:
    """A lease holds the application that it knows by its id, not all of that name."""
    engine.role()
    lease = engine.lease(issue(engine))
    assert lease is not None
    twin = engine.simulator.world.directory.add_application(lease.provisioned.unique_name)
    settle(engine)
    assert found(engine) == [("application", twin.id)]


def test_a_report_changes_nothing(engine: SecretsEngine) -> None:
    engine.role()
    lose(engine, issue(engine))
    settle(engine)
    report(engine)  # the access tokens are known now
    before, since, ledger = engine.store.copy(), len(engine.trace), engine.simulator.ledger.as_json()
    report(engine)
    assert engine.simulator.ledger.as_json() == ledger
    assert all(each.startswith("GET ") for each in engine.calls(since))
    names = engine.keys("")
    assert tuple(names) == before.list("", "", 10_000)
    assert [engine.store.read(name) for name in names] == [before.read(name) for name in names]


def test_a_report_names_the_kinds_that_cannot_be_searched(engine: SecretsEngine) -> None:
    assert report(engine)["not_searched"] == ["membership", "deleted item"]


def test_what_was_just_removed_and_is_still_listed_is_not_reported(engine: SecretsEngine) -> None:
    engine.role()
    issue(engine)
    settle(engine)
    engine.behave(delays={"lists": 60})
    engine.revoke_all()
    assert engine.is_over()
    assert is_clean(engine)


def test_an_open_intent_accounts_for_what_it_may_have_made(engine: SecretsEngine) -> None:
    """Also when it knows nothing but a name, and cannot be undone."""
    engine.role()
    engine.fail(method="POST", path="/graph/v1.0/applications/[^/]+/addPassword", status=500, code="Trouble")
    assert engine.ask("GET", CREDS).status >= 500
    engine.fail(method="DELETE", path="/graph/.*", status=403, code="Authorization_RequestDenied")
    settle(engine)
    assert engine.alive("application")
    assert engine.intents()
    assert is_clean(engine)


@pytest.mark.parametrize(
    "name",
    ["cloudid-0123456789abcdef-{id}", "{prefix}web", "x{prefix}{id}", "{prefix}{id}0", "{prefix}{prefix}{id}", "{id}"],
)
def test_other_names_are_never_touched(engine: SecretsEngine, name: str) -> None:
    """Those of other installations, nor those that only look like ours."""
    prefix, new_id = engine.context.marker_prefix, time_ordered_id(engine.clock, bytes(10))
    text = name.format(prefix=prefix, id=new_id)
    directory = engine.simulator.world.directory
    application = directory.add_application(text)
    settle(engine)
    root = directory.application_of(engine.root_application["client_id"])
    assert root is not None
    directory.add_password(root, text, engine.clock, engine.clock + 1000)
    assert is_clean(engine)
    assert repair(engine, max=1000) == {"repaired": 0, "left": 0}
    engine.converge()
    assert directory.applications.get(application.id) is not None


def test_a_marker_from_the_future_is_too_fresh(engine: SecretsEngine) -> None:
    """Times that no calendar has cause no error."""
    engine.simulator.world.directory.add_application(f"{engine.context.marker_prefix}{'f' * 32}")
    (told,) = report(engine)["too_fresh"]
    assert told["made_at"] == "9999-12-31T23:59:59Z"


# What is missing


def remove_application(engine: SecretsEngine, held: Provisioned) -> tuple[str, str]:
    directory = engine.simulator.world.directory
    application = directory.applications.get(held.application_id or held.password_on)
    assert application is not None
    directory.delete_application(application)
    return ("application", application.id) if held.application_id else ("password", held.password_key_id)


def remove_principal(engine: SecretsEngine, held: Provisioned) -> tuple[str, str]:
    directory = engine.simulator.world.directory
    principal = directory.principals.get(held.principal_id)
    assert principal is not None
    directory.delete_principal(principal)
    return "principal", principal.id


def remove_password(engine: SecretsEngine, held: Provisioned) -> tuple[str, str]:
    directory = engine.simulator.world.directory
    application = directory.applications.get(held.password_on)
    assert application is not None
    directory.remove_password(application, held.password_key_id)
    return "password", held.password_key_id


@pytest.mark.parametrize(
    "way, remove",
    [
        ("fresh", remove_application),
        ("fresh", remove_principal),
        ("existing", remove_application),
        ("existing", remove_password),
    ],
)
def test_a_lease_whose_object_is_gone_is_reported_and_ended_on_request(
    engine: SecretsEngine, way: str, remove: Any
) -> None:
    engine.role(**({"application_object_id": engine.other_application["object_id"]} if way == "existing" else {}))
    lease_id = issue(engine)
    other = issue(engine) if remove is not remove_application else ""
    lease = engine.lease(lease_id)
    assert lease is not None
    gone = remove(engine, lease.provisioned)
    assert is_clean(engine)
    settle(engine)
    (told,) = report(engine)["missing"]
    assert (told["kind"], told["id"]) == gone
    assert (told["lease_id"], told["made_at"]) == (lease_id, rfc3339.show(lease.provisioned.made_at))
    assert repair(engine) == {"repaired": 1, "left": 0}
    assert is_clean(engine)
    engine.converge()
    assert engine.leases() == ([other] if other else [])


def test_a_role_whose_application_is_gone_is_reported(engine: SecretsEngine) -> None:
    """It can be deleted and written again; a repair leaves it alone."""
    engine.role(persist_app=True)
    kept = engine.stored_role().persistent_app
    assert kept is not None
    gone = remove_application(engine, kept.provisioned)
    settle(engine)
    (told,) = report(engine)["missing"]
    assert (told["kind"], told["id"], told["role"]) == (*gone, "web")
    assert "lease_id" not in told
    assert repair(engine) == {"repaired": 0, "left": 1}
    engine.must("DELETE", ROLE)
    engine.converge()
    engine.role(persist_app=True)
    settle(engine)
    assert is_clean(engine)


def test_what_was_renamed_is_not_missing(engine: SecretsEngine) -> None:
    """An operator has renamed an application, so our lists do not show it."""
    engine.role()
    lease = engine.lease(issue(engine))
    assert lease is not None
    path = f"/graph/v1.0/applications/{lease.provisioned.application_id}"
    directory = engine.simulator.world.directory
    application = directory.applications.get(lease.provisioned.application_id)
    principal = directory.principals.get(lease.provisioned.principal_id)
    assert application is not None
    assert principal is not None
    directory.replace(evolve(application, display_name="another"))
    directory.replace(evolve(principal, display_name="another"))
    settle(engine)
    since = len(engine.trace)
    assert is_clean(engine)
    assert f"GET {path}" in engine.calls(since)


def test_what_is_being_revoked_is_not_missing(engine: SecretsEngine) -> None:
    """Nor is it asked for."""
    engine.role()
    lease = engine.lease(issue(engine))
    assert lease is not None
    settle(engine)
    _, object_id = remove_application(engine, lease.provisioned)
    engine.must("PUT", "sys/leases/revoke", {"lease_id": lease.id})
    since = len(engine.trace)
    assert is_clean(engine)
    assert f"GET /graph/v1.0/applications/{object_id}" not in engine.calls(since)


def test_what_is_revoked_meanwhile_is_not_missing(engine: SecretsEngine) -> None:
    """Before whichever effect of the report. Its role is gone, so the application must be looked up."""
    existing(engine)
    lease = engine.lease(issue(engine))
    assert lease is not None
    engine.must("DELETE", ROLE)
    settle(engine)
    directory, context = engine.simulator.world.directory, engine.context
    application = directory.applications.get(lease.provisioned.password_on)
    assert application is not None

    held = Found(lease.key, lease, 0)

    def revoke() -> None:
        engine.perform(context.records.commit(Changes(puts=ending(held, engine.clock).puts)))
        directory.remove_password(application, lease.provisioned.password_key_id)

    def restore() -> None:
        engine.perform(context.records.commit(lease.creation))
        directory.replace(application)

    request = engine.request("GET", RECONCILE)
    _, steps = interleaved(engine, engine.program(request), {})
    for step in range(steps):
        restore()
        response, _ = interleaved(engine, engine.program(request), {step: [revoke]})
        assert b'"missing":[]' in response.body, step


def test_what_is_in_another_tenant_is_not_missing(engine: SecretsEngine) -> None:
    """The mount cannot see it: it was configured for another one before."""
    engine.role()
    lease = engine.lease(issue(engine))
    assert lease is not None
    elsewhere = evolve(lease, provisioned=evolve(lease.provisioned, tenant=NO_ID))
    engine.perform(engine.context.records.commit(Changes({}, {lease.key: elsewhere})))
    remove_application(engine, lease.provisioned)
    settle(engine)
    assert is_clean(engine)


# Repairs


def test_a_repair_removes_what_nothing_accounts_for_and_nothing_else(engine: SecretsEngine) -> None:
    engine.role()
    kept = engine.must("GET", CREDS)
    held = lose(engine, issue(engine))
    settle(engine)
    since = len(engine.trace)
    assert repair(engine) == {"repaired": 1, "left": 0}
    assert all(each.startswith("GET ") for each in engine.calls(since) if "/graph/" in each), "the journal removes it"
    assert is_clean(engine), "an intent accounts for it"
    engine.converge()
    assert is_clean(engine)
    assert held.application_id not in {made.id for made in engine.alive()}
    assert engine.signs_in(**kept.data)
    engine.must("PUT", "sys/leases/revoke", {"lease_id": kept.body["lease_id"]})
    engine.converge()
    assert engine.alive("application", "principal", "password") == []


def test_a_repair_removes_exactly_one_password(engine: SecretsEngine) -> None:
    existing(engine)
    kept = engine.must("GET", CREDS)
    lost = engine.must("GET", CREDS)
    lose(engine, lost.body["lease_id"])
    settle(engine)
    repair(engine)
    engine.converge()
    assert engine.signs_in(**kept.data)
    assert not engine.signs_in(**lost.data)
    assert is_clean(engine)


def test_a_repair_does_no_more_than_the_requested_number(engine: SecretsEngine) -> None:
    """What is unaccounted for goes first, then come leases; what is left can be repaired next time."""
    engine.role()
    for _ in range(3):
        lose(engine, issue(engine))
    lease = engine.lease(issue(engine))
    assert lease is not None
    settle(engine)
    remove_application(engine, lease.provisioned)
    assert repair(engine, max=2) == {"repaired": 2, "left": 2}
    engine.converge()
    assert len(engine.alive("application")) == 1
    assert engine.leases() == [lease.id]
    assert repair(engine) == {"repaired": 2, "left": 0}
    engine.converge()
    assert engine.alive("application") == []
    assert engine.leases() == []


def test_a_repair_does_ten_by_default(engine: SecretsEngine) -> None:
    for number in range(12):
        leak(engine, number)
    assert repair(engine) == {"repaired": 10, "left": 2}


def test_a_repair_asks_for_the_next_round_now(engine: SecretsEngine) -> None:
    leak(engine)
    assert engine.ask("POST", RECONCILE).response.wake_at == engine.clock
    assert engine.ask("GET", RECONCILE).response.wake_at is None


def test_one_request_examines_a_limited_number_and_counts_the_others(
    engine: SecretsEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconcile, "MOST_EXAMINED", 2)
    for number in range(5):
        leak(engine, number)
    told = report(engine)
    assert (len(told["unaccounted"]), told["unexamined"]) == (2, 3)
    assert repair(engine) == {"repaired": 2, "left": 3}


def many_pages(engine: SecretsEngine, monkeypatch: pytest.MonkeyPatch, count: int) -> list[str]:
    """Leaks, of which the directory shows one on each page."""
    monkeypatch.setattr(objects, "LARGEST_PAGE", "1")
    return [leak(engine, number) for number in range(count)]


def test_more_pages_than_other_lists_may_have_are_examined(
    engine: SecretsEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider_client, "MOST_PAGES", 2)
    many_pages(engine, monkeypatch, 5)
    told = report(engine)
    assert (len(told["unaccounted"]), told["complete"]) == (5, True)


@pytest.mark.parametrize("bound", ["time", "number"])
def test_a_list_that_is_too_long_is_examined_in_part_and_that_is_said(
    engine: SecretsEngine, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    many_pages(engine, monkeypatch, 40)
    if bound == "number":
        monkeypatch.setattr(objects, "MOST_SELECTED", 5)
    else:
        engine.fail("graph", method="GET", path="/graph/v1.0/applications", delay=5)
    reply = engine.must("GET", RECONCILE)
    assert 1 <= len(reply.data["unaccounted"]) < 10
    assert not reply.data["complete"]
    assert reply.body["warnings"] == [reconcile.INCOMPLETE]
    engine.heal()
    assert engine.ask("POST", RECONCILE).body["warnings"] in (None, [reconcile.INCOMPLETE])


def test_large_pages_are_requested(engine: SecretsEngine) -> None:
    report(engine)
    urls = [effect.request.url for _, effect in engine.trace if isinstance(effect, CallProvider)]
    listed = [unquote(url) for url in urls if "startswith" in url]
    assert len(listed) == 4
    assert all("$top=999" in url for url in listed)


def test_a_repair_is_written_in_pages(engine: SecretsEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconcile, "PAGE", 2)
    for number in range(5):
        leak(engine, number)
    start = len(engine.trace)
    assert repair(engine) == {"repaired": 5, "left": 0}
    commits = [effect for _, effect in engine.trace[start:] if isinstance(effect, Commit)]
    assert [len(commit.puts) for commit in commits] == [4, 4, 2], "an intent and its due entry each"


def test_leases_are_ended_in_pages(engine: SecretsEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconcile, "PAGE", 2)
    existing(engine)
    for _ in range(5):
        lease = engine.lease(issue(engine))
        assert lease is not None
        remove_password(engine, lease.provisioned)
    settle(engine)
    assert repair(engine) == {"repaired": 5, "left": 0}
    engine.converge()
    assert engine.leases() == []


def test_records_are_read_in_pages(engine: SecretsEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is on a later page accounts for its objects too."""
    monkeypatch.setattr(ownership, "PAGE", 2)
    existing(engine)
    for _ in range(5):
        issue(engine)
    settle(engine)
    assert is_clean(engine)


def test_two_repairs_at_once_do_no_harm(engine: SecretsEngine) -> None:
    """Before whichever effect of the first one the second one runs."""
    request = engine.request("POST", RECONCILE)
    _, steps = interleaved(engine, engine.program(request), {})
    for step in range(steps):
        leaked = leak(engine)
        response, _ = interleaved(engine, engine.program(request), {step: [lambda: repair(engine)]})
        assert response.status in (200, 202)  # whichever has found it
        engine.converge()
        assert engine.simulator.world.directory.applications.get(leaked) is None, step
        assert engine.intents() == []


def test_a_repair_leaves_nothing_in_a_mount_that_is_gone_meanwhile(engine: SecretsEngine) -> None:
    """Before whichever effect the mount is wiped, which happens only while it has no intents."""
    second_mount(engine)
    leak(engine)
    context, request = engine.context, engine.request("POST", TEAM)
    before = engine.store.copy()
    table = engine.perform(mount_table(context.records)).record
    without = table.without(table.by_path["team"].id)

    def wipe() -> None:
        if not engine.intents():
            engine.perform(change_mounts(context.records, lambda _: without))

    _, steps = interleaved(engine, engine.program(request), {})
    for step in range(steps - 8, steps):
        engine.store = before.copy()
        interleaved(engine, engine.program(request), {step: [wipe]})
        is_wiped = engine.perform(mount_table(context.records)).record == without
        assert bool(engine.intents()) is not is_wiped, step


@pytest.mark.parametrize("most", [0, 1001, -1, "many"])
def test_the_number_of_repairs_is_bounded(engine: SecretsEngine, most: Any) -> None:
    assert engine.refused("POST", RECONCILE, {"max": most}) == (400, "field_invalid")


def test_reconciliation_needs_a_configuration() -> None:
    bare = SecretsEngine()
    for method in ("GET", "POST"):
        assert bare.refused(method, RECONCILE) == (400, "config_missing")


def test_to_report_takes_read_and_to_repair_takes_update(engine: SecretsEngine) -> None:
    engine.must("PUT", "sys/policies/acl/see", {"policy": f'path "{RECONCILE}" {{ capabilities = ["read"] }}'})
    token = engine.must("POST", "auth/token/create", {"policies": ["see"]}).auth["client_token"]
    assert engine.ask("GET", RECONCILE, token=token).status == 200
    assert engine.ask("POST", RECONCILE, {}, token=token).status == 403


def test_a_provider_that_does_not_list_is_not_believed_to_be_empty(engine: SecretsEngine) -> None:
    engine.role()
    issue(engine)
    settle(engine)
    engine.fail(method="GET", path="/graph/v1.0/applications", status=403, code="Authorization_RequestDenied")
    for method in ("GET", "POST"):
        assert engine.refused(method, RECONCILE) == (502, "provider_permission_denied")
    assert not engine.intents()


# Several mounts, and rotation


def test_what_is_unaccounted_for_is_seen_by_every_mount_and_repaired_by_one(engine: SecretsEngine) -> None:
    second_mount(engine)
    engine.role()
    held = lose(engine, issue(engine))
    settle(engine)
    application = ("application", held.application_id)
    assert found(engine) == found(engine, path=TEAM) == [application]
    assert repair(engine, TEAM) == {"repaired": 1, "left": 0}
    assert is_clean(engine)
    assert repair(engine) == {"repaired": 0, "left": 0}
    engine.converge()
    assert engine.alive("application") == []


def test_a_mount_that_was_disabled_accounts_for_what_it_still_has_to_remove(engine: SecretsEngine) -> None:
    second_mount(engine)
    engine.role()
    issue(engine)
    engine.must("POST", ROLE, {"persist_app": True})
    settle(engine)
    engine.fail(method="DELETE", path="/graph/.*", status=403, code="Authorization_RequestDenied")
    engine.must("DELETE", "sys/mounts/cloud")
    assert is_clean(engine, TEAM)
    engine.tick()
    assert is_clean(engine, TEAM)


def test_leases_of_other_mounts_are_theirs_to_report(engine: SecretsEngine) -> None:
    second_mount(engine)
    engine.role()
    lease = engine.lease(issue(engine))
    assert lease is not None
    gone = remove_application(engine, lease.provisioned)
    settle(engine)
    assert found(engine, "missing") == [gone]
    assert is_clean(engine, TEAM)


def test_a_rotation_accounts_for_its_secrets_at_every_stage(engine: SecretsEngine) -> None:
    """Of every mount with that root application."""
    second_mount(engine)
    for path in ("cloud", "team"):
        engine.must("POST", f"{path}/rotate-root", {"force": True})
        assert is_clean(engine)
        settle(engine)
        assert is_clean(engine)
        assert is_clean(engine, TEAM)
        engine.tick()
        engine.converge()
        assert is_clean(engine)
        assert is_clean(engine, TEAM)


def test_a_root_secret_that_nothing_accounts_for_is_reported(engine: SecretsEngine) -> None:
    """One of a mount that is gone."""
    second_mount(engine)
    engine.must("POST", "team/rotate-root", {"force": True})
    (made,) = engine.alive("password")
    settle(engine)
    engine.converge()
    assert is_clean(engine)
    engine.must("DELETE", "sys/mounts/team")
    engine.converge()
    assert found(engine) == [("password", made.id)]
    assert repair(engine) == {"repaired": 1, "left": 0}
    engine.converge()
    assert engine.alive("password") == []
    assert engine.signs_in(engine.config["client_id"], engine.config["client_secret"])


def test_a_root_secret_that_is_used_is_never_reported(engine: SecretsEngine) -> None:
    """Although no rotation knows it any more."""
    engine.must("POST", "cloud/rotate-root")
    settle(engine)
    engine.converge()
    (rotation,) = (key for key in engine.keys("mount/") if key.endswith("/rotation"))
    engine.perform(engine.context.records.commit(Changes({}, deletes=(rotation,))))
    assert engine.alive("password")
    assert is_clean(engine)


def test_the_root_application_of_a_mount_is_never_reported(engine: SecretsEngine) -> None:
    """Whatever its name."""
    directory = engine.simulator.world.directory
    root = directory.application_of(engine.config["client_id"])
    assert root is not None
    name = f"{engine.context.marker_prefix}{time_ordered_id(engine.clock, bytes(10))}"
    directory.replace(evolve(root, display_name=name))
    settle(engine)
    assert is_clean(engine)
