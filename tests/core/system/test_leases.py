"""The routes of leases, as clients use them."""

from __future__ import annotations

from typing import Any

import pytest

from cloudid_core.context import queue
from cloudid_core.context.queue import PAUSES
from cloudid_core.effects import Commit
from cloudid_core.leases import synchronous
from cloudid_core.leases.revocation import end_leases
from cloudid_core.policies import Acl
from cloudid_core.store import keys
from cloudid_core.system.leases import LOOK_UP_ACCESSOR
from tests.engines import SecretsEngine, engine_with_roles
from tests.installation import ROOT, START
from tests.logins import ROLE as ROLE_OF_LOGINS
from tests.logins import configure_logins, log_in
from tests.tokens import is_valid, new_token, write_policy

LOOK_UP = "sys/leases/lookup"
ACTIONS = ("renew", "revoke")


def look_up(world: SecretsEngine, lease_id: str) -> Any:
    return world.must("POST", LOOK_UP, {"lease_id": lease_id}).data


def listed(world: SecretsEngine, path: str = "") -> Any:
    return world.must("LIST", f"{LOOK_UP}/{path}").data["keys"]


def child(world: SecretsEngine, **fields: object) -> str:
    """A token that was made by the root token."""
    token: str = world.must("POST", "auth/token/create", fields).auth["client_token"]
    return token


def forget_role(world: SecretsEngine, name: str = "existing") -> None:
    world.must("DELETE", f"cloud/roles/{name}")


def write_role(world: SecretsEngine, **fields: object) -> None:
    world.must("POST", "cloud/roles/existing", fields)


# Look-up


def test_a_look_up_returns_the_lifetime_of_a_lease() -> None:
    world = engine_with_roles()
    lease_id = world.issue()
    world.advance(60)
    root = world.must("GET", "auth/token/lookup-self").data["accessor"]
    assert look_up(world, lease_id) == {
        "accessor": root,
        "id": lease_id,
        "issue_time": "2027-01-15T08:00:00Z",
        "expire_time": "2027-01-15T09:00:00Z",
        "last_renewal": None,
        "renewable": True,
        "ttl": 3540,
    }


def test_a_look_up_names_the_holder_only_to_callers_who_may_look_up_tokens() -> None:
    world = engine_with_roles()
    write_policy(world, "creds", ("cloud/creds/existing", ["read"]))
    lease_id = world.issue("existing", new_token(world, policies=["creds"], display_name="build"))
    accessor = look_up(world, lease_id)["accessor"]
    assert world.must("POST", LOOK_UP_ACCESSOR, {"accessor": accessor}).data["display_name"] == "token-build"
    for paths, is_shown in (((), False), ((LOOK_UP_ACCESSOR,), True)):
        reader = new_token(
            world, policies=["default", write_policy(world, "reader", *((p, ["update"]) for p in paths))]
        )
        data = world.must("PUT", LOOK_UP, {"lease_id": lease_id}, reader).data
        assert data.get("accessor") == (accessor if is_shown else None)


def test_the_lease_of_a_batch_token_names_no_holder() -> None:
    world = engine_with_roles()
    write_policy(world, "creds", ("cloud/creds/existing", ["read"]))
    lease_id = world.issue("existing", child(world, policies=["creds"], type="batch", no_parent=True))
    assert look_up(world, lease_id)["accessor"] == ""


def test_a_lease_id_starts_with_the_path_that_was_read() -> None:
    assert engine_with_roles().issue().startswith("cloud/creds/existing/")


@pytest.mark.parametrize("body", [{"lease_id": "cloud/creds/existing/unknown"}, {"lease_id": "../x"}])
def test_an_unknown_lease_cannot_be_looked_up_or_renewed(body: dict[str, str]) -> None:
    world = engine_with_roles()
    for path in (LOOK_UP, "sys/leases/renew"):
        assert world.refused("PUT", path, body) == (400, "lease_not_found")


@pytest.mark.parametrize("path", [LOOK_UP, *(f"sys/leases/{action}" for action in ACTIONS)])
def test_a_request_without_a_lease_id_is_refused(path: str) -> None:
    assert engine_with_roles().refused("PUT", path, {}) == (400, "field_required")


# Renewal


