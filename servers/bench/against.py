"""Logins of a running service, over HTTP: what clients see, with everything that a login does."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from statistics import quantiles
from time import perf_counter

from attrs import field, frozen

from cloudid_core.effects import HttpResponse


@frozen
class Asked:
    """Has the outcome of many logins."""

    count: int
    seconds: float
    taken: list[float] = field(repr=False)
    refused: str = ""
    """The first answer that was not a login."""

    @property
    def per_second(self) -> float:
        return self.count / self.seconds

    def as_json(self) -> dict[str, float | str]:
        cuts = quantiles(self.taken, n=100) if len(self.taken) > 1 else [0.0] * 99
        figures = {"per_second": round(self.per_second, 1), "p50_ms": round(cuts[49] * 1e3, 2)}
        return {**figures, "p99_ms": round(cuts[98] * 1e3, 2), "refused": self.refused}


def ask_for(seconds: float, connections: int, login: Callable[[], HttpResponse]) -> Asked:
    """Log in again and again, from so many threads at a time, until the time is over or a login is refused.

    Raises what `login` raises in any of them.
    """
    taken: list[float] = []
    refusals: list[str] = []
    failures: list[Exception] = []
    started_at = perf_counter()

    def work() -> None:
        while perf_counter() - started_at < seconds and not refusals and not failures:
            before = perf_counter()
            try:
                answer = login()
            except Exception as error:  # noqa: BLE001  # raised below
                failures.append(error)
                return
            if answer.status != 200:
                refusals.append(_reason(answer))
                return
            taken.append(perf_counter() - before)

    threads = [threading.Thread(target=work) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return Asked(len(taken), perf_counter() - started_at, taken, refusals[0] if refusals else "")


def _reason(answer: HttpResponse) -> str:
    try:
        return f"{answer.status} {json.loads(answer.body)['errors'][0]}"
    except (ValueError, KeyError, IndexError, TypeError):
        return str(answer.status)
