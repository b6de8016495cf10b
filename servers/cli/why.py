"""`cloudid why`: every check of a login, the failed ones first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import click

from cloudid_core.advice import WHY
from cloudid_core.audit.device import ADMITTED
from cloudid_core.auth_method.explain import CALLER
from cloudid_core.auth_method.explanation import FAILED, PASSED, REFUSED, UNDECIDED

from ..client import GIVEN, Address, Identity
from ..terminal import Exit, Failed, Format, Output, table, with_output
from .advice import filled_advice
from .connection import service_with_token, told, with_address, with_identity

MARKS: Final = {FAILED: "✗", UNDECIDED: "?", PASSED: "✓"}
"""In the order in which they are shown."""


@click.command("why")
@click.option("--last", is_flag=True, help="Explain the last login that was refused, of any machine.")
@partial(with_identity, needs_role=False)
@with_address
@with_output(Format.TABLE)
def why(
    identify: Callable[[], Identity], role: str | None, mount: str, address: Address, output: Output, *, last: bool
) -> int:
    """Explain why a login is refused.

    Run it on the machine whose login is refused. It shows every check of the login, but does not log in. Your token
    needs update and sudo at auth/cloud/explain. The exit code is 1 if the login would be refused, or if Azure cannot be
    asked.

    With --last, run it anywhere: it explains the last login that was refused, or the last one with --role. Your token
    needs read at sys/internal/recent-logins.
    """
    if last:
        return _why_last(role or "", mount, address, output)
    if not role:
        raise click.UsageError("--role NAME or --last is required")
    with told(role=role, mount=mount):
        identity = identify()
        source = "" if identity.kind == GIVEN else CALLER  # the owner of a given token may be elsewhere
        body = {**identity.login(role), "remote_address": source}
        answer = service_with_token(address).write(f"{mount}/explain", body)
    data = dict(answer.get("data") or {})
    return _show(role, mount, data, answer.get("warnings") or (), output)


def _why_last(role: str, mount: str, address: Address, output: Output) -> int:
    with told():
        answer = service_with_token(address).read("sys/internal/recent-logins")
    for login in answer["data"]["logins"]:
        if login["verdict"] == REFUSED and login["mount"].strip("/") == mount and role.lower() in ("", login["role"]):
            return _show(
                login["role"], mount, login, (), output, _who(login, login["resource_id"] or login["principal_id"])
            )
    for refusal in () if role else answer["data"].get("unaccepted", ()):
        if refusal["mount"].strip("/") == mount:
            data = {**refusal, "verdict": REFUSED}
            return _show("any role", mount, data, (), output, _who(refusal, "a token that the mount did not accept"))
    raise Failed("no refused login is stored: each node stores only its own logins")


def _who(login: Mapping[str, Any], who: str) -> str:
    often = "once" if login["count"] == 1 else f"{login['count']} times"
    return f"{login['time']}, {often}: {who} from {login['remote_address']}"


def _show(role: str, mount: str, data: Mapping[str, Any], warnings: Sequence[str], output: Output, *about: str) -> int:
    lines = [f"{role}: {data.get('verdict')}", *about, "", _checks(data.get("checks") or ())]
    lines += [f"warning: {warning}" for warning in warnings]
    advice = filled_advice(data.get("codes") or (), {"role": role, "mount": mount}, this=WHY)
    if advice:
        lines += ["", *advice.lines]
    output.text("\n".join(lines), {**data, **(advice.members if advice else {})})
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