def test_a_renewal_grants_the_default_ttl() -> None:
    world = engine_with_roles()
    lease_id = world.issue()
    world.advance(1800)
    reply = world.must("PUT", "sys/leases/renew", {"lease_id": lease_id})
    assert (reply.status, reply.body["lease_id"], reply.body["lease_duration"]) == (200, lease_id, 3600)
    assert reply.body["renewable"] is True
    seen = look_up(world, lease_id)
    assert (seen["ttl"], seen["last_renewal"]) == (3600, "2027-01-15T08:30:00Z")


def test_the_host_is_asked_to_come_back_when_a_lease_ends() -> None:
    world = engine_with_roles()
    issued = world.must("GET", "cloud/creds/existing")
    assert issued.response.wake_at == START + 3600
    world.advance(100)
    renewed = world.must("PUT", "sys/leases/renew", {"lease_id": issued.body["lease_id"]})
    assert renewed.response.wake_at == START + 3700


def test_an_increment_counts_from_now_and_may_be_shorter() -> None:
    world = engine_with_roles()
    lease_id = world.issue()
    assert (
        world.must("PUT", "sys/leases/renew", {"lease_id": lease_id, "increment": "90s"}).body["lease_duration"] == 90
    )
    world.pass_time(100)
    assert world.lease(lease_id) is None


@pytest.mark.parametrize("place", ["leases/renew", "renew"])
@pytest.mark.parametrize("in_path", [False, True])
def test_by_the_policy_that_all_have_only_the_token_of_a_lease_and_its_ancestors_renew_it(
    place: str, in_path: bool
) -> None:
    world = engine_with_roles()
    write_policy(world, "lender", ("cloud/creds/*", ["read"]), ("auth/token/create", ["update"]))
    write_policy(world, "renewer", ("sys/leases/renew", ["update"]), ("sys/leases/renew/*", ["update"]))
    write_policy(world, "older", ("sys/renew", ["update"]), ("sys/renew/*", ["update"]))
    parent = new_token(world, policies=["lender"])
    holder, sibling = new_token(world, parent), new_token(world, parent)
    child = new_token(world, holder)
    stranger, renewer = new_token(world, policies=["default"]), new_token(world, policies=["renewer", "older"])
    lease_id = world.must("GET", "cloud/creds/existing", None, holder).body["lease_id"]
    path, body = (f"sys/{place}/{lease_id}", {}) if in_path else (f"sys/{place}", {"lease_id": lease_id})
    asked = {"parent": parent, "holder": holder, "renewer": renewer, "root": ROOT}
    for token in asked.values():
        assert world.must("PUT", path, body, token).body["lease_id"] == lease_id
    for token in (stranger, sibling, child):
        assert world.refused("PUT", path, body, token) == (403, "permission_denied")


def test_a_renewal_ends_with_the_maximum_of_the_role() -> None:
    world = engine_with_roles()
    lease_id = world.issue()
    for _ in range(4):
        world.advance(3500)
        reply = world.must("PUT", "sys/leases/renew", {"lease_id": lease_id})
    assert reply.body["lease_duration"] == 4 * 3600 - 4 * 3500
    assert reply.body["warnings"]


def test_a_renewal_takes_the_values_that_the_role_has_now() -> None:
    world = engine_with_roles()
    lease_id = world.issue()
    write_role(world, ttl="10m")
    assert world.must("PUT", "sys/leases/renew", {"lease_id": lease_id}).body["lease_duration"] == 600
    write_role(world, max_ttl="1h", ttl="1h")
    world.advance(590)
    assert world.must("PUT", "sys/leases/renew", {"lease_id": lease_id}).body["lease_duration"] == 3010


def test_no_renewal_outlives_the_secret_at_the_provider() -> None:
    """Whatever the role says by now."""
    world = engine_with_roles()
    lease_id = world.issue()
    lease = world.lease(lease_id)
    assert lease is not None
    write_role(world, ttl="48h", max_ttl="480h")
    reply = world.must("PUT", "sys/leases/renew", {"lease_id": lease_id, "increment": "1000h"})
    assert reply.body["lease_duration"] == int(lease.ends_at - START)
    assert reply.body["warnings"] == [
        f"the TTL is capped, because the credentials expire in {int(lease.ends_at - START)}s"
    ]


