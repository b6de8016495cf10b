"""Reloading: what SIGHUP changes in a server while it runs."""

from __future__ import annotations

from collections.abc import Callable

from attrs import asdict, evolve
from structlog.typing import FilteringBoundLogger

from ..settings import RELOADED, ServerSettings, SettingsError, SettingsFile

Apply = Callable[[ServerSettings], None]
"""Makes new settings count, or raises `SettingsError` and leaves everything as it is."""


class Reload:
    """Reads the settings again, and applies those that a running server can change.

    A file that cannot be used changes nothing. Settings that take a restart are named in the log.
    """

    def __init__(self, started_with: SettingsFile, read: Callable[[], SettingsFile]) -> None:
        self._started_with = started_with
        self._read = read
        self._parts: list[Apply] = []
        self.report: Callable[[str], None] = lambda reason: None
        """Called after each reload with the reason why it failed; empty: it succeeded."""

    def add(self, apply: Apply) -> None:
        """Have `apply` called with the new settings, each time."""
        self._parts.append(apply)

    def run(self, log: FilteringBoundLogger) -> None:
        """Reload. Raises nothing: what goes wrong is logged."""
        try:
            file = self._read()
            for apply in self._parts:
                apply(file.server)
        except SettingsError as error:
            log.error("settings not reloaded", reason=str(error))
            self.report(str(error))
            return
        log.info("settings reloaded")
        self.report("")
        if names := self._names_of_restart(file):
            log.warning("settings that take a restart have changed", names=names)

    def _names_of_restart(self, file: SettingsFile) -> list[str]:
        old, new = _flat(self._started_with), _flat(file)
        return [name for name in sorted(old | new) if old.get(name) != new.get(name)]


def reloaded(file: SettingsFile, new: SettingsFile) -> SettingsFile:
    """The settings of a server that was started with `file` and has reloaded `new`."""
    is_same_scheme = file.server.scheme == new.server.scheme  # a server with TLS stays one
    names = RELOADED if is_same_scheme else ("log_level",)
    return evolve(file, server=evolve(file.server, **{name: getattr(new.server, name) for name in names}))


def _flat(file: SettingsFile) -> dict[str, object]:
    """All settings that only a restart changes, by their full names."""
    server = {f"server.{name}": value for name, value in asdict(file.server).items() if name not in RELOADED}
    server["server.tls_certificate"] = bool(file.server.tls_certificate)  # a server with TLS stays one
    service = {f"service.{name}": value for name, value in file.service.items()}
    audit = {f"audit.{device.name}": device for device in file.audit}
    return server | service | audit | {f"clouds.{name}": cloud for name, cloud in file.clouds.items()}
