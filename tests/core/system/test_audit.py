"""Audit devices are listed, enabled, disabled and asked for hashes; what they get is in the entries of a request."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from cloudid_core.audit.device import DeclaredDevice, Device
from cloudid_core.errors import RecordFailed, Refused
from cloudid_core.events import DeviceChanged, Event
from cloudid_core.mounts.table import mount_table
from tests.installation import Installation
from tests.tokens import new_token, write_policy

FILE = {"type": "file", "options": {"file_path": "/var/log/audit.log"}}


class Deaf(Installation):
    """No audit device of this world can be written."""

    async def record(self, event: Event) -> None:
        if event.audit is not None:
            raise RecordFailed("disk full")
        await super().record(event)


def devices(world: Installation) -> tuple[Device, ...]:
    return world.perform(mount_table(world.context.records)).record.devices


def test_a_device_is_enabled_listed_and_disabled() -> None:
    world = Installation()
    world.must("PUT", "sys/audit/file", {**FILE, "description": "all"})
    listed = world.must("GET", "sys/audit").body
    assert listed["data"] == {
        "file/": {
            "type": "file",
            "description": "all",
            "options": {"file_path": "/var/log/audit.log"},
            "local": False,
            "path": "file/",
            "checkpoint_key": devices(world)[0].public_key,
        }
    }
    assert listed["file/"] == listed["data"]["file/"], "old clients read it beside the envelope"
    world.must("DELETE", "sys/audit/file")
    world.must("DELETE", "sys/audit/file")
    assert world.must("GET", "sys/audit").data == {}


def test_enabling_writes_a_test_entry_first() -> None:
    world = Installation()
    world.must("PUT", "sys/audit/file", FILE)
    tried, enabled = [event for event in world.events if isinstance(event, DeviceChanged)]
    assert (tried.state, enabled.state) == ("tried out", "enabled")
    assert tried.audit is not None
    assert tried.audit.is_trial
    assert b"sys/audit/test" in tried.audit.texts[0]


def test_a_device_that_cannot_be_written_is_not_enabled() -> None:
    world = Deaf()
    assert world.refused("PUT", "sys/audit/file", FILE) == (400, "audit_device_unusable")
    assert devices(world) == ()


def test_all_nodes_learn_of_a_device() -> None:
    """Another service over the same store writes entries from its next request on."""
    world = Installation()
    other = world.open_node()
    world.must("PUT", "sys/audit/file", FILE)
    with world.requests_to(other):
        world.must("GET", "auth/token/lookup-self")
    assert world.events[-1].audit is not None


@pytest.mark.parametrize(
    "body, code",
    [
        ({}, "field_required"),
        ({"type": "tape"}, "field_invalid"),
        ({"type": "file"}, "field_required"),
        ({"type": "socket"}, "field_required"),
        ({"type": "file", "options": {"file_path": "audit.log"}}, "field_invalid"),
        ({"type": "file", "options": {"file_path": "/a", "mode": "0700"}}, "field_invalid"),
        ({"type": "file", "options": {"file_path": "/a", "mode": "rw"}}, "field_invalid"),
        ({"type": "file", "options": {"file_path": "/a", "log_raw": "true"}}, "field_invalid"),
        ({"type": "file", "options": {"file_path": "/a", "prefix": "#!/bin/sh"}}, "field_invalid"),
        ({"type": "file", "options": {"file_path": "/a", "format": "jsonx"}}, "field_invalid"),
        ({"type": "file", "options": {"file_path": "/a", "unknown": "1"}}, "field_invalid"),
        ({"type": "stdout", "options": {"content": "some"}}, "field_invalid"),
    ],
)
def test_a_device_that_makes_no_sense_is_refused(body: dict[str, Any], code: str) -> None:
    """Among them what would make a file that can be executed, or one with secrets in it."""
    world = Installation()
    assert world.refused("POST", "sys/audit/x", body) == (400, code)
    assert devices(world) == ()


def test_a_second_device_at_a_path_is_refused() -> None:
    world = Installation()
    world.must("PUT", "sys/audit/file", FILE)
    assert world.refused("PUT", "sys/audit/file", FILE) == (409, "mount_path_in_use")
    assert world.ask("PUT", "sys/audit/.", FILE).status == 400


def test_a_seventeenth_device_is_refused() -> None:
    world = Installation()
    for number in range(16):
        world.must("PUT", f"sys/audit/d{number}", FILE)
    assert world.ask("PUT", "sys/audit/more", FILE).status == 400


def test_audit_devices_need_sudo() -> None:
    world = Installation()
    write_policy(world, "auditor", ("sys/audit*", ["read", "update", "delete"]))
    token = new_token(world, policies=["auditor"])
    for method, path in (("GET", "sys/audit"), ("PUT", "sys/audit/file"), ("PUT", "sys/audit-hash/file")):
        assert world.refused(method, path, {}, token) == (403, "permission_denied")


def test_a_hash_finds_a_text_in_the_entries() -> None:
    world = Installation()
    world.must("PUT", "sys/audit/file", FILE)
    told = world.must("PUT", "sys/audit-hash/file", {"input": "root"}).body
    assert told["data"]["hash"] == told["hash"]
    assert world.events[-1].audit is not None
    assert f'"client_token":"{told["hash"]}"'.encode() in world.events[-1].audit.texts[0]
    assert world.refused("PUT", "sys/audit-hash/none", {"input": "x"}) == (400, "audit_device_not_found")


# Devices of the settings file


DECLARED = DeclaredDevice(name="main", type="file", options={"file_path": "/var/log/a.log"})


def test_declared_devices_are_enabled_at_start_and_kept() -> None:
    world = Installation()
    world.restart(audit_devices=(DECLARED,))
    (device,) = devices(world)
    assert device.declared
    revision = world.store.revision
    world.restart(audit_devices=(DECLARED,))
    assert devices(world) == (device,), "its hashes stay what they were"
    assert world.store.revision == revision + 1, "the key ring's reserve is all that is written"


def test_declared_devices_are_changed_in_the_settings_only() -> None:
    world = Installation()
    world.restart(audit_devices=(DECLARED,))
    assert world.refused("DELETE", "sys/audit/main") == (400, "audit_device_declared")
    world.restart(audit_devices=())
    assert devices(world) == ()


def test_a_declared_device_that_cannot_be_written_stops_the_start() -> None:
    with pytest.raises(Refused, match="could not be written"):
        Deaf(audit_devices=(DECLARED,))


def test_a_declared_device_leaves_others_alone() -> None:
    world = Installation()
    world.must("PUT", "sys/audit/file", FILE)
    world.restart(audit_devices=(DECLARED,))
    assert [device.name for device in devices(world)] == ["file", "main"]
    changed = replace(devices(world)[1], options={"file_path": "/b"}, key="")
    moved = DeclaredDevice(name="main", type="file", options={"file_path": "/b"})
    world.restart(audit_devices=(moved,))
    assert replace(devices(world)[1], key="") == changed
