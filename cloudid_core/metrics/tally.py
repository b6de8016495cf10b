"""The tally counts events. It has no clock: the caller passes the time with each event."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from ..errors import Code
from ..events import (
    Event,
    IntentChanged,
    JobFailed,
    LeaseChanged,
    MachineClaimIgnored,
    Progress,
    RequestAnswered,
    RootSecretAtRisk,
    RotationChanged,
)
from .numbers import HISTOGRAM_TAIL, THE_REST, Numbers, add, add_histogram, merged
from .table import REQUEST_BUCKETS

LOGIN: Final = "login"
ADMITTED: Final = "admitted"
LOGIN_PATH: Final = "/login"
UPDATE: Final = "update"
AUTH: Final = "auth/"
MOST_KINDS: Final = 10_000
"""Maximum kinds of requests that are counted by role, and as many by mount."""

_Request: TypeAlias = tuple[str, str, int, tuple[str, ...], str, bool]
"""Mount, operation, status, codes, role, and whether the path is that of a login."""
_ROLE_NOT_FOUND: Final = Code.ROLE_NOT_FOUND.wire


def _failed(event: Progress) -> str:
    return "true" if event.reason else "false"


_COUNTED: Final[Mapping[type[Event], tuple[str, Callable[[Any], tuple[str, ...]]]]] = MappingProxyType(
    {
        MachineClaimIgnored: ("cloudid_machine_claims_ignored_total", lambda _: ()),
        LeaseChanged: ("cloudid_lease_changes_total", lambda event: (event.state, _failed(event))),
        IntentChanged: ("cloudid_intent_changes_total", lambda event: (event.state, _failed(event))),
        RotationChanged: ("cloudid_rotation_changes_total", lambda event: (event.phase, _failed(event))),
        RootSecretAtRisk: ("cloudid_root_secret_warnings_total", lambda _: ()),
        JobFailed: ("cloudid_background_failures_total", lambda event: (event.job,)),
    }
)
"""The metric and its labels for each event except requests."""


class Tally:
    """Count and measure the stream of events since the process started."""

    def __init__(self) -> None:
        self._numbers: Numbers = {}
        self._requests: dict[_Request, list[float]] = {}
        """A histogram of durations for each kind of answered request.

        All metrics of requests are derived from these, and only when needed, because every login is counted.
        """

    def __call__(self, event: Event, now: float) -> None:
        """Count an event at a time in seconds since 1970, by the same clock as the event's own times."""
        if type(event) is RequestAnswered:  # of every login: no call and no look-up more than this
            role = event.role if event.principal_id else ""  # a caller without an accepted token can make up any
            kind = event.mount, event.operation, event.status, event.codes, role, event.path[-6:] == LOGIN_PATH
            row = self._requests.get(kind)
            if row is None:
                row = self._new_kind(kind)
            seconds = now - event.time
            row[bisect_left(REQUEST_BUCKETS, seconds)] += 1
            row[-1] += seconds if seconds > 0 else 0.0
        elif counted := _COUNTED.get(type(event)):
            name, labels = counted
            add(self._numbers, name, labels(event))

    @property
    def numbers(self) -> Numbers:
        """Return the numbers counted so far. The caller may keep them."""
        numbers = merged([self._numbers])
        for (mount, operation, status, codes, role, is_at_login), row in self._requests.items():
            times, code, count = row, codes[0] if codes else ADMITTED, sum(row[:-1])
            if is_at_login and operation == UPDATE and mount.startswith(AUTH):
                operation = LOGIN
                add(numbers, "cloudid_logins_total", (mount, role.lower(), code), count)
            if codes:
                add(numbers, "cloudid_refusals_total", (code,), count)
            add(numbers, "cloudid_requests_total", (mount, operation, str(status)), count)
            add_histogram(numbers, "cloudid_request_seconds", times, (operation,))
        return numbers

    def _new_kind(self, kind: _Request) -> list[float]:
        mount, operation, status, codes, _, is_at_login = kind
        if _ROLE_NOT_FOUND in codes:  # callers can invent such names without end
            kind = mount, operation, status, codes, "", is_at_login
        if len(self._requests) >= MOST_KINDS and kind not in self._requests:
            kind = mount, operation, status, codes[:1], THE_REST, is_at_login
            if len(self._requests) >= 2 * MOST_KINDS:
                kind = THE_REST, operation, status, (), "", False
        return self._requests.setdefault(kind, [0] * (len(REQUEST_BUCKETS) + HISTOGRAM_TAIL))
