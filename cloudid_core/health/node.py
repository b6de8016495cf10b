"""This node: its name, and what it last read of the store and the other nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from attrs import define, field, frozen

from ..effects import ClockReading, Instant
from ..metrics import Numbers
from .problems import Consequence, HealthProblem, Occurrence

SEVERAL: Final = 3
"""After this many failures in a row, background work is reported as a problem."""

MOST_SKEW: Final = 5.0
"""Maximum difference in seconds between this machine's clock and the store's.

Intents and leadership tolerate several times as much.
"""


@frozen(kw_only=True)
class NodeRecord:
    """The record of a node for the other nodes."""

    id: str
    name: str
    version: str
    started_at: Instant
    seen_at: Instant
    settings: Mapping[str, str]
    """A keyed digest for each setting that must be equal on all nodes."""
    opened_with: str = ""
    """A keyed digest of the master key with which it opened the key ring. Empty in records of earlier releases."""


@define
class Node:
    """One process that uses the store."""

    id: str = ""
    name: str = ""
    """The name of the node for operators."""

    started_at: Instant = 0.0
    written_at: Instant = 0.0
    """When it last wrote its record for the other nodes."""

    seals_left: int = 0
    """How many seals its key had left at that time. If it has fewer now, it has written something since."""

    has_left: bool = False
    """It is leaving, and does not write its record again."""

    others: tuple[NodeRecord, ...] = ()
    differences: tuple[str, ...] = ()
    """Names of settings that differ from those of another node."""

    leader: str = ""
    """Id of the node that does the background work."""

    latency: float = 0.0
    """Duration of the last read of the store, in seconds."""

    clock: ClockReading | None = None
    swept_at: Instant = 0.0
    """When it last removed expired tokens."""

    stored_numbers: Numbers = field(factory=dict)
    """The last counts from the store, for metrics."""

    count_again_at: Instant = 0.0
    """When the counts are refreshed."""

    owed: dict[int, Any] = field(factory=dict[int, Any])
    """What no caller received, by identity, until it is revoked. The service maintains it, oldest first."""

    last_look_failed: bool = False
    """Whether the last round, which reads and writes the store, has failed."""

    last_read_failed: bool = False
    """Whether the last request that read the mounts has failed."""

    is_sealed_out: bool = False
    """Whether its master key did not open the key ring when it was last read."""

    last_record_failed: bool = False
    """Whether no audit device could be written to the last time."""

    @property
    def seconds_ahead(self) -> float:
        """Return by how many seconds this machine's clock is definitely ahead of the store's."""
        return 0.0 if self.clock is None else max(0.0, -self.clock.offset - self.clock.uncertainty)

    _noted: dict[HealthProblem, tuple[Occurrence, ...]] = field(factory=dict[HealthProblem, tuple[Occurrence, ...]])

    def note(self, problem: HealthProblem, occurrences: Sequence[Occurrence]) -> None:
        """Replace what is known of a problem. Without occurrences, the problem is over."""
        self._noted[problem] = tuple(occurrences)

    def noted(self, problem: HealthProblem) -> Sequence[Occurrence]:
        """Return the last known occurrences of a problem."""
        return self._noted.get(problem, ())

    watch: Callable[[], Mapping[HealthProblem, Sequence[Occurrence]]] = dict
    """Returns current problems according to records that are maintained elsewhere."""

    failures: dict[str, int] = field(factory=dict[str, int])
    """How often each kind of background work has failed in a row."""

    def note_outcome(self, work: str, failure: Exception | None = None) -> None:
        """Note the outcome of a round of background work. One failure may be temporary; several are reported."""
        self.failures[work] = self.failures.get(work, 0) + 1 if failure is not None else 0
        others = [noted for noted in self._noted.get(HealthProblem.BACKGROUND_FAILING, ()) if noted["work"] != work]
        if failure is not None and self.failures[work] >= SEVERAL:
            others.append({"work": work, "count": str(self.failures[work]), "reason": type(failure).__name__})
        self.note(HealthProblem.BACKGROUND_FAILING, others)

    @property
    def problems(self) -> Mapping[HealthProblem, Sequence[Occurrence]]:
        """Return all problems in the order of the table, with every occurrence."""
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
        """Return whether this node can serve requests."""
        return all(problem.consequence is not Consequence.CANNOT_SERVE for problem in self.problems)

    def _clock_apart(self) -> Sequence[Occurrence]:
        if self.clock is None or abs(self.clock.offset) - self.clock.uncertainty <= MOST_SKEW:
            return ()
        side = "behind" if self.clock.offset > 0 else "ahead of"
        return ({"seconds": f"{abs(self.clock.offset):.1f}", "side": side},)
