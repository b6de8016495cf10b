"""Every fault of the simulated cloud at once: new ones all the time, chosen by a seed, for as long as a block lasts."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from random import Random
from types import MappingProxyType
from typing import Any, Final

import httpx

from tests.waiting import PATIENT

PAUSE: Final = 0.8
"""Seconds between two sets of faults."""
RULES: Final = 4
FAMILIES: Final = ("login", "arm", "graph", "graph")
PROVIDER_TIMEOUT: Final = 1.0
"""The setting that time-outs are longer than."""
SETTLED: Final = 1.5
"""Seconds after which the slowest replica knows a change."""

FAULTS: Final[Mapping[str, Mapping[str, object]]] = MappingProxyType(
    {
        "slow": {"delay": 0.2},
        "time-out": {"delay": PROVIDER_TIMEOUT + 0.5},
        "throttled": {"status": 429, "retry_after": 1},
        "failed": {"status": 503},
        "failed after the work": {"status": 500, "after_work": True},
        "dropped": {"drop": True},
        "dropped after the work": {"drop": True, "after_work": True},
    }
)
STALE: Final[Mapping[str, object]] = MappingProxyType(
    {
        "delays": {
            "reads": [0, 0.5],
            "writes": [0, 0.3],
            "lists": [0, SETTLED],
            "assignments": [0, 0.5],
            "sign_in": [0, 0.8],
            "bin": [0, 0.5],
        },
        "front_ends": 3,
        "write_conflict": 0.05,
        "throttle": {"graph_writes": [40, 40]},
    }
)
"""Replicas that lag, conflicts of writers, and a small quota."""


class Trouble:
    """Faults at the cloud for as long as the block lasts; after it, the cloud works as it should."""

    def __init__(self, cloud: str, seed: int) -> None:
        self.met: Counter[str] = Counter()
        """How often each kind of fault was met."""
        self._dice = Random(seed)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._client = httpx.Client(base_url=f"{cloud}/simulator", **PATIENT)

    def __enter__(self) -> Trouble:
        self._post("behaviour", STALE)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._post("faults", [])
        self._post("behaviour", {"preset": "immediate"})
        self._client.close()

    def _run(self) -> None:
        while not self._stop.is_set():
            names = [self._dice.choice([*FAULTS]) for _ in range(RULES)]
            self._post("faults", [self._rule(name) for name in names])
            self._stop.wait(PAUSE)
            self.met.update(names)
            self.met.subtract(rule["action"]["message"] for rule in self._client.get("faults").json())

    def _rule(self, name: str) -> dict[str, object]:
        """A fault that happens once; its message says which one it is."""
        action = {**FAULTS[name], "message": name}
        return {"match": {"family": self._dice.choice(FAMILIES)}, "times": 1, "action": action}

    def _post(self, path: str, body: Any) -> None:
        self._client.post(path, json=body if isinstance(body, list) else dict(body)).raise_for_status()
