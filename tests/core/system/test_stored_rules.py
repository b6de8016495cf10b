"""Stored records that break a rule which became stricter: found, told by health, and mended as health says."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import pytest
from attrs import evolve

from cloudid_core import Secret
from cloudid_core.audit.device import DeclaredDevice, Device
from cloudid_core.auth_method.config import Config
from cloudid_core.effects import Sleep
from cloudid_core.health.problems import HealthProblem, Occurrence
from cloudid_core.mounts import TOKEN, MountTable, change_mounts
from cloudid_core.policies import Policy
from cloudid_core.policies.document import Rule
from cloudid_core.quotas import LONGEST_BLOCK, Quotas, RateLimit
from cloudid_core.store import keys
from cloudid_core.store.changes import Changes
from cloudid_core.system import stored_rules
from cloudid_core.system.stored_rules import LOOK_PAUSE, MOST_OF_THE_TIME, PAGE, RULES, Stored
from cloudid_core.token_store.roles import TokenRole
from tests.core.health.test_problems import requests_in
from tests.installation import Installation
from tests.logins import configure_logins

AUTH: Final = "auth/cloud"


def store_config(world: Installation, **fields: Any) -> None:
    """Store fields of a login configuration as an earlier version did, which took more."""
    key = keys.config(world.mount(AUTH).id)
    world.perform(world.context.records.update(key, Config, lambda found: evolve(found or Config(), **fields)))


def look(world: Installation) -> Any:
    """What health tells after the node has looked at what is stored."""
    world.advance(LOOK_PAUSE)
    world.perform(world.service.upkeep())
    return world.must("GET", "sys/health").body


def test_each_problem_has_one_rule() -> None:
    assert len({rule.problem for rule in RULES}) == len(RULES)


def test_what_is_stored_is_looked_at_when_the_service_starts_and_told_until_it_is_mended() -> None:
    world = Installation()
    right = configure_logins(world) and world.must("GET", f"{AUTH}/config").data["tenant_id"]
    assert look(world)["problems"] == []
    store_config(world, tenant_id="a/b")
    world.restart()
    health = look(world)
    assert health["problems"] == ["config_invalid"]
    [detail] = health["problem_details"]
    assert detail["remedy"] == "cloudid write auth/cloud/config tenant_id=VALUE"
    world.must("POST", f"{AUTH}/config", {"tenant_id": right})
    assert look(world)["problems"] == []


def test_a_request_for_health_looks_at_nothing_that_is_stored() -> None:
    world = Installation()
    configure_logins(world)
    store_config(world, tenant_id="a/b")
    assert world.must("GET", "sys/health").body["problems"] == []


def test_what_the_environment_overrides_breaks_no_rule() -> None:
    """Nor does it matter what cannot be read."""
    world = Installation(environment={"CLOUD_TENANT_ID": Secret("contoso.test")})
    configure_logins(world)
    store_config(world, tenant_id="a/b")
    assert "config_invalid" not in look(world)["problems"]
    world.restart(environment={})
    assert "config_invalid" in look(world)["problems"]
    world.store.commit({}, {keys.config(world.mount(AUTH).id): b"damaged"}, ())
    assert "config_invalid" not in look(world)["problems"]


def test_token_roles_with_long_lists_are_told_however_many_roles_there_are() -> None:
    world = Installation()
    names = tuple(f"p{number}" for number in range(257))
    for number in range(2 * PAGE + 1):
        role = TokenRole(disallowed_policies=names) if number == 200 else TokenRole(allowed_policies_glob=names[:64])
        world.perform(world.context.records.commit(Changes({}, {keys.role(TOKEN.id, f"r{number:03}"): role})))
    world.store.commit({}, {keys.role(TOKEN.id, "r000"): b"damaged"}, ())
    health = look(world)
    assert health["problems"] == ["list_too_long"]
    [detail] = health["problem_details"]
    assert detail["remedy"] == "cloudid write auth/token/roles/r200 disallowed_policies=VALUE"
    world.must("POST", "auth/token/roles/r200", {"disallowed_policies": names[:256]})
    assert look(world)["problems"] == []


def test_policies_with_a_star_inside_an_allowed_value_are_reported_until_they_are_rewritten() -> None:
    world = Installation()
    world.must("POST", "sys/policies/acl/good", {"policy": 'path "a" { allowed_parameters = { b = ["c*", "*d*"] } }'})
    rule = Rule("a", frozenset({"update"}), allowed_parameters={"b": ("c*d",)})
    for number in range(PAGE + 1):
        policy = Policy(f"p{number:03}", "", (rule,) if number == PAGE else ())
        world.perform(world.context.records.commit(Changes({}, {keys.policy(policy.name): policy})))
    health = look(world)
    assert health["problems"] == ["policy_star_literal"]
    [detail] = health["problem_details"]
    assert detail["remedy"] == f"cloudid write sys/policies/acl/p{PAGE} policy=@FILE"
    world.must("POST", f"sys/policies/acl/p{PAGE}", {"policy": 'path "a" { allowed_parameters = { b = ["c*"] } }'})
    assert look(world)["problems"] == []


def test_audit_devices_go_on_that_requests_could_have_anywhere() -> None:
    """Not those of the settings, and not those that write to no file of the server."""
    world = Installation()
    declared = DeclaredDevice(name="declared", type="file", options={"file_path": "/srv/audit.log"})
    world.restart(audit_devices=(declared,))
    options = {"null": {"file_path": "/dev/null"}, "out": {"file_path": "stdout"}, "good": {"file_path": "audit.log"}}
    for name, given in options.items():
        world.must("POST", f"sys/audit/{name}", {"type": "file", "options": given})
    world.must("POST", "sys/audit/socket", {"type": "socket", "options": {"address": "collector:9000"}})
    earlier = Device(name="earlier", type="file", key="5a" * 32, options={"file_path": "/var/log/audit.log"})
    world.perform(change_mounts(world.context.records, partial(with_device, earlier)))
    health = look(world)
    assert health["problems"] == ["audit_file_anywhere"]
    assert [detail["text"] for detail in health["problem_details"]] == [
        "the file of the audit device earlier was chosen by a request that could name any file on the server"
    ]
    world.must("DELETE", "sys/audit/earlier")
    assert look(world)["problems"] == []


def test_an_audit_file_outside_the_folder_of_another_node_is_reported_there() -> None:
    world = Installation()
    world.must("POST", "sys/audit/main", {"type": "file", "options": {"file_path": "audit.log"}})
    assert look(world)["problems"] == []
    world.restart(audit_folders=("/srv/audit",))
    health = look(world)
    assert health["problems"] == ["audit_file_outside"]
    [detail] = health["problem_details"]
    assert "main writes to /var/log/audit.log, which is not below this node's audit_directory" in detail["text"]
    [(method, path, _)] = requests_in(detail["remedy"])
    world.must(method, path)
    assert look(world)["problems"] == []


def with_device(device: Device, table: MountTable) -> MountTable:
    return evolve(table, devices=(*table.devices, device))


@pytest.mark.parametrize("path", ["auth/cloud", "cloud"])
def test_what_a_mount_asks_for_unhashed_although_it_is_secret_is_told_until_it_is_mended(path: str) -> None:
    world = Installation()
    mount = evolve(world.mount(path), audit_non_hmac_request_keys=("jwt", "role", "client_secret"))
    world.perform(change_mounts(world.context.records, lambda table: table.with_changed(mount)))
    health = look(world)
    assert health["problems"] == ["audit_keys_secret"]
    first, second = health["problem_details"]
    assert first["text"] == f'{path} is tuned to log "jwt" unhashed, but the field holds a secret, so it stays hashed'
    assert "client_secret" in second["text"]
    assert first["remedy"] == f"cloudid write sys/mounts/{path}/tune audit_non_hmac_request_keys=VALUE"
    world.must("POST", f"sys/mounts/{path}/tune", {"audit_non_hmac_request_keys": "role"})
    assert look(world)["problems"] == []


def test_a_store_that_takes_long_to_look_through_is_looked_through_less_often() -> None:
    world = Installation()

    async def slow(stored: Stored) -> list[Occurrence]:
        await Sleep(7.0)
        return []

    async def looking() -> float:
        return await stored_rules.look(world.context, (stored_rules.StoredRule(HealthProblem.CONFIG_INVALID, slow),))

    assert world.perform(looking()) - world.clock == 7.0 / MOST_OF_THE_TIME
    assert world.perform(stored_rules.look(world.context)) - world.clock == LOOK_PAUSE


def test_a_quota_that_was_to_block_for_longer_blocks_for_an_hour_and_is_listed() -> None:
    world = Installation()
    quota = RateLimit(path="auth/cloud", rate=1.0, interval=3600, block_interval=30 * 86400)
    world.perform(world.context.records.commit(Changes(puts={keys.QUOTAS: Quotas(rate_limits={"old": quota})})))
    health = look(world)
    assert health["problems"] == ["quota_block_clamped"]
    answers = [world.ask("POST", "auth/cloud/login", {}, "") for _ in range(2)]
    assert answers[1].response.headers["retry-after"] == str(LONGEST_BLOCK)
    [(method, path, fields)] = requests_in(health["problem_details"][0]["remedy"])
    world.must(method, path, fields)
    assert world.must("GET", "sys/quotas/rate-limit/old").data["block_interval"] == LONGEST_BLOCK
