"""Making tokens: which type a login gives, and what it carries."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from msgspec.structs import asdict

from cloudid_core.errors import Code, Refused
from cloudid_core.mounts import TOKEN
from cloudid_core.store.changes import Changes
from cloudid_core.tokens.issue import RANDOM_SIZE, Issue, issue, template, type_at
from cloudid_core.tokens.settings import TokenSettings
from tests.installation import Installation


@pytest.mark.parametrize(
    "mount, role, given",
    [
        ("default-service", "default", "service"),
        ("default-service", "service", "service"),
        ("default-service", "batch", "batch"),
        ("default-batch", "default", "batch"),
        ("default-batch", "service", "service"),
        ("default-batch", "batch", "batch"),
        ("service", "batch", "service"),
        ("batch", "service", "batch"),
    ],
)
def test_a_mount_may_force_the_type_else_the_role_chooses(mount: str, role: str, given: str) -> None:
    assert type_at(evolve(TOKEN, token_type=mount), TokenSettings(token_type=role)) == given


def issued(world: Installation, mount: Any = TOKEN, **role: Any) -> Issue:
    context = world.context
    made = template(context, mount, TokenSettings(**role), "dev", path="auth/cloud/login")
    random = bytes(RANDOM_SIZE)
    return issue(context, made, random, now=world.clock, display_name="cloud-oid", metadata={"role": "dev"})


def test_a_token_has_the_settings_of_its_role() -> None:
    world = Installation()
    made = issued(
        world,
        token_ttl=60,
        token_explicit_max_ttl=300,
        token_num_uses=5,
        token_bound_cidrs=("10.0.0.0/8",),
        token_policies=("dev",),
    )
    token = made.token
    assert (token.path, token.display_name, token.metadata) == ("auth/cloud/login", "cloud-oid", {"role": "dev"})
    assert (token.created_at, token.expires_at) == (world.clock, world.clock + 60)
    assert (token.ttl, token.explicit_max_ttl, token.num_uses, token.period) == (60, 300, 5, 0)
    assert (token.bound_cidrs, token.policies, token.role) == (("10.0.0.0/8",), ("default", "dev"), "dev")
    assert asdict(made.block) == {
        "client_token": made.text,
        "accessor": made.accessor,
        "policies": ("default", "dev"),
        "token_policies": ("default", "dev"),
        "metadata": {"role": "dev"},
        "lease_duration": 60,
        "renewable": True,
        "entity_id": "",
        "token_type": "service",
        "orphan": True,
        "mfa_requirement": None,
        "num_uses": 5,
    }


def test_a_service_token_is_an_entry_that_must_be_new() -> None:
    made = issued(Installation())
    assert list(made.changes.puts) == [made.token.key]
    assert made.changes.expects == {made.token.key: 0}
    assert made.text not in repr(made)


def test_a_batch_token_needs_no_entry() -> None:
    made = issued(Installation(), token_type="batch", token_explicit_max_ttl=60)
    assert (made.changes, made.accessor) == (Changes(), "")
    assert (made.block.lease_duration, made.block.renewable, made.block.token_type) == (60, False, "batch")


@pytest.mark.parametrize("setting", [{"token_period": 60}, {"token_num_uses": 1}])
def test_a_mount_that_forces_batch_tokens_refuses_roles_that_need_service_tokens(setting: dict[str, Any]) -> None:
    """To leave the limit out would give more than the role allows."""
    with pytest.raises(Refused) as refusal:
        issued(Installation(), evolve(TOKEN, token_type="batch"), **setting)
    assert refusal.value.code is Code.BATCH_TOKEN_UNSUPPORTED


def test_a_capped_ttl_causes_a_warning() -> None:
    made = issued(Installation(max_lease_ttl=100), token_ttl=1000)
    assert (made.token.ttl, len(made.warnings)) == (100, 1)
