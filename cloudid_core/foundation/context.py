"""What every program of a service may use, and the time that it has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from attrs import frozen

from ..settings import Settings
from ..store.records import Records
from .caches import Caches

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
        return f"cloudid-{self.records.sealer.keyring.installation}-"
