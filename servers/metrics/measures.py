"""Measures: what a host counts and measures, in plain numbers. Only a scrape asks the library for its forms."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from cloudid_core.clouds import Cloud
from cloudid_core.metrics import BY_NAME, Numbers, Tally, add, merged, observe, put

LOGIN: Final = "login"
RESOURCE_MANAGER: Final = "resource manager"
DIRECTORY: Final = "directory"
OTHER: Final = "other"
NO_ANSWER: Final = "none"

Gauges = Callable[[Numbers], None]
"""Puts gauges, as they are now, to the numbers."""


class Measures:
    """The numbers of one process."""

    def __init__(self, clouds: Iterable[Cloud] = ()) -> None:
        self.gauges: list[Gauges] = []
        """What is asked at each scrape."""
        self.open_calls = 0
        """Calls to the provider that are under way."""
        self.tally = Tally()
        """Counts the events of the core."""
        self._numbers: Numbers = {}
        self.know(clouds)

    def know(self, clouds: Iterable[Cloud]) -> None:
        """Tell calls to the interfaces of these clouds apart."""
        self._families = [
            (address, family)
            for cloud in clouds
            for address, family in (
                (cloud.login, LOGIN),
                (cloud.resource_manager, RESOURCE_MANAGER),
                (cloud.directory, DIRECTORY),
            )
        ]

    def family_of(self, url: str) -> str:
        """Which interface of the provider a call is for."""
        return next((family for address, family in self._families if url.startswith(address)), OTHER)

    def note_call(self, url: str, status: int | None, seconds: float) -> None:
        """A call to the provider has ended. `None`: there was no answer."""
        family = self.family_of(url)
        add(self._numbers, "cloudid_provider_calls_total", (family, NO_ANSWER if status is None else str(status)))
        observe(self._numbers, "cloudid_provider_call_seconds", seconds, (family,))

    def note_batch(self, commits: int, seconds: float) -> None:
        """The store has written a batch of commits."""
        observe(self._numbers, "cloudid_store_batch_commits", commits)
        observe(self._numbers, "cloudid_store_batch_seconds", seconds)

    def note_unreadable(self, code: str) -> None:
        """Something came that was no request."""
        add(self._numbers, "cloudid_unreadable_total", (code,))

    @property
    def numbers(self) -> Numbers:
        now = merged([self._numbers, self.tally.numbers, process_numbers()])
        put(now, "cloudid_provider_calls_open", self.open_calls)
        put(now, "cloudid_processes", 1)
        for gauges in self.gauges:
            gauges(now)
        return now


def process_numbers() -> Numbers:
    """CPU, memory, descriptors and start of the process; nothing where the system does not tell (Linux does)."""
    from prometheus_client import ProcessCollector  # a start without a scrape does not wait for it

    numbers = Numbers()
    for family in ProcessCollector(registry=None).collect():
        for sample in family.samples:
            if sample.name in BY_NAME:
                put(numbers, sample.name, sample.value)
    return numbers
