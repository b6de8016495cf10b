"""Stored policies, and the access list that the policies of a token form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from ..context import Context
from ..effects import ABSENT, give_way
from ..errors import Code, Refused
from ..store import keys
from .builtin import BUILT_IN, ROOT, normalised
from .document import Policy
from .matching import Acl

MANY_RULES: Final = 500
"""After a policy with more rules, other programs get a turn."""

LONGEST_TOGETHER: Final = 2**21
"""Maximum characters of all policies of a token, eight times the longest.

Each request is compared with all their patterns.
"""
TOO_LONG: Final = f"the token's policies have more than {LONGEST_TOGETHER} characters in total"

_ROOT_ACL: Final = Acl(is_root=True)


class _Compiled(msgspec.Struct, frozen=True):
    """An access list, and the versions of the entries from which it was built."""

    acl: Acl | None
    """`None`: the policies are too long together."""
    versions: Mapping[str, int]
    length: int = 0
    """Total characters of the policies."""


async def load_policy(context: Context, name: str) -> tuple[Policy, int] | None:
    """Return the policy of a normalised name, and the version of its entry (`ABSENT`: the built-in text is used)."""
    found = await context.records.find(keys.policy(name), Policy)
    if found:
        return found.record, found.version
    built_in = BUILT_IN.get(name)
    return (built_in, ABSENT) if built_in else None


async def load_acl(context: Context, policy_names: tuple[str, ...]) -> Acl:
    """Return what the policies of a token currently allow. A policy that does not exist grants nothing.

    Refuse with `PERMISSION_DENIED` if they are longer than `LONGEST_TOGETHER`, because no rule may be ignored.
    """
    known: _Compiled | None = context.caches.acls.get(policy_names)
    if known is None or not await context.records.are_at(known.versions):
        known = await _compile(context, normalised(policy_names))
        context.caches.acls.put(policy_names, known, known.length)
    if known.acl is None:
        raise Refused(Code.PERMISSION_DENIED, TOO_LONG)
    return known.acl


async def _compile(context: Context, names: tuple[str, ...]) -> _Compiled:
    if ROOT in names:
        return _Compiled(_ROOT_ACL, {})
    loaded: list[Policy] = []
    versions: dict[str, int] = {}
    length = 0
    for name in names:
        found = await load_policy(context, name)
        versions[keys.policy(name)] = found[1] if found else ABSENT
        if found is None:
            continue
        policy, _ = found
        length += len(policy.text)
        if length > LONGEST_TOGETHER:
            return _Compiled(None, versions)
        loaded.append(policy)
        if len(policy.rules) > MANY_RULES:
            await give_way()
    return _Compiled(await Acl.of(loaded), versions, length)
