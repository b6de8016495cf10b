"""Logins at two nodes while audit devices come and go: each is on record at the devices that its commit rested on."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, Final

import pytest

from cloudid_core.audit.device import Entries
from cloudid_core.effects import Commit, Record
from cloudid_core.events import RequestAnswered
from cloudid_core.mounts import mount_table
from cloudid_core.store import keys
from cloudid_core.testing.turns import Task
from tests.installation import Installation
from tests.logins import LOGIN, configure_logins, login_form

DEVICE: Final = {"type": "file", "options": {"file_path": "/var/log/audit.log"}}
DEVICES: Final = ("one", "two")
WORLDS: Final = 40
STEPS: Final = 12


class Watched(Installation):
    """It knows which devices each version of the table of mounts has enabled."""

    devices_of: dict[int, list[str]]

    async def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: tuple[str, ...]) -> int:
        version = await super().commit(expects, puts, deletes)
        if keys.MOUNTS in puts:
            self.note_devices()
        return version

    def note_devices(self) -> None:
        found = self.peek(mount_table(self.context.records))
        self.devices_of[found.version] = [device.name for device in found.record.devices]


@pytest.fixture(scope="module", params=["service", "batch"])
def configured(request: pytest.FixtureRequest) -> tuple[Installation, dict[str, Any]]:
    """An installation, and the body of a login."""
    installation = Installation()
    machine = configure_logins(installation, token_type=request.param)
    return installation, login_form(installation, machine)


def test_a_login_is_on_record_where_its_commit_expects(configured: tuple[Installation, dict[str, Any]]) -> None:
    original, body = configured
    started_again = 0
    for seed in range(WORLDS):
        world = Watched.copy_of(original, seed)
        world.devices_of = {}
        world.note_devices()
        logins = go_on(world, body, Random(seed))
        for login in logins:
            assert login.result().status == 200
            started_again += check(world, login.name)
    assert started_again > WORLDS // 4


def go_on(world: Watched, body: dict[str, Any], random: Random) -> list[Task[Any]]:
    """Logins and changes that are under way at the same time, at either node."""
    nodes = (world.service, world.open_node())
    logins: list[Task[Any]] = []
    tasks: list[Task[Any]] = []
    for _ in range(STEPS):
        node = random.choice(nodes)
        if random.random() < 0.6:
            logins.append(world.spawn(node.handle(world.request("POST", LOGIN, body, ""))))
            tasks.append(logins[-1])
        else:
            path = f"sys/audit/{random.choice(DEVICES)}"
            request = world.request("PUT", path, DEVICE) if random.random() < 0.6 else world.request("DELETE", path)
            tasks.append(world.spawn(node.handle(request)))
        if random.random() < 0.4:
            world.advance(0.01)
    while not all(task.is_done for task in tasks):
        world.advance(0.1)
    return logins


def check(world: Watched, name: str) -> bool:
    """Whether a login was begun more than once; its last entries are at the devices that its commit expected."""
    effects = [effect for task, effect in world.trace if task == name]
    (*_, commit) = [effect for effect in effects if isinstance(effect, Commit)]
    expected = world.devices_of[commit.expects[keys.MOUNTS]]
    events = [effect.event for effect in effects if isinstance(effect, Record)]
    requests = [event.audit for event in events if not isinstance(event, RequestAnswered)]
    (answer,) = [event.audit for event in events if isinstance(event, RequestAnswered)]
    assert names(answer) == expected
    assert names(requests[-1] if requests else None) == expected or not expected
    return len(requests) > 1 or (bool(requests) and not expected)


def names(entries: Entries | None) -> list[str]:
    return [device.name for device in entries.devices] if entries is not None else []
