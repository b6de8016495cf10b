"""Built-in policies, reserved names and protected paths."""

from __future__ import annotations

import pytest

from cloudid_core.policies.builtin import BUILT_IN, DEFAULT, needs_sudo, normalised
from cloudid_core.policies.matching import Acl
from cloudid_core.testing.world import World


@pytest.mark.parametrize(
    "operation, path, allowed",
    [
        ("read", "auth/token/lookup-self", True),
        ("update", "auth/token/lookup-self", True),
        ("update", "auth/token/renew-self", True),
        ("update", "auth/token/revoke-self", True),
        ("update", "sys/capabilities-self", True),
        ("update", "sys/leases/lookup", True),
        ("update", "sys/leases/renew", True),
        ("update", "sys/leases/renew/cloud/creds/web/1", True),
        ("update", "sys/renew", True),
        ("update", "sys/leases/revoke", False),
        ("update", "auth/token/create", False),
        ("update", "auth/token/lookup", False),
        ("list", "sys/leases/lookup", False),
        ("read", "cloud/creds/web", False),
        ("list", "sys/policies/acl", False),
    ],
)
def test_the_default_policy(operation: str, path: str, allowed: bool) -> None:
    assert World().perform(Acl.of([BUILT_IN[DEFAULT]])).allows(operation, path) is allowed


@pytest.mark.parametrize(
    "path",
    [
        "sys/auth/azure",
        "sys/auth/azure/tune",
        "SYS/Auth/azure",
        "sys/audit",
        "sys/audit/file",
        "sys/audit-hash/file",
        "sys/remount",
        "sys/raw/ring",
        "sys/rotate",
        "sys/config/cors",
        "sys/config/auditing/request-headers/x",
        "sys/plugins/catalog/azure",
        "sys/leases",
        "sys/leases/",
        "sys/leases/lookup/",
        "sys/leases/lookup/cloud/",
        "sys/leases/revoke-prefix/cloud",
        "sys/leases/revoke-force/cloud",
        "sys/revoke-prefix/cloud",
        "sys/revoke-force/cloud",
        "auth/token/accessors",
        "auth/token/accessors/",
        "sys/seal",
        "sys/step-down",
    ],
)
def test_protected(path: str) -> None:
    assert needs_sudo(path)


@pytest.mark.parametrize(
    "path",
    [
        "sys/auth",
        "sys/mounts/azure",
        "sys/mounts/auth/azure/tune",
        "sys/leases/lookup",
        "sys/leases/renew",
        "sys/leases/revoke/cloud/creds/web/1",
        "sys/policies/acl/web",
        "sys/seal-status",
        "auth/token/create-orphan",
        "cloud/rotate-root",
        "sys",
    ],
)
def test_not_protected(path: str) -> None:
    assert not needs_sudo(path)


def test_names_are_normalised_once_and_in_order() -> None:
    assert normalised([" Web", "ROOT\n", "web", "", "  ", "app"]) == ("app", "root", "web")
