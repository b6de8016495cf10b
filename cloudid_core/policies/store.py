"""Stored policies, and the access list that the policies of a token make up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from ..context import Context
from ..effects import ABSENT, give_way
from ..store import keys
from .builtin import BUILT_IN, ROOT, normalised
from .document import Policy
from .matching import Acl

MANY_RULES: Final = 500
"""After a policy with more of them other programs go on."""

_ROOT_ACL: Final = Acl(is_root=True)


class _Compiled(msgspec.Struct, frozen=True):
    """An access list, and the versions of the entries that it was made of."""

    acl: Acl
    versions: Mapping[str, int]


async def load_policy(context: Context, name: str) -> tuple[Policy, int] | None:
    """The policy of a normalised name, and the version of its entry (`ABSENT`: the built-in text holds)."""
    found = await context.records.find(keys.policy(name), Policy)
    if found:
        return found.record, found.version
    built_in = BUILT_IN.get(name)
    return (built_in, ABSENT) if built_in else None


async def load_acl(context: Context, policy_names: tuple[str, ...]) -> Acl:
    """What the policies of a token allow now. A policy that does not exist grants nothing."""
    known: _Compiled | None = context.caches.acls.get(policy_names)
    if known is None or not await context.records.are_at(known.versions):
        known = await _compile(context, normalised(policy_names))
        context.caches.acls.put(policy_names, known)
    return known.acl


async def _compile(context: Context, names: tuple[str, ...]) -> _Compiled:
    if ROOT in names:
        return _Compiled(_ROOT_ACL, {})
    loaded: dict[str, tuple[Policy, int] | None] = {}
    for name in names:
        loaded[name] = found = await load_policy(context, name)
        if found is not None and len(found[0].rules) > MANY_RULES:
            await give_way()
    versions = {keys.policy(name): found[1] if found else ABSENT for name, found in loaded.items()}
    return _Compiled(await Acl.of(found[0] for found in loaded.values() if found), versions)
