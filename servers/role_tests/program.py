"""The program: `cloudid roles test FILE …`, `python -m cloudid_servers.role_tests`, and `test-roles` of a server."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from cloudid_core.audit.device import ADMITTED
from cloudid_core.errors import CloudidError

from ..client import Address, Service, ServiceRefused, Unreachable, find_token
from ..terminal import Exit, Format, Output, Unusable, printable, table, waiting, with_output, without_slashes
from .cases import Case, Verdict, read_suite
from .offline import Offline

TOKEN: Final = "CLOUDID_TOKEN"
"""The environment variable that holds the token for a server."""
UNEXPLAINED: Final = (400, 403)
"""Statuses of logins that cannot be explained, such as one of an unknown role."""
HEADS: Final = ("result", "case", "role", "expected", "got")


@click.group()
def roles() -> None:
    """Test roles against expected logins."""


@roles.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--address", metavar="URL", help=f"Test the roles of this service; needs a token, for example in {TOKEN}."
)
@click.option("--mount", default="auth/cloud", callback=without_slashes, metavar="PATH", help="Default: auth/cloud.")
@with_output(Format.TABLE)
def test(files: Sequence[Path], address: str | None, mount: str, output: Output) -> int:
    """Test which logins the roles admit.

    Each FILE is TOML or JSON, and contains roles, test cases, or both. Without --address no server is needed: the roles
    of the files are tested. The exit code is 1 if a login has a different result than expected.
    """
    if address == "":
        raise click.UsageError("--address is empty: omit it to test the roles of the files")
    try:
        suite = read_suite(files)
        decide: Callable[[Case], Verdict] = Offline(suite, time.time()).decide
        if address:
            where = Address.of(os.environ, address)
            token = find_token(os.environ, where.url, lambda text: click.echo(f"warning: {text}", err=True))
            if not token:
                raise Unusable(f"--address needs a token: set {TOKEN}, or run cloudid login")
            decide = partial(_online, Service(where, token, watch=waiting), mount)
        results = [(case, decide(case)) for case in suite.cases]
    except (ServiceRefused, Unreachable) as error:
        raise Unusable(printable(f"{address}/v1/{mount}/explain: {error}")) from error
    except CloudidError as error:
        raise Unusable(str(error)) from error
    output.text(report(results), [_record(case, verdict) for case, verdict in results])
    return Exit.DONE if all(verdict.meets(case) for case, verdict in results) else Exit.FAILED


def _online(service: Service, mount: str, case: Case) -> Verdict:
    """By `explain` of a server, which needs `update` and `sudo` there. Raises what is no verdict on the case."""
    try:
        return Verdict.of(service.write(f"{mount}/explain", case.body)["data"])
    except ServiceRefused as refusal:
        if refusal.status not in UNEXPLAINED or "permission_denied" in refusal.codes:
            raise
        return Verdict.of_refusal(refusal.codes, str(refusal))


def report(results: Sequence[tuple[Case, Verdict]]) -> str:
    """The table of all cases, the reasons of those that went otherwise, and a count."""
    lines = [table([_row(case, verdict) for case, verdict in results], HEADS)]
    otherwise = [(case, verdict) for case, verdict in results if not verdict.meets(case)]
    for case, verdict in otherwise:
        lines += ["", f"{case.file}: {case.written.name}", *(f"  {reason}" for reason in verdict.reasons)]
    lines += ["", f"{len(results)} cases, {len(otherwise)} different than expected"]
    return "\n".join(lines)


def _row(case: Case, verdict: Verdict) -> tuple[str, ...]:
    result = "ok" if verdict.meets(case) else "FAILED"
    return result, case.written.name, case.written.role, ", ".join(case.expected) or ADMITTED, verdict.shown


def _record(case: Case, verdict: Verdict) -> dict[str, Any]:
    """A case for a program: codes as lists, and the reasons."""
    return {
        "ok": verdict.meets(case),
        "file": str(case.file),
        "case": case.written.name,
        "role": case.written.role,
        "expected": case.expected,
        "verdict": verdict.verdict,
        "codes": verdict.codes,
        "reasons": verdict.reasons,
    }
