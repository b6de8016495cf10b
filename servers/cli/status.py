"""`cloudid status`: whether the service can serve, what is wrong, and what needs an operator soon."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import partial
from typing import Any, Final, TypeAlias

import click
from attrs import Factory, frozen

from cloudid_core.health import HealthProblem
from cloudid_core.mounts import AUTH, SECRET, TYPE_ALIASES

from ..client import Address, Service, ServiceRefused, Unreachable
from ..paths import MOUNTABLE, mount_of
from ..terminal import Exit, Output, table, with_output
from ..typed import typed
from .connection import service_of, told, with_address

FORBIDDEN: Final = 403
NOT_FOUND: Final = 404
UNAVAILABLE: Final = 503
Rows: TypeAlias = list[Mapping[str, Any]]
MOST: Final = 100
"""Rows of a part."""
INITIALIZED: Final = "initialized"
"""A member that every answer of health has."""


class State(StrEnum):
    HEALTHY = "healthy"
    TROUBLED = "serves, with problems"
    FAILING = "cannot serve"


@frozen
class _Watched(Service):
    """Notes whether the service has answered that it cannot serve, whatever its health says."""

    refusals: list[ServiceRefused] = Factory(list)

    @property
    def was_unavailable(self) -> bool:
        return any(refusal.status == UNAVAILABLE for refusal in self.refusals)

    def ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, query: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        try:
            return super().ask(method, path, body, query)
        except ServiceRefused as refusal:
            self.refusals.append(refusal)
            raise


@click.command("status")
@with_address
@with_output()
def status(address: Address, output: Output) -> int:
    """Show whether the service is healthy.

    Each problem is shown with its fix. With a token that may read sys/health, the output also names the objects that a
    problem is about.

    The output also lists nodes, stuck leases, the expiry of client secrets and mounts that are being disabled, if the
    token may read sys/ha-status, sys/leases, the rotation of each mount and sys/retiring. In JSON, a part that could
    not be read is null, and not_read has the reason.

    The exit code is 0 if the service is healthy, 4 if it is not, and 1 if it does not answer.
    """
    with told():
        plain = service_of(address)
        service = _Watched(plain.address, plain.token, watch=plain.watch)
        health, state = _health(service)
        token = _token(service)
        parts = {name: _seen(service, read) for name, (read, _) in PARTS.items()}
        if service.was_unavailable and state is not State.FAILING:
            health, _ = _health(service)  # it may know meanwhile why
            state = State.FAILING
    not_read = {name: rows.reason for name, rows in parts.items() if isinstance(rows, NotRead)}
    known = {name: None if isinstance(rows, NotRead) else rows for name, rows in parts.items()}
    problems = [_described(each) for each in health.get("problem_details") or _problems(health)]
    facts = {
        "address": address.url,
        "state": state.value,
        "seal": "sealed" if health.get("sealed") else "open",
        "version": health.get("cloudid_version"),
        "interface": health.get("version"),
        "node": health.get("node_id"),
        "token": token,
    }
    tables = [
        _lines(facts),
        _lines({name.replace("_", " "): reason for name, reason in not_read.items()}),
        *(_table(known[name] or [], columns) for name, (_, columns) in PARTS.items()),
        "\n\n".join(map(_block, problems)),
    ]
    data = {**facts, **known, "not_read": not_read, "problems": problems, "health": health}
    output.text("\n\n".join(filter(None, tables)), data)
    return Exit.DONE if state is State.HEALTHY else Exit.UNHEALTHY


def _lines(facts: Mapping[str, object]) -> str:
    width = max(map(len, facts), default=0)
    return "\n".join(f"{name.ljust(width)}  {value}" for name, value in facts.items() if value)


class _Names(dict[str, str]):
    """The names of an occurrence that is not known: each stands for itself, in capitals."""

    def __missing__(self, name: str) -> str:
        return name.upper()


def _problems(health: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """What this client's own table says of the problems of which the service gives only codes."""
    for code in health.get("problems") or ():
        row = HealthProblem.__members__.get(str(code).upper())
        if row is None:
            yield {"code": code}
        else:
            texts = {"text": row.text(_Names()), "remedy": row.remedy(_Names())}
            yield {"code": code, **texts, "consequence": row.consequence.value}


def _described(problem: Mapping[str, Any]) -> dict[str, Any]:
    """A problem with its fix."""
    described = dict(problem)
    described["fix"] = str(described.pop("remedy", "") or "")
    return described


def _block(problem: Mapping[str, Any]) -> str:
    """A problem as lines."""
    head = ": ".join(str(problem[name]) for name in ("code", "text") if problem.get(name))
    below = [f"{name}: {problem[name]}" for name in ("consequence", "fix") if problem.get(name)]
    return "\n  ".join([head, *below])


