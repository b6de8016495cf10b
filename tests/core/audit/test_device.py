"""Audit devices as records."""

from __future__ import annotations

from cloudid_core.audit.device import Device, Entries
from cloudid_core.mounts import MountTable
from cloudid_core.store.records import decode, encode

DEVICE = Device(name="file", type="file", key="5a" * 32, options={"file_path": "/var/log/audit.log"})


def test_a_device_that_was_used_is_stored_as_it_was() -> None:
    assert DEVICE.hasher.text("")
    assert DEVICE.public_key
    table = MountTable(devices=(DEVICE,))
    stored = decode(encode(table), MountTable)
    assert stored.devices == (DEVICE,)
    assert stored.devices[0].public_key == DEVICE.public_key


def test_hashes_and_signatures_have_keys_of_their_own() -> None:
    other = Device(name="file", type="file", key="a5" * 32)
    assert other.public_key != DEVICE.public_key
    assert other.hasher.text("x") != DEVICE.hasher.text("x")


def test_no_key_is_printed() -> None:
    assert DEVICE.key not in repr(DEVICE)
    assert "canary" not in repr(Entries((DEVICE,), (b"canary",)))


def test_options_say_what_a_device_takes_and_shows() -> None:
    anchor = Device(name="a", type="file", key="", options={"content": "checkpoints", "hmac_accessor": "false"})
    assert (DEVICE.takes_entries, DEVICE.shows_accessors) == (True, False)
    assert (anchor.takes_entries, anchor.shows_accessors) == (False, True)
    assert MountTable(devices=(anchor,)).entry_devices == ()
    assert MountTable(devices=(anchor, DEVICE)).entry_devices == (DEVICE,)
