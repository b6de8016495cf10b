"""Logs: lines on stderr, of JSON for programs, and in columns for people at a terminal.

No line holds a secret: paths have no query, and errors of others no text. `lines` has all of them.
"""

from __future__ import annotations

import logging
import sys
import time
import traceback
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import partialmethod
from typing import Any, Final

import msgspec
import structlog
from attrs import define
from structlog.typing import FilteringBoundLogger

from cloudid_core.advice import advice_on, fill
from cloudid_core.errors import CloudidError
from cloudid_core.events import Event, RequestAnswered

from ..machine import streams
from ..settings import ServerSettings
from .form import JSON, renderer
from .lines import name_of

LEVELS: Final = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_ALWAYS: Final = logging.CRITICAL
"""Of a level that is not in the table."""

PATIENCE: Final = 0.1
"""Seconds that the service may stand still for the reader of its log."""


@define
class LogLevel:
    """The least important events that are logged; it can change while the log is in use."""

    name: str

    def apply(self, server: ServerSettings) -> None:
        self.name = server.log_level


class LogFile:
    """Writes lines to a file descriptor, never fails, and waits for a reader that is behind only once, for `PATIENCE`.

    A line that cannot be written is lost (disk full, pipe broken or full); the next one that can be says how many were.
    A log that is a file is reopened when it was moved or removed.
    """

    def __init__(
        self,
        level: LogLevel | str,
        descriptor: int = streams.STDERR,
        *,
        worker: int | None = None,
        log_format: str = JSON,
    ) -> None:
        """Each line has the number of the `worker`, if there are several. `log_format`: one of `FORMATS`."""
        self._render = renderer(log_format, descriptor)
        self._worker = worker
        self._level = LogLevel(level) if isinstance(level, str) else level
        self._descriptor = descriptor
        self._patience = PATIENCE if streams.can_be_full(descriptor) else None
        self._lost = 0
        self._path = streams.FollowedPath(descriptor)

    def takes(self, level: str) -> bool:
        """Whether events of a level are logged now."""
        return LEVELS.get(level, _ALWAYS) >= LEVELS[self._level.name]

    def write(self, level: str, /, **facts: Any) -> None:
        """Write a line, if the log takes it."""
        if self.takes(level):
            self.write_line(level, facts)

    def write_line(self, level: str, facts: dict[str, Any]) -> None:
        """Write a line that the log takes. `facts` belongs to the line from now on."""
        facts["level"], facts["timestamp"] = level, datetime.now(UTC)
        if self._worker is not None:
            facts["worker"] = self._worker
        start, patience = b"", self._patience
        if self._lost:
            facts["lost_lines"] = self._lost
            start, patience = b"\n", 0.0  # a part of the last line may have been written
        line = start + self._render(facts) + b"\n"
        is_kept = self._path.is_there() and streams.write_bytes(self._descriptor, line, patience=patience)
        self._lost = 0 if is_kept else self._lost + 1

    debug = partialmethod(write, "debug")
    info = partialmethod(write, "info")
    warning = partialmethod(write, "warning")
    error = partialmethod(write, "error")
    critical = partialmethod(write, "critical")


def open_log(level: LogLevel | str, descriptor: int = streams.STDERR, log_format: str = JSON) -> FilteringBoundLogger:
    """A log of events of at least this importance. Logging raises nothing."""
    return log_into(LogFile(level, descriptor, log_format=log_format))


def log_into(file: LogFile) -> FilteringBoundLogger:
    """A log whose lines go to a file."""
    log: FilteringBoundLogger = structlog.wrap_logger(
        file, wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG), processors=[]
    ).bind()  # now, and not at each line
    return log


class EventLog:
    """Writes the core's events as lines: a request by its answer, and everything that changes or fails."""

    def __init__(self, file: LogFile) -> None:
        self._file = file

    def __call__(self, event: Event) -> None:
        level = event.importance
        if not self._file.takes(level):  # of two events of each request, most logs take one
            return
        facts: dict[str, Any] = msgspec.to_builtins(event)
        facts["event"] = name_of(type(event))
        del facts["type"]
        if isinstance(event, RequestAnswered):
            facts["ms"] = round((time.time() - facts.pop("time")) * 1000, 2)
            if event.codes:
                facts |= explain_codes(event.codes, mount=event.mount, role=event.role)
        if "problem" in facts:
            facts |= facts.pop("problem")
        self._file.write_line(level, facts)


def explain_codes(codes: Iterable[str], **names: str) -> dict[str, str]:
    """The cause and the fix of a refusal; empty for codes that the table does not have."""
    advice = advice_on(codes)
    if advice is None:
        return {}
    return {"cause": fill(advice.cause, names), "fix": fill(advice.fix, names)}


def describe_error(error: BaseException) -> dict[str, Any]:
    """An error for the log. Texts of our own errors hold no secrets; of other errors only kind and place are logged."""
    if isinstance(error, CloudidError):
        return {"error": type(error).__name__, "reason": str(error)}
    frames = traceback.extract_tb(error.__traceback__)
    return {"error": type(error).__name__, "where": [f"{f.filename}:{f.lineno} {f.name}" for f in frames]}


def adopt_libraries(log: FilteringBoundLogger) -> None:
    """Write what libraries log through the standard library to our log, from warnings upwards.

    So are errors that Python itself can raise nowhere, which it would print to stderr between the lines of the log.
    """
    logging.basicConfig(handlers=[_Forwarder(log)], level=logging.WARNING, force=True)

    def log_unraisable(unraisable: sys.UnraisableHookArgs) -> None:
        error = unraisable.exc_value
        log.error("unraisable error", **(describe_error(error) if error else {}))

    sys.unraisablehook = log_unraisable


class _Forwarder(logging.Handler):
    """Passes on which library logged an event and how important it is, but not the text: it may hold anything."""

    def __init__(self, log: FilteringBoundLogger) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        write = self._log.error if record.levelno >= logging.ERROR else self._log.warning
        write("library", logger=record.name, **(describe_error(error) if error else {}))
