"""This node: its name, and what it last saw of the store and of the other nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from attrs import define, field, frozen

from ..effects import ClockReading, Instant
from ..metrics import Numbers
from .problems import Consequence, HealthProblem, Occurrence

SEVERAL: Final = 3
"""So many failures of background work in a row are a problem."""

MOST_SKEW: Final = 5.0
"""Seconds that this machine's clock may be away from the store's. Intents and leadership bear several times as much."""


@frozen(kw_only=True)
class NodeRecord:
    """What a node tells the others."""

    id: str
    name: str
    version: str
    started_at: Instant
    seen_at: Instant
    settings: Mapping[str, str]
    """A keyed digest for each setting that has to be the same at all nodes."""
    opened_with: str = ""
    """A keyed digest of the master key that it opened the key ring with. Empty in records of earlier releases."""


@define
class Node:
    """One process that serves the store."""

    id: str = ""
    name: str = ""
    """What operators know it by."""

    started_at: Instant = 0.0
    written_at: Instant = 0.0
    """When it last wrote its record for the other nodes."""

    seals_left: int = 0
    """How many seals its key had left then; fewer now: it has written something since."""

    has_left: bool = False
    """It is leaving the others, and does not write its record again."""

    others: tuple[NodeRecord, ...] = ()
    differences: tuple[str, ...] = ()
    """Names of settings that differ from those of another node."""

    leader: str = ""
    """Id of the node that does the background work."""

    latency: float = 0.0
    """Seconds that the last read of the store took."""

    clock: ClockReading | None = None
    swept_at: Instant = 0.0
    """When it last removed dead tokens."""

    stored_numbers: Numbers = field(factory=dict)
    """What it last counted in the store, for metrics."""

    count_again_at: Instant = 0.0
    """Until when that is good enough."""

    owed: dict[int, Any] = field(factory=dict[int, Any])
    """What no caller received, by its identity, until it is given back. The service keeps it, oldest first."""

    last_look_failed: bool = False
    """Whether the last look at the store failed, which also writes to it."""

    last_read_failed: bool = False
    """Whether the last request that reads the mounts could not."""

    is_sealed_out: bool = False
    """Whether its master key no longer opened the key ring when that was read last."""

    last_record_failed: bool = False
    """Whether no audit device took the last entry."""

    @property
    def seconds_ahead(self) -> float:
        """How far this machine's clock is certainly ahead of the store's."""
        return 0.0 if self.clock is None else max(0.0, -self.clock.offset - self.clock.uncertainty)

    _noted: dict[HealthProblem, tuple[Occurrence, ...]] = field(factory=dict[HealthProblem, tuple[Occurrence, ...]])

    def note(self, problem: HealthProblem, occurrences: Sequence[Occurrence]) -> None:
        """Replace what is known of a problem; no occurrences: it is over."""
        self._noted[problem] = tuple(occurrences)

    def noted(self, problem: HealthProblem) -> Sequence[Occurrence]:
        """What was last noted of a problem."""
        return self._noted.get(problem, ())

    watch: Callable[[], Mapping[HealthProblem, Sequence[Occurrence]]] = dict
    """What is wrong at this moment by records that others keep."""

    failures: dict[str, int] = field(factory=dict[str, int])
    """How often each background work has failed in a row, by its name."""

    def note_outcome(self, work: str, failure: Exception | None = None) -> None:
        """A round of background work has ended. One failure may be over with the next round; more need somebody."""
        self.failures[work] = self.failures.get(work, 0) + 1 if failure is not None else 0
        others = [noted for noted in self._noted.get(HealthProblem.BACKGROUND_FAILING, ()) if noted["work"] != work]
        if failure is not None and self.failures[work] >= SEVERAL:
            others.append({"work": work, "count": str(self.failures[work]), "reason": type(failure).__name__})
        self.note(HealthProblem.BACKGROUND_FAILING, others)

    @property
    def problems(self) -> Mapping[HealthProblem, Sequence[Occurrence]]:
        """What is wrong, in the order of the table, with every occurrence."""
        known = {
            **self._noted,
            **self.watch(),
            HealthProblem.STORE_UNAVAILABLE: [{}] if self._has_no_store else [],
            HealthProblem.AUDIT_UNAVAILABLE: [{}] if self.last_record_failed else [],
            HealthProblem.CLOCK_APART: self._clock_apart(),
            HealthProblem.SETTINGS_DIFFER: [{"names": ", ".join(self.differences)}] if self.differences else [],
        }
        return {problem: known[problem] for problem in HealthProblem if known.get(problem)}

    @property
    def _has_no_store(self) -> bool:
        return self.last_look_failed or self.last_read_failed or self.is_sealed_out

    @property
    def can_serve(self) -> bool:
        """Whether requests may come to this node."""
        return all(problem.consequence is not Consequence.CANNOT_SERVE for problem in self.problems)

    def _clock_apart(self) -> Sequence[Occurrence]:
        if self.clock is None or abs(self.clock.offset) - self.clock.uncertainty <= MOST_SKEW:
            return ()
        side = "behind" if self.clock.offset > 0 else "ahead of"
        return ({"seconds": f"{abs(self.clock.offset):.1f}", "side": side},)
