"""The program: `python -m cloudid_servers.role_tests FILE …`, also `test-roles` of both servers."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

from cloudid_core.audit.device import ADMITTED
from cloudid_core.errors import CloudidError
from cloudid_core.values.secret import Secret

from .cases import Case, read_suite
from .offline import Offline
from .online import Online, ServerError
from .verdict import Verdict

AS_EXPECTED: Final = 0
OTHERWISE: Final = 1
BROKEN: Final = 2
TOKEN: Final = "CLOUDID_TOKEN"
"""The environment variable that holds the token for a server."""
HEADS: Final = ("result", "case", "role", "expected", "got")


class Decider(Protocol):
    def decide(self, case: Case) -> Verdict: ...


def main(arguments: Sequence[str] | None = None, program: str = "python -m cloudid_servers.role_tests") -> int:
    """Run all cases, print a table, and answer the exit code: 0, 1 when a verdict is another than expected, or 2."""
    options = _parser(program).parse_args(arguments)
    try:
        suite = read_suite(options.files)
        decider: Decider = Offline(suite, time.time())
        if options.server:
            if TOKEN not in os.environ:
                raise ServerError(f"--server needs a token in the environment variable {TOKEN}")
            decider = Online(options.server, options.mount, Secret(os.environ[TOKEN]), options.ca)
        results = [(case, decider.decide(case)) for case in suite.cases]
    except CloudidError as error:
        sys.stderr.write(f"error: {error}\n")
        return BROKEN
    sys.stdout.write(report(results))
    return AS_EXPECTED if all(verdict.meets(case) for case, verdict in results) else OTHERWISE


def report(results: Sequence[tuple[Case, Verdict]]) -> str:
    """The table of all cases, the reasons of those that went otherwise, and a count."""
    rows = [HEADS, *(_row(case, verdict) for case, verdict in results)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    otherwise = [(case, verdict) for case, verdict in results if not verdict.meets(case)]
    for case, verdict in otherwise:
        lines += ["", f"{case.file}: {case.written.name}", *(f"  {reason}" for reason in verdict.reasons)]
    lines += ["", f"{len(results)} cases, {len(otherwise)} otherwise than expected"]
    return "\n".join(lines) + "\n"


def _row(case: Case, verdict: Verdict) -> tuple[str, ...]:
    result = "ok" if verdict.meets(case) else "FAILED"
    return result, case.written.name, case.written.role, ", ".join(case.expected) or ADMITTED, verdict.shown


def _parser(program: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program, description="Test which logins roles admit, and why not.", allow_abbrev=False
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="TOML or JSON with roles, cases or both")
    parser.add_argument(
        "--server", default="", metavar="URL", help=f"use the roles of this server; its token is in {TOKEN}"
    )
    parser.add_argument("--mount", default="auth/cloud", metavar="PATH", help="default: auth/cloud")
    parser.add_argument("--ca", default="", metavar="FILE", help="certificates that the server's must be signed by")
    return parser
