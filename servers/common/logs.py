"""Logs: JSON lines on stderr. No line holds a secret: paths have no query, and errors of others no text."""

from __future__ import annotations

import logging
import sys
import time
import traceback
from typing import Any, Final, TextIO

import msgspec
import structlog
from structlog.typing import FilteringBoundLogger

from cloudid_core.errors import CloudidError
from cloudid_core.events import Event, RequestAnswered, RequestReceived

LEVELS: Final = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def open_log(level: str, stream: TextIO | None = None) -> FilteringBoundLogger:
    """A log of events of at least this importance."""
    log: FilteringBoundLogger = structlog.wrap_logger(
        structlog.WriteLogger(stream or sys.stderr),
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(),
        ],
    )
    return log


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
    """An error for the log. The texts of our own hold no secrets; of others only kind and place are told."""
    if isinstance(error, CloudidError):
        return {"error": type(error).__name__, "reason": str(error)}
    frames = traceback.extract_tb(error.__traceback__)
    return {"error": type(error).__name__, "where": [f"{f.filename}:{f.lineno} {f.name}" for f in frames]}


def adopt_libraries(log: FilteringBoundLogger) -> None:
    """Let our log tell what libraries log through the standard library, from warnings upwards."""
    logging.basicConfig(handlers=[_Forwarder(log)], level=logging.WARNING, force=True)


class _Forwarder(logging.Handler):
    """Passes on who said something and how important it is, but not the text: it may hold anything."""

    def __init__(self, log: FilteringBoundLogger) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        self._log.log(record.levelno, "library", logger=record.name, **(describe_error(error) if error else {}))
