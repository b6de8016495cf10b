"""Mistakes that secrets engines of this kind have made, each with the proof that this one does not make it."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from cloudid_core import Secret
from tests.engines import CONFIG, CREDS, DAY, NO_ID, ROLE, SecretsEngine, configured_engine

HOUR = 3600
APPLICATIONS = "/graph/v1.0/applications"
ADD_PASSWORD = f"{APPLICATIONS}/[^/]+/addPassword"
PRINCIPALS = "/graph/v1.0/servicePrincipals"
ASSIGNMENTS = "/arm/subscriptions/[^/]+/providers/Microsoft.Authorization/roleAssignments"
MEMBERS = "/graph/v1.0/groups/[^/]+/members"


@pytest.fixture
def engine() -> SecretsEngine:
    return configured_engine()


def existing(engine: SecretsEngine, **fields: Any) -> None:
    engine.role(application_object_id=engine.other_application["object_id"], **fields)


# The configuration


def test_a_stored_period_and_a_new_schedule_do_not_slip_through(engine: SecretsEngine) -> None:
    engine.must("POST", CONFIG, {"rotation_period": 60})
    assert engine.refused("POST", CONFIG, {"rotation_schedule": "0 3 * * *"}) == (400, "rotation_conflict")


def test_a_secret_from_the_environment_does_not_silently_win_over_an_identity_token(engine: SecretsEngine) -> None:
    engine.must("POST", CONFIG, {"client_secret": ""})
    engine.restart(environment={"CLOUD_CLIENT_SECRET": Secret("secret")})
    assert engine.refused("POST", CONFIG, {"identity_token_audience": "api://exchange"}) == (400, "fields_exclusive")


def test_defaults_are_there_without_being_written(engine: SecretsEngine) -> None:
    shown = engine.must("GET", CONFIG).data
    assert (shown["identity_token_ttl"], shown["root_password_ttl"]) == (HOUR, 182 * DAY)


def test_an_explicitly_empty_environment_is_the_public_cloud(engine: SecretsEngine) -> None:
    engine.must("POST", CONFIG, {"environment": ""})


def test_what_is_required_is_missed_at_the_write_not_at_the_first_use() -> None:
    assert set(SecretsEngine().refused("POST", CONFIG, {"client_id": "c"})) == {400, "field_required"}


def test_an_invalid_environment_variable_is_no_internal_error(engine: SecretsEngine) -> None:
    engine.role()
    engine.restart(environment={"CLOUD_ENVIRONMENT": Secret("moon")})
    assert engine.ask("GET", CREDS).status == 400


def test_a_deleted_configuration_does_not_make_leases_irrevocable(engine: SecretsEngine) -> None:
    engine.role()
    engine.must("GET", CREDS)
    assert engine.refused("DELETE", CONFIG) == (409, "leases_alive")
    engine.must("DELETE", f"{CONFIG}?force=true")
    assert engine.ask("PUT", "sys/leases/revoke-prefix/cloud").status == 503
    engine.tick()
    assert engine.leases()
    engine.must("POST", CONFIG, engine.config)
    engine.converge()
    assert engine.is_over()


# Roles


def test_a_write_that_does_not_name_permanently_delete_does_not_reset_it(engine: SecretsEngine) -> None:
    engine.role(permanently_delete=True)
    engine.must("POST", ROLE, {"ttl": 60})
    assert engine.shown_role()["permanently_delete"] is True


def test_an_audience_can_be_cleared(engine: SecretsEngine) -> None:
    engine.role(sign_in_audience="CloudADMyOrg")
    engine.must("POST", ROLE, {"sign_in_audience": ""})
    assert engine.shown_role()["sign_in_audience"] == ""


@pytest.mark.parametrize("blank", [" ", "\t", "\n", "\u00a0", "\u2003"])
def test_no_kind_of_blank_gets_into_a_tag(engine: SecretsEngine, blank: str) -> None:
    assert engine.refused("POST", ROLE, {"azure_roles": engine.grants(), "tags": f"a{blank}b"}) == (
        400,
        "field_invalid",
    )


def test_null_in_a_list_of_roles_does_not_crash(engine: SecretsEngine) -> None:
    for field in ("azure_roles", "azure_groups"):
        assert engine.refused("POST", ROLE, {field: "[null]"}) == (400, "field_invalid")


def test_misspelt_members_do_not_vanish(engine: SecretsEngine) -> None:
    """They would be looked up as the empty name."""
    for entry in ({"display_name": "a"}, {"group_name": "a", "objectid": "b"}):
        assert engine.refused("POST", ROLE, {"azure_roles": engine.grants(), "azure_groups": [entry]}) == (
            400,
            "field_invalid",
        )


@pytest.mark.parametrize("scope", ["", "subscriptions/x", "/subscriptions/x/"])
def test_a_bad_scope_is_not_first_noticed_when_everything_else_is_made(engine: SecretsEngine, scope: str) -> None:
    roles = [{"role_name": "Reader", "scope": scope}]
    assert engine.refused("POST", ROLE, {"azure_roles": roles}) == (400, "field_invalid")


@pytest.mark.parametrize("name", ["O'Brien", "x' or roleName ne 'x", "''"])
def test_a_quote_in_a_name_does_not_change_the_filter(engine: SecretsEngine, name: str) -> None:
    """Nor does it break it."""
    roles = [{"role_name": name, "scope": engine.scope}]
    assert engine.refused("POST", ROLE, {"azure_roles": roles}) == (400, "reference_not_found")
    groups = [{"group_name": name}]
    assert engine.refused("POST", ROLE, {"azure_roles": engine.grants(), "azure_groups": groups}) == (
        400,
        "reference_not_found",
    )
    engine.simulator.world.directory.group(name)
    engine.role(azure_groups=groups)


def test_the_name_of_a_role_is_not_its_guid(engine: SecretsEngine) -> None:
    engine.role()
    assert engine.shown_role()["azure_roles"][0]["role_name"] == "Reader"


def test_names_are_looked_up_where_they_are_used(engine: SecretsEngine) -> None:
    """Not in the subscription of the configuration."""
    roles = engine.grants("Deployer", scope=engine.other_scope)
    engine.role(azure_roles=roles)
    assert engine.refused("POST", ROLE, {"azure_roles": engine.grants("Deployer")}) == (400, "reference_ambiguous")


def test_unknown_references_are_mistakes_of_the_caller(engine: SecretsEngine) -> None:
    assert engine.refused("POST", ROLE, {"application_object_id": NO_ID}) == (400, "reference_not_found")
    for groups in ([{"object_id": NO_ID}], [{"group_name": "nobody"}]):
        assert engine.refused("POST", ROLE, {"azure_roles": engine.grants(), "azure_groups": groups}) == (
            400,
            "reference_not_found",
        )


def test_a_role_can_be_switched_away_from_an_application(engine: SecretsEngine) -> None:
    for nothing in ("", None):
        existing(engine)
        engine.must("POST", ROLE, {"application_object_id": nothing, "azure_roles": engine.grants()})
        assert engine.shown_role()["application_object_id"] == ""
        engine.must("GET", CREDS)
    assert len(engine.alive("application")) == 2


def test_an_application_that_comes_with_persist_app_is_not_dropped_in_silence(engine: SecretsEngine) -> None:
    fields = {"application_object_id": engine.other_application["object_id"], "azure_roles": engine.grants()}
    assert engine.refused("POST", ROLE, {**fields, "persist_app": True}) == (400, "fields_exclusive")


def test_an_application_that_is_no_longer_kept_is_not_leaked(engine: SecretsEngine) -> None:
    engine.role(persist_app=True)
    engine.must("POST", ROLE, {"persist_app": False})
    engine.must("DELETE", ROLE)
    engine.converge()
    assert engine.is_over()


def test_a_kept_application_has_no_password_that_nobody_knows(engine: SecretsEngine) -> None:
    engine.role(persist_app=True)
    assert engine.made("password") == []


def test_a_kept_application_may_be_purged_from_the_start_and_later(engine: SecretsEngine) -> None:
    engine.role(persist_app=True, permanently_delete=True)
    engine.role(persist_app=True, permanently_delete=True, ttl=60)
    engine.must("DELETE", ROLE)
    engine.converge()
    assert engine.is_clean()


def test_an_unchanged_kept_application_never_loses_its_access(engine: SecretsEngine) -> None:
    engine.role(persist_app=True, azure_groups=engine.groups(0))
    before = engine.alive("assignment", "membership")
    for _ in range(3):
        engine.must("POST", ROLE, {"ttl": 60, "azure_roles": engine.grants(), "azure_groups": engine.groups(0)})
        engine.converge()
    assert engine.alive("assignment", "membership") == before
    assert len(engine.made("assignment")) == len(engine.made("membership")) == 1


def test_a_changed_kept_application_has_its_new_access_before_it_loses_the_old(engine: SecretsEngine) -> None:
    engine.role(persist_app=True)
    engine.must("POST", ROLE, {"azure_roles": engine.grants("Contributor")})
    assert len(engine.alive("assignment")) == 2
    engine.converge()
    assert len(engine.alive("assignment")) == 1


def test_a_change_of_a_kept_application_that_fails_halfway_is_undone(engine: SecretsEngine) -> None:
    engine.role(persist_app=True)
    before = engine.alive()
    engine.fail(method="POST", path=MEMBERS, status=403, code="Authorization_RequestDenied")
    roles = [*engine.grants(), *engine.grants("Contributor")]
    assert engine.write_role(azure_roles=roles, azure_groups=engine.groups(0)).status == 502
    engine.converge()
    assert engine.alive() == before


def test_tags_and_audience_reach_an_application_that_is_kept(engine: SecretsEngine) -> None:
    engine.role(persist_app=True)
    engine.must("POST", ROLE, {"tags": "a"})
    (made,) = engine.alive("application")
    application = engine.simulator.world.directory.applications.get(made.id)
    assert application is not None
    assert application.tags == ("a",)


def test_a_role_can_be_deleted_when_its_application_is_gone_already(engine: SecretsEngine) -> None:
    engine.role(persist_app=True)
    delete_behind_our_back(engine)
    engine.must("DELETE", ROLE)
    engine.converge()
    assert engine.intents() == []


def delete_behind_our_back(engine: SecretsEngine) -> None:
    directory = engine.simulator.world.directory
    for made in engine.alive("application"):
        application = directory.applications.get(made.id)
        assert application is not None
        directory.delete_application(application)


@pytest.mark.parametrize("field", ["azure_roles", "azure_groups"])
def test_refusals_do_not_echo_what_was_written(engine: SecretsEngine, field: str) -> None:
    for raw in ("[hunter2", '[{"scope": "hunter2", "group": "hunter2"}]'):
        assert "hunter2" not in str(engine.ask("POST", ROLE, {field: raw}).body)


# The root application


def test_a_role_cannot_hand_out_the_root_application(engine: SecretsEngine) -> None:
    own = {"application_object_id": engine.root_application["object_id"]}
    assert engine.refused("POST", ROLE, own) == (403, "self_target")
    existing(engine)
    assert engine.refused("POST", ROLE, own) == (403, "self_target")


def test_a_poisoned_role_hands_out_nothing(engine: SecretsEngine) -> None:
    existing(engine)
    engine.must("POST", CONFIG, {name: engine.other_application[name] for name in ("client_id", "client_secret")})
    assert engine.refused("GET", CREDS) == (403, "self_target")


# Making


@pytest.mark.parametrize(
    "status, code",
    [
        (400, "Request_BadRequest"),
        (403, "Authorization_RequestDenied"),
        (404, "Request_ResourceNotFound"),
        (409, "Request_MultipleObjectsWithSameKeyValue"),
        (409, "Directory_ConcurrencyViolation"),
    ],
)
def test_a_fresh_application_is_given_time_whatever_the_wording(engine: SecretsEngine, status: int, code: str) -> None:
    """Status and code decide, never the message."""
    engine.role()
    engine.fail(path=PRINCIPALS, times=3, status=status, code=code, message="worded anew every year")
    engine.must("GET", CREDS)
    assert len(engine.made("application")) == len(engine.made("principal")) == 1


def test_a_group_that_does_not_know_a_fresh_principal_is_given_time(engine: SecretsEngine) -> None:
    engine.role(azure_groups=engine.groups(0))
    engine.fail(method="POST", path=MEMBERS, times=2, status=404, code="Request_ResourceNotFound", message="anything")
    engine.must("GET", CREDS)


def test_a_failed_password_does_not_cost_the_principal(engine: SecretsEngine) -> None:
    """To delete it and make it anew would run into its own name."""
    engine.behave(name_reuse=60)
    engine.role()
    engine.fail(method="POST", path=ADD_PASSWORD, times=2, status=404, code="Request_ResourceNotFound")
    engine.must("GET", CREDS)
    assert len(engine.made("principal")) == 1


@pytest.mark.parametrize("status", [500, 502, 503, 504])
@pytest.mark.parametrize("upsert", [None, 501])
def test_a_lost_answer_does_not_make_an_application_twice(
    engine: SecretsEngine, status: int, upsert: int | None
) -> None:
    engine.behave(upsert=upsert)
    engine.role()
    engine.fail(path=f"{APPLICATIONS}([(].*)?$", times=1, after_work=status != 503, status=status)
    engine.must("GET", CREDS)
    assert len(engine.made("application")) == 1


def test_a_caller_that_gives_up_leaves_no_application_without_a_lease(engine: SecretsEngine) -> None:
    engine.behave(delays={"assignments": 300})
    engine.role()
    assert engine.ask("GET", CREDS, x_service_deadline="20").status >= 500
    assert engine.leases() == []
    engine.converge()
    assert engine.is_clean()


@pytest.mark.parametrize("method, path", [("PUT", ASSIGNMENTS), ("POST", MEMBERS), ("POST", ADD_PASSWORD)])
def test_what_was_made_before_a_failure_is_undone_soon_and_for_good(
    engine: SecretsEngine, method: str, path: str
) -> None:
    """Within minutes, not after ten of them; and purged, since deleted applications count against the quota."""
    engine.role(azure_roles=[*engine.grants(), *engine.grants("Contributor")], azure_groups=engine.groups(0))
    engine.fail(method=method, path=path, status=403, code="Forbidden")
    assert engine.ask("GET", CREDS).status == 502
    engine.heal()
    engine.tick()
    engine.advance(60)
    engine.tick()
    engine.advance(60)
    engine.tick()
    assert engine.is_clean()


def test_credentials_of_an_unknown_role_are_refused_with_a_text_that_go_clients_show(engine: SecretsEngine) -> None:
    assert engine.refused("GET", "cloud/creds/nobody") == (400, "role_not_found")
    assert engine.ask("DELETE", "cloud/roles/nobody").status == 404


@pytest.mark.parametrize("front_ends", [1, 4])
def test_a_secret_is_not_answered_before_the_provider_knows_it(engine: SecretsEngine, front_ends: int) -> None:
    engine.behave(delays={"sign_in": [8, 25]}, front_ends=front_ends)
    other = engine.other_application["object_id"]
    for fields in ({"azure_roles": engine.grants()}, {"application_object_id": other}):
        engine.must("POST", ROLE, fields)
        started = engine.clock
        assert engine.ask("GET", CREDS).status == 200
        assert engine.clock >= started + 8


def test_secrets_do_not_live_for_ten_years_by_default(engine: SecretsEngine) -> None:
    """Tenants forbid that, and nobody needs it: little longer than the longest lease."""
    existing(engine)
    engine.must("GET", CREDS)
    application = engine.simulator.world.directory.applications.get(engine.other_application["object_id"])
    assert application is not None
    assert application.passwords[-1].ends_at == engine.clock + 32 * DAY + HOUR


def test_a_secret_is_valid_from_the_request_on(engine: SecretsEngine) -> None:
    """Tenants limit the time from start to end; what is not accepted yet is retried."""
    existing(engine)
    engine.must("GET", CREDS)
    application = engine.simulator.world.directory.applications.get(engine.other_application["object_id"])
    assert application is not None
    assert application.passwords[-1].starts_at == engine.clock


@pytest.mark.parametrize(
    "action, code",
    [
        ({"status": 403, "code": "Authorization_RequestDenied"}, "provider_permission_denied"),
        ({"status": 403, "code": "Directory_QuotaExceeded"}, "provider_quota_exceeded"),
        ({"status": 400, "code": "RoleAssignmentLimitExceeded"}, "provider_quota_exceeded"),
        ({"status": 400, "code": "Whatever"}, "provider_refused"),
        ({"status": 429, "code": "TooManyRequests", "retry_after": 900}, "provider_throttled"),
        ({"status": 503}, "provider_failed"),
    ],
)
def test_what_the_provider_denies_is_no_internal_error(engine: SecretsEngine, action: Any, code: str) -> None:
    engine.role()
    engine.fail(method="PATCH", path=APPLICATIONS, **action)
    reply = engine.ask("GET", CREDS)
    assert reply.status in (502, 503)
    assert reply.body["codes"] == [code]


def test_the_reason_of_a_failure_is_not_lost_in_the_clean_up(engine: SecretsEngine) -> None:
    """The host learns the provider's code, even if the intent cannot be rewritten either."""
    engine.role()
    engine.fail(method="PATCH", path=APPLICATIONS, status=403, code="Authorization_RequestDenied")
    response = engine.ask("GET", CREDS).response
    assert "403 Authorization_RequestDenied" in str(response.failure)


