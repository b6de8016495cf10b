"""Static roles: an application, one secret of it that always works, and its rotation."""

from __future__ import annotations

from typing import Any, Final

import pytest

from cloudid_core.context import queue
from cloudid_core.rotation.advance import STUCK
from cloudid_core.rotation.record import Phase
from cloudid_core.secrets_engine.inventory import KINDS
from cloudid_core.secrets_engine.reconcile import KEYS_STAY
from cloudid_core.secrets_engine.static_roles import (
    OTHER_INSTALLATION,
    OTHER_ROLE,
    PERIOD,
    SECRET_LEFT,
    SPARE,
)
from cloudid_core.store import keys
from cloudid_servers.provider_simulator.world.objects import Application
from tests.engines import DAY, NO_ID, SecretsEngine, configured_engine

ROLE: Final = "cloud/static-roles/app"
CREDS: Final = "cloud/static-creds/app"
ROTATE: Final = "cloud/rotate-role/app"
TOKEN: Final = "/login/.*"
GRAPH: Final = "https://graph.microsoft.com/.default"
MADE: Final = {"secret": "password", "certificate": "certificate", "federated_credential": "federation"}
"""What stands at the provider for each proof."""
ADD: Final = "/graph/v1.0/applications/.*/addPassword"
OVERLAP_AND_MORE: Final = 330.0


class Static(SecretsEngine):
    """An installation with the words of static roles."""

    @property
    def target(self) -> Application:
        found = self.simulator.world.directory.application_of(self.other_application["client_id"])
        assert found is not None
        return found

    @property
    def ours(self) -> list[str]:
        """The ids of the secrets of the application that this service made and that live."""
        return [each.key_id for each in self.target.passwords if str(each.display_name).startswith("cloudid-")]

    def write(self, **fields: Any) -> Any:
        return self.ask("POST", ROLE, {"application_object_id": self.other_application["object_id"], **fields})

    def creds(self) -> dict[str, Any]:
        """The credentials, which work."""
        data: dict[str, Any] = self.must("GET", CREDS).data
        assert self.signs_in(data["client_id"], data["client_secret"])
        return data

    def state(self) -> dict[str, Any]:
        data: dict[str, Any] = self.must("GET", ROLE).data
        return data

    def phase(self) -> str:
        """Of the rotation; empty while there is no role."""
        reply = self.ask("GET", ROLE)
        return str(reply.data["phase"]) if reply.status == 200 else ""

    def problems(self) -> list[dict[str, str]]:
        """What health tells."""
        self.perform(self.service.upkeep())
        details: list[dict[str, str]] = self.must("GET", "sys/health").body["problem_details"]
        return details

    def standing(self, proof: str) -> list[str]:
        """The ids of what stands at the provider for a proof, made by this service."""
        return [each.id for each in self.alive(MADE[proof])]

    def sign_in_refuses(self, code: str) -> None:
        """The provider accepts nothing new; the engine has its own access token."""
        self.must("GET", "cloud/reconcile")
        self.fail(path=TOKEN, status=401, code=code)

    @property
    def is_forgotten(self) -> bool:
        """Whether no entry of the role is left."""
        entries = [*self.keys("mount/"), *self.keys("target/")]
        return not any("static" in key for key in entries) and not self.due(queue.ROTATION)


@pytest.fixture
def world() -> Static:
    return Static.copy_of(configured_engine())


def test_a_role_has_a_secret_that_works_when_it_is_written(world: Static) -> None:
    assert world.write(rotation_period="30d", metadata={"team": "a"}).status == 204
    creds = world.creds()
    assert creds["client_id"] == world.other_application["client_id"]
    assert (creds["secret_id"], creds["metadata"]) == (world.ours[0], {"team": "a"})
    assert creds["ttl"] == pytest.approx(30 * DAY, abs=30)
    state = world.state()
    assert "client_secret" not in state
    assert (state["rotation_period"], state["ttl"], state["phase"]) == (30 * DAY, 30 * DAY, "overlapping")
    world.must("POST", ROLE, state)
    assert world.state() == state
    assert world.must("LIST", "cloud/static-roles").data == {"keys": ["app"]}
    (password,) = (each for each in world.target.passwords if each.key_id == creds["secret_id"])
    assert password.ends_at == pytest.approx(world.clock + 30 * DAY + SPARE, abs=60)


