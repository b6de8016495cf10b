"""Built-in policies, reserved names, and the paths that need `sudo`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ..values import fold
from .document import Policy, parse

ROOT: Final = "root"
DEFAULT: Final = "default"
RESPONSE_WRAPPING: Final = "response-wrapping"

UNCHANGEABLE: Final = frozenset({ROOT, RESPONSE_WRAPPING})
UNDELETABLE: Final = UNCHANGEABLE | {DEFAULT}

_DEFAULT_TEXT: Final = """\
{
  "path": {
    "auth/token/lookup-self": {"capabilities": ["read", "update"]},
    "auth/token/renew-self": {"capabilities": ["update"]},
    "auth/token/revoke-self": {"capabilities": ["update"]},
    "sys/capabilities-self": {"capabilities": ["update"]},
    "sys/leases/lookup": {"capabilities": ["update"]},
    "sys/leases/renew": {"capabilities": ["update"]},
    "sys/leases/renew/*": {"capabilities": ["update"]},
    "sys/renew": {"capabilities": ["update"]},
    "sys/renew/*": {"capabilities": ["update"]},
    "sys/wrapping/lookup": {"capabilities": ["update"]},
    "sys/wrapping/rewrap": {"capabilities": ["update"]},
    "sys/wrapping/unwrap": {"capabilities": ["update"]},
    "sys/wrapping/wrap": {"capabilities": ["update"]}
  }
}
"""

BUILT_IN: Final[Mapping[str, Policy]] = {ROOT: Policy(ROOT, "", ()), DEFAULT: parse(DEFAULT, _DEFAULT_TEXT)}
"""The texts of these policies until they are overwritten. The text of `root` has no effect."""

_PROTECTED: Final = frozenset(
    {"auth/token/accessors", "sys/config/cors", "sys/leases", "sys/remount", "sys/seal", "sys/step-down"}
)
_PROTECTED_PREFIXES: Final = (
    "sys/applied",
    "sys/audit",
    "sys/auth/",
    "sys/config/auditing/",
    "sys/leases/lookup/",
    "sys/leases/revoke-force",
    "sys/leases/revoke-prefix",
    "sys/plugins/catalog/",
    "sys/raw",
    "sys/retiring",
    "sys/revoke-force",
    "sys/revoke-prefix",
    "sys/rotate",
)


def needs_sudo(path: str) -> bool:
    """Return whether a path is protected: it needs `sudo` in addition to the capability.

    The path of a list ends in a slash.
    """
    path = fold(path)
    return path.removesuffix("/") in _PROTECTED or path.startswith(_PROTECTED_PREFIXES)


def without_default(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if name != DEFAULT)


def normalised(names: Iterable[str]) -> tuple[str, ...]:
    """Return names of policies as tokens have them: trimmed, in lower case, sorted, without duplicates."""
    return tuple(sorted({trimmed for name in names if (trimmed := name.strip().lower())}))
