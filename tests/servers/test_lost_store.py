"""A store, or a log, that is taken away under a running server."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.waiting import PATIENT

from .deployment import Deployment
from .running import SERVERS, Running

pytestmark = pytest.mark.one_server


def cut(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


@pytest.mark.parametrize("name", SERVERS)
def test_what_a_log_lacks_that_was_cut_short_is_told_at_the_next_start(name: str, tmp_path: Path) -> None:
    """The store goes on with what is there."""
    deployment = Deployment.prepare(name, tmp_path, "http://127.0.0.1:9", {})
    with deployment.serving() as server, deployment.client(server) as client:
        for number in range(10):
            client.put(f"sys/policies/acl/p{number}", json={"policy": ""}).raise_for_status()
    cut(tmp_path / "store.sqlite-wal")
    with deployment.serving() as server, deployment.client(server) as client:
        health = client.get("sys/health").json()
        assert "has lost the last" in health["problem_details"][0]["text"]
        assert health["problems"] == ["store_cut_short"]
    with deployment.serving() as server, deployment.client(server) as client:
        assert client.get("sys/health").json()["problems"] == []


@pytest.mark.parametrize("harm", [Path.unlink, cut])
@pytest.mark.parametrize("name", SERVERS)
def test_a_server_whose_store_is_gone_or_cut_short_says_so_within_a_second(
    name: str, harm: Callable[[Path], object], tmp_path: Path
) -> None:
    """Its health is 503, and it acknowledges nothing that it could not keep."""
    deployment = Deployment.prepare(name, tmp_path, "http://127.0.0.1:9", {})
    with deployment.serving() as server, deployment.client(server) as client:
        assert client.get("sys/health").status_code == 200
        time.sleep(1.0)
        assert client.get("sys/health").status_code == 200
        harm(tmp_path / "store.sqlite")
        time.sleep(1.0)
        health = client.get("sys/health")
        assert (health.status_code, health.json()["problems"]) == (503, ["store_unavailable"])
        answer = client.put("sys/policies/acl/late", json={"policy": ""})
        assert (answer.status_code, answer.json()["codes"]) == (503, ["store_unavailable"])


@pytest.mark.parametrize("is_moved", [True, False])
@pytest.mark.parametrize("name", SERVERS)
def test_a_server_whose_log_is_gone_begins_a_new_one(name: str, is_moved: bool, tmp_path: Path) -> None:
    """Rotation of logs need not signal the server, and what it logs after a removal is not lost."""
    path, old = tmp_path / "server.log", tmp_path / "server.log.1"
    path.touch()
    with (
        Running(f"cloudid_servers.{name}", "--dev", "--listen", "127.0.0.1:0", log=path) as server,
        httpx.Client(**PATIENT, base_url=server.url) as client,
    ):
        client.get("/v1/sys/before")
        path.rename(old)
        if not is_moved:
            old.unlink()
        time.sleep(1.0)
        client.get("/v1/sys/after")
        assert "sys/after" in [entry.get("path") for entry in map(json.loads, path.read_text().splitlines())]
        assert not is_moved or "sys/before" in old.read_text()