def test_a_period_rotates_and_both_secrets_work_for_a_while(world: Static) -> None:
    world.write(ttl=DAY)
    first = world.creds()
    world.pass_time(DAY + 60)
    second = world.creds()
    assert second["client_secret"] != first["client_secret"]
    assert world.signs_in(first["client_id"], first["client_secret"])
    world.pass_time(OVERLAP_AND_MORE)
    assert not world.signs_in(first["client_id"], first["client_secret"])
    assert world.ours == [world.creds()["secret_id"]]


def test_a_schedule_rotates_in_its_window_and_the_first_secret_waits_for_none(world: Static) -> None:
    assert world.write(rotation_schedule="0 3 * * *", rotation_window=3600).status == 204
    first = world.creds()
    world.pass_time(DAY + 3600)
    assert world.creds()["client_secret"] != first["client_secret"]


def test_a_rotation_on_request_is_not_repeated_while_both_secrets_work(world: Static) -> None:
    world.write()
    assert world.state()["rotation_period"] == PERIOD
    first = world.creds()
    assert "nothing was rotated" in world.must("POST", ROTATE).body["warnings"][0]
    assert world.ask("POST", ROTATE, {"force": True}).status == 204
    assert world.creds()["client_secret"] != first["client_secret"]
    assert world.refused("POST", "cloud/rotate-role/other") == (400, "role_not_found")


def test_a_secret_that_is_not_accepted_in_time_is_not_handed_out(world: Static) -> None:
    world.must("GET", "cloud/reconcile")  # the engine has its own access token
    world.fail(path=TOKEN, status=401, code="AADSTS7000215")
    assert "no client secret yet" in world.write().body["warnings"][0]
    assert world.refused("GET", CREDS) == (503, "role_without_secret")
    world.heal()
    world.pass_time(600)
    world.creds()


def test_the_background_makes_the_first_secret_once_the_provider_lets_it(world: Static) -> None:
    world.fail(path=ADD, status=403)
    assert "403" in world.write().body["warnings"][0]
    world.pass_time(3 * 3600)
    assert "403" in world.state()["last_error"]
    assert world.refused("GET", CREDS) == (503, "role_without_secret")
    assert [each["code"] for each in world.problems()] == ["static_secret_at_risk"] * 2
    world.heal()
    world.pass_time(2 * 3600)
    world.creds()
    assert len(world.ours) == 1


def test_the_code_of_the_provider_is_for_those_who_may_read_the_configuration(world: Static) -> None:
    rules = 'path "cloud/static-roles/app" { capabilities = ["create", "update", "read"] }'
    world.must("PUT", "sys/policies/acl/some", {"policy": rules})
    token = world.must("POST", "auth/token/create", {"policies": ["some"]}).auth["client_token"]
    world.fail(path=ADD, status=403, code="Authorization_RequestDenied")
    assert "Authorization_RequestDenied" in world.write().body["warnings"][0]
    body = {"application_object_id": world.other_application["object_id"]}
    assert "Authorization_RequestDenied" not in str(world.must("POST", ROLE, body, token=token).body)
    world.pass_time(60)
    assert "Authorization_RequestDenied" in world.state()["last_error"]
    assert "Authorization_RequestDenied" not in str(world.must("GET", ROLE, token=token).body)


@pytest.mark.parametrize(
    "fields, code",
    [
        ({"application_object_id": ""}, "field_required"),
        ({"application_object_id": NO_ID}, "reference_not_found"),
        ({"rotation_period": 4}, "field_invalid"),
        ({"rotation_period": 60, "rotation_schedule": "0 3 * * *"}, "rotation_conflict"),
        ({"rotation_period": 60, "rotation_window": 3600}, "rotation_window_conflict"),
        ({"proof": "certificate"}, "field_required"),
        ({"proof": "password"}, "field_invalid"),
        ({"secret_id": NO_ID}, "field_invalid"),
        ({"client_secret": "s"}, "field_invalid"),
        ({"expiration": "2030-01-01T00:00:00Z"}, "field_invalid"),
        ({"skip_import_rotation": True}, "field_invalid"),
        ({"defer_initial_creds": True}, "field_invalid"),
        ({"token_scopes": "x"}, "field_invalid"),
    ],
)
def test_what_is_refused_leaves_nothing(world: Static, fields: dict[str, Any], code: str) -> None:
    reply = world.write(**fields)
    assert (reply.status, reply.body["codes"]) == (400, [code])
    assert world.is_forgotten


def test_static_credentials_carry_the_tenant_and_the_subscription(world: Static) -> None:
    world.write()
    data = world.creds()
    assert (data["tenant_id"], data["subscription_id"]) == (world.scene["tenant"], world.scene["subscriptions"][0])


