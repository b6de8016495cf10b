"""Facts: what the provider said of machines and principals, reused for a short time and asked once for all.

A key names mount and configuration generation, cloud, tenant and the full id, so that nobody sees what was asked for
somebody else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Generic, TypeVar

from attrs import evolve, frozen

from ..context import Context, Deadline
from ..effects import Instant, Now
from ..values.resource_id import ResourceId
from .client import Client
from .compute import Machine, find_machine
from .directory import member_groups_of
from .sharing import once

T = TypeVar("T")


@frozen
class Fact(Generic[T]):
    """Something the provider said, and when it was asked. `None`: it knows of nothing."""

    content: T
    asked_at: Instant


async def machine_facts(client: Client, resource_id: ResourceId) -> Machine | None:
    """What the provider says of a machine; `None` if it does not know it. At most as old as the settings allow."""
    return await _reuse(client, "machine", resource_id.folded, lambda client: find_machine(client, resource_id))


async def member_groups(client: Client, principal_id: str) -> frozenset[str]:
    """The ids of a principal's groups, in lower case. At most as old as the settings allow."""
    principal_id = principal_id.lower()
    return await _reuse(client, "groups", principal_id, lambda client: member_groups_of(client, principal_id))


async def _reuse(client: Client, kind: str, name: str, ask: Callable[[Client], Awaitable[T]]) -> T:
    key = (kind, client.owner, client.cloud, client.tenant.lower(), name)

    async def learn(deadline: Deadline) -> Fact[T]:
        known = await _known(client.context, key)
        if known is not None:
            return known  # it was learnt since the asker looked
        asked_at = await Now()
        fact = Fact(await ask(evolve(client, deadline=deadline)), asked_at)
        client.context.caches.facts.put(key, fact)
        return fact

    fact: Fact[T] | None = await _known(client.context, key)
    if fact is None:
        fact = await once(f"fact {key!r}", client.context.settings.request_deadline, client.deadline, learn)
    return fact.content


async def _known(context: Context, key: Hashable) -> Fact[Any] | None:
    """What was learnt before, if it is young enough."""
    known: Fact[Any] | None = context.caches.facts.get(key)
    if known is None:
        return None
    max_age = context.settings.missing_max_age if known.content is None else context.settings.fact_max_age
    return known if 0 <= await Now() - known.asked_at < max_age else None
