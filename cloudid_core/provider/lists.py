"""Lists: one read that replaces many look-ups.

A list costs one read per page, however many machines are on it. So each look-up of a machine is counted for the lists
on which the machine is. A list is read as soon as, and as far as, it costs no more than the look-ups that it replaces.
A list can only save look-ups: a machine that is not on it is looked up by itself, and a list that Azure refuses is not
requested again for a while.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from attrs import define, field, frozen
from msgspec.structs import replace

from ..deadline import Deadline
from ..effects import Instant, Now
from ..errors import ProviderProblem, Refused
from ..values import SCALE_SET, SCALE_SET_INSTANCE, VIRTUAL_MACHINE, ResourceId, fold
from .api_versions import KNOWN
from .client import MOST_PAGES, PROVIDER_FAILURES, Client
from .compute import Machine, machines_page
from .retry import RETRIED

COUNTED_SECONDS: Final = 60.0
"""For how long look-ups count as a reason to read a list."""

REFUSED_SECONDS: Final = 300.0
"""For how long a refused list is not requested again."""

FAILED_SECONDS: Final = 30.0
"""The same after a failure that may be temporary."""

LIST_SECONDS: Final = 15.0
"""How long all pages may take, with all retries. Waiting callers must still have time for a single look-up."""

Learn: TypeAlias = Callable[[Machine, Instant], None]
"""Receives a machine of a list, and when the list was requested."""


@frozen
class Scope:
    """The contents of a list. `fewest` look-ups are a reason to read it, and `for_a_page` of them for each page."""

    fewest: int
    for_a_page: int
    goes_first: bool = False
    """Whether it is read only while look-ups have to wait, and then before them."""


GROUP: Final = Scope(fewest=3, for_a_page=1)
"""All machines of a type in a resource group, or in a scale set."""

SUBSCRIPTION: Final = Scope(fewest=50, for_a_page=10, goes_first=True)
"""All machines of a type in a subscription. Most of them may never log in, so it may cost only a tenth."""


@define(eq=False)
class MachineList:
    """A list in Azure, and how many look-ups it could have saved."""

    scope: Scope
    flight: str
    """The key of the look-up that reads it."""
    path: str
    version: str
    wanted: set[str] = field(factory=set[str])
    """Machines that were looked up since it was last read, or since `counted_from`; enough of them to decide."""
    counted_from: Instant = 0.0
    fewest: int = 0
    refused_until: Instant = 0.0

    def count(self, resource_id: ResourceId, now: Instant) -> None:
        """Count a look-up of a machine that may be on it."""
        if not 0 <= now - self.counted_from < COUNTED_SECONDS:
            self.wanted.clear()
            self.counted_from = now
        if len(self.wanted) < MOST_PAGES * self.scope.for_a_page:
            self.wanted.add(resource_id.folded)

    def is_worth_it(self, now: Instant, *, is_scarce: bool) -> bool:
        is_wanted = len(self.wanted) >= self.fewest and (is_scarce or not self.scope.goes_first)
        return is_wanted and not now < self.refused_until <= now + REFUSED_SECONDS

    @property
    def most_pages(self) -> int:
        return min(MOST_PAGES, len(self.wanted) // self.scope.for_a_page)


def lists_with(client: Client, resource_id: ResourceId) -> list[MachineList]:
    """Return the lists on which a machine is, shortest first. None for types without known lists."""
    if not any(map(resource_id.is_a, (VIRTUAL_MACHINE, SCALE_SET, SCALE_SET_INSTANCE))):
        return []
    lists = [_list(client, GROUP, resource_id, resource_id.path.rpartition("/")[0])]
    if not resource_id.is_a(SCALE_SET_INSTANCE):
        path = f"/subscriptions/{resource_id.subscription}/providers/{resource_id.type}"
        lists.append(_list(client, SUBSCRIPTION, resource_id, path))
    return lists


def _list(client: Client, scope: Scope, resource_id: ResourceId, path: str) -> MachineList:
    key = f"list {client.owner} {client.cloud!r} {client.tenant.lower()} {fold(path)}"
    known: MachineList | None = client.caches.lists.get(key)
    if known is None:
        version = KNOWN[fold(resource_id.type)]
        client.caches.lists.put(key, known := MachineList(scope, key, path, version, fewest=scope.fewest))
    return known


async def read_list(client: Client, read: MachineList, learn: Learn) -> None:
    """Read a list as far as it is worth it, and cache its machines. A refused list has no effect.

    Refuse with `PROVIDER_THROTTLED` if its turn does not come in time. Machines are as old as the first page.
    """
    await client.line(read.path).begin(is_first=read.scope.goes_first)
    asked_at = await Now()
    timed = replace(client, deadline=Deadline(min(client.deadline.at, asked_at + LIST_SECONDS)))
    link, pages = f"{client.cloud.resource_manager}{read.path}?api-version={read.version}", 0
    try:
        while link and pages < read.most_pages:
            machines, link = await machines_page(timed, link)
            pages += 1
            for machine in machines:
                learn(machine, asked_at)
    except (Refused, *PROVIDER_FAILURES) as failure:
        is_refused = isinstance(failure, ProviderProblem) and failure.status not in RETRIED
        read.refused_until = await Now() + (REFUSED_SECONDS if is_refused else FAILED_SECONDS)
    read.wanted.clear()
    read.fewest = max(read.scope.fewest, 2 * pages * read.scope.for_a_page)
