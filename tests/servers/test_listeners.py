"""Listeners: the sockets of a server's address."""

from __future__ import annotations

import socket
from contextlib import ExitStack

import pytest

from cloudid_servers.processes.listeners import bind
from cloudid_servers.settings.settings import SettingsError

ELSEWHERE = "192.0.2.1"
"""An address that no machine has (RFC 5737)."""


def bound_to(listen: str) -> set[tuple[str, int]]:
    """The addresses that a server listens on."""
    with ExitStack() as opened:
        sockets = [opened.enter_context(listener) for listener in bind(listen)]
        return {listener.getsockname()[:2] for listener in sockets}


def resolve(monkeypatch: pytest.MonkeyPatch, *hosts: str) -> None:
    """Let every name have these addresses."""
    found = [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (host, 0)) for host in hosts]
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: found)


def test_all_addresses_of_a_host_have_one_free_port(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve(monkeypatch, "127.0.0.1", "127.0.0.2")
    (first, port), (second, same) = sorted(bound_to("both.test:0"))
    assert (first, second, port == same != 0) == ("127.0.0.1", "127.0.0.2", True)


def test_an_address_that_the_machine_does_not_have_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """As that of `localhost` in IPv6, where IPv6 is switched off."""
    resolve(monkeypatch, ELSEWHERE, "127.0.0.1")
    assert {host for host, _ in bound_to("some.test:0")} == {"127.0.0.1"}
    resolve(monkeypatch, ELSEWHERE)
    with pytest.raises(SettingsError, match=r"cannot listen on none\.test:0: Cannot assign"):
        bound_to("none.test:0")


def test_a_host_without_an_address_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    label = "a" * 64
    with pytest.raises(SettingsError, match=f"cannot listen on {label}:0: it is not a host name"):
        bound_to(f"{label}:0")

    def fail(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr("socket.getaddrinfo", fail)
    with pytest.raises(SettingsError, match=r"cannot listen on none\.test:0: Name or service not known"):
        bound_to("none.test:0")