def test_many_at_once_share_an_application_without_losing_a_password(engine: SecretsEngine) -> None:
    """The directory refuses changes of one object that come too close to each other."""
    engine.behave(write_conflict=0.5)
    existing(engine)
    asking = [engine.spawn(engine.asking("GET", CREDS)) for _ in range(4)]
    engine.advance(90)
    assert [each.result().status for each in asking] == [200] * 4
    assert len(engine.alive("password")) == len(engine.leases()) == 4
    engine.revoke_all()
    assert engine.is_over()


# Removing


def test_assignments_do_not_outlive_their_principal(engine: SecretsEngine) -> None:
    """They fill the subscription until no more can be made."""
    engine.role(azure_roles=[*engine.grants(), *engine.grants("Contributor")])
    engine.must("GET", CREDS)
    assert len(engine.alive("assignment")) == 2
    engine.revoke_all()
    assert engine.is_over()


def test_assignments_that_cannot_be_removed_are_not_forgotten(engine: SecretsEngine) -> None:
    """The lease stays, with its reason, until they are gone."""
    engine.role()
    lease_id = engine.must("GET", CREDS).body["lease_id"]
    engine.fail(method="DELETE", path=ASSIGNMENTS, status=403, code="AuthorizationFailed")
    assert engine.refused("PUT", "sys/leases/revoke", {"lease_id": lease_id})[:2] == (502, "revocation_pending")
    engine.tick()
    lease = engine.lease(lease_id)
    assert lease is not None
    assert "AuthorizationFailed" in lease.reason
    assert [made.kind for made in engine.alive()] == ["assignment"]
    engine.heal()
    engine.converge()
    assert engine.is_over()


