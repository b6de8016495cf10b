"""`python -m cloudid_servers.audit verify FILE …`: whether audit logs are whole. Exit code 1 when they are not."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack

from ..runtime.interrupts import until_interrupted
from .verify import Report, verify


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        with ExitStack() as opened:
            files = [(name, opened.enter_context(open(name, "rb"))) for name in options.files]
            anchors = [(name, opened.enter_context(open(name, "rb"))) for name in options.checkpoints]
            report = verify(files, key=options.key, checkpoints=anchors, accepts_open_end=options.open_end)
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    _print(report, options.key)
    return 1 if report.problems else 0


def _print(report: Report, key: str) -> None:
    for problem in report.problems:
        print(f"PROBLEM {problem}")
    for note in report.notes:
        print(f"note {note}")
    for chain in report.chains.values():
        end = "closed" if chain.is_closed else "no end"
        print(f"chain {chain.id}: {chain.last} lines, {end}, {chain.process}")
    keys = {chain.key for chain in report.chains.values() if chain.key}
    if not key and keys:
        print(f"signed with {', '.join(sorted(keys))}: compare it with checkpoint_key of GET sys/audit, or give --key")
    print(f"{report.lines} lines in {len(report.chains)} chains, {len(report.problems)} problems")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m cloudid_servers.audit", description="Verify audit logs, offline.")
    parser.add_argument("action", choices=("verify",))
    parser.add_argument("files", nargs="+", metavar="FILE", help="audit logs, in the order in which they were written")
    parser.add_argument("--key", default="", metavar="HEX", help="the device's checkpoint_key, from GET sys/audit")
    parser.add_argument(
        "--checkpoints", action="append", default=[], metavar="FILE", help="checkpoints that were kept elsewhere"
    )
    parser.add_argument(
        "--open-end", action="store_true", help="accept a chain without an end: its process still runs, or was killed"
    )
    return parser


if __name__ == "__main__":
    sys.exit(until_interrupted(main))