def test_no_secret_is_imported(world: Static) -> None:
    world.write()
    assert world.refused("POST", f"{ROLE}/import", {"secret_id": NO_ID}) == (404, "unsupported_path")


def test_the_application_of_a_role_never_changes(world: Static) -> None:
    world.write()
    root = world.root_application["object_id"]
    assert world.refused("POST", ROLE, {"application_object_id": root}) == (400, "field_invalid")
    world.must("POST", ROLE, {"ttl": "1d"})
    assert world.state()["rotation_period"] == DAY


def test_no_secret_of_the_service_itself(world: Static) -> None:
    root = world.root_application["object_id"]
    assert world.refused("POST", ROLE, {"application_object_id": root}) == (403, "self_target")
    world.write(rotation_period=DAY)
    world.must("POST", "cloud/config", {name: world.other_application[name] for name in ("client_id", "client_secret")})
    assert world.refused("GET", CREDS) == (403, "self_target")
    assert world.refused("POST", ROTATE, {"force": True}) == (403, "self_target")
    (detail,) = world.problems()
    assert detail["remedy"] == f"cloudid delete {ROLE}"
    world.must("DELETE", ROLE)


def test_a_ceiling_holds_at_write_use_and_rotation(world: Static) -> None:
    world.write(rotation_period=DAY)
    world.must("POST", "cloud/config", {"allowed_application_ids": [NO_ID]})
    for refused in (world.refused("GET", CREDS), world.refused("POST", ROTATE, {"force": True})):
        assert refused == (403, "ceiling_exceeded")
    assert world.write().body["codes"] == ["ceiling_exceeded"]
    world.must("POST", "cloud/config", {"allowed_application_ids": [world.other_application["client_id"]]})
    world.creds()


def test_other_users_of_the_application_are_told(world: Static) -> None:
    world.write()
    again = {"application_object_id": world.other_application["object_id"]}
    assert world.must("POST", "cloud/static-roles/second", again).body["warnings"] == [OTHER_ROLE]
    now = world.clock
    world.simulator.world.directory.add_password(world.target, "cloudid-ffffffff-1", now, now + 10**6)
    assert world.must("POST", "cloud/static-roles/second", again).body["warnings"] == [OTHER_ROLE, OTHER_INSTALLATION]
    assert len(world.ours) == 3


@pytest.mark.parametrize("phase", [Phase.IDLE, Phase.OVERLAPPING, Phase.PROVING])
@pytest.mark.parametrize("is_last", [True, False])
def test_a_role_goes_with_its_secret_or_leaves_it_until_its_end(world: Static, phase: Phase, is_last: bool) -> None:
    world.write(rotation_period="30d")
    world.pass_time(OVERLAP_AND_MORE)
    if phase is Phase.PROVING:
        world.fail(path=TOKEN, status=401, code="AADSTS7000215")
    if phase is not Phase.IDLE:
        world.ask("POST", ROTATE)
    assert world.state()["phase"] == phase.value
    held = world.must("GET", CREDS).data
    world.heal()
    assert world.must("DELETE", f"{ROLE}?remove_secret={is_last}").status == (204 if is_last else 200)
    world.pass_time(600)
    assert world.ours == ([] if is_last else [held["secret_id"]])
    assert world.is_forgotten
    assert world.refused("DELETE", ROLE) == (404, "not_found")


def test_a_role_is_not_deleted_while_a_secret_is_being_made(world: Static) -> None:
    world.slow(5)
    world.spawn(world.asking("POST", ROLE, {"application_object_id": world.other_application["object_id"]}))
    world.advance(12)
    world.restart()
    assert world.state()["phase"] == "adding"
    assert world.refused("DELETE", ROLE) == (503, "role_change_pending")
    world.pass_time(600)
    assert world.ask("DELETE", f"{ROLE}?remove_secret=true").status == 204
    world.pass_time(600)
    assert (world.ours, world.is_forgotten) == ([], True)


def test_a_damaged_role_can_be_deleted(world: Static) -> None:
    world.write()
    world.store.commit({}, {keys.static_role(world.mount("cloud").id, "app"): b"damaged"}, ())
    assert world.refused("GET", CREDS) == (503, "entry_damaged")
    assert world.must("DELETE", ROLE).body["warnings"] == [SECRET_LEFT]
    world.pass_time(600)
    assert len(world.ours) == 1


def test_the_end_of_the_engine_takes_all_secrets_along(world: Static) -> None:
    world.write(rotation_period="30d")
    world.write_role()
    world.ask("POST", ROTATE, {"force": True})
    world.ask("DELETE", "sys/mounts/cloud")
    world.pass_time(1200)
    assert (world.ours, world.is_forgotten) == ([], True)
    assert "retiring" not in str(world.must("GET", "sys/mounts").data)