def test_an_explicit_maximum_is_never_passed() -> None:
    world = engine_with_roles()
    write_role(world, ttl="1h", max_ttl="1h", explicit_max_ttl="1h")
    lease_id = world.issue()
    write_role(world, ttl="1h", max_ttl="10h", explicit_max_ttl="0")
    world.advance(1800)
    assert world.must("PUT", "sys/leases/renew", {"lease_id": lease_id}).body["lease_duration"] == 1800


@pytest.mark.parametrize("how", ["expired", "revoked"])
def test_a_lease_that_is_over_cannot_be_renewed(how: str) -> None:
    world = engine_with_roles()
    lease_id = world.issue()
    if how == "expired":
        world.advance(3600)
    else:
        world.must("PUT", "sys/leases/revoke", {"lease_id": lease_id, "sync": False})
    assert world.refused("PUT", "sys/leases/renew", {"lease_id": lease_id}) == (400, "lease_expired")


def test_a_lease_of_a_role_that_is_gone_lives_on_but_is_not_renewed() -> None:
    world = engine_with_roles()
    lease_id = world.issue()
    forget_role(world)
    assert world.refused("PUT", "sys/leases/renew", {"lease_id": lease_id}) == (400, "lease_not_renewable")
    assert look_up(world, lease_id)["ttl"] == 3600


def test_a_lease_of_a_dead_token_is_not_renewed() -> None:
    """Even before the background has noticed."""
    world = engine_with_roles()
    token = child(world, ttl="10m")
    lease_id = world.issue(token=token)
    world.advance(601)
    assert world.refused("PUT", "sys/leases/renew", {"lease_id": lease_id}) == (400, "lease_expired")


def test_a_renewal_rests_on_lease_token_mounts_and_role() -> None:
    world = engine_with_roles()
    lease_id = world.issue()
    lease = world.lease(lease_id)
    assert lease is not None
    world.must("PUT", "sys/leases/renew", {"lease_id": lease_id})
    (commit,) = (e for _, e in world.trace if isinstance(e, Commit) and lease.key in e.puts and lease.key in e.expects)
    role = keys.role(lease.mount_id, lease.role)
    assert {lease.key, keys.token(lease.token_id), keys.MOUNTS, role} <= set(commit.expects)


def test_a_renewal_that_loses_against_a_revocation_is_refused() -> None:
    world = engine_with_roles()
    lease_id = world.issue()
    renewals = [
        world.spawn(world.asking("PUT", f"sys/leases/{action}/{lease_id}"))
        for action in ("renew", "revoke", "renew", "renew")
    ]
    world.settle()
    assert renewals[1].result().status == 204
    assert world.lease(lease_id) is None
    assert world.due(queue.LEASE) == []


# Revocation


@pytest.mark.parametrize("action", ["revoke", "revoke-prefix"])
@pytest.mark.parametrize("role", ["fresh", "existing"])
def test_a_revoked_lease_is_gone_with_its_objects_when_the_answer_comes(action: str, role: str) -> None:
    world = engine_with_roles()
    lease_id = world.issue(role)
    assert world.must("PUT", f"sys/leases/{action}/{lease_id}").status == 204
    assert world.ask("PUT", LOOK_UP, {"lease_id": lease_id}).status == 400
    assert world.alive("application") == world.alive("password") == []


@pytest.mark.parametrize("action", ["revoke", "revoke-prefix"])
def test_a_revocation_in_the_background_is_accepted_and_done_by_the_next_round(action: str) -> None:
    world = engine_with_roles()
    lease_id = world.issue("fresh")
    reply = world.must("PUT", f"sys/leases/{action}/{lease_id}", {"sync": False})
    assert (reply.status, reply.response.wake_at) == (202, world.clock)
    assert look_up(world, lease_id)["revoking"] is True
    assert world.alive("password")
    world.tick()
    assert world.ask("PUT", LOOK_UP, {"lease_id": lease_id}).status == 400
    assert world.alive("application") == []


def test_the_secret_is_dead_although_the_resource_manager_hangs() -> None:
    """The answer is no success, because an assignment is left."""
    world = engine_with_roles()
    lease_id = world.issue("fresh")
    world.fail("arm", status=503, delay=1000)
    assert world.refused("PUT", "sys/leases/revoke", {"lease_id": lease_id}, x_service_deadline="20") == (
        503,
        "revocation_pending",
        "provider_unreachable",
    )
    assert world.clock <= START + 20
    assert world.alive("password") == world.alive("application") == []
    assert world.alive("assignment")
    world.heal()
    world.pass_time(200)
    assert world.lease(lease_id) is None
    assert world.alive("assignment") == []


