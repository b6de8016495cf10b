"""`cloudid status`: whether the service can serve, what is wrong, and what needs an operator soon."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial
from typing import Any, Final, TypeAlias

import click
from attrs import Factory, frozen

from cloudid_core.mounts import AUTH, SECRET, TYPE_ALIASES

from ..client import Address, Service, ServiceRefused, Unreachable
from ..paths import MOUNTABLE
from ..terminal import Exit, Output, table, with_output
from .connection import service_of, told, with_address

NOT_HEALTHY: Final = 2
FORBIDDEN: Final = 403
UNAVAILABLE: Final = 503
WIDTH: Final = 11
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
    """Say whether the service is healthy, and what is wrong.

    A token that may read sys/health also sees what mends each problem. Nodes, stuck leases, the ends of root secrets
    and retiring mounts are shown where it may read sys/ha-status, sys/leases, rotation of the mounts, and sys/retiring.
    Exit codes: 0 healthy; 2 not; 1 no answer.
    """
    with told():
        plain = service_of(address)
        service = _Watched(plain.address, plain.token)
        health, state = _health(service)
        token = _token(service)
        parts = {name: _seen(service, read) for name, (read, _) in PARTS.items()}
        if service.was_unavailable and state is not State.FAILING:
            health, _ = _health(service)  # it may know meanwhile why
            state = State.FAILING
    problems = health.get("problem_details") or [{"code": code} for code in health.get("problems") or ()]
    seal = "sealed" if health.get("sealed") else "open"
    facts = {
        "address": address.url,
        "state": state.value,
        "seal": seal,
        "version": health.get("cloudid_version"),
        "interface": health.get("version"),
        "node": health.get("node_id"),
        "token": token,
    }
    tables = [
        "\n".join(f"{name:{WIDTH}}{value}" for name, value in facts.items() if value),
        *(_table(parts[name], columns) for name, (_, columns) in PARTS.items()),
        _table(problems, ("code", "text", "consequence", "remedy")),
    ]
    output.text("\n\n".join(filter(None, tables)), {**facts, **parts, "problems": problems, "health": health})
    return Exit.DONE if state is State.HEALTHY else NOT_HEALTHY


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
    """What the token may, by its policies; empty where nobody can tell."""
    if not service.token:
        return "none: it is not shown what mends a problem"
    try:
        return ", ".join(service.read("auth/token/lookup-self")["data"]["policies"])
    except ServiceRefused as refusal:
        return "not valid: log in again" if refusal.status == FORBIDDEN else ""
    except (KeyError, TypeError):  # what answers is not the service
        return ""


def _seen(service: Service, read: Callable[[Service], Rows]) -> Rows:
    """Rows, where the token may read them."""
    try:
        return read(service) if service.token else []
    except (ServiceRefused, KeyError, TypeError, AttributeError):
        return []


def _root_secrets(service: Service) -> Rows:
    """When the secrets end by which the mounts prove themselves to the provider, of the mounts that the token sees."""
    mounts = service.read("sys/internal/ui/mounts")["data"]
    types = {component.type for component in MOUNTABLE.values()} | {*TYPE_ALIASES}
    paths = [
        ("auth/" if kind == AUTH else "") + path
        for kind in (AUTH, SECRET)
        for path, mount in mounts[kind].items()
        if mount["type"] in types
    ]
    read = {path: _seen(service, partial(_rotation, path=path)) for path in paths[:MOST]}
    return [{"mount": path, **row} for path, rows in read.items() for row in rows if row["credential_source"]]


def _rotation(service: Service, path: str) -> Rows:
    return [service.read(f"{path}rotation")["data"]]


def _retiring(service: Service) -> Rows:
    accessors = service.read("sys/retiring", list="true")["data"]["keys"]
    return [service.read(f"sys/retiring/{accessor}")["data"] for accessor in accessors[:MOST]]


PARTS: Final[Mapping[str, tuple[Callable[[Service], Rows], tuple[str, ...]]]] = {
    "nodes": (
        lambda service: list(service.read("sys/ha-status")["data"]["nodes"]),
        ("node_id", "hostname", "version", "background_node", "last_echo"),
    ),
    "stuck_leases": (
        lambda service: list(service.read("sys/leases", limit=str(MOST))["data"]["leases"]),
        ("lease_id", "error"),
    ),
    "root_secrets": (
        _root_secrets,
        ("mount", "credential_source", "expires", "phase", "next_rotation", "last_error"),
    ),
    "retiring": (_retiring, ("path", "accessor", "left", "disabled_at", "next_attempt", "reasons")),
}
"""What is shown as a table beside health: how it is read, and its columns."""


def _table(rows: Rows, columns: tuple[str, ...]) -> str:
    """A table of the columns that some row has something in."""
    filled = [column for column in columns if any(row.get(column) not in (None, "") for row in rows)]
    return table([[row.get(column) for column in filled] for row in rows], filled) if rows else ""
