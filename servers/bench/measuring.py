"""How contenders are measured: in rounds, one after the other, and in several processes at a time."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from multiprocessing import get_context
from statistics import median, quantiles
from time import perf_counter, perf_counter_ns, process_time
from typing import Any, Final

from attrs import asdict, frozen

from .contenders import Contender, verification
from .machine import tell
from .subject import Subject

PROCESS_SECONDS: Final = 2.0


@frozen(kw_only=True)
class Figure:
    """Has what one contender took for a token: the median of its rounds."""

    per_second: float
    """Of one core: by the CPU time of the process."""
    microseconds: float
    p50: float
    """Microseconds on the clock, over all tokens of all rounds."""
    p99: float
    spread: float
    """The fastest round less the slowest, as a share of the median."""

    def as_json(self) -> dict[str, float]:
        return {name: round(value, 3) for name, value in asdict(self).items()}


def measure(contenders: Mapping[str, Contender[Any]], rounds: int, seconds: float) -> dict[str, Figure]:
    """Measure contenders in turns, so that a slow moment of the machine affects all of them. The first warms up.

    `seconds` bounds all of it: a slow machine makes fewer passes over the tokens, but at least one in each round.
    """
    share = seconds / (rounds + 1) / len(contenders)
    rates: dict[str, list[float]] = {name: [] for name in contenders}
    taken: dict[str, list[int]] = {name: [] for name in contenders}
    for number in range(rounds + 1):
        tell(f"round {number} of {rounds}" if number else "warming up")
        for name, contender in contenders.items():
            rate, times = _pass(contender, share)
            if number:
                rates[name].append(rate)
                taken[name] += times
    tell("")
    return {name: _figure(rates[name], taken[name]) for name in contenders}


def _pass(contender: Contender[Any], seconds: float) -> tuple[float, list[int]]:
    """Return tokens a second of CPU time, and the nanoseconds of each on the clock."""
    contender.prepare()
    times: list[int] = []
    step, end = contender.step, perf_counter() + seconds
    started_at = process_time()
    while True:
        for item in contender.items:
            before = perf_counter_ns()
            step(item)
            times.append(perf_counter_ns() - before)
        if perf_counter() > end:
            return len(times) / (process_time() - started_at), times


def _figure(rates: list[float], taken: list[int]) -> Figure:
    rate = median(rates)
    cuts = quantiles(taken, n=100) if len(taken) > 1 else [float(taken[0])] * 99
    return Figure(
        per_second=rate,
        microseconds=1e6 / rate,
        p50=cuts[49] / 1e3,
        p99=cuts[98] / 1e3,
        spread=(max(rates) - min(rates)) / rate,
    )


def measure_processes(subject: Subject, processes: int) -> float:
    """Return how many tokens a second so many processes verify together, each seen for the first time."""
    with get_context("spawn").Pool(processes, _prepare, (subject,)) as pool:
        pool.map(_count, [0.05] * processes, chunksize=1)  # until all have started
        return sum(pool.map(_count, [PROCESS_SECONDS] * processes, chunksize=1))


_prepared: list[Contender[Any]] = []


def _prepare(subject: Subject) -> None:
    _prepared.append(verification(subject, is_cached=False))
    gc.freeze()


def _count(seconds: float) -> float:
    """Return tokens a second of this process on the clock."""
    [contender] = _prepared
    count, started_at = 0, perf_counter()
    while (elapsed := perf_counter() - started_at) < seconds:
        contender.run()
        count += len(contender.items)
    return count / elapsed
