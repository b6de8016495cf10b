"""The page about the log, from the table of its lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cloudid_servers.logs.lines import COMMON, MEMBERS, SERVER_LINES, Line, core_lines

from .tables import table


def page() -> str:
    """The whole page, in Markdown."""
    parts = [
        "# The log",
        "Printed by `make docs` from the table of lines; a test compares it with every place that writes one.",
        "One line for each event on stderr. `log_format` chooses its form: `json`, one JSON object (RFC 8259) in UTF-8;"
        " `terminal`, columns with colours for people, which no program should read; or `auto`, columns if stderr is a"
        " terminal and JSON otherwise. `log_level` chooses the least important level.",
        "A release may add lines and members. It does not change the meaning or the type of one without a line in the"
        " changelog. No line holds a token, a client secret, a field's value or a body.",
        "## Members of every line",
        _members(COMMON),
        "## What happens in the service",
        "A member is left out where it would be empty or zero.",
        _lines(core_lines()),
        "## What the server tells of itself",
        "A failure is told by `error` and `reason` if it is one of ours, and otherwise by `error` and `where`.",
        _lines(SERVER_LINES, "meaning, or what to do"),
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