@pytest.mark.parametrize(
    "trouble, status, code",
    [
        ({"status": 403, "code": "Authorization_RequestDenied"}, 502, "provider_permission_denied"),
        ({"status": 503}, 503, "provider_failed"),
        ({"status": 429}, 503, "provider_throttled"),
    ],
)
@pytest.mark.parametrize("action", ["revoke", "revoke-prefix"])
def test_a_revocation_that_the_provider_does_not_do_is_no_success(
    action: str, trouble: dict[str, Any], status: int, code: str
) -> None:
    world = engine_with_roles()
    lease_id = world.issue("existing")
    world.fail("graph", **trouble)
    assert world.refused("PUT", f"sys/leases/{action}/{lease_id}") == (status, "revocation_pending", code)
    assert look_up(world, lease_id)["revoke_error"]
    world.heal()
    world.pass_time(200)
    assert world.lease(lease_id) is None


@pytest.mark.parametrize(
    "fields, most",
    [
        ({"token_ttl": "60s", "token_type": "batch"}, 60),
        ({"token_ttl": "1h", "token_explicit_max_ttl": "90s"}, 90),
        ({"token_ttl": "60s", "token_max_ttl": "90s"}, 90),
    ],
)
def test_no_lease_is_said_to_outlive_the_hard_end_of_its_token(fields: dict[str, str], most: int) -> None:
    world = engine_with_roles()
    policy = 'path "cloud/creds/*" { capabilities = ["read"] } path "sys/leases/renew" { capabilities = ["update"] }'
    world.must("POST", "sys/policies/acl/web", {"policy": policy})
    token = log_in(world, configure_logins(world, token_policies="web", **fields))["client_token"]
    issued = world.must("GET", "cloud/creds/existing", None, token).body
    assert issued["lease_duration"] <= most
    assert any("the token expires" in warning for warning in issued["warnings"])
    renewed = world.must("POST", "sys/leases/renew", {"lease_id": issued["lease_id"], "increment": 7200}, token).body
    assert renewed["lease_duration"] <= most
    assert renewed["warnings"]


def test_a_batch_token_renews_no_lease_of_another_machine() -> None:
    """By the policy `default` alone. The same machine renews its leases after its next login."""
    world = engine_with_roles()
    world.must("POST", "sys/policies/acl/web", {"policy": 'path "cloud/creds/*" { capabilities = ["read"] }'})
    configure_logins(world, token_policies="web", token_type="batch", token_ttl="1h")
    world.must("POST", ROLE_OF_LOGINS, {"bound_subscription_ids": "", "bound_service_principal_ids": ["*"]})
    first, second = world.scene["machines"][:2]
    lease = world.must("GET", "cloud/creds/existing", None, log_in(world, first)["client_token"]).body["lease_id"]
    renewal = {"lease_id": lease}
    refused = world.refused("POST", "sys/leases/renew", renewal, log_in(world, second)["client_token"])
    assert refused == (403, "permission_denied")
    world.must("POST", "sys/leases/renew", renewal, log_in(world, first)["client_token"])


def test_a_batch_token_without_a_login_renews_no_lease_of_another_one() -> None:
    """By the policy `default` alone, whichever token created both."""
    world = engine_with_roles()
    world.must("POST", "sys/policies/acl/web", {"policy": 'path "cloud/creds/*" { capabilities = ["read"] }'})
    world.must("POST", "sys/policies/acl/maker", {"policy": 'path "auth/token/create/b" { capabilities = ["update"] }'})
    world.must("POST", "auth/token/roles/b", {"orphan": True, "token_type": "batch", "allowed_policies": "web"})
    maker = new_token(world, policies=["maker"])
    for creator in (maker, new_token(world, policies=["maker"])):
        first = world.must("POST", "auth/token/create/b", {}, maker).auth["client_token"]
        second = world.must("POST", "auth/token/create/b", {}, creator).auth["client_token"]
        renewal = {"lease_id": world.issue("existing", first)}
        assert world.refused("POST", "sys/leases/renew", renewal, second) == (403, "permission_denied")
        world.must("POST", "sys/leases/renew", renewal, first)


