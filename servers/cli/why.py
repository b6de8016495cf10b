"""`cloudid why`: every check of a login, the failed ones first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import click

from cloudid_core.audit.device import ADMITTED
from cloudid_core.auth_method.explanation import FAILED, PASSED, UNDECIDED

from ..client import Address, Identity
from ..terminal import Exit, Output, table, with_output
from .connection import cures, service_with_token, told, with_address, with_identity

MARKS: Final = {FAILED: "✗", UNDECIDED: "?", PASSED: "✓"}
"""In the order in which they are shown."""


@click.command("why")
@with_identity
@with_address
@with_output()
def why(identify: Callable[[], Identity], role: str, mount: str, address: Address, output: Output) -> int:
    """Explain why a login is refused.

    The token in use needs update and sudo at auth/cloud/explain; nobody is logged in. Exit code 1: the login would be
    refused, or cannot be decided.
    """
    with told(role=role):
        answer = service_with_token(address).write(f"{mount}/explain", identify().login(role))
    data = dict(answer.get("data") or {})
    lines = [f"{role}: {data.get('verdict')}", "", _checks(data.get("checks") or ())]
    lines += [f"warning: {warning}" for warning in answer.get("warnings") or ()]
    remedy = cures(data.get("codes") or (), {"role": role}, this=f"cloudid why --role {role}")
    output.text("\n".join([*lines, *([""] if remedy else []), *remedy]), data)
    return Exit.DONE if data.get("verdict") == ADMITTED else Exit.FAILED


def _checks(checks: Sequence[Mapping[str, Any]]) -> str:
    order = list(MARKS)
    worst_first = sorted(checks, key=lambda check: order.index(str(check["verdict"])))
    rows = [
        (MARKS[check["verdict"]], check["check"], _shown(check.get("expected")), _shown(check.get("found")))
        for check in worst_first
    ]
    return table(rows, ("", "check", "expected", "found"))


def _shown(value: object) -> object:
    """Lists as people write them."""
    return ", ".join(map(str, value)) if isinstance(value, list) else value