def test_memberships_are_removed_from_the_group_not_the_group_from_the_member(engine: SecretsEngine) -> None:
    engine.role(azure_groups=engine.groups(0))
    engine.must("GET", CREDS)
    since = len(engine.trace)
    (principal,) = (made.id for made in engine.alive("principal"))
    engine.revoke_all()
    group = engine.group(0)["id"]
    assert f"DELETE /graph/v1.0/groups/{group}/members/{principal}/$ref" in engine.calls(since)
    assert engine.is_over()


def test_an_application_that_somebody_else_deleted_does_not_make_a_lease_irrevocable(engine: SecretsEngine) -> None:
    engine.role()
    engine.must("GET", CREDS)
    delete_behind_our_back(engine)
    engine.revoke_all()
    assert engine.is_over()
    assert engine.intents() == []


def test_a_password_that_somebody_else_removed_does_not_make_a_lease_irrevocable(engine: SecretsEngine) -> None:
    existing(engine)
    engine.must("GET", CREDS)
    directory = engine.simulator.world.directory
    application = directory.applications.get(engine.other_application["object_id"])
    assert application is not None
    directory.replace(evolve(application, passwords=application.passwords[:1]))
    engine.revoke_all()
    assert engine.leases() == []


def test_a_purge_that_comes_too_early_is_done_later(engine: SecretsEngine) -> None:
    """What was just deleted does not show among the deleted items yet."""
    engine.behave(delays={"bin": 30})
    engine.role(permanently_delete=True)
    engine.must("GET", CREDS)
    engine.revoke_all()
    assert engine.is_clean()


