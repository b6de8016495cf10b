"""Who may be targeted: random mounts, roles and changes of configuration, on one node and on several, beside an oracle.

The oracle knows the last configuration of each mount and nothing of records: an application may be lent of if no mount
proves itself with it.
"""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Final

import pytest

from cloudid_core.rotation.identities import self_targets
from cloudid_servers.provider_simulator.world.access import permit
from tests.engines import SecretsEngine

ENGINES: Final = ("cloud", "second")
MOUNTS: Final = (*ENGINES, "auth/cloud")
ROLES: Final = ("a", "b")
STEPS: Final = 40


@cache
def furnished() -> SecretsEngine:
    """Two engines, and applications that may do what a root application may."""
    world = SecretsEngine(verify_credentials=False)
    simulated = world.simulator.world
    for application in world.scene["applications"]:
        principal = simulated.directory.principal_of(application["client_id"])
        assert principal is not None
        permit(simulated, principal.id, reading=True, writing=True)
    world.must("POST", "sys/mounts/second", {"type": "cloud"})
    for engine in ENGINES:
        world.must("POST", f"{engine}/config", world.config)
    return world


class Oracle:
    """What was configured and written, as operators know it."""

    def __init__(self, world: SecretsEngine) -> None:
        self.applications = world.scene["applications"]
        self.proofs = dict.fromkeys(ENGINES, self.applications[0]["client_id"])
        self.targets: dict[tuple[str, str], str] = {}

    @property
    def refused(self) -> list[tuple[str, str]]:
        """The stored roles that point at what a mount proves itself with."""
        return sorted(place for place, client_id in self.targets.items() if client_id in self.proofs.values())


def tell(world: SecretsEngine, oracle: Oracle, dice: Random) -> None:
    """One random request, and whether its answer is the one that the oracle gives."""
    engine, role, mount = dice.choice(ENGINES), dice.choice(ROLES), dice.choice(MOUNTS)
    application = dice.choice(oracle.applications)
    client_id = application["client_id"]
    match dice.choice(("configure", "configure", "write", "write", "issue", "issue", "delete", "revoke")):
        case "configure":
            credentials = {name: application[name] for name in ("client_id", "client_secret")}
            given = {**world.config, "resource": "https://service", **credentials}
            reply = world.must("POST", f"{mount}/config", given)
            oracle.proofs[mount] = client_id
            count = sum(target == client_id for target in oracle.targets.values())
            warnings = (reply.body or {}).get("warnings") or []
            assert any(f"registration of this mount: {count};" in each for each in warnings) == (count > 0)
        case "write":
            fields = {"application_object_id": application["object_id"], "token_scopes": "api://any/.default"}
            reply = world.ask("POST", f"{engine}/roles/{role}", fields)
            assert (reply.status == 403) == (client_id in oracle.proofs.values()), (reply.status, reply.body)
            if reply.status == 204:
                oracle.targets[engine, role] = client_id
        case "issue":
            reply = world.ask("GET", f"{engine}/{dice.choice(('creds', 'token'))}/{role}")
            target = oracle.targets.get((engine, role))
            if target is None:
                assert (reply.status, reply.code) == (400, "role_not_found")
            else:
                assert (reply.status == 403 and reply.code == "self_target") == (target in oracle.proofs.values())
        case "delete":
            world.ask("DELETE", f"{engine}/roles/{role}")
            oracle.targets.pop((engine, role), None)
        case "revoke":
            reply = world.ask("PUT", "sys/leases/revoke-prefix/" + engine)
            assert reply.status == 204
    found = world.perform(self_targets(world.context))
    assert sorted((target.mount.path, target.role) for target in found) == oracle.refused


@pytest.mark.parametrize("nodes", [1, 3])
def test_nothing_is_lent_of_what_the_service_proves_itself_with(nodes: int, seeds: range) -> None:
    for seed in seeds[:30]:
        dice = Random(seed)
        world = SecretsEngine.copy_of(furnished(), seed + 1)
        services = [world.service, *(world.open_node() for _ in range(nodes - 1))]
        oracle = Oracle(world)
        for _ in range(STEPS):
            with world.requests_to(dice.choice(services)):
                tell(world, oracle, dice)
