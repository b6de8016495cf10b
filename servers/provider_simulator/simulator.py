"""The simulator: one object that answers every request to the simulated cloud."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from copy import copy
from typing import Final

from attrs import evolve

from cloudid_core.effects import HttpRequest, HttpResponse

from .arm import ARM
from .control import CONTROL
from .engine.faults import NO_FAULT, next_fault
from .engine.ledger import Ledger
from .engine.requests import Answer, Call, json_response
from .graph import GRAPH
from .identity.login import LOGIN
from .identity.metadata import METADATA
from .world.initial import populate
from .world.world import Fetch, World, fetch_nothing

SERVICES: Final = (LOGIN, ARM, GRAPH, METADATA, CONTROL)

LOGIN_PATH: Final = re.compile(r"/(oauth2|discovery|\.well-known)/", re.IGNORECASE)
"""What only the login service has, below whichever path."""


class Simulator:
    """A cloud in an object: no IO, no waiting, and the same answers for the same seed, clock and requests.

    `base_url` is the address that documents and links contain. `fetch` gets the documents of issuers whose assertions
    the token endpoint takes. Not for concurrent use.
    """

    def __init__(
        self,
        seed: int = 0,
        base_url: str = "http://127.0.0.1",
        clock: Callable[[], float] = time.time,
        fetch: Fetch = fetch_nothing,
    ) -> None:
        self.world = World(seed, base_url, clock, fetch)
        populate(self.world)

    @property
    def base_url(self) -> str:
        return self.world.base_url

    @base_url.setter
    def base_url(self, base_url: str) -> None:
        self.world.base_url = base_url

    @property
    def ledger(self) -> Ledger:
        return self.world.ledger

    def copy(self, clock: Callable[[], float] | None = None, fetch: Fetch | None = None) -> Simulator:
        """An independent simulator whose world has the same state; with another clock and fetcher, if given."""
        twin = copy(self)
        twin.world = self.world.copy(clock, fetch)
        return twin

    def handle(self, request: HttpRequest) -> Answer:
        """Answer any request. Only the path and the query of its URL count."""
        call = Call.of(request)
        service = next((service for service in SERVICES if call.path.startswith(service.prefix)), None)
        if service is None and LOGIN_PATH.search(call.path):
            # Clients whose authority begins with the tenant leave out the login service's prefix.
            service, call = LOGIN, evolve(call, path=f"{LOGIN.prefix.rstrip('/')}{call.path}", login="")
        if service is None:
            return Answer(json_response(404, {"error": {"code": "NotFound", "message": "There is no such service."}}))
        if service is METADATA and (name := call.path.split("/")[2].lower()) in self.world.machines:
            self.world.metadata_calls[name] += 1  # whether or not a fault answers it
        fault = NO_FAULT if service is CONTROL else next_fault(self.world.faults, service.name, call)
        response = service.answer(self.world, call) if fault.does_work else HttpResponse(503)
        refusal = fault.refusal()
        if refusal is not None:
            response = service.refuse(self.world, call, refusal)
        return Answer(response, fault.delay, fault.drop)
