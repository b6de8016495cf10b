"""Logs: JSON lines on stderr. No line holds a secret: paths have no query, and errors of others no text."""

from __future__ import annotations

import logging
import sys
import time
import traceback
from typing import Any, Final

import msgspec
import structlog
from attrs import define
from structlog.typing import EventDict, FilteringBoundLogger

from cloudid_core.errors import CloudidError
from cloudid_core.events import Event, RequestAnswered, RequestReceived

from . import streams
from .settings import ServerSettings

LEVELS: Final = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}

PATIENCE: Final = 0.1
"""Seconds that the service may stand still for the reader of its log."""


@define
class LogLevel:
    """The least important events that are logged; it can change while the log is in use."""

    name: str

    def apply(self, server: ServerSettings) -> None:
        self.name = server.log_level

    def drop_less_important(self, _: object, method: str, event: EventDict) -> EventDict:
        if LEVELS.get(method, logging.ERROR) < LEVELS[self.name]:
            raise structlog.DropEvent
        return event


class LogFile:
    """Writes lines to a file descriptor, never fails, and waits for a reader that is behind only once, for `PATIENCE`.

    A line that cannot be written is lost (disk full, pipe broken or full); the next one that can be says how many were.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lost = 0

    def write(self, line: str) -> None:
        start = "\n" if self._lost else ""  # a part of the last line may have been written
        patience = 0.0 if self._lost else PATIENCE
        is_written = streams.write(self._descriptor, f"{start}{line}\n", patience=patience)
        self._lost = 0 if is_written else self._lost + 1

    debug = info = warning = error = critical = write

    def mention_lost_lines(self, _: object, __: str, event: EventDict) -> EventDict:
        return {**event, "lost_lines": self._lost} if self._lost else event


def open_log(level: LogLevel | str, descriptor: int = streams.STDERR) -> FilteringBoundLogger:
    """A log of events of at least this importance. Logging raises nothing."""
    file = LogFile(descriptor)
    log_level = LogLevel(level) if isinstance(level, str) else level
    log: FilteringBoundLogger = structlog.wrap_logger(
        file,
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG),
        processors=[
            log_level.drop_less_important,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            file.mention_lost_lines,
            structlog.processors.JSONRenderer(serializer=_json),
        ],
    ).bind()  # now, and not at each line
    return log


def _json(event: EventDict, **_: object) -> str:
    return msgspec.json.encode(event).decode("utf-8")


class EventLog:
    """Writes the core's events as lines: a request by its answer, and everything that changes or fails."""

    def __init__(self, log: FilteringBoundLogger) -> None:
        self._log = log

    def __call__(self, event: Event) -> None:
        facts: dict[str, Any] = msgspec.to_builtins(event)
        name = facts.pop("type")
        if isinstance(event, RequestAnswered):
            name = "request"
            facts["ms"] = round((time.time() - facts.pop("time")) * 1000, 2)
        elif isinstance(event, RequestReceived):
            name = "request received"
        facts |= facts.pop("problem", {})
        self._log.log(LEVELS[event.importance], name, **facts)


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
