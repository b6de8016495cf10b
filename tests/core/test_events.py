"""Events: what they tell, and that they tell no secret."""

from __future__ import annotations

import msgspec
import pytest

from cloudid_core import run_now
from cloudid_core.errors import Conflict, ProviderProblem, RecordFailed, StoreFailed
from cloudid_core.events import (
    Event,
    IntentChanged,
    JobFailed,
    LeaseChanged,
    MachineClaimIgnored,
    MountChanged,
    Problem,
    RenewalUnchecked,
    RequestAnswered,
    RequestReceived,
    RootSecretAtRisk,
    RotationChanged,
)
from cloudid_core.store.changes import Changes
from tests.engines import engine_with_roles
from tests.installation import Installation
from tests.logins import configure_logins, login_form
from tests.tokens import create_token, new_token

from .never_waits import NeverWaits
from .rotation.rotating import rotating

TUNED = MountChanged(mount_accessor="a", path="p", state="tuned")
CANARY = "c4n4ry-s3cret"


def fail() -> ZeroDivisionError:
    try:
        raise ZeroDivisionError(CANARY)
    except ZeroDivisionError as error:
        return error


def test_of_a_bug_only_kind_and_place_are_told() -> None:
    problem = Problem.of(fail())
    assert problem.error == "ZeroDivisionError"
    assert problem.where[-1].endswith(" fail")
    assert CANARY not in repr(problem)


def test_our_own_errors_tell_their_reason() -> None:
    problem = Problem.of(ProviderProblem(403, "Authorization_RequestDenied", "id-1"))
    assert problem == Problem("ProviderProblem", "the provider answered 403 Authorization_RequestDenied (request id-1)")
    assert Problem.of(StoreFailed("the disk is full")) == Problem("StoreFailed", "the disk is full")


@pytest.mark.parametrize(
    "event, importance",
    [
        (RequestReceived(request_id="", time=0.0, operation="read", path="", mount_accessor=""), "debug"),
        (RequestAnswered(request_id="", time=0.0, status=200), "info"),
        (RequestAnswered(request_id="", time=0.0, status=500, problem=Problem("X")), "warning"),
        (MachineClaimIgnored(request_id="", mount_accessor="", role="", claim=""), "warning"),
        (RenewalUnchecked(request_id="", mount_accessor="", role="", reason="why"), "warning"),
        (LeaseChanged(lease_id="", mount_id="", state="issued"), "info"),
        (LeaseChanged(lease_id="", mount_id="", state="revocation failed", reason="why"), "warning"),
        (IntentChanged(intent_id="", mount_id="", state="opened"), "debug"),
        (IntentChanged(intent_id="", mount_id="", state="undoing failed", reason="why"), "warning"),
        (RootSecretAtRisk(mount_id="", reason="why"), "warning"),
        (RotationChanged(mount_id="", phase="idle"), "info"),
        (RotationChanged(mount_id="", phase="proving", reason="why"), "warning"),
        (TUNED, "info"),
        (JobFailed(job="lease", problem=Problem("X")), "error"),
    ],
)
def test_what_went_wrong_matters_more(event: Event, importance: str) -> None:
    assert event.importance == importance


def test_an_event_travels_with_its_commit() -> None:
    """It is recorded when the commit has succeeded, and not when it has conflicted."""
    world = Installation()
    records, before = world.context.records, len(world.events)
    with pytest.raises(Conflict):
        world.perform(records.commit(Changes({"x": 7}, events=(TUNED,))))
    assert world.events[before:] == []
    world.perform(records.commit(Changes(events=(TUNED,)) | Changes(events=(TUNED,))))
    assert world.events[before:] == [TUNED, TUNED]


class Deaf(NeverWaits):
    async def record(self, event: Event) -> None:
        raise RecordFailed("disk full")


def test_an_event_that_cannot_be_recorded_does_not_undo_its_commit() -> None:
    world = Installation()
    program = world.context.records.commit(Changes({}, deletes=("x",), events=(TUNED,)))
    assert run_now(program, Deaf()) == 1


def test_the_life_of_a_lease_is_told() -> None:
    world = engine_with_roles()
    lease_id = world.issue()
    world.must("POST", "sys/leases/renew", {"lease_id": lease_id})
    world.fail("graph", times=1, status=403)
    world.must("POST", "sys/leases/revoke", {"lease_id": lease_id, "sync": False})
    world.pass_time(2000)
    told = [(event.state, bool(event.reason)) for event in world.events if isinstance(event, LeaseChanged)]
    assert told == [
        ("issued", False),
        ("renewed", False),
        ("revoking", False),
        ("revocation failed", True),
        ("revoked", False),
    ]


