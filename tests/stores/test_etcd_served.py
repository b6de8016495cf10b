"""A server with two workers over three members of etcd, of which any one is killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from cloudid_servers.stores.postgres.temporary import free_port
from tests.servers.running import ROOT
from tests.waiting import PATIENCE, wait_until

from .etcd_cluster import running_etcd

KILLED_AT = (10, 20, 30)


@pytest.mark.parametrize("server", ["trio", "aiohttp"])
def test_workers_serve_while_one_member_after_the_other_is_killed(server: str, tmp_path: Path) -> None:
    with running_etcd(3) as cluster:
        port = free_port()
        settings = tmp_path / "cloudid.toml"
        settings.write_text(f'[server]\nstore = "{cluster.new_prefix()}"\nlisten = "127.0.0.1:{port}"\n')
        command = [sys.executable, "-m", "cloudid_servers.cli"]
        init = [*command, "init", "--settings", str(settings)]
        token = subprocess.run(init, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()[-1]
        serve = [*command, "serve", "--settings", str(settings), "--workers", "2", "--server", server]
        log = tmp_path / "log"
        with (
            log.open("wb") as output,
            subprocess.Popen(serve, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=output) as process,
        ):
            client = httpx.Client(headers={"x-vault-token": token}, timeout=PATIENCE, trust_env=False)
            url = f"http://127.0.0.1:{port}/v1"

            def ask(path: str, **body: Any) -> httpx.Response | None:
                try:
                    return client.post(f"{url}/{path}", json=body) if body else client.get(f"{url}/{path}")
                except httpx.TransportError:
                    return None

            try:
                wait_until(lambda: ask("sys/health"))
                made = []
                for number in range(40):
                    if number in KILLED_AT:
                        cluster.members[KILLED_AT.index(number)].kill()
                    answer = client.post(f"{url}/auth/token/create", json={"ttl": "1h"})
                    assert answer.status_code == 200, answer.text
                    made.append(answer.json()["auth"]["client_token"])
                    if number - 5 in KILLED_AT:
                        cluster.start(cluster.members[KILLED_AT.index(number - 5)])
                for one in made:
                    found = client.post(f"{url}/auth/token/lookup", json={"token": one})
                    assert found.status_code == 200
            finally:
                client.close()
                process.send_signal(signal.SIGTERM)
                assert process.wait(PATIENCE) == 0, log.read_text()[-4000:]