def _health(service: Service) -> tuple[Mapping[str, Any], State]:
    """What health says, and what that means. Raises what the service does if it is not health that answers."""
    health: Mapping[str, Any]
    try:
        health = service.read("sys/health")
        state = State.TROUBLED if health.get("problems") else State.HEALTHY
    except ServiceRefused as refusal:
        health, state = refusal.document, State.FAILING
        if INITIALIZED not in health:
            raise
    if INITIALIZED not in health:
        raise Unreachable("what answers there is another service")
    return health, state


def _token(service: Service) -> str:
    """Return the policies of the token. Empty if they are unknown."""
    if not service.token:
        return "none: only the codes of problems are shown"
    try:
        return ", ".join(service.read("auth/token/lookup-self")["data"]["policies"])
    except ServiceRefused as refusal:
        return "not valid: log in again" if refusal.status == FORBIDDEN else ""
    except (KeyError, TypeError):  # what answers is not the service
        return ""


@frozen
class NotRead:
    """Why a part could not be read."""

    reason: str


def _seen(service: Service, read: Callable[[Service], Rows | NotRead]) -> Rows | NotRead:
    """The rows of a part, or why they could not be read."""
    if not service.token:
        return NotRead("not permitted: there is no token")
    try:
        return read(service)
    except ServiceRefused as refusal:
        if refusal.status == NOT_FOUND:
            return []
        if refusal.status == FORBIDDEN:
            return NotRead("not permitted")
        code = f" ({refusal.codes[0]})" if refusal.codes else ""
        return NotRead(f"failed: {refusal}{code}")
    except Unreachable as failure:
        return NotRead(f"failed: {failure}")
    except (KeyError, TypeError, AttributeError):
        return NotRead("failed: the response is not from cloudid")


def _stuck_leases(service: Service) -> Rows:
    return [{**lease, "fix": _fix_of(lease)} for lease in service.read("sys/leases", limit=str(MOST))["data"]["leases"]]


def _fix_of(lease: Mapping[str, Any]) -> str:
    mount, lease_id = typed(mount_of(lease["lease_id"])), typed(lease["lease_id"])
    return f"grant what cloudid read {mount}/permissions shows as missing, then cloudid revoke {lease_id} --wait 1m"


def _root_secrets(service: Service) -> Rows | NotRead:
    """When the root secrets of the mounts end, of the mounts that the token sees."""
    mounts = service.read("sys/internal/ui/mounts")["data"]
    types = {component.type for component in MOUNTABLE.values()} | {*TYPE_ALIASES}
    paths = [
        ("auth/" if kind == AUTH else "") + path
        for kind in (AUTH, SECRET)
        for path, mount in mounts[kind].items()
        if mount["type"] in types
    ]
    read = {path: _seen(service, partial(_rotation, path=path)) for path in paths[:MOST]}
    reasons = {rows.reason for rows in read.values() if isinstance(rows, NotRead)}
    if len(read) == sum(isinstance(rows, NotRead) for rows in read.values()):
        return NotRead("; ".join(sorted(reasons)) or "not permitted: the token sees no mount")
    rows: list[Mapping[str, Any]] = []
    for path, found in read.items():
        if isinstance(found, NotRead):
            rows.append({"mount": path, "not_read": found.reason})
        else:
            rows += [{"mount": path, **row} for row in found if row["credential_source"]]
    return rows


def _rotation(service: Service, path: str) -> Rows:
    return [service.read(f"{path}rotation")["data"]]


def _retiring(service: Service) -> Rows:
    accessors = service.read("sys/retiring", list="true")["data"]["keys"]
    return [service.read(f"sys/retiring/{accessor}")["data"] for accessor in accessors[:MOST]]


PARTS: Final[Mapping[str, tuple[Callable[[Service], Rows | NotRead], tuple[str, ...]]]] = {
    "nodes": (
        lambda service: list(service.read("sys/ha-status")["data"]["nodes"]),
        ("node_id", "hostname", "version", "background_node", "last_echo"),
    ),
    "stuck_leases": (_stuck_leases, ("lease_id", "error")),
    "root_secrets": (
        _root_secrets,
        ("mount", "credential_source", "expires", "phase", "next_rotation", "last_error", "not_read"),
    ),
    "retiring": (_retiring, ("path", "accessor", "left", "disabled_at", "next_attempt", "reasons")),
}
"""What is shown as a table beside health: how it is read, and its columns."""


def _table(rows: Rows, columns: tuple[str, ...]) -> str:
    """A table of the columns that some row has something in, and the fix of its first row, if rows have one."""
    if not rows:
        return ""
    filled = [column for column in columns if any(row.get(column) not in (None, "") for row in rows)]
    shown = table([[row.get(column) for column in filled] for row in rows], filled)
    return f"{shown}\n  fix: {rows[0]['fix']}" if "fix" in rows[0] else shown
