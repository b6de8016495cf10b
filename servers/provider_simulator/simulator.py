"""The simulator: one object that answers every request to the simulated cloud."""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import copy
from typing import Final

from cloudid_core.effects import HttpRequest, HttpResponse

from .control import CONTROL
from .faults import NO_FAULT, strike
from .hosts import ARM, GRAPH
from .identity import LOGIN
from .ledger import Ledger
from .metadata import METADATA
from .routing import Answer, Call, json_response
from .scenery import furnish
from .world import World

FAMILIES: Final = (LOGIN, ARM, GRAPH, METADATA, CONTROL)


class Simulator:
    """A cloud in an object: no IO, no waiting, and the same answers for the same seed, clock and requests.

    `base_url` is the address that documents and links name. Not for concurrent use.
    """

    def __init__(
        self, seed: int = 0, base_url: str = "http://127.0.0.1", clock: Callable[[], float] = time.time
    ) -> None:
        self.world = World(seed, base_url, clock)
        furnish(self.world)

    @property
    def base_url(self) -> str:
        return self.world.base_url

    @base_url.setter
    def base_url(self, base_url: str) -> None:
        self.world.base_url = base_url

    @property
    def ledger(self) -> Ledger:
        return self.world.ledger

    def copy(self, clock: Callable[[], float] | None = None) -> Simulator:
        """A simulator whose world is the same now, and goes its own way; with another clock, if one is given."""
        twin = copy(self)
        twin.world = self.world.copy(clock)
        return twin

    def handle(self, request: HttpRequest) -> Answer:
        """The answer, whatever the request. Of the request's URL only path and query count."""
        call = Call.of(request)
        family = next((family for family in FAMILIES if call.path.startswith(family.prefix)), None)
        if family is None:
            return Answer(json_response(404, {"error": {"code": "NotFound", "message": "There is no such host."}}))
        fault = NO_FAULT if family is CONTROL else strike(self.world.faults, family.name, call)
        response = family.answer(self.world, call) if fault.lets_work else HttpResponse(503)
        refusal = fault.refusal()
        if refusal is not None:
            response = family.word(self.world, refusal)
        return Answer(response, fault.delay, fault.drop)
