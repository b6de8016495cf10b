"""A disabled mount: its path is free at once, and what it left at the provider stays in sight until it is gone."""

from __future__ import annotations

import msgspec
import pytest

from cloudid_core.context import queue
from cloudid_core.effects import Commit
from cloudid_core.store import keys
from cloudid_core.values import rfc3339
from tests.engines import SecretsEngine, engine_config, engine_with_roles

DISABLE = "sys/mounts/cloud"
KINDS = ("application", "principal", "password", "assignment")


def stuck() -> tuple[SecretsEngine, str]:
    """A disabled mount whose directory refuses everything; its accessor."""
    world = engine_with_roles()
    for role in ("fresh", "existing"):
        world.issue(role)
    accessor = world.mount().accessor
    world.fail("graph", status=403, code="Authorization_RequestDenied")
    assert world.ask("DELETE", DISABLE).status == 202
    return world, accessor


def is_clean(world: SecretsEngine) -> bool:
    return not any(world.alive(kind) for kind in KINDS)


def test_a_mount_whose_leases_can_be_removed_is_gone_when_the_answer_comes() -> None:
    world = engine_with_roles()
    for role in ("fresh", "existing"):
        world.issue(role)
    assert world.ask("DELETE", DISABLE).status == 204
    assert is_clean(world)
    assert world.ask("LIST", "sys/retiring").status == 404


@pytest.mark.parametrize("path", ["sys/mounts/cloud", "sys/auth/cloud"])
def test_a_mount_that_made_nothing_is_gone_at_once(path: str) -> None:
    world = engine_with_roles()
    assert world.ask("DELETE", path).status == 204
    assert world.ask("LIST", "sys/retiring").status == 404


def test_an_application_that_a_role_keeps_is_removed_with_the_mount() -> None:
    world = engine_with_roles()
    scope = f"/subscriptions/{world.scene['subscriptions'][0]}"
    role = {"azure_roles": [{"role_name": "Reader", "scope": scope}], "persist_app": True}
    world.must("POST", "cloud/roles/kept", role)
    assert world.ask("DELETE", DISABLE).status == 204
    assert is_clean(world)


def test_what_the_journal_has_is_removed_with_the_mount() -> None:
    world = engine_with_roles()
    world.must("POST", "cloud/roles/kept", {"azure_roles": world.grants(), "persist_app": True})
    world.must("DELETE", "cloud/roles/kept")
    assert not is_clean(world)
    assert world.ask("DELETE", DISABLE).status == 204
    assert is_clean(world)


def test_what_is_left_is_listed_with_its_reasons() -> None:
    world, accessor = stuck()
    assert world.must("LIST", "sys/retiring").data == {"keys": [accessor]}
    data = world.must("GET", f"sys/retiring/{accessor}").data
    assert (data["accessor"], data["path"], data["left"], data["leases"]) == (accessor, "cloud/", 2, 2)
    assert rfc3339.show(world.clock - 60) < data["disabled_at"] <= rfc3339.show(world.clock)
    assert data["attempts"] == 1
    assert data["next_attempt"]
    assert any("403 Authorization_RequestDenied" in reason for reason in data["reasons"])


def test_the_answer_says_what_is_left_and_where_to_look() -> None:
    world = engine_with_roles()
    world.issue("existing")
    accessor = world.mount().accessor
    world.fail("graph", status=403, code="Denied")
    reply = world.ask("DELETE", DISABLE)
    assert (reply.status, reply.data["left"], reply.data["path"]) == (202, 1, f"sys/retiring/{accessor}")
    assert "403 Denied" in reply.data["reasons"][0]


def test_the_path_is_free_at_once_and_lists_show_only_the_new_mount() -> None:
    world, accessor = stuck()
    assert "cloud/" not in world.must("GET", "sys/mounts").data
    world.must("POST", DISABLE, {"type": "cloud"})
    assert world.must("GET", "sys/mounts").data["cloud/"]["accessor"] != accessor
    assert world.must("LIST", "sys/retiring").data == {"keys": [accessor]}


def test_a_request_that_does_not_wait_is_answered_at_once() -> None:
    world = engine_with_roles()
    world.issue("existing")
    calls = len(world.calls())
    assert world.ask("DELETE", f"{DISABLE}?sync=false").status == 202
    assert len(world.calls()) == calls
    world.pass_time(600)
    assert is_clean(world)


def test_a_hanging_provider_is_answered_in_time() -> None:
    world = engine_with_roles()
    world.issue("existing")
    world.slow(1000)
    started_at = world.clock
    assert world.ask("DELETE", DISABLE, x_service_deadline="20").status == 202
    assert world.clock <= started_at + 20
    world.heal()
    world.pass_time(8000)
    assert is_clean(world)
    assert world.ask("LIST", "sys/retiring").status == 404


def test_a_root_secret_that_does_not_work_is_mended_where_the_mount_is_retiring() -> None:
    """The secret is wrong, so nothing can be removed; a new one is written, and everything is removed."""
    world = engine_with_roles()
    for role in ("fresh", "existing"):
        world.issue(role)
    world.must("POST", "cloud/config", {"client_secret": "wrong"})
    accessor = world.mount().accessor
    assert world.ask("DELETE", DISABLE).status == 202
    world.must("POST", DISABLE, {"type": "cloud"})
    path = f"sys/retiring/{accessor}/config"
    shown = world.must("GET", path).data
    assert shown["client_id"] == engine_config(world)["client_id"]
    assert "client_secret" not in shown
    world.must("POST", path, {"client_secret": engine_config(world)["client_secret"]})
    world.pass_time(8000)
    assert is_clean(world)
    assert world.ask("LIST", "sys/retiring").status == 404
    assert world.ask("GET", path).status == 404
    assert "cloud/" in world.must("GET", "sys/mounts").data


