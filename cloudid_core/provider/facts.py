"""Facts: what Azure returned about machines and principals, cached briefly and looked up once for all callers.

A cache key contains mount and configuration generation, cloud, tenant and the full id, so that no mount sees the facts
of another.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import Any, Generic, TypeVar

from attrs import field, frozen

from ..effects import Instant, Now, Program
from ..values import ResourceId
from .client import Client
from .compute import Machine, find_machine
from .groups import member_groups_of
from .lists import MachineList, lists_with, read_list
from .single_flight import look_up_once

T = TypeVar("T")


@frozen
class Fact(Generic[T]):
    """A response from Azure, and when it was requested. `None`: Azure does not know the object."""

    content: T
    asked_at: Instant
    is_whole: bool = field(init=False)
    """Otherwise, Azure does not know the object or could not read all of it, which may change soon."""

    @is_whole.default
    def _is_whole(self) -> bool:
        return self.content is not None and not (isinstance(self.content, Machine) and self.content.unread)


async def machine_facts(client: Client, resource_id: ResourceId) -> Machine | None:
    """Return Azure's facts about a machine. `None` if Azure does not know it. The settings limit their age."""
    key = _machine_key(client, resource_id.folded)
    now = await Now()
    known: Fact[Machine | None] | None = _known(client, key, now) or await _listed(client, resource_id, now)
    return (known or await _look_up(client, resource_id, key)).content


async def _listed(client: Client, resource_id: ResourceId, now: Instant) -> Fact[Machine | None] | None:
    """Return the facts about a machine from a list, if it is worth reading one. `None` proves nothing."""
    budget = client.line(resource_id.path).budget(now)
    is_scarce = budget is not None and budget.next_opens_at > now
    lists = lists_with(client, resource_id)
    for each in lists:
        each.count(resource_id, now)
    for each in lists:
        if each.is_worth_it(now, is_scarce=is_scarce):
            if not each.scope.goes_first:
                client.line(resource_id.path).require_patience(each.flight, now)
            facts = await look_up_once(client, each.flight, partial(_read_list, each))
            if (fact := facts.get(resource_id.folded)) is not None:
                return fact
            now = await Now()
    return None


async def _read_list(wanted: MachineList, client: Client) -> Mapping[str, Fact[Machine | None]]:
    facts: dict[str, Fact[Machine | None]] = {}

    def learn(machine: Machine, asked_at: Instant) -> None:
        folded = machine.resource_id.folded
        facts[folded] = fact = Fact[Machine | None](machine, asked_at)
        client.caches.facts.put(_machine_key(client, folded), fact)

    await read_list(client, wanted, learn)
    return facts


async def _look_up(client: Client, resource_id: ResourceId, key: Hashable) -> Fact[Machine | None]:
    """Look up a single machine, once it is its turn."""

    def is_known(now: Instant) -> bool:
        return _known(client, key, now) is not None

    async def learn(client: Client) -> Fact[Machine | None]:
        await client.line(resource_id.path).begin(is_over=is_known)
        return await _learn(client, key, partial(find_machine, resource_id=resource_id))

    flight_key = f"fact {key!r}"
    client.line(resource_id.path).require_patience(flight_key, await Now())
    return await look_up_once(client, flight_key, learn)


async def member_groups(client: Client, principal_id: str) -> frozenset[str] | None:
    """Return the ids of a principal's groups, in lower case. `None` if Entra ID does not know the principal.

    The settings limit their age.
    """
    key = _groups_key(client, principal_id)
    known: Fact[frozenset[str] | None] | None = _known(client, key, await Now())
    if known is None:
        ask = partial(member_groups_of, principal_id=principal_id)
        known = await look_up_once(client, f"fact {key!r}", lambda client: _learn(client, key, ask))
    return known.content


async def _learn(client: Client, key: Hashable, ask: Callable[[Client], Program[T]]) -> Fact[T]:
    """Return Azure's response, unless a newer one arrived in the meantime."""
    asked_at = await Now()
    fact: Fact[T] | None = _known(client, key, asked_at)
    if fact is None:
        client.caches.facts.put(key, fact := Fact(await ask(client), asked_at))
    return fact


def known_machine(client: Client, folded_id: str, now: Instant) -> Fact[Machine | None] | None:
    """Return the cached `machine_facts` for a folded resource id. `None` if Azure would have to be called."""
    return _known(client, _machine_key(client, folded_id), now)


def known_groups(client: Client, principal_id: str, now: Instant) -> Fact[frozenset[str] | None] | None:
    """Return the cached `member_groups`. `None` if Azure would have to be called."""
    return _known(client, _groups_key(client, principal_id), now)


def _machine_key(client: Client, folded_id: str) -> Hashable:
    return "machine", client.owner, client.cloud, client.tenant.lower(), folded_id


def _groups_key(client: Client, principal_id: str) -> Hashable:
    return "groups", client.owner, client.cloud, client.tenant.lower(), principal_id.lower()


def _known(client: Client, key: Hashable, now: Instant) -> Fact[Any] | None:
    """Return cached facts, if they are not too old."""
    known: Fact[Any] | None = client.caches.facts.peek(key)
    if known is None:
        return None
    max_age = client.settings.fact_max_age if known.is_whole else client.settings.missing_max_age
    return known if 0 <= now - known.asked_at < max_age else None
