"""Service manager: notify the process that started the server, usually systemd, of its state: sd_notify(3).

The manager says in `NOTIFY_SOCKET` where it listens. Without that variable, nothing is sent.
"""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final

PATIENCE: Final = 1.0
"""Seconds to wait for a manager that is behind."""


class Overseer:
    """The receiver of a server's state: a service manager, or the parent of a worker. This one ignores it."""

    def ready(self) -> None:
        """Requests are answered from now on, and settings are not being reloaded."""

    def reloading(self) -> None:
        """Settings are being reloaded, until `ready`."""

    def stopping(self) -> None:
        """No connection is accepted any more."""

    async def keep_alive(self, sleep: Callable[[float], Awaitable[object]]) -> None:
        """Report regularly that the event loop runs, for as long as it is requested."""


class ServiceManager(Overseer):
    """The one that the environment of this process names. If it cannot be reached, the server continues anyway."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._address = re.sub("^@", "\0", environment.get("NOTIFY_SOCKET", ""))
        self.watchdog_pause = _watchdog_pause(environment) if self._address else None
        """Seconds between two signs of life; `None`: the manager does not wait for them."""

    def ready(self) -> None:
        self._tell("READY=1")

    def reloading(self) -> None:
        self._tell(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        self._tell("STOPPING=1")

    def give_sign_of_life(self) -> None:
        """If it gets lost, the next one comes in time."""
        if self.watchdog_pause is not None:
            self._tell("WATCHDOG=1", patience=0.0)

    async def keep_alive(self, sleep: Callable[[float], Awaitable[object]]) -> None:
        while self.watchdog_pause is not None:
            self.give_sign_of_life()
            await sleep(self.watchdog_pause)

    def _tell(self, state: str, patience: float = PATIENCE) -> None:
        if self._address:
            with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
                manager.settimeout(patience)
                manager.sendto(state.encode(), self._address)


def _watchdog_pause(environment: Mapping[str, str]) -> float | None:
    """Half of the time without a sign of life after which the manager restarts this process."""
    limit, process = environment.get("WATCHDOG_USEC", ""), environment.get("WATCHDOG_PID", "")
    if not re.fullmatch("[1-9][0-9]{0,17}", limit) or process not in ("", str(os.getpid())):
        return None
    return int(limit) / 2e6