def test_a_new_secret_has_everything_tried_at_once() -> None:
    """Whatever pause the attempts so far have led to."""
    world = engine_with_roles()
    for role in ("fresh", "existing"):
        world.issue(role)
    scope = f"/subscriptions/{world.scene['subscriptions'][0]}"
    role_fields = {"azure_roles": [{"role_name": "Reader", "scope": scope}], "persist_app": True}
    world.must("POST", "cloud/roles/kept", role_fields)
    world.must("POST", "cloud/config", {"client_secret": "wrong"})
    accessor = world.mount().accessor
    assert world.ask("DELETE", DISABLE).status == 202
    world.pass_time(1000)
    assert world.must("GET", f"sys/retiring/{accessor}").data["attempts"] > 2
    calls = len(world.calls())
    reply = world.must(
        "POST", f"sys/retiring/{accessor}/config", {"client_secret": engine_config(world)["client_secret"]}
    )
    assert len(world.calls()) == calls  # the background tries it
    assert reply.response.wake_at is not None
    assert reply.response.wake_at <= world.clock
    world.tick()
    assert world.simulator.ledger.alive() == []


def test_each_reason_is_told_once_with_its_step() -> None:
    world, accessor = stuck()
    world.pass_time(300)
    reasons = world.must("GET", f"sys/retiring/{accessor}").data["reasons"]
    assert [reason.partition(" (request ")[0] for reason in reasons] == [
        f"{step}: the provider answered 403 Authorization_RequestDenied"
        for step in ("secret", "principal", "application")
    ]


def test_what_is_left_can_be_dropped_and_is_named() -> None:
    world, accessor = stuck()
    path = f"sys/retiring/{accessor}"
    reply = world.ask("DELETE", path)
    assert (reply.status, reply.codes) == (409, ["leases_alive"])
    assert "leases: 2" in reply.body["errors"][0]
    assert "force=true" in reply.body["errors"][0]
    data = world.must("DELETE", f"{path}?force=true").data
    assert (data["lease_count"], data["intent_count"]) == (2, 0)
    (application,) = world.alive("application")
    assert application.id in [each.get("application_object_id") for each in data["leases"]]
    assert {each["password_key_id"] for each in data["leases"]} == {made.id for made in world.alive("password")}
    assert world.ask("GET", path).status == 404
    assert world.ask("LIST", "sys/leases/lookup").status == 404
    world.heal()
    world.pass_time(600)
    assert world.due(queue.MOUNT) == world.due(queue.LEASE) == world.due(queue.INTENT) == []
    assert world.alive("application") == [application]


def test_nothing_is_issued_from_a_retiring_mount_and_no_move_sees_it() -> None:
    world, _ = stuck()
    world.heal()
    assert world.ask("GET", "cloud/creds/existing").status == 404
    assert world.ask("POST", "sys/remount", {"from": "cloud", "to": "elsewhere"}).status == 400


@pytest.mark.parametrize("path", ["", "/x", "/x/config"])
def test_retiring_mounts_need_sudo(path: str) -> None:
    world = engine_with_roles()
    rule = 'path "sys/retiring*" { capabilities = ["read", "list", "update", "delete"] }'
    world.must("PUT", "sys/policies/acl/weak", {"policy": rule})
    token = world.must("POST", "auth/token/create", {"policies": ["weak"]}).auth["client_token"]
    assert world.ask("GET" if path else "LIST", f"sys/retiring{path}", token=token).status == 403


def test_the_commit_that_disables_changes_the_configuration() -> None:
    world = engine_with_roles()
    mount_id = world.mount().id
    before = world.store.read(keys.config(mount_id))
    world.must("DELETE", DISABLE)
    (commit,) = [
        e for _, e in world.trace if isinstance(e, Commit) and {keys.MOUNTS, keys.config(mount_id)} <= set(e.puts)
    ]
    after = world.store.read(keys.config(mount_id))
    assert before is not None
    assert after is not None
    assert keys.config(mount_id) in commit.expects
    assert after.version > before.version


def test_policies_know_the_fields_of_the_configuration_of_a_disabled_mount() -> None:
    """A denied value is denied in every spelling, as at the configuration of a live mount."""
    world, accessor = stuck()
    path = f"sys/retiring/{accessor}/config"
    rule = {"capabilities": ["update", "sudo"], "denied_parameters": {"identity_token_ttl": [60]}}
    policy = msgspec.json.encode({"path": {path: rule}}).decode()
    world.must("POST", "sys/policies/acl/mender", {"policy": policy})
    token = world.must("POST", "auth/token/create", {"policies": ["mender"]}).auth["client_token"]
    for spelling in (60, "60", "0x3c", "1m"):
        assert world.ask("POST", path, {"identity_token_ttl": spelling}, token).status == 403
    reply = world.ask("POST", path, {"identity_token_ttl": 61, "clientsecret": "x"}, token)
    assert reply.status == 200
    assert "clientsecret" in reply.body["warnings"][0]
