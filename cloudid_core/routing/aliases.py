"""Aliases: paths that lead to the same programs and objects as other paths."""

from __future__ import annotations

from typing import Final

ALIASES: Final = (
    ("sys/renew", "sys/leases/renew"),
    ("sys/revoke", "sys/leases/revoke"),
    ("sys/revoke-prefix", "sys/leases/revoke-prefix"),
    ("sys/revoke-force", "sys/leases/revoke-force"),
    ("sys/policy", "sys/policies/acl"),
    ("sys/mounts/auth", "sys/auth"),
    ("sys/rotate/keyring", "sys/rotate"),
)
"""Aliases, each including everything below it, and the path that is used for counting and recording instead."""


def without_alias(path: str) -> str:
    """Return the canonical path."""
    for alias, usual in ALIASES:
        if f"{path}/".startswith(f"{alias}/"):
            return usual + path[len(alias) :]
    return path
