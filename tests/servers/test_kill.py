"""`kill -9` of a server amid logins: no token that was answered is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from cloudid_servers.provider_simulator import Simulator, start

from .deployment import Deployment
from .load import Load
from .running import SERVERS

pytestmark = pytest.mark.one_server

CLIENTS: Final = 4
ENOUGH: Final = 40
"""Logins that are answered before the server is killed."""


@pytest.mark.parametrize("name", SERVERS)
def test_no_answered_token_is_lost(name: str, tmp_path: Path) -> None:
    """What was answered before the kill works after the restart."""
    with start(Simulator()) as cloud:
        deployment = Deployment.prepare(name, tmp_path, cloud.url, {})
        with deployment.serving() as server, deployment.client(server) as client:
            deployment.configure(server)
            login = client.build_request("POST", "auth/cloud/login", json=deployment.form)
            with Load(*[login] * CLIENTS) as load:
                load.wait_for_more(ENOUGH)
                server.process.kill()
        with deployment.serving() as server, deployment.client(server) as client:
            for answer in load.answers:
                headers = {"X-Service-Token": answer["auth"]["client_token"]}
                client.get("auth/token/lookup-self", headers=headers).raise_for_status()