def test_a_deleted_role_leaves_its_leases_to_end_in_peace(engine: SecretsEngine) -> None:
    engine.role(ttl=600)
    reply = engine.must("GET", CREDS)
    engine.must("DELETE", ROLE)
    assert engine.signs_in(**reply.data)
    engine.advance(601)
    engine.converge()
    assert engine.is_over()


# Renewing


def test_a_role_without_a_ttl_does_not_let_a_lease_outlive_its_secret(engine: SecretsEngine) -> None:
    """Zero is no limit, and no number either."""
    engine.role(explicit_max_ttl=1000)
    lease_id = engine.must("GET", CREDS).body["lease_id"]
    engine.role(explicit_max_ttl=0)
    asked_at = engine.clock
    engine.advance(500)
    engine.must("PUT", "sys/leases/renew", {"lease_id": lease_id})
    lease = engine.lease(lease_id)
    assert lease is not None
    assert lease.expires_at <= asked_at + 1000


def test_renewals_past_the_half_of_a_life_still_work(engine: SecretsEngine) -> None:
    engine.role(ttl=100, max_ttl=1000, explicit_max_ttl=1000)
    lease_id = engine.must("GET", CREDS).body["lease_id"]
    for _ in range(9):
        engine.advance(95)
        assert engine.must("PUT", "sys/leases/renew", {"lease_id": lease_id}).body["lease_duration"] == 100
