"""The two forms of a line: JSON, and columns with colours for people at a terminal."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

import msgspec

AUTO: Final = "auto"
JSON: Final = "json"
TERMINAL: Final = "terminal"
FORMATS: Final = (AUTO, JSON, TERMINAL)
"""`AUTO`: columns if the log is a terminal, otherwise JSON."""

EVENT_WIDTH: Final = 20

Renderer = Callable[[dict[str, Any]], bytes]
"""Format a line, without its end."""


def renderer(log_format: str, descriptor: int) -> Renderer:
    """What makes the lines of a log of this form into this file descriptor."""
    is_terminal = _is_terminal(descriptor)
    if log_format == TERMINAL or (log_format == AUTO and is_terminal):
        return _columns(has_colours=is_terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb")
    return msgspec.json.Encoder().encode


def _is_terminal(descriptor: int) -> bool:
    try:
        return os.isatty(descriptor)
    except OSError:
        return False


def _columns(*, has_colours: bool) -> Renderer:
    from structlog.dev import ConsoleRenderer  # servers in production do not need it

    render = ConsoleRenderer(colors=has_colours, force_colors=has_colours, sort_keys=False, pad_event_to=EVENT_WIDTH)

    def line(facts: dict[str, Any]) -> bytes:
        shown = {name: _printable(value) for name, value in facts.items()}
        if isinstance(shown["timestamp"], datetime):
            shown["timestamp"] = shown["timestamp"].astimezone().strftime("%H:%M:%S")
        return render(None, "", shown).encode("utf-8", "backslashreplace")

    return line


def _printable(value: Any) -> Any:
    """A text without what moves a terminal's cursor or changes its colours: some texts are a client's."""
    return repr(value)[1:-1] if isinstance(value, str) and not value.isprintable() else value