def test_a_configuration_that_a_role_needs_is_not_deleted(world: Static) -> None:
    world.write()
    assert world.refused("DELETE", "cloud/config") == (409, "leases_alive")


def test_reconciliation_knows_the_secrets_of_roles(world: Static) -> None:
    world.must("POST", "cloud/roles/web", {"application_object_id": world.other_application["object_id"]})
    world.write()
    world.pass_time(10 * 600)
    report = world.must("GET", "cloud/reconcile").data
    assert (report["unaccounted"], report["missing"]) == ([], [])


def test_a_secret_that_was_left_is_reported_and_removed_where_another_role_has_its_application(world: Static) -> None:
    world.write()
    assert world.must("DELETE", ROLE).body["warnings"] == [SECRET_LEFT]
    (left,) = world.ours
    world.must(
        "POST", "cloud/static-roles/second", {"application_object_id": world.other_application["object_id"].upper()}
    )
    world.pass_time(10 * 600)
    (unaccounted,) = world.must("GET", "cloud/reconcile").data["unaccounted"]
    assert unaccounted["id"] == left
    world.must("POST", "cloud/reconcile")
    world.pass_time(600)
    assert world.ours == [world.must("GET", "cloud/static-creds/second").data["secret_id"]]


def test_a_secret_that_an_older_copy_of_the_store_gives_is_replaced_by_a_rotation(world: Static) -> None:
    """What was made since the copy is reported as unaccounted for."""
    world.write()
    world.pass_time(OVERLAP_AND_MORE)
    copy = world.store.copy()
    world.must("POST", ROTATE)
    since = world.creds()["secret_id"]
    world.pass_time(OVERLAP_AND_MORE)
    world.store = copy
    world.restart()
    old = world.must("GET", CREDS).data
    assert not world.signs_in(old["client_id"], old["client_secret"])
    world.must("POST", ROTATE, {"force": True})
    world.creds()
    world.advance(world.settings.settle_time)
    assert [one["id"] for one in world.must("GET", "cloud/reconcile").data["unaccounted"]] == [since]


PROOFS: Final = ("certificate", "federated_credential")


@pytest.mark.parametrize("proof", ["secret", *PROOFS])
def test_a_repair_leaves_the_keys_of_a_role_whose_own_is_gone(world: Static, proof: str) -> None:
    """As after a restore: clients hold a key that the copy does not know, and the role is to be rotated first."""
    world.write(proof=proof, token_scopes=GRAPH)
    world.pass_time(OVERLAP_AND_MORE)
    copy, (before,) = world.store.copy(), world.standing(proof)
    world.must("POST", ROTATE)
    world.pass_time(OVERLAP_AND_MORE)
    (since,) = world.standing(proof)
    world.store = copy
    world.restart()
    world.advance(world.settings.settle_time)
    (missing,) = world.must("GET", "cloud/reconcile").data["missing"]
    assert (missing["kind"], missing["id"], missing["static_role"]) == (KINDS[proof].value, before, "app")
    repair = world.must("POST", "cloud/reconcile").body
    assert (repair["data"], repair["warnings"]) == ({"repaired": 0, "left": 2}, [KEYS_STAY])
    world.must("POST", ROTATE, {"force": True})
    assert world.must("GET", "cloud/reconcile").data["missing"] == []
    assert world.must("POST", "cloud/reconcile").data["repaired"] == 1
    world.pass_time(OVERLAP_AND_MORE)
    assert since not in world.standing(proof)


def test_a_federated_credential_needs_an_issuer_that_the_provider_can_ask(world: Static) -> None:
    world.restart(issuer="http://127.0.0.1:8200")
    reply = world.write(proof="federated_credential", token_scopes=GRAPH)
    assert (reply.status, reply.body["codes"], world.is_forgotten) == (400, ["issuer_missing"], True)


@pytest.mark.parametrize("proof", PROOFS)
def test_a_role_without_a_secret_gives_tokens_alone(world: Static, proof: str) -> None:
    assert world.write(proof=proof, token_scopes=GRAPH, rotation_period="30d").status == 204
    (made,) = world.standing(proof)
    assert (world.standing("secret"), world.ours) == ([], [made] if proof == "secret" else [])
    assert world.refused("GET", CREDS) == (400, "role_gives_tokens")
    assert world.must("POST", f"{CREDS}/token").data["scope"] == GRAPH
    accepted = world.simulator.world.assertions[-1]
    assert accepted["client_id"] == world.other_application["client_id"]
    state = world.state()
    assert (state["proof"], state["phase"], state["expires"] is None) == (
        proof,
        "overlapping",
        proof == "federated_credential",
    )
    world.must("POST", ROLE, state)
    world.advance(3600)
    report = world.must("GET", "cloud/reconcile").data
    assert (report["unaccounted"], report["missing"]) == ([], [])


