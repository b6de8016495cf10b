"""Credentials: what is answered, for how long it lives, and that nothing half-made is left."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve

from cloudid_core.effects import Commit, Effect, HttpRequest, Record
from cloudid_core.errors import RecordFailed
from cloudid_core.testing import Fault, FaultKind
from cloudid_core.values import rfc3339
from cloudid_servers.provider_simulator import Answer
from tests.engines import CONFIG, CREDS, DAY, ROLE, SecretsEngine, configured_engine
from tests.logins import configure_logins, log_in
from tests.tokens import write_policy

YEAR = 365 * DAY
MARGIN = 3600


def fresh(engine: SecretsEngine, **fields: Any) -> None:
    """A role with a principal for each lease."""
    engine.role(**{"azure_groups": engine.groups(0), **fields})


def existing(engine: SecretsEngine, **fields: Any) -> None:
    """A role with an application that was there before."""
    engine.role(application_object_id=engine.other_application["object_id"], **fields)


def kept(engine: SecretsEngine, **fields: Any) -> None:
    """A role that keeps an application."""
    engine.role(**{"azure_groups": engine.groups(0), "persist_app": True, **fields})


WAYS = pytest.mark.parametrize("way", [fresh, existing, kept])


@pytest.fixture
def engine() -> SecretsEngine:
    return configured_engine()


def token(engine: SecretsEngine, **fields: Any) -> str:
    """A token that may ask for credentials."""
    engine.must("PUT", "sys/policies/acl/app", {"policy": 'path "cloud/creds/*" { capabilities = ["read"] }'})
    made = engine.must("POST", "auth/token/create", {"policies": ["app"], **fields})
    text: str = made.auth["client_token"]
    return text


def password_ends_at(engine: SecretsEngine) -> float:
    """When the newest password that we made at the provider ends."""
    (password,) = (
        password
        for application in engine.simulator.world.directory.applications.all()
        for password in application.passwords
        if password.key_id in {made.id for made in engine.alive("password")}
    )
    return password.ends_at


# What is answered


@WAYS
def test_credentials_are_answered_with_a_lease(engine: SecretsEngine, way: Callable[..., None]) -> None:
    way(engine, ttl=600)
    reply = engine.must("GET", CREDS)
    assert set(reply.data) == {"client_id", "client_secret", "tenant_id", "subscription_id"}
    assert reply.body["lease_id"].startswith("cloud/creds/web/")
    assert (reply.body["lease_duration"], reply.body["renewable"], reply.body["warnings"]) == (600, True, None)
    assert engine.signs_in(**reply.data)
    assert engine.intents() == []


@WAYS
def test_an_issue_carries_the_tenant_and_the_subscription(engine: SecretsEngine, way: Callable[..., None]) -> None:
    """So that no client needs the right to read the configuration."""
    way(engine)
    data = engine.must("GET", CREDS).data
    assert (data["tenant_id"], data["subscription_id"]) == (engine.scene["tenant"], engine.scene["subscriptions"][0])


def test_a_role_whose_assignments_name_one_subscription_names_that(engine: SecretsEngine) -> None:
    first, other = engine.scene["subscriptions"][:2]

    def named_with(*scopes: str) -> str:
        fresh(engine, azure_roles=json.dumps([{"role_name": "Reader", "scope": scope} for scope in scopes]))
        return str(engine.must("GET", CREDS).data["subscription_id"])

    assert named_with(f"/subscriptions/{other.upper()}") == other
    assert named_with(f"/subscriptions/{other}", f"/subscriptions/{first}") == first


@WAYS
def test_every_request_gets_another_secret_and_lease(engine: SecretsEngine, way: Callable[..., None]) -> None:
    way(engine)
    first, second = (engine.must("GET", CREDS) for _ in range(2))
    assert first.data["client_secret"] != second.data["client_secret"]
    assert first.body["lease_id"] != second.body["lease_id"]


def test_unknown_roles_are_refused_with_a_message(engine: SecretsEngine) -> None:
    """Whether or not there is a configuration."""
    for bare in (engine, SecretsEngine()):
        reply = bare.ask("GET", "cloud/creds/nobody")
        assert (reply.status, reply.codes) == (400, ["role_not_found"])
        assert "role" in reply.body["errors"][0]


def test_only_a_read_gives_credentials(engine: SecretsEngine) -> None:
    """A HEAD must not make anything."""
    engine.role()
    for method in ("HEAD", "POST", "PUT", "LIST", "DELETE"):
        assert engine.ask(method, CREDS).status == 405
    assert engine.is_over()


def test_tags_and_audience_are_passed_on(engine: SecretsEngine) -> None:
    engine.role(tags="b,a", sign_in_audience="CloudADMultipleOrgs")
    engine.must("GET", CREDS)
    (made,) = engine.alive("application")
    application = engine.simulator.world.directory.applications.get(made.id)
    assert application is not None
    assert (application.tags, application.sign_in_audience) == (("a", "b"), "AzureADMultipleOrgs")


@pytest.mark.parametrize("purge", [False, True])
def test_a_change_of_permanently_delete_does_not_affect_issued_credentials(engine: SecretsEngine, purge: bool) -> None:
    engine.role(permanently_delete=purge)
    engine.must("GET", CREDS)
    engine.role(permanently_delete=not purge)
    engine.revoke_all()
    assert not engine.alive()
    assert engine.is_clean() is purge


# Proof


@WAYS
def test_a_secret_is_answered_once_the_provider_accepts_it(engine: SecretsEngine, way: Callable[..., None]) -> None:
    engine.behave(delays={"sign_in": 12})
    way(engine)
    started = engine.clock
    reply = engine.must("GET", CREDS)
    assert engine.signs_in(**reply.data)
    assert engine.clock >= started + 12


@WAYS
def test_a_secret_that_is_not_accepted_in_time_is_not_answered(engine: SecretsEngine, way: Callable[..., None]) -> None:
    way(engine)
    before = engine.alive()
    engine.behave(delays={"sign_in": 600})
    response = engine.ask("GET", CREDS, x_service_deadline="10")
    assert response.status == 504
    assert engine.leases() == []
    engine.converge()
    assert engine.alive() == before


def test_a_setting_leaves_out_the_proof_that_a_secret_works(engine: SecretsEngine) -> None:
    engine.restart(verify_credentials=False)
    engine.behave(delays={"sign_in": 12})
    engine.role()
    assert not engine.signs_in(**engine.must("GET", CREDS).data)


# Lifetimes


@pytest.mark.parametrize(
    "fields, duration, end",
    [
        ({}, 32 * DAY, 32 * DAY + MARGIN),
        ({"ttl": 600}, 600, 32 * DAY + MARGIN),
        ({"ttl": 600, "max_ttl": 1200}, 600, 1200 + MARGIN),
        ({"max_ttl": 1200}, 1200, 1200 + MARGIN),
        ({"max_ttl": 1200, "explicit_max_ttl": 1500}, 1200, 1500),
        ({"explicit_max_ttl": 1500}, 1500, 1500),
        ({"ttl": YEAR, "max_ttl": YEAR}, 32 * DAY, 32 * DAY + MARGIN),
    ],
)
@WAYS
def test_lease_and_secret_end_as_the_role_says(
    engine: SecretsEngine, way: Callable[..., None], fields: Any, duration: int, end: int
) -> None:
    """The secret an hour after the longest lease, but never past an explicit cap."""
    way(engine, **fields)
    asked_at = engine.clock
    reply = engine.must("GET", CREDS)
    assert reply.body["lease_duration"] == duration
    assert password_ends_at(engine) == asked_at + end


def test_a_ttl_above_the_maximum_is_capped_with_a_warning(engine: SecretsEngine) -> None:
    engine.role(ttl=YEAR)
    reply = engine.must("GET", CREDS)
    assert "capped" in reply.body["warnings"][0]


def test_no_lease_or_password_lives_longer_than_ten_years(engine: SecretsEngine) -> None:
    engine.must("POST", "sys/mounts/cloud/tune", {"max_lease_ttl": 20 * YEAR, "default_lease_ttl": 20 * YEAR})
    engine.role()
    asked_at = engine.clock
    assert engine.must("GET", CREDS).body["lease_duration"] == 10 * YEAR
    assert password_ends_at(engine) == asked_at + 10 * YEAR


def test_the_time_that_an_issue_takes_is_not_part_of_the_lease(engine: SecretsEngine) -> None:
    """A lease never ends after its secret."""
    engine.behave(delays={"sign_in": 12})
    engine.role(ttl=60, explicit_max_ttl=60)
    asked_at = engine.clock
    reply = engine.must("GET", CREDS)
    lease = engine.lease(reply.body["lease_id"])
    assert lease is not None
    assert lease.expires_at <= asked_at + 60
    assert reply.body["lease_duration"] <= lease.expires_at - engine.clock + 1


def test_an_issue_that_takes_longer_than_its_maximum_fails(engine: SecretsEngine) -> None:
    engine.restart(verify_credentials=False)
    engine.behave(delays={"assignments": 12})
    engine.role(explicit_max_ttl=5)
    assert engine.refused("GET", CREDS) == (504, "deadline_passed")
    engine.converge()
    assert engine.is_clean()


def test_no_renewal_goes_past_the_end_of_the_secret(engine: SecretsEngine) -> None:
    """Not even when the role has become more generous since."""
    engine.role(ttl=600, max_ttl=1200)
    asked_at = engine.clock
    lease_id = engine.must("GET", CREDS).body["lease_id"]
    engine.role(ttl=DAY, max_ttl=30 * DAY)
    engine.must("PUT", "sys/leases/renew", {"lease_id": lease_id})
    lease = engine.lease(lease_id)
    assert lease is not None
    assert lease.expires_at <= asked_at + 1200 + MARGIN


def test_a_provider_that_cuts_a_secret_short_cuts_its_lease_short(engine: SecretsEngine) -> None:
    """Some tenants do not allow long ones."""
    engine.role(ttl=600)
    honest = engine.simulator.handle

    def stingy(request: HttpRequest) -> Answer:
        answer = honest(request)
        if not request.url.endswith("/addPassword"):
            return answer
        body = {**json.loads(answer.response.body), "endDateTime": rfc3339.show(engine.clock + 300)}
        return evolve(answer, response=evolve(answer.response, body=json.dumps(body).encode()))

    engine.provider = stingy
    assert engine.must("GET", CREDS).body["lease_duration"] == 300


# Tokens


@WAYS
def test_a_lease_ends_with_the_token_that_asked(engine: SecretsEngine, way: Callable[..., None]) -> None:
    way(engine)
    before = engine.alive()
    shown = token(engine)
    reply = engine.must("GET", CREDS, token=shown)
    assert engine.signs_in(**reply.data)
    engine.must("POST", "auth/token/revoke-self", token=shown)
    engine.converge()
    assert engine.leases() == []
    assert engine.alive() == before


def test_a_lease_ends_when_the_token_runs_out(engine: SecretsEngine) -> None:
    engine.role(ttl="10h")
    engine.must("GET", CREDS, token=token(engine, ttl="1h"))
    engine.advance(3700)
    engine.converge()
    assert engine.is_over()


def test_a_lease_of_a_batch_token_ends_no_later_than_the_token(engine: SecretsEngine) -> None:
    """Renewed or not."""
    engine.role(ttl="10h")
    shown = token(engine, ttl="1h", type="batch")
    engine.advance(600)
    reply = engine.must("GET", CREDS, token=shown)
    assert reply.body["lease_duration"] == 3000
    engine.must("PUT", "sys/leases/renew", {"lease_id": reply.body["lease_id"], "increment": "5h"})
    engine.advance(3001)
    engine.converge()
    assert engine.is_over()


def test_a_batch_token_with_less_than_a_second_left_gets_no_lease(engine: SecretsEngine) -> None:
    """Clients take a lease of no seconds for one without an end."""
    engine.role()
    shown = token(engine, ttl="1m", type="batch")
    engine.advance(59.5)
    assert engine.refused("GET", CREDS, token=shown) == (504, "deadline_passed")


def test_leases_of_a_batch_token_end_with_the_parent_of_the_token(engine: SecretsEngine) -> None:
    engine.role()
    policy = 'path "auth/token/create" { capabilities = ["update"] } path "cloud/creds/*" { capabilities = ["read"] }'
    engine.must("PUT", "sys/policies/acl/parent", {"policy": policy})
    parent = engine.must("POST", "auth/token/create", {"policies": ["parent"]}).auth["client_token"]
    batch = engine.must("POST", "auth/token/create", {"type": "batch"}, token=parent).auth["client_token"]
    engine.must("GET", CREDS, token=batch)
    engine.must("POST", "auth/token/revoke-self", token=parent)
    engine.converge()
    assert engine.is_over()


def test_leases_of_a_batch_token_end_with_the_mount_that_gave_the_token(engine: SecretsEngine) -> None:
    """To disable the mount is what stops a batch token that was stolen. Leases of others go on."""
    engine.role()
    policy = write_policy(engine, "machines", ("cloud/creds/*", ["read"]))
    machine = configure_logins(engine, token_type="batch", token_policies=policy)
    kept = engine.issue("web")
    stolen = engine.issue("web", log_in(engine, machine)["client_token"])
    assert engine.ask("PUT", "sys/leases/renew", {"lease_id": stolen}).status == 200
    engine.must("DELETE", "sys/auth/cloud")
    assert engine.refused("PUT", "sys/leases/renew", {"lease_id": stolen}) == (400, "lease_expired")
    engine.converge()
    assert engine.leases() == [kept]
    assert len(engine.alive("application")) == 1
    engine.must("PUT", "sys/leases/revoke", {"lease_id": kept})
    engine.converge()
    assert engine.is_over()


def test_the_last_use_of_a_token_gets_no_credentials(engine: SecretsEngine) -> None:
    """They would end at once, so nothing is made."""
    engine.role()
    since = len(engine.trace)
    assert engine.refused("GET", CREDS, token=token(engine, num_uses=1)) == (400, "token_used_up")
    assert engine.calls(since) == []
    assert engine.ask("GET", CREDS, token=token(engine, num_uses=2)).status == 200


def test_a_token_that_is_revoked_meanwhile_gets_nothing(engine: SecretsEngine) -> None:
    engine.role()
    engine.behave(delays={"sign_in": 12})
    shown = token(engine)
    asking = engine.spawn(engine.asking("GET", CREDS, token=shown))
    engine.advance(5)
    engine.must("POST", "auth/token/revoke-self", token=shown)
    engine.advance(30)
    assert asking.result().status == 403
    engine.converge()
    assert engine.leases() == []
    assert engine.is_clean()


@pytest.mark.parametrize("method, path", [("DELETE", ROLE), ("DELETE", "sys/mounts/cloud")])
def test_a_role_or_mount_that_goes_meanwhile_gives_nothing(engine: SecretsEngine, method: str, path: str) -> None:
    engine.role()
    engine.behave(delays={"sign_in": 12})
    asking = engine.spawn(engine.asking("GET", CREDS))
    engine.advance(5)
    engine.must(method, path)
    engine.advance(30)
    assert asking.result().status == 400
    engine.converge()
    assert engine.leases() == []
    assert engine.is_clean()


# The root application


def test_a_role_that_has_come_to_point_at_the_root_application_gives_nothing(engine: SecretsEngine) -> None:
    """The configuration was changed after the role was written. Its earlier credentials can still be revoked."""
    existing(engine)
    engine.must("GET", CREDS)
    other = engine.other_application
    engine.must("POST", CONFIG, {name: other[name] for name in ("client_id", "client_secret")})
    since = len(engine.trace)
    assert engine.refused("GET", CREDS) == (403, "self_target")
    assert engine.calls(since) == []
    engine.must("POST", CONFIG, engine.config)
    engine.revoke_all()
    assert not engine.alive()


# When it goes wrong

ADD_PASSWORD = "/graph/v1.0/applications/[^/]+/addPassword"
CALLS = [
    ("PATCH", "/graph/v1.0/applications"),
    ("POST", "/graph/v1.0/applications/[^/]+/addPassword"),
    ("PATCH", "/graph/v1.0/servicePrincipals"),
    ("PUT", "/arm/subscriptions/[^/]+/providers/Microsoft.Authorization/roleAssignments"),
    ("POST", "/graph/v1.0/groups/[^/]+/members"),
]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("method, path", CALLS)
def test_an_issue_that_fails_leaves_nothing(engine: SecretsEngine, method: str, path: str, after: bool) -> None:
    """Not even among the deleted items, which count against a quota."""
    fresh(engine)
    engine.fail(method=method, path=path, after_work=after, status=403, code="Forbidden")
    assert engine.refused("GET", CREDS) == (502, "provider_permission_denied")
    assert engine.leases() == []
    engine.heal()
    engine.converge()
    assert engine.is_clean()
    assert engine.intents() == []


@WAYS
@pytest.mark.parametrize("trouble", [{"drop": True}, {"status": 500}, {"status": 504}])
def test_a_password_whose_answer_is_lost_gives_way_to_another(
    engine: SecretsEngine, way: Callable[..., None], trouble: dict[str, Any]
) -> None:
    """Its text is not known; it is found by its name and removed."""
    way(engine)
    before = len(engine.alive("password"))
    engine.fail(method="POST", path=ADD_PASSWORD, times=1, after_work=True, **trouble)
    given = engine.must("GET", CREDS).data
    assert len(engine.made("password")) - len(engine.alive("password")) == 1
    assert len(engine.alive("password")) == before + 1
    assert engine.accepts(**given)
    engine.revoke_all()
    assert len(engine.alive("password")) == before


@WAYS
def test_a_password_whose_request_is_lost_gives_way_to_another(engine: SecretsEngine, way: Callable[..., None]) -> None:
    """It does not show. If it comes later, the end of the lease removes it by its name."""
    way(engine)
    before = engine.alive()
    engine.fail(method="POST", path=ADD_PASSWORD, times=1, drop=True)
    given = engine.must("GET", CREDS, x_service_deadline="60").data
    assert engine.accepts(**given)
    engine.revoke_all()
    assert engine.alive() == before


@WAYS
def test_a_password_that_does_not_show_before_the_deadline_is_looked_for_later(
    engine: SecretsEngine, way: Callable[..., None]
) -> None:
    way(engine)
    before = engine.alive()
    engine.fail(method="POST", path=ADD_PASSWORD, times=1, drop=True)
    started = engine.clock
    assert engine.refused("GET", CREDS, x_service_deadline="8") == (503, "provider_unreachable")
    assert engine.clock - started <= 8
    engine.converge()
    assert engine.alive() == before


def test_an_issue_ends_at_the_deadline_of_the_caller(engine: SecretsEngine) -> None:
    """What cannot finish in time is undone later."""
    fresh(engine)
    engine.behave(delays={"assignments": 60})
    started = engine.clock
    assert engine.ask("GET", CREDS, x_service_deadline="8").status in (502, 504)
    assert engine.clock <= started + 9
    assert engine.alive("application")
    engine.converge()
    assert engine.is_clean()


@pytest.mark.parametrize("retry_after, waits", [(7, True), (40, True), (1000, False)])
def test_throttling_is_honoured(engine: SecretsEngine, retry_after: int, waits: bool) -> None:
    """As long as the caller can wait for it; otherwise the answer says when to try again."""
    engine.role()
    engine.fail(
        method="PATCH",
        path="/graph/v1.0/applications",
        times=1,
        status=429,
        code="TooManyRequests",
        retry_after=retry_after,
    )
    started = engine.clock
    response = engine.ask("GET", CREDS).response
    if waits:
        assert response.status == 200
        assert engine.clock >= started + retry_after
    else:
        assert (response.status, response.headers["retry-after"]) == (503, str(retry_after))
        engine.converge()
        assert engine.is_clean()


@pytest.mark.parametrize(
    "quota, role",
    [("applications", fresh), ("assignments", fresh), ("passwords", fresh), ("passwords", existing)],
)
def test_an_exceeded_quota_of_the_provider_has_its_own_code(
    engine: SecretsEngine, quota: str, role: Callable[..., None]
) -> None:
    role(engine)
    engine.behave(quotas={quota: 0})
    assert engine.refused("GET", CREDS) == (502, "provider_quota_exceeded")
    engine.converge()
    assert engine.is_clean()


@pytest.mark.parametrize("scope", ["", f"/reservationOrders/{'1' * 8}-1111-4111-8111-{'1' * 12}"])
def test_a_resource_provider_and_what_lies_below_it_are_scopes(engine: SecretsEngine, scope: str) -> None:
    scope = f"/providers/Microsoft.Capacity{scope}"
    engine.role(azure_roles=engine.grants(scope=scope), permanently_delete=True)
    assert engine.shown_role()["azure_roles"][0]["scope"] == scope
    lease_id = engine.must("GET", CREDS).body["lease_id"]
    (assignment,) = engine.alive("assignment")
    assert assignment.id.lower().startswith(f"{scope}/providers/Microsoft.Authorization/roleAssignments/".lower())
    engine.must("PUT", "sys/leases/revoke", {"lease_id": lease_id})
    engine.converge()
    assert engine.is_clean()


@pytest.mark.parametrize("action", [{"status": 500}, {"drop": True}])
def test_an_unreachable_provider_is_answered_with_503_and_retry_after(engine: SecretsEngine, action: Any) -> None:
    engine.role()
    engine.fail(method="PATCH", path="/graph/v1.0/applications", **action)
    response = engine.ask("GET", CREDS).response
    assert response.status == 503
    assert "retry-after" in response.headers


def test_many_requests_with_one_token_at_once_all_get_credentials(engine: SecretsEngine) -> None:
    """Each of them tries to store the first lease of the token."""
    engine.role()
    shared = token(engine)
    asking = [engine.spawn(engine.asking("GET", CREDS, token=shared)) for _ in range(5)]
    engine.advance(30)
    assert [each.result().status for each in asking] == [200] * 5
    assert len(engine.leases()) == 5


def test_a_role_that_changes_while_an_issue_begins_is_read_again(engine: SecretsEngine) -> None:
    engine.role()
    first = engine.spawn(engine.asking("GET", CREDS))
    second = engine.spawn(engine.asking("POST", ROLE, {"ttl": 60}))
    engine.advance(30)
    assert (first.result().status, second.result().status) == (200, 204)


# An answer that is not delivered


def test_what_an_undelivered_answer_held_is_revoked(engine: SecretsEngine) -> None:
    engine.role()
    response = engine.ask("GET", CREDS).response
    assert engine.leases() == [response.holds]
    engine.perform(engine.service.undelivered(response))
    engine.converge()
    assert engine.is_over()


def test_an_undelivered_answer_without_a_lease_changes_nothing(engine: SecretsEngine) -> None:
    response = engine.ask("GET", CONFIG).response
    revision = engine.store.revision
    engine.perform(engine.service.undelivered(response))
    assert engine.store.revision == revision


def last(kind: type[Effect[Any]]) -> int:
    """The number of the last effect of a kind when a new engine gives its first credentials."""
    engine = configured_engine()
    engine.role()
    engine.must("GET", CREDS)
    return max(number for number, (_, effect) in enumerate(engine.trace) if type(effect) is kind)


def test_a_lease_that_may_have_been_written_is_ended(engine: SecretsEngine) -> None:
    """The store does not say whether it was, and then fails altogether."""
    engine.role()
    written = last(Commit)
    engine.inject(Fault(written, FaultKind.LOST_ANSWER), Fault(written + 1, FaultKind.FAIL))
    assert engine.refused("GET", CREDS) == (503, "commit_unresolved")
    (lease_id,) = engine.leases()
    lease = engine.lease(lease_id)
    assert lease is not None
    assert lease.revoking
    engine.converge()
    assert engine.is_over()


def test_an_answer_that_cannot_be_recorded_is_not_given(engine: SecretsEngine) -> None:
    """Its lease, which no client knows, does not stay either."""
    engine.role()
    engine.inject(Fault(last(Record), FaultKind.FAIL))
    response = engine.ask("GET", CREDS).response
    assert (response.status, type(response.failure)) == (503, RecordFailed)
    engine.converge()
    assert engine.is_over()


@WAYS
def test_no_secret_is_stored(engine: SecretsEngine, way: Callable[..., None]) -> None:
    """The lease can do without it."""
    way(engine)
    reply = engine.must("GET", CREDS)
    lease = engine.lease(reply.body["lease_id"])
    assert reply.data["client_secret"] not in str(lease)
    assert reply.data["client_secret"] not in str(engine.events)