def test_the_life_of_an_intent_is_told() -> None:
    """Its request gives up, attempts to undo it fail, and then it is undone."""
    world = engine_with_roles()
    world.fail("arm", status=403)
    assert world.ask("GET", "cloud/creds/fresh").status == 502
    world.fail("graph", status=403)
    world.pass_time(60)
    world.heal()
    world.pass_time(4000)
    states = [(event.state, bool(event.reason)) for event in world.events if isinstance(event, IntentChanged)]
    assert states[:2] == [("opened", False), ("abandoned", False)]
    assert set(states[2:-1]) == {("undoing failed", True)}
    assert states[-1] == ("undone", False)


def test_the_life_of_a_rotation_is_told() -> None:
    """So is each attempt to remove the old secret that fails in the background, with its reason."""
    world = rotating()
    assert world.rotate() == 204
    world.fail(path="/graph/v1.0/applications/.*/removePassword", status=403, code="Denied", times=3)
    world.pass_time(1000)
    phases = [
        (event.phase, "403 Denied" in event.reason) for event in world.events if isinstance(event, RotationChanged)
    ]
    begun = [("adding", False), ("proving", False), ("overlapping", False)]
    assert phases == [*begun, *[("overlapping", True)] * 3, ("idle", False)]


def test_the_life_of_a_mount_is_told() -> None:
    world = Installation()
    world.must("POST", "sys/mounts/team", {"type": "cloud"})
    world.must("POST", "sys/mounts/team/tune", {"description": "ours"})
    world.must("POST", "sys/remount", {"from": "team", "to": "other"})
    world.must("DELETE", "sys/mounts/other")
    told = [(event.path, event.state) for event in world.events if isinstance(event, MountChanged)]
    assert told[:4] == [("team", "enabled"), ("team", "tuned"), ("other", "moved"), ("other", "disabled")]


def test_events_are_json_objects_with_their_type() -> None:
    assert msgspec.to_builtins(TUNED) == {"type": "mount", "mount_accessor": "a", "path": "p", "state": "tuned"}


def test_no_secret_gets_into_an_event() -> None:
    """Canaries wherever a secret can be: in headers, paths, queries, bodies, answers, and in what the provider says."""
    world = Installation(verify_credentials=False)
    machine = configure_logins(world, token_policies="app")
    cloud = world.scene
    application, other = cloud["applications"][:2]
    secrets = [CANARY, application["client_secret"]]

    def keep(*found: str) -> None:
        secrets.extend(found)

    login = login_form(world, machine)
    auth = world.must("POST", "auth/cloud/login", login, token="").auth
    keep(str(login["jwt"]), auth["client_token"])
    world.ask("POST", "auth/cloud/login", {**login, "jwt": f"{login['jwt']}x"}, token="")
    world.ask(
        "POST", "auth/cloud/login", {**login, "role": f"{CANARY} !", "vm_name": CANARY, "extra": CANARY}, token=""
    )
    batch = create_token(world, type="batch", policies=["default"])["client_token"]
    keep(batch, new_token(world, policies=["default"]))
    for token in secrets[2:]:
        world.ask("GET", f"auth/token/lookup/{token}", None, token)
    for path in (f"auth/token/lookup-self?token={CANARY}", f"cloud/roles?x={CANARY}"):
        world.ask("GET", path, None, CANARY)
        world.ask("POST", path, {"token": CANARY})
    secret = {name: application[name] for name in ("client_id", "client_secret")}
    subscription = {"tenant_id": cloud["tenant"], "subscription_id": cloud["subscriptions"][0]}
    world.must("POST", "cloud/config", {**secret, **subscription})
    world.ask("POST", "cloud/config", {"client_secret": CANARY, "tenant_id": f"{CANARY} !", "rotation_period": CANARY})
    world.must("POST", "cloud/config", {**secret, **subscription})
    world.must("POST", "cloud/roles/web", {"application_object_id": other["object_id"], "ttl": "1h"})
    issued = world.must("GET", "cloud/creds/web")
    keep(issued.data["client_secret"])
    token = world.must("GET", "cloud/creds/web", x_service_wrap_ttl="60").body["wrap_info"]["token"]
    keep(token, world.must("POST", "sys/wrapping/unwrap", {"token": token}).data["client_secret"])
    world.ask("POST", "sys/wrapping/unwrap", {"token": token})
    world.must("POST", "cloud/rotate-root", {"force": True})
    keep(*(p.secret for each in world.simulator.world.directory.applications.all() for p in each.passwords))
    world.fail(status=403, message=f"{CANARY} {secrets[1]}")
    world.ask("PUT", "sys/leases/revoke", {"lease_id": issued.body["lease_id"]})
    world.ask("GET", "cloud/creds/web")
    world.advance(4000)
    world.pass_time(3)
    events = msgspec.json.encode(world.events).decode() + repr(world.events)
    assert {type(event) for event in world.events} >= {RequestAnswered, LeaseChanged, IntentChanged, RotationChanged}
    assert [each for each in secrets if each in events] == []
