"""Addresses and paths of audit devices: one that leads nowhere refuses entries, and does not end the server."""

from __future__ import annotations

from functools import partial

import pytest

from cloudid_core.audit.device import Device, Entries
from cloudid_core.errors import RecordFailed
from cloudid_servers.host.host import Host
from tests.hosts.opened import RUNTIMES, on


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("address", ["a..b:9000", f"{'a' * 64}.test:9000", "a\0b:9000", "/tmp/a\0b", "\ud800:9000"])
def test_an_address_that_cannot_be_one_refuses_entries(runtime: str, address: str) -> None:
    kind = "unix" if address.startswith("/") else "tcp"
    device = Device(name="s", type="socket", key="5a" * 32, options={"address": address, "socket_type": kind})

    on(runtime, partial(refuses_entries, device))


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("path", ["/tmp/a\0b", "/tmp/\ud800", f"/tmp/{'a' * 300}", "/tmp"])
def test_a_path_that_cannot_be_one_refuses_entries(runtime: str, path: str) -> None:
    on(runtime, partial(refuses_entries, Device(name="f", type="file", key="5a" * 32, options={"file_path": path})))


async def refuses_entries(device: Device, host: Host) -> None:
    for _ in range(2):
        with pytest.raises(RecordFailed):
            await host.audit.write(Entries((device,), (b'{"type":"request"}',), is_trial=True))
