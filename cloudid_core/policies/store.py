"""Stored policies, and the access list that the policies of a token make up."""

from __future__ import annotations

from typing import Final

from ..effects import ABSENT
from ..foundation.context import Context
from ..store import keys
from .builtin import BUILT_IN, ROOT, normalised
from .document import Policy
from .matching import Acl

_ROOT_ACL: Final = Acl((), is_root=True)


async def load_policy(context: Context, name: str) -> tuple[Policy, int] | None:
    """The policy of a normalised name, and the version of its entry (`ABSENT`: the built-in text holds)."""
    found = await context.records.find(keys.policy(name), Policy)
    if found:
        return found.record, found.version
    built_in = BUILT_IN.get(name)
    return (built_in, ABSENT) if built_in else None


async def load_acl(context: Context, policy_names: tuple[str, ...]) -> Acl:
    """What the policies of a token allow now. A policy that does not exist grants nothing."""
    names = normalised(policy_names)
    if ROOT in names:
        return _ROOT_ACL
    loaded = [found for name in names if (found := await load_policy(context, name))]
    key = tuple((policy.name, version) for policy, version in loaded)
    acl = context.caches.acls.get(key)
    if acl is None:
        acl = Acl(policy for policy, _ in loaded)
        context.caches.acls.put(key, acl)
    return acl