def test_the_list_of_stuck_leases_asks_the_policies_once_for_each_mount(monkeypatch: pytest.MonkeyPatch) -> None:
    world = engine_with_roles()
    lease_ids = [world.issue("fresh") for _ in range(3)]
    world.fail("arm", times=None, status=403, code="AuthorizationFailed")
    for lease_id in lease_ids:
        world.ask("PUT", "sys/leases/revoke", {"lease_id": lease_id})
    asked: list[str] = []
    allows = Acl.allows

    def counted(acl: Acl, operation: str, path: str, *more: Any, **named: Any) -> bool:
        asked.append(path)
        return allows(acl, operation, path, *more, **named)

    monkeypatch.setattr(Acl, "allows", counted)
    assert len(world.must("GET", "sys/leases").data["leases"]) == 3
    assert asked.count("cloud/config") == 1


@pytest.mark.parametrize("may_read_config", [True, False])
def test_the_reason_of_a_lease_names_the_providers_code_only_to_who_may_read_the_configuration(
    may_read_config: bool,
) -> None:
    world = engine_with_roles()
    lease_id = world.issue("fresh")
    world.fail("arm", status=403, code="AuthorizationFailed")
    world.ask("PUT", "sys/leases/revoke", {"lease_id": lease_id})
    policy = 'path "sys/leases*" { capabilities = ["read", "update", "sudo"] }\n'
    policy += 'path "cloud/config" { capabilities = ["read"] }' if may_read_config else ""
    world.must("POST", "sys/policies/acl/reader", {"policy": policy})
    token = world.must("POST", "auth/token/create", {"policies": ["reader"]}).auth["client_token"]
    looked_up = world.must("PUT", LOOK_UP, {"lease_id": lease_id}, token).data["revoke_error"]
    [stuck] = world.must("GET", "sys/leases", None, token).data["leases"]
    for reason in (looked_up, stuck["error"]):
        assert "403" in reason
        assert ("AuthorizationFailed" in reason) is may_read_config


def test_the_secret_of_a_fresh_application_dies_although_applications_cannot_be_read_or_deleted() -> None:
    """Its key id is known from the issue on, so that nothing has to be looked up."""
    world = engine_with_roles()
    lease_id = world.issue("fresh")
    for_all = {"times": None, "action": {"status": 403, "code": "Denied"}}
    rules = [{"match": {"family": "graph", "method": method}, **for_all} for method in ("GET", "DELETE")]
    world.cloud("POST", "/simulator/faults", rules)
    assert world.ask("PUT", "sys/leases/revoke", {"lease_id": lease_id}).status == 502
    assert world.alive("password") == []
    assert world.alive("application") != []


def test_a_revocation_that_has_no_time_left_is_answered_in_time() -> None:
    world = engine_with_roles()
    lease_id = world.issue("existing")
    world.slow(1000)
    assert world.refused("PUT", "sys/leases/revoke", {"lease_id": lease_id}, x_service_deadline="20") == (
        504,
        "deadline_passed",
        "revocation_pending",
    )
    assert world.clock <= START + 20


def test_a_secret_that_does_not_show_yet_is_not_taken_for_dead() -> None:
    world = engine_with_roles()
    lease_id = world.issue("existing")
    world.fail("graph", status=404, code="Request_ResourceNotFound")
    assert world.refused("PUT", "sys/leases/revoke", {"lease_id": lease_id}) == (503, "revocation_pending")


def test_an_assignment_that_waits_for_the_settle_time_is_no_failure() -> None:
    """The lease stays listed until it is certainly gone."""
    world = engine_with_roles()
    lease_id = world.issue("fresh")
    world.fail(method="DELETE", path="/arm/", status=404, code="RoleAssignmentNotFound", times=1)
    assert world.ask("PUT", "sys/leases/revoke", {"lease_id": lease_id}).status == 204
    assert "settle time" in look_up(world, lease_id)["revoke_error"]
    assert world.alive("password") == []
    world.pass_time(1000)
    assert world.lease(lease_id) is None


