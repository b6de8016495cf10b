"""`kill -9` of a server amid logins: no token that was answered is lost."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from servers.provider_simulator import Simulator, start

from .running import PATIENCE, SERVERS, Running, initialise
from .story import RESOURCE, login_form

CLIENTS: Final = 4
ENOUGH: Final = 40
"""Logins that are answered before the server is killed."""

SETTINGS: Final = """
[server]
listen = "127.0.0.1:0"
store = "{folder}/store.db"
key_file = "{folder}/key"
"""


@pytest.mark.parametrize("name", SERVERS)
def test_no_answered_token_is_lost(name: str, tmp_path: Path) -> None:
    """What was answered before the kill works after the restart."""
    settings = tmp_path / "cloudid.toml"
    settings.write_text(SETTINGS.format(folder=tmp_path))
    with start(Simulator()) as cloud:
        arguments = ("--settings", str(settings), "--provider", cloud.url)
        root = initialise(name, settings)
        with Running(f"servers.{name}", *arguments) as server:
            form = _configure(server.url, cloud.url, root)
            tokens = _log_in_until_killed(server, form)
        assert len(tokens) >= ENOUGH
        with Running(f"servers.{name}", *arguments) as server, httpx.Client(trust_env=False) as client:
            for token in tokens:
                answer = client.get(f"{server.url}/v1/auth/token/lookup-self", headers={"X-Service-Token": token})
                assert answer.status_code == 200


def _configure(url: str, simulator: str, root: str) -> dict[str, Any]:
    """A configuration and a role; the form of a login that succeeds."""
    world = httpx.get(f"{simulator}/simulator/world", trust_env=False).json()
    machine, application = world["machines"][0], world["applications"][0]
    config = {"tenant_id": world["tenant"], "resource": RESOURCE}
    config |= {name: application[name] for name in ("client_id", "client_secret")}
    with httpx.Client(trust_env=False, headers={"X-Service-Token": root}) as client:
        client.post(f"{url}/v1/auth/cloud/config", json=config).raise_for_status()
        bounds = {"bound_subscription_ids": [machine["subscription"]]}
        client.post(f"{url}/v1/auth/cloud/role/all", json=bounds).raise_for_status()
    form = login_form(simulator, machine)
    assert form is not None
    return form


def _log_in_until_killed(server: Running, form: dict[str, Any]) -> list[str]:
    """Several clients log in again and again; the server is killed when enough have been answered."""
    tokens: list[str] = []
    enough = threading.Event()

    def log_in() -> None:
        with httpx.Client(trust_env=False) as client:
            for _ in range(100 * ENOUGH):
                try:
                    answer = client.post(f"{server.url}/v1/auth/cloud/login", json=form)
                except httpx.TransportError:
                    return
                tokens.append(answer.json()["auth"]["client_token"])
                if len(tokens) >= ENOUGH:
                    enough.set()

    clients = [threading.Thread(target=log_in) for _ in range(CLIENTS)]
    for client in clients:
        client.start()
    assert enough.wait(PATIENCE)
    server.process.send_signal(signal.SIGKILL)
    for client in clients:
        client.join(PATIENCE)
    return tokens
