"""How a simulated cloud works: requests and routes, replicas that lag, throttling, faults on purpose, the ledger.

Nothing here knows what the cloud consists of; `world` does.
"""

from typing import Any, Self


class Immutable:
    """Base of values that never change, which copies of a world share: a deep copy of one is the value itself."""

    __slots__ = ()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self
