"""An audit device that fails at each write: nothing gets out that is not on record, and nothing is left behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cloudid_core.audit.device import Entries
from cloudid_core.errors import RecordFailed
from cloudid_core.events import Event
from cloudid_core.mounts.table import mount_table
from cloudid_core.store import keys
from cloudid_core.store.memory import MemoryStore
from tests.installation import Reply

from .invariants import check_always, check_in_the_end
from .operations import furnished
from .recorded import RecordedInstallation
from .test_login import configured, log_in

FILE = {"type": "file", "options": {"file_path": "/var/log/audit.log"}}


class Audited(RecordedInstallation):
    """Its one device takes some entries only."""

    def __init__(self, store: MemoryStore, original: RecordedInstallation) -> None:
        self.taken: list[Entries] = []
        self.fails: Callable[[int], bool] = lambda number: False
        """Whether the device fails to write an entry, by the entry's number."""
        self.tried = 0
        super().__init__(0, store, original.simulator, original.clock)

    async def record(self, event: Event) -> None:
        if event.audit is not None:
            self.tried += 1
            if self.fails(self.tried):
                raise RecordFailed("disk full")
            self.taken.append(event.audit)
        await super().record(event)


def audited(original: RecordedInstallation) -> Audited:
    """A copy of an installation in which a device is enabled."""
    twin = Audited(original.store.copy(), original)
    twin.advance(150.0)
    twin.tick()
    twin.must("PUT", "sys/audit/file", FILE)
    twin.taken.clear()
    twin.tried = 0
    return twin


def create_token(installation: RecordedInstallation) -> Reply:
    return installation.ask("POST", "auth/token/create", {"policies": ["default"], "ttl": "1h"})


def create_batch_token(installation: RecordedInstallation) -> Reply:
    return installation.ask("POST", "auth/token/create", {"type": "batch", "policies": ["default"], "ttl": "1h"})


def renew(installation: RecordedInstallation) -> Reply:
    made = create_token(installation)
    if made.status != 200:
        return made
    return installation.ask("POST", "auth/token/renew-self", {}, made.auth["client_token"])


def credentials(installation: RecordedInstallation) -> Reply:
    return installation.ask("GET", "cloud/creds/fresh")


SCENARIOS: dict[str, tuple[Callable[[], RecordedInstallation], Callable[[RecordedInstallation], Reply]]] = {
    "login": (configured, log_in),
    "token": (furnished, create_token),
    "batch token": (furnished, create_batch_token),
    "renewal": (furnished, renew),
    "credentials": (furnished, credentials),
    "a write": (furnished, lambda world: world.ask("POST", "auth/cloud/role/x", {"bound_group_ids": "*"})),
}


def tokens(installation: RecordedInstallation) -> list[str]:
    return installation.keys(keys.TOKENS)


@pytest.mark.parametrize("name", SCENARIOS)
def test_nothing_gets_out_that_is_not_on_record(name: str) -> None:
    """The device fails at the n-th write, once, or from then on: for every n that the scenario has."""
    start, scenario = SCENARIOS[name]
    whole = audited(start())
    scenario(whole)
    assert whole.tried >= 2
    before = len(tokens(audited(start())))
    for at in range(1, whole.tried + 1):
        for fails in (lambda number, at=at: number == at, lambda number, at=at: number >= at):
            world = audited(start())
            world.fails = fails
            reply = scenario(world)
            told = b"\n".join(text for entries in world.taken for text in entries.texts).decode()
            if reply.status == 200:
                assert_on_record(world, reply, told)
            else:
                assert (reply.status, reply.body["codes"]) == (503, ["audit_unavailable"])
            world.fails = lambda number: False
            check_always(world)
            world.converge()
            check_in_the_end(world)
            if reply.status == 503 and name != "renewal":
                assert len(tokens(world)) == before, "a token was left behind that its caller never saw"


def assert_on_record(world: Audited, reply: Reply, told: str) -> None:
    """What a client got is in an entry."""
    (device,) = world.peek(mount_table(world.service.context.records)).record.devices
    auth: Any = reply.auth
    if auth:
        assert device.hasher.text(auth["client_token"]) in told
    if reply.body["lease_id"]:
        assert reply.body["lease_id"] in told


def test_nothing_happens_while_no_device_can_be_written() -> None:
    world = audited(furnished())
    world.fails = lambda number: True
    before = world.store.copy()
    for method, path, body in (
        ("POST", "auth/token/create", {}),
        ("POST", "auth/cloud/role/x", {"bound_group_ids": "*"}),
        ("GET", "cloud/creds/fresh", None),
        ("GET", "nowhere", None),
    ):
        assert world.ask(method, path, body).body["codes"] == ["audit_unavailable"]
    assert {key: world.store.read(key) for key in world.keys("")} == {
        key: before.read(key) for key in before.list("", "", 10_000)
    }


def test_the_state_of_the_service_is_told_all_the_same() -> None:
    world = audited(furnished())
    world.fails = lambda number: True
    assert world.ask("GET", "sys/health", token="").status == 200
