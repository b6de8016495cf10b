"""The page about the log, from the table of its lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cloudid_servers.logs.lines import COMMON, MEMBERS, SERVER_LINES, Line, core_lines

from .tables import table


def page() -> str:
    """The whole page, in Markdown."""
    parts = [
        "# The log",
        "Printed by `make docs` from the table in the code. Do not edit.",
        "The log has one line for each event, on stderr. `log_format` sets the format: `json` (one JSON "
        "object per line, RFC 8259, UTF-8), `terminal` (coloured columns for people, which programs should "
        "not read), or `auto` (columns if stderr is a terminal, otherwise JSON). `log_level` sets the "
        "minimum severity.",
        "A release may add lines and members. If it changes the meaning or type of one, the changelog "
        "says so. No line contains a token, a client secret, the value of a field, or a body.",
        "## Members of every line",
        _members(COMMON),
        "## Events of the service",
        "Members that are empty or zero are omitted.",
        _lines(core_lines()),
        "## Events of the server",
        "A failure has `error` and `reason` if cloudid raised it, and otherwise `error` and `where`.",
        _lines(SERVER_LINES, "meaning or action"),
        "## Members",
        _members(MEMBERS),
    ]
    return "\n\n".join(parts) + "\n"


def _members(members: Mapping[str, tuple[str, str]]) -> str:
    return table(("member", "type", "meaning"), ((f"`{name}`", kind, doc) for name, (kind, doc) in members.items()))


def _lines(lines: Iterable[Line], heading: str = "meaning") -> str:
    rows = (
        (f"`{line.event}`", line.level, ", ".join(f"`{name}`" for name in line.members), line.meaning) for line in lines
    )
    return table(("`event`", "level", "members", heading), rows)