def test_a_crash_during_a_revocation_loses_nothing() -> None:
    """The attempt is due again when the request is certainly over."""
    world = engine_with_roles()
    lease_id = world.issue("existing")
    world.slow(30)
    world.spawn(world.asking("PUT", f"sys/leases/revoke/{lease_id}"))
    world.advance(1)
    world.restart()
    world.heal()
    lease = world.lease(lease_id)
    assert lease is not None
    assert lease.due_at == START + world.settings.request_deadline + world.settings.request_grace
    world.pass_time(3600)
    assert world.lease(lease_id) is None
    assert world.alive("password") == []


def test_a_revocation_does_not_wait_for_an_attempt_of_the_background() -> None:
    world = engine_with_roles()
    lease_id = world.issue("existing")
    world.must("PUT", "sys/leases/revoke", {"lease_id": lease_id, "sync": False})
    world.slow(20)
    world.spawn(world.service.tick())
    world.advance(1)
    world.heal()
    assert world.ask("PUT", "sys/leases/revoke", {"lease_id": lease_id}).status in (204, 503)
    assert world.alive("password") == []
    assert world.lanes_at_work
    world.settle()
    world.pass_time(400)
    assert world.lease(lease_id) is None


def test_many_leases_are_marked_first_and_the_answer_counts_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synchronous, "PAGE", 4)
    world = engine_with_roles()
    leases = [world.issue() for _ in range(12)]
    world.slow(1000)
    reply = world.ask("PUT", "sys/leases/revoke-prefix/cloud/creds", x_service_deadline="20")
    assert reply.status == 202
    assert world.clock <= START + 20
    assert (reply.data["left"], reply.data["path"]) == (12, "sys/leases/lookup/cloud/creds")
    assert reply.data["reasons"]
    assert reply.response.wake_at == START + 20 + world.settings.request_grace, "when the request is certainly over"
    assert all(lease and lease.revoking for lease in map(world.lease, leases))
    world.heal()
    world.pass_time(3600)
    assert not any(map(world.lease, leases))
    assert world.alive("password") == []


def test_an_unknown_lease_is_ignored() -> None:
    world = engine_with_roles()
    for path in ("sys/leases/revoke", "sys/revoke"):
        assert world.ask("PUT", path, {"lease_id": "cloud/creds/existing/unknown"}).status == 204


@pytest.mark.parametrize("verb", ["PUT", "POST"])
@pytest.mark.parametrize("place", ["sys/leases/", "sys/"])
@pytest.mark.parametrize("in_path", [True, False])
def test_renewal_and_revocation_accept_every_spelling(verb: str, place: str, in_path: bool) -> None:
    world = engine_with_roles()
    lease_id = world.issue()
    for action, status in zip(ACTIONS, (200, 204), strict=True):
        path, body = (f"{place}{action}/{lease_id}", {}) if in_path else (f"{place}{action}", {"lease_id": lease_id})
        assert world.ask(verb, path, body).status == status
    assert world.lease(lease_id) is None


@pytest.mark.parametrize("place", ["sys/leases/", "sys/"])
def test_a_prefix_ends_all_below_it_and_nothing_beside_it(place: str) -> None:
    world = engine_with_roles()
    world.must("POST", "cloud/roles/existing2", {"application_object_id": "x"} | role_of(world))
    inside = [world.issue() for _ in range(3)]
    outside = world.issue("existing2")
    assert world.must("PUT", f"{place}revoke-prefix/cloud/creds/existing", {}).status == 204
    world.tick()
    assert [world.lease(lease_id) for lease_id in inside] == [None] * 3
    assert world.lease(outside)


def role_of(world: SecretsEngine) -> dict[str, str]:
    return {"application_object_id": world.scene["applications"][1]["object_id"]}


def test_a_prefix_ends_more_leases_than_a_page_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synchronous, "PAGE", 3)
    world = engine_with_roles()
    for _ in range(8):
        world.issue()
    world.must("PUT", "sys/leases/revoke-prefix/cloud", {})
    world.pass_time(3)
    assert world.leases() == []
    assert world.alive("password") == []


