"""What every program of a service may use, and the time that it has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from attrs import frozen

from .caches import Caches
from .effects import Instant, Now
from .errors import Code, Refused
from .settings import Settings
from .store.records import Records

if TYPE_CHECKING:
    from .components import Component


@frozen
class Context:
    """The service's own things: how it is set up, what it remembers, what it has at hand."""

    settings: Settings
    records: Records
    caches: Caches
    components: Mapping[tuple[str, str], Component]
    """What can be mounted, by kind and type."""

    @property
    def marker_prefix(self) -> str:
        """How the names start of everything that this installation makes at the provider."""
        return f"cloudid-{self.records.sealer.ring.installation}-"


@frozen
class Deadline:
    """The instant after which an answer helps nobody."""

    at: Instant

    async def remaining(self) -> float:
        """Seconds that are left, more than none; `DEADLINE_PASSED` otherwise."""
        left = self.at - await Now()
        if left <= 0:
            raise Refused(Code.DEADLINE_PASSED)
        return left
