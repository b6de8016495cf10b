"""Behaviour: delays, quirks, quotas and throttling of the cloud, each field as `docs/reference/simulator.md` has it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, TypeAlias

from attrs import evolve, frozen

from . import Immutable
from .shapes import NOTHING, NUMBER, Shape, bad_request, require_object

MAX_DELAY: Final = 86_400.0
MAX_FRONT_ENDS: Final = 100
MAX_PAGE_SIZE: Final = 1000

Span: TypeAlias = tuple[float, float]
Rate: TypeAlias = tuple[float, float]


class Replica(StrEnum):
    """A part of the cloud that learns of changes in the directory with a delay."""

    READS = "reads"
    WRITES = "writes"
    LISTS = "lists"
    ASSIGNMENTS = "assignments"
    SIGN_IN = "sign_in"
    BIN = "bin"


BUCKETS: Final = {
    "arm_reads": ("arm", False),
    "arm_writes": ("arm", True),
    "graph_reads": ("graph", False),
    "graph_writes": ("graph", True),
    "login": ("login", False),
}
"""The service of each, and whether its requests change anything."""

QUOTAS: Final = {"applications": 50_000, "passwords": 500, "assignments": 4000}


@frozen
class Behaviour(Immutable):
    """By default nothing lags, and nothing is throttled."""

    delays: Mapping[Replica, Span] = dict.fromkeys(Replica, (0.0, 0.0))
    front_ends: int = 1
    name_reuse: float = 0.0
    write_conflict: float = 0.0
    upsert: int | None = None
    replay_conflict: bool = False
    page_size: int = 3
    """Small, so that a client that ignores the next page is noticed."""
    quotas: Mapping[str, int] = QUOTAS
    throttle: Mapping[str, Rate | None] = dict.fromkeys(BUCKETS)

    @property
    def settled_after(self) -> float:
        """Seconds after which every replica knows a change."""
        return max(most for _, most in self.delays.values())


PRESETS: Final[Mapping[str, Behaviour]] = {
    "immediate": Behaviour(),
    "realistic": Behaviour(
        delays={
            Replica.READS: (0.0, 10.0),
            Replica.WRITES: (0.0, 10.0),
            Replica.LISTS: (5.0, 60.0),
            Replica.ASSIGNMENTS: (2.0, 30.0),
            Replica.SIGN_IN: (0.0, 40.0),
            Replica.BIN: (1.0, 20.0),
        },
        front_ends=4,
        name_reuse=60.0,
        write_conflict=0.2,
        page_size=100,
        quotas={**QUOTAS, "passwords": 200},
        throttle={
            "arm_reads": (250.0, 25.0),
            "arm_writes": (200.0, 10.0),
            "graph_reads": (3500.0, 350.0),
            "graph_writes": (3000.0, 20.0),
            "login": None,
        },
    ),
}

BEHAVIOUR: Final[Shape] = {
    "preset": (str,),
    "delays": (dict,),
    "front_ends": (int,),
    **dict.fromkeys(("name_reuse", "write_conflict"), NUMBER),
    "upsert": (int, NOTHING),
    "replay_conflict": (bool,),
    "page_size": (int,),
    **dict.fromkeys(("quotas", "throttle"), (dict,)),
}
DELAYS: Final[Shape] = dict.fromkeys(Replica, (*NUMBER, list))
LIMITS: Final[Shape] = dict.fromkeys(QUOTAS, (int,))
RATES: Final[Shape] = dict.fromkeys(BUCKETS, (list, NOTHING))


def read_behaviour(value: Any, current: Behaviour) -> Behaviour:
    """The current behaviour, changed as a JSON value says; `Refusal` 400 says what is wrong with the value."""
    given = require_object(value, BEHAVIOUR, "the behaviour")
    preset = given.pop("preset", None)
    if preset is not None and preset not in PRESETS:
        raise bad_request(f"'preset' must be one of {', '.join(PRESETS)}.")
    base = current if preset is None else PRESETS[preset]
    delays = require_object(given.pop("delays", {}), DELAYS, "'delays'")
    quotas = require_object(given.pop("quotas", {}), LIMITS, "'quotas'")
    rates = require_object(given.pop("throttle", {}), RATES, "'throttle'")
    behaviour = evolve(
        base,
        **given,
        delays={**base.delays, **{Replica(name): _read_span(span) for name, span in delays.items()}},
        quotas={**base.quotas, **quotas},
        throttle={**base.throttle, **{name: _read_rate(rate) for name, rate in rates.items()}},
    )
    for name, most in (("front_ends", MAX_FRONT_ENDS), ("page_size", MAX_PAGE_SIZE)):
        if not 1 <= getattr(behaviour, name) <= most:
            raise bad_request(f"'{name}' must be 1 to {most}.")
    if behaviour.upsert not in (None, 400, 501):
        raise bad_request("'upsert' must be null, 400 or 501.")
    if min(behaviour.name_reuse, behaviour.write_conflict, *behaviour.quotas.values()) < 0:
        raise bad_request("Seconds and quotas must not be negative.")
    return behaviour


def _read_span(value: Any) -> Span:
    least, most = _read_pair(value) if type(value) is list else (value, value)
    if not 0 <= least <= most <= MAX_DELAY:
        raise bad_request(f"A delay must be seconds or [least, most], from 0 to {MAX_DELAY:g}.")
    return float(least), float(most)


def _read_rate(value: Any) -> Rate | None:
    if value is None:
        return None
    burst, rate = _read_pair(value)
    if burst < 1 or rate <= 0:
        raise bad_request("A bucket must hold at least 1 request, and its rate must be above 0.")
    return float(burst), float(rate)


def _read_pair(value: Any) -> tuple[float, float]:
    if type(value) is not list or len(value) != 2 or any(type(number) not in NUMBER for number in value):
        raise bad_request("A pair must be a list of two numbers.")
    return value[0], value[1]