def test_a_prefix_that_takes_too_long_can_be_ended_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leases that were ended by the first try stay ended."""
    monkeypatch.setattr(synchronous, "PAGE", 2)
    world = engine_with_roles()
    leases = [world.issue() for _ in range(6)]

    async def slow(*args: Any, **more: Any) -> None:
        await end_leases(*args, **more)
        world.clock += 40

    monkeypatch.setattr(synchronous, "end_leases", slow)
    assert world.ask("PUT", "sys/leases/revoke-prefix/cloud", {}).status == 504
    assert sum(lease.revoking for lease in map(world.lease, leases) if lease) == 4
    monkeypatch.setattr(synchronous, "end_leases", end_leases)
    world.must("PUT", "sys/leases/revoke-prefix/cloud", {})
    world.tick()
    assert [world.lease(lease_id) for lease_id in leases] == [None] * 6


def test_the_tokens_of_an_authentication_method_end_with_its_prefix() -> None:
    world = engine_with_roles()
    token = child(world, ttl="1h", no_parent=True)
    lease_id = world.issue(token=token)
    world.must("PUT", "sys/leases/revoke-prefix/auth/token/create", {})
    assert world.ask("GET", "auth/token/lookup-self", token=token).status == 403
    assert world.ask("GET", "auth/token/lookup-self").status == 200
    world.pass_time(3)
    assert world.lease(lease_id) is None


def test_no_prefix_ends_a_token_without_end() -> None:
    """It has no lease. Otherwise ending all logins would lock out everybody, with the operator who does it."""
    world = engine_with_roles()
    endless, ends = child(world), child(world, ttl="1h")
    world.must("PUT", "sys/leases/revoke-prefix/auth", {})
    assert [is_valid(world, token) for token in (ROOT, endless, ends)] == [True, True, False]


def test_force_drops_leases_at_once_and_the_journal_goes_on() -> None:
    world = engine_with_roles()
    leases = [world.issue(), world.issue("fresh")]
    world.fail("graph", status=403)
    assert world.ask("PUT", "sys/leases/revoke-prefix/cloud").status == 502
    reply = world.must("PUT", "sys/leases/revoke-force/cloud", {})
    assert reply.status == 200
    assert "2 leases were dropped" in reply.body["warnings"][0]
    assert [world.lease(lease_id) for lease_id in leases] == [None, None]
    assert world.ask("LIST", LOOK_UP).status == 404
    assert world.must("GET", "sys/leases").data["lease_count"] == 0
    world.heal()
    world.pass_time(2 * PAUSES.longest)
    assert world.alive("application") == world.alive("password") == []


def test_force_counts_one_lease_as_one() -> None:
    world = engine_with_roles()
    world.issue()
    assert "1 lease was dropped" in world.must("PUT", "sys/leases/revoke-force/cloud").body["warnings"][0]


def test_force_without_leases_changes_nothing() -> None:
    assert engine_with_roles().ask("PUT", "sys/revoke-force/cloud", {}).status == 204


# Lists


def test_leases_are_listed_level_by_level() -> None:
    world = engine_with_roles()
    leases = sorted([world.issue() for _ in range(3)])
    world.issue("fresh")
    assert listed(world) == ["cloud/"]
    assert listed(world, "cloud/creds") == ["existing/", "fresh/"]
    assert listed(world, "cloud/creds/existing/") == [lease_id.rsplit("/", 1)[1] for lease_id in leases]
    assert world.ask("LIST", f"{LOOK_UP}/nowhere").status == 404


def test_a_level_is_listed_without_what_is_below_it() -> None:
    world = engine_with_roles()
    for _ in range(20):
        world.issue()
    world.issue("fresh")
    start = len(world.trace)
    assert listed(world, "cloud") == ["creds/"]
    assert sum(type(effect).__name__ == "ListKeys" for _, effect in world.trace[start:]) == 2


def test_a_name_in_the_index_that_is_no_leases_hides_none() -> None:
    world = engine_with_roles()
    lease_id = world.issue("existing")
    prefix = keys.mount_leases(world.mount().id)
    names = ("a", "", "a/b", "cloud", "cloud/", "a/b/c/d/e", "z")
    world.store.commit({}, {f"{prefix}{name}": b"x" for name in names}, ())
    path, _, last = lease_id.rpartition("/")
    assert last in world.must("LIST", f"sys/leases/lookup/{path}").data["keys"]
    assert "creds/" in world.must("LIST", "sys/leases/lookup/cloud").data["keys"]
    world.must("PUT", "sys/leases/lookup", {"lease_id": lease_id})
    assert world.refused("PUT", "sys/leases/lookup", {"lease_id": "cloud/creds/existing/x"})[0] == 400


def test_leases_that_cannot_be_revoked_are_listed_and_counted() -> None:
    world = engine_with_roles()
    stuck = [world.issue() for _ in range(3)]
    world.issue("fresh")
    world.fail("graph", status=403, code="Authorization_RequestDenied")
    assert world.ask("PUT", "sys/leases/revoke-prefix/cloud/creds/existing").status == 502
    data = world.must("GET", "sys/leases?type=irrevocable").data
    assert data["lease_count"] == 3
    assert [each["lease_id"] for each in data["leases"]] == sorted(stuck)
    assert all("403 Authorization_RequestDenied" in each["error"] for each in data["leases"])
    assert len(world.must("GET", "sys/leases?limit=2").data["leases"]) == 2
    count = world.must("GET", "sys/leases/count?type=irrevocable").data
    assert count == {"lease_count": 3, "counts": {world.mount().accessor: 3}}
    seen = look_up(world, stuck[0])
    assert (seen["revoking"], seen["revoke_attempts"]) == (True, 1)
    assert "403" in seen["revoke_error"]


def test_only_irrevocable_leases_can_be_listed() -> None:
    assert engine_with_roles().ask("GET", "sys/leases?type=all").status == 400


# Leases of a mount that was moved


def move(world: SecretsEngine, source: str, target: str) -> None:
    world.must("POST", "sys/remount", {"from": source, "to": target})
    world.tick()


def test_leases_are_listed_where_their_mount_is() -> None:
    """Not where it was: another mount may be there now, and other people have rights there."""
    world = engine_with_roles()
    before = world.issue()
    move(world, "cloud", "team/cloud")
    after = world.must("GET", "team/cloud/creds/existing").body["lease_id"]
    assert listed(world) == ["team/"]
    assert listed(world, "team") == ["cloud/"]
    assert listed(world, "team/cloud") == ["creds/"]
    assert listed(world, "team/cloud/creds") == ["existing/"]
    ids = sorted(lease_id.rpartition("/")[2] for lease_id in (before, after))
    assert listed(world, "team/cloud/creds/existing") == ids
    assert world.ask("LIST", f"{LOOK_UP}/cloud").status == 404
    assert world.ask("LIST", f"{LOOK_UP}/team/cloud/creds/other").status == 404
    world.must("POST", "sys/mounts/cloud", {"type": "cloud"})
    assert world.ask("LIST", f"{LOOK_UP}/cloud").status == 404


def test_what_is_listed_can_be_looked_up_and_revoked() -> None:
    """Both by its id, and by the path that it is listed at."""
    world = engine_with_roles()
    lease_ids = [world.issue() for _ in range(2)]
    move(world, "cloud", "team/cloud")
    for lease_id in lease_ids:
        path = f"team/cloud/creds/existing/{lease_id.rpartition('/')[2]}"
        assert world.must("POST", LOOK_UP, {"lease_id": path}).data["id"] == lease_id
        assert world.must("POST", "sys/leases/renew", {"lease_id": path}).body["lease_id"] == lease_id
        assert world.ask("POST", f"sys/leases/revoke/{path}").status == 204
        assert world.lease(lease_id) is None
    assert world.ask("POST", LOOK_UP, {"lease_id": "team/cloud/creds/existing/nowhere"}).status == 400


def test_a_level_of_leases_with_two_former_paths_is_listed_without_what_is_below_it() -> None:
    world = engine_with_roles()
    for _ in range(20):
        world.issue()
    move(world, "cloud", "team/cloud")
    for _ in range(20):
        world.must("GET", "team/cloud/creds/existing")
    start = len(world.trace)
    assert listed(world, "team/cloud/creds") == ["existing/"]
    assert sum(type(effect).__name__ == "ListKeys" for _, effect in world.trace[start:]) == 3


@pytest.mark.parametrize("route", ["sys/leases/lookup", "sys/leases/renew", "sys/renew", "sys/leases/revoke"])
def test_an_id_that_is_too_long_for_a_lease_is_refused(route: str) -> None:
    world = engine_with_roles()
    assert world.refused("PUT", route, {"lease_id": "a/" * 600}) == (400, "field_invalid")
