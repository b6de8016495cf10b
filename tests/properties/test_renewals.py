"""A lease is renewed exactly while its credentials would be issued: random changes, on one node and on several.

Ceilings, `deny_privileged_roles`, roles and root credentials change between issue and renewal. The oracle remembers
what each lease was given and knows nothing of records: it judges that by the present configuration.
"""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any, Final

import pytest
from attrs import define, field, frozen

from cloudid_servers.provider_simulator.world.access import permit
from tests.engines import CONFIG, CREDS, ROLE, SecretsEngine

STEPS: Final = 30
DEFINITIONS: Final = ("Reader", "Contributor", "Owner")
PRIVILEGED: Final = ("Contributor", "Owner")
"""Both may do everything in their scope, but for a few actions."""


@frozen
class Wish:
    """The fields of a role: a definition at a scope, or an existing application."""

    definition: str = ""
    is_elsewhere: bool = False
    is_kept: bool = False

    @property
    def is_existing(self) -> bool:
        return not self.definition


@define
class Application:
    """An application of a lease, and what it was given last."""

    wish: Wish
    is_given_up: bool = False


@define
class Oracle:
    """What operators have written."""

    definitions: tuple[str, ...] | None = None
    """`None` for each list: everything."""
    scopes: tuple[bool, ...] | None = None
    applications: tuple[str, ...] | None = None
    denies: bool = False
    is_target: bool = False
    """Whether the second mount authenticates with the existing application."""
    role: Application | None = None
    leases: dict[str, Application] = field(factory=dict)

    def allows(self, wish: Wish) -> str:
        """The code with which credentials are refused; empty if they are not."""
        if wish.is_existing:
            if self.is_target:
                return "self_target"
            return "" if self.applications is None or self.applications else "ceiling_exceeded"
        allowed = (self.definitions is None or wish.definition in self.definitions) and (
            self.scopes is None or wish.is_elsewhere in self.scopes
        )
        return "" if allowed and not (self.denies and wish.definition in PRIVILEGED) else "ceiling_exceeded"


@cache
def furnished() -> SecretsEngine:
    """Two engines; the existing application may do what a root application may."""
    world = SecretsEngine(verify_credentials=False)
    simulated = world.simulator.world
    principal = simulated.directory.principal_of(world.other_application["client_id"])
    assert principal is not None
    permit(simulated, principal.id, reading=True, writing=True)
    world.must("POST", CONFIG, world.config)
    world.must("POST", "sys/mounts/second", {"type": "cloud"})
    world.must("POST", "second/config", world.config)
    return world


def random_wish(dice: Random) -> Wish:
    if dice.random() < 0.3:
        return Wish()
    return Wish(dice.choice(DEFINITIONS), dice.random() < 0.3, dice.random() < 0.5)


def fields_of(world: SecretsEngine, wish: Wish) -> dict[str, Any]:
    if wish.is_existing:
        object_id = world.other_application["object_id"]
        return {"application_object_id": object_id, "azure_roles": [], "persist_app": False}
    grants = world.grants(wish.definition, scope=world.other_scope if wish.is_elsewhere else world.scope)
    return {"application_object_id": "", "azure_roles": grants, "persist_app": wish.is_kept}


def some(dice: Random, values: tuple[Any, ...]) -> tuple[Any, ...] | None:
    return None if dice.random() < 0.4 else tuple(each for each in values if dice.random() < 0.6)


def take_step(world: SecretsEngine, oracle: Oracle, dice: Random) -> None:
    """Send one random request, and compare the answer with that of the oracle."""
    match dice.choice(("limit", "deny", "target", "write", "issue", "issue", "renew", "renew", "renew", "renew")):
        case "limit":
            oracle.definitions, oracle.scopes = some(dice, DEFINITIONS), some(dice, (False, True))
            oracle.applications = some(dice, (world.other_application["object_id"],))
            scopes = oracle.scopes and [world.other_scope if each else world.scope for each in oracle.scopes]
            lists = {
                "allowed_role_definitions": oracle.definitions,
                "allowed_scopes": () if oracle.scopes == () else scopes,
                "allowed_application_ids": oracle.applications,
                "allowed_group_ids": None,
            }
            world.must("POST", CONFIG, {name: None if each is None else list(each) for name, each in lists.items()})
        case "deny":
            oracle.denies = not oracle.denies
            world.must("POST", CONFIG, {"deny_privileged_roles": oracle.denies})
        case "target":
            oracle.is_target = not oracle.is_target
            root = world.other_application if oracle.is_target else world.root_application
            credentials = {name: root[name] for name in ("client_id", "client_secret")}
            world.must("POST", "second/config", {**world.config, **credentials})
        case "write":
            wish, stored = random_wish(dice), oracle.role
            reply = world.ask("POST", ROLE, fields_of(world, wish))
            assert outcome(reply) == oracle.allows(wish), reply.body
            if reply.status == 204:
                if stored is not None and stored.wish.is_kept and wish.is_kept:
                    stored.wish = wish
                else:
                    if stored is not None:
                        stored.is_given_up = stored.wish.is_kept
                    oracle.role = Application(wish)
                world.converge()  # what a kept application gave up is removed
        case "issue" if oracle.role is not None:
            reply = world.ask("GET", CREDS)
            assert outcome(reply) == oracle.allows(oracle.role.wish), reply.body
            if reply.status == 200:
                is_kept = oracle.role.wish.is_kept
                oracle.leases[reply.body["lease_id"]] = oracle.role if is_kept else Application(oracle.role.wish)
        case "renew" if oracle.leases:
            lease_id = dice.choice(sorted(oracle.leases))
            application = oracle.leases[lease_id]
            expected = "lease_not_renewable" if application.is_given_up else oracle.allows(application.wish)
            reply = world.ask("PUT", "sys/leases/renew", {"lease_id": lease_id, "increment": "1h"})
            assert outcome(reply) == expected, reply.body


def outcome(reply: Any) -> str:
    return "" if reply.status in (200, 204) else str(reply.codes[0])


@pytest.mark.parametrize("nodes", [1, 3])
def test_a_lease_is_renewed_exactly_while_its_credentials_would_be_issued(nodes: int, seeds: range) -> None:
    for seed in seeds:
        dice, oracle = Random(seed), Oracle()
        world = SecretsEngine.copy_of(furnished(), seed + 1)
        services = [world.service, *(world.open_node() for _ in range(nodes - 1))]
        for _ in range(STEPS):
            with world.requests_to(dice.choice(services)):
                take_step(world, oracle, dice)