@pytest.mark.parametrize("proof", PROOFS)
def test_what_a_role_without_a_secret_has_is_rotated_with_overlap(world: Static, proof: str) -> None:
    world.write(proof=proof, token_scopes=GRAPH, rotation_period="30d")
    (first,) = world.standing(proof)
    world.pass_time(30 * DAY + 60)
    assert len(world.standing(proof)) == 2
    world.pass_time(OVERLAP_AND_MORE)
    (second,) = world.standing(proof)
    assert second != first
    assert world.ask("POST", ROTATE, {"force": True}).status == 204
    world.pass_time(OVERLAP_AND_MORE)
    assert world.standing(proof) not in ([first], [second])
    world.must("POST", f"{CREDS}/token")


@pytest.mark.parametrize("proof", PROOFS)
@pytest.mark.parametrize("remove", [True, False])
def test_a_role_without_a_secret_leaves_nothing(world: Static, proof: str, remove: bool) -> None:
    """Nobody else has what it proves itself with."""
    world.write(proof=proof, token_scopes=GRAPH)
    world.pass_time(OVERLAP_AND_MORE)
    world.ask("POST", ROTATE, {"force": True})
    assert world.ask("DELETE", f"{ROLE}?remove_secret={remove}").status == 204
    world.pass_time(600)
    assert (world.standing(proof), world.is_forgotten) == ([], True)


@pytest.mark.parametrize("proof", PROOFS)
def test_a_new_proof_is_in_use_once_it_is_accepted(world: Static, proof: str) -> None:
    world.write(token_scopes=GRAPH)
    secret = world.creds()
    world.sign_in_refuses("AADSTS700213" if proof == "federated_credential" else "AADSTS700027")
    assert world.write(proof=proof).status == 200
    assert world.refused("GET", CREDS) == (400, "role_gives_tokens")
    world.heal()
    assert world.signs_in(secret["client_id"], secret["client_secret"])
    world.must("POST", f"{CREDS}/token")
    world.pass_time(60)
    assert world.state()["phase"] == "overlapping"
    world.pass_time(OVERLAP_AND_MORE)
    assert (len(world.standing(proof)), world.standing("secret")) == (1, [])
    assert world.write(proof="secret").status == 204
    world.creds()
    world.pass_time(OVERLAP_AND_MORE)
    assert (world.standing(proof), len(world.standing("secret"))) == ([], 1)


@pytest.mark.parametrize("proof", PROOFS)
def test_one_that_is_never_accepted_is_removed(world: Static, proof: str) -> None:
    world.behave(delays={"sign_in": 20_000})
    assert "no client secret yet" in world.write(proof=proof, token_scopes=GRAPH).body["warnings"][0]
    assert world.refused("POST", f"{CREDS}/token") == (503, "role_without_secret")
    (first,) = world.standing(proof)
    world.pass_time(3 * 3600)
    assert first not in world.standing(proof)
    world.behave(delays={"sign_in": 0})
    world.pass_time(6 * 3600)
    assert len(world.standing(proof)) == 1
    world.must("POST", f"{CREDS}/token")


@pytest.mark.parametrize("proof", PROOFS)
def test_the_making_of_one_that_is_interrupted_is_undone_by_its_name(world: Static, proof: str) -> None:
    world.slow(5)
    body = {"application_object_id": world.other_application["object_id"], "proof": proof, "token_scopes": GRAPH}
    world.spawn(world.asking("POST", ROLE, body))
    while world.phase() != "adding" or not world.standing(proof):
        world.advance(1)
    world.restart()
    (first,) = world.standing(proof)
    world.pass_time(900)
    (second,) = world.standing(proof)
    assert second != first


@pytest.mark.parametrize("code, error", [("", ""), ("AADSTS7000215", STUCK)])
def test_a_first_secret_is_proven_again_too(world: Static, code: str, error: str) -> None:
    world.write()
    if code:
        world.sign_in_refuses(code)
    world.pass_time(OVERLAP_AND_MORE)
    state = world.state()
    assert (state["phase"], state["last_error"]) == ("idle", error)
