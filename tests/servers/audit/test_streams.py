"""Streams of audit devices: when they close what they write to."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from cloudid_core.audit.device import Device
from cloudid_servers.audit.streams import Stream


class ClosesMeanwhile:
    """A runtime whose device is closed while it watches the device's descriptor."""

    stream: Stream
    fd: int = -1
    was_open: bool = False

    async def wait_writable(self, fd: int, seconds: float) -> bool:
        self.fd = fd
        self.stream.close()
        self.was_open = is_open(fd)
        return True


def is_open(fd: int) -> bool:
    return os.path.exists(f"/proc/self/fd/{fd}")


def test_a_descriptor_that_is_watched_stays_open_until_it_is_left(tmp_path: Path) -> None:
    """Otherwise the event loop takes the next connection of this number for it, and never reads that one."""
    path, runtime = str(tmp_path / "socket"), ClosesMeanwhile()
    device = Device(name="siem", type="socket", key="00", options={"address": path, "socket_type": "unix"})
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        double: Any = runtime
        runtime.stream = Stream(device, double)
        with pytest.raises(OSError, match="was closed"):
            runtime.stream.send(b"entry").send(None)
    assert (runtime.was_open, is_open(runtime.fd)) == (True, False)
