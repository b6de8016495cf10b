"""Behaviour: delays, quirks, quotas and throttling of the cloud, each field as `docs/reference/simulator.md` has it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import Meta

from .shapes import Amount, Count, Form, bad_request, read

Seconds: TypeAlias = Annotated[float, Meta(ge=0, le=86_400)]
Span: TypeAlias = tuple[Seconds, Seconds]
Rate: TypeAlias = tuple[Annotated[float, Meta(ge=1)], Annotated[float, Meta(gt=0)]]
"""How many requests a bucket holds, and how many are put back in a second."""


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


class Behaviour(Form, frozen=True):
    """By default nothing lags, and nothing is throttled."""

    delays: Mapping[Replica, Span] = msgspec.field(default_factory=lambda: dict.fromkeys(Replica, (0.0, 0.0)))
    front_ends: Annotated[int, Meta(ge=1, le=100)] = 1
    name_reuse: Amount = 0.0
    write_conflict: Amount = 0.0
    upsert: int | None = None
    replay_conflict: bool = False
    page_size: Annotated[int, Meta(ge=1, le=1000)] = 3
    """Small, so that a client that ignores the next page is noticed."""
    quotas: Mapping[str, Count] = msgspec.field(default_factory=lambda: QUOTAS)
    max_secret_lifetime: Annotated[float, Meta(gt=0)] | None = None
    """An app management policy: the most seconds between start and end of a secret or certificate."""
    requires_reference: bool = False
    """Whether app registrations need a `serviceManagementReference`."""
    throttle: Mapping[str, Rate | None] = msgspec.field(default_factory=lambda: dict.fromkeys(BUCKETS))

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


def read_behaviour(value: Any, current: Behaviour) -> Behaviour:
    """The current behaviour, changed as a JSON value says; `Refusal` 400 says what is wrong with the value."""
    given = read(value, dict[str, Any], "the behaviour")
    preset = given.pop("preset", None)
    if preset is not None and preset not in tuple(PRESETS):
        raise bad_request(f"'preset' must be one of {', '.join(PRESETS)}.")
    changed = msgspec.to_builtins(current if preset is None else PRESETS[preset])
    for name, wanted in given.items():
        if isinstance(known := changed.get(name), dict):
            changed[name] = known | _read_changes(name, wanted, known)
        else:
            changed[name] = wanted
    behaviour = read(changed, Behaviour, "the behaviour")
    if any(least > most for least, most in behaviour.delays.values()):
        raise bad_request("A delay must be seconds or [least, most].")
    if behaviour.upsert not in (None, 400, 501):
        raise bad_request("'upsert' must be null, 400 or 501.")
    return behaviour


def _read_changes(name: str, value: Any, known: Mapping[str, Any]) -> dict[str, Any]:
    """Other values for some of those that are known. A delay of seconds alone has no other ones."""
    changes = read(value, dict[str, Any], f"'{name}'")
    if not changes.keys() <= known.keys():
        raise bad_request(f"'{name}' has only {', '.join(known)}.")
    if name == "delays":
        return {replica: each if isinstance(each, list) else [each, each] for replica, each in changes.items()}
    return changes
