"""`cloudid status`: whether the service can serve, and what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import click

from ..client import Address, Service, ServiceRefused, Unreachable
from ..terminal import Exit, Output, table, with_output
from .connection import service_of, told, with_address

NOT_HEALTHY: Final = 2
WIDTH: Final = 11
INITIALIZED: Final = "initialized"
"""A member that every answer of health has."""


class State(StrEnum):
    HEALTHY = "healthy"
    TROUBLED = "serves, with problems"
    FAILING = "cannot serve"


@click.command("status")
@with_address
@with_output()
def status(address: Address, output: Output) -> int:
    """Say whether the service is healthy, and what is wrong.

    A token that may read sys/health also sees what mends each problem. Exit codes: 0 healthy; 2 not; 1 no answer.
    """
    with told():
        service = service_of(address)
        health, state = _health(service)
        nodes = _nodes(service)
    problems = health.get("problem_details") or [{"code": code} for code in health.get("problems") or ()]
    seal = "sealed" if health.get("sealed") else "open"
    facts = {
        "address": address.url,
        "state": state.value,
        "store": seal,
        "version": health.get("cloudid_version"),
        "interface": health.get("version"),
        "node": health.get("node_id"),
    }
    tables = [
        "\n".join(f"{name:{WIDTH}}{value}" for name, value in facts.items() if value),
        _table(nodes, ("node_id", "hostname", "version", "background_node", "last_echo")),
        _table(problems, ("code", "text", "consequence", "remedy")),
    ]
    output.text("\n\n".join(filter(None, tables)), {**facts, "nodes": nodes, "problems": problems, "health": health})
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


def _nodes(service: Service) -> list[Mapping[str, Any]]:
    """The nodes, for a token that may see them."""
    if not service.token:
        return []
    try:
        return list(service.read("sys/ha-status")["data"]["nodes"])
    except (ServiceRefused, KeyError, TypeError):
        return []


def _table(rows: list[Mapping[str, Any]], columns: tuple[str, ...]) -> str:
    return table([[row.get(column) for column in columns] for row in rows], columns) if rows else ""
