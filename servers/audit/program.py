"""The program: `python -m cloudid_servers.audit verify FILE …` and `cloudid audit verify FILE …`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Final

import attrs
import click

from cloudid_core.values import rfc3339

from ..terminal import Exit, Format, Output, Unusable, system_reason, with_output
from .verify import Report
from .verify import verify as judge

UNCOMPARED: Final = (
    "without --checkpoints, removed chains, and removed lines after the last signed line, cannot be detected"
)


@click.group()
def audit() -> None:
    """Verify audit logs offline."""


def _key(ctx: click.Context, option: click.Parameter, value: str | None) -> str:
    """Refuse a wrong or empty key. An empty key would verify nothing, and a wrong one would blame the log."""
    if value is not None and not re.fullmatch("[0-9a-fA-F]{64}", value):
        raise click.BadParameter("a checkpoint_key must have 64 hexadecimal digits")
    return value or ""


def _since(ctx: click.Context, option: click.Parameter, value: str | None) -> float:
    if not value:
        return 0.0
    try:
        return rfc3339.parse(value if "T" in value.upper() else f"{value}T00:00:00Z")
    except ValueError as error:
        raise click.BadParameter(f"{error}, or a date") from None


@audit.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "--key", callback=_key, metavar="HEX", help="The checkpoint_key of the device, from `cloudid read sys/audit`."
)
@click.option("--checkpoints", multiple=True, metavar="FILE", help="A file with checkpoints that were kept elsewhere.")
@click.option(
    "--checkpoints-since",
    callback=_since,
    metavar="TIME",
    help="Accept that chains from before this time are missing, because their files were deleted on schedule.",
)
@click.option("--open-end", is_flag=True, help="Accept that the last chain has no end, because its server still runs.")
@with_output(Format.TABLE)
def verify(
    files: Sequence[str],
    key: str,
    checkpoints: Sequence[str],
    checkpoints_since: float,
    open_end: bool,
    output: Output,
) -> int:
    """Check that audit logs are genuine and complete.

    Name the log files in the order in which they were written. The exit code is 1 if a line was changed, added or
    removed.
    """
    try:
        with ExitStack() as opened:
            logs = [(name, opened.enter_context(open(name, "rb"))) for name in files]
            for name, log in logs:
                if (start := log.peek(1)) and not any(line.startswith(b"{") for line in start.splitlines()):
                    raise Unusable(f"{name} is not an audit log: no line at its start is a JSON object")
            anchors = [(name, opened.enter_context(open(name, "rb"))) for name in checkpoints]
            report = judge(
                logs,
                key=key,
                checkpoints=anchors,
                checkpoints_since=checkpoints_since,
                accepts_open_end=open_end,
            )
    except OSError as error:
        raise Unusable(system_reason(error)) from None
    is_compared = bool(checkpoints)
    output.text("\n".join(_lines(report, key, is_compared=is_compared)), _record(report, is_compared=is_compared))
    return Exit.FAILED if report.problems else Exit.DONE


def _lines(report: Report, key: str, *, is_compared: bool) -> list[str]:
    lines = [f"PROBLEM {problem}" for problem in report.problems]
    lines += [f"note {note}" for note in report.notes]
    for chain in report.chains.values():
        end = "closed" if chain.is_closed else "no end"
        lines.append(f"chain {chain.id}: {chain.last} lines, {end}, {chain.process}")
    keys = {chain.key for chain in report.chains.values() if chain.key}
    if not key and keys:
        shown = ", ".join(sorted(keys))
        lines.append(f"signed with {shown}: compare it with checkpoint_key in `cloudid read sys/audit`, or use --key")
    if not is_compared:
        lines.append(UNCOMPARED)
    lines.append(f"{report.lines} lines in {len(report.chains)} chains, {len(report.problems)} problems")
    return lines


def _record(report: Report, *, is_compared: bool) -> dict[str, object]:
    """Return the report in a form for programs."""
    return {
        "lines": report.lines,
        "limits": [] if is_compared else [UNCOMPARED],
        "problems": [attrs.asdict(problem) for problem in report.problems],
        "notes": [attrs.asdict(note) for note in report.notes],
        "chains": [
            {"id": chain.id, "lines": chain.last, "closed": chain.is_closed, "key": chain.key, "process": chain.process}
            for chain in report.chains.values()
        ],
    }
