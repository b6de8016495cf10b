"""An issue of credentials while something else happens, before each of its effects in turn."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Final

import pytest

from cloudid_core import Request
from tests.simulation.installation import Installation
from tests.simulation.invariants import check_always, check_in_the_end
from tests.simulation.operations import copy_of, furnished

from .interleaving import interleaved

ROLES: Final = ("fresh", "existing", "kept")
EVENTS: Final[dict[str, Callable[[Installation, str], object]]] = {
    "revocation of all leases": lambda world, _: world.ask("PUT", "sys/leases/revoke-prefix/cloud"),
    "forced revocation of all leases": lambda world, _: world.ask("PUT", "sys/leases/revoke-force/cloud"),
    "deletion of the role": lambda world, role: world.ask("DELETE", f"cloud/roles/{role}"),
    "end of the mount": lambda world, _: world.ask("DELETE", "sys/mounts/cloud"),
    "change of the configuration": lambda world, _: world.ask("POST", "cloud/config", {"root_password_ttl": "60d"}),
    "background work": lambda world, _: world.tick(),
}
HARMLESS: Final = ("background work", "change of the configuration")
SPACING: Final = 4
"""Every so many effects something happens; another one for each role, so that all are met."""


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("event", EVENTS)
def test_nothing_is_lost_or_leaked(event: str, role: str) -> None:
    for at in count(ROLES.index(role), SPACING):
        world = copy_of(furnished())
        request = Request("GET", f"/v1/cloud/creds/{role}", {"x-service-token": "root"}, b"", "127.0.0.1")
        happen = partial(EVENTS[event], world, role)
        response, effects = interleaved(world, world.service.handle(request), {at: [happen]})
        if at >= effects:
            break
        if response.status == 200 and event not in HARMLESS:
            world.give_back("")
        assert response.status in (200, 400, 404, 502, 503, 504), (at, response.status, response.failure)
        check_always(world)
        world.converge()
        check_in_the_end(world)
        if event == "end of the mount":
            assert world.ask("LIST", "sys/leases/lookup").status == 404, at
            assert world.ask("LIST", "sys/retiring").status == 404, at
            assert not world.simulator.ledger.alive(), at
