"""What several servers tell of themselves: who they are, who does the background work, and in what they differ."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.servers.running import PATIENCE, SERVERS, Running, wait_until
from tests.stores.cluster import Databases
from tests.stores.test_served import ask, prepared, written

pytestmark = pytest.mark.one_server

SERVICE = '[service]\nissuer = "https://id.test"\nsettle_time = {}\n'


def told(running: Running, path: str) -> Any:
    return ask(running.url, "GET", path).json()


def test_nodes_tell_of_each_other_and_of_settings_that_differ(database: str, tmp_path: Path) -> None:
    """Two workers of one server, and another server."""
    settings = [written(tmp_path, database, name=f"{name}.toml") for name in SERVERS]
    prepared(settings[0])
    for number, path in enumerate(settings):
        path.write_text(path.read_text() + SERVICE.format(900 + number))
    with (
        Running(f"cloudid_servers.{SERVERS[0]}", "--settings", str(settings[0]), "--workers", "2") as first,
        Running(f"cloudid_servers.{SERVERS[1]}", "--settings", str(settings[1])) as second,
    ):
        own = told(second, "sys/health")["node_id"]
        wait_until(lambda: "settings differ" in first.log() + second.log())

        def settled() -> Any:
            """All three nodes, once one of them leads."""
            nodes = told(second, "sys/ha-status")["data"]["nodes"]
            return nodes if [len(nodes), sum(node["background_node"] for node in nodes)] == [3, 1] else None

        nodes = wait_until(settled)
        assert {node["hostname"].rpartition("/")[2] for node in nodes if node["node_id"] != own} == {"1", "2"}
        leader = told(second, "sys/leader")
        assert (leader["ha_enabled"], leader["is_self"]) == (True, True)
        assert [leader["background_node_id"]] == [node["node_id"] for node in nodes if node["background_node"]]
        health = told(second, "sys/health")
        assert (health["standby"], health["settings_that_differ"]) == (False, ["settle_time"])
        assert health["problems"] == ["settings_differ"]
        assert ask(second.url, "GET", "sys/health", token="").status_code == 200
        assert 0 <= health["store_latency_ms"] < PATIENCE * 1000
        assert abs(health["clock_skew_ms"]) <= health["store_latency_ms"] + 10_000


@pytest.mark.parametrize("server", SERVERS)
def test_a_server_whose_clock_is_not_the_databases_is_not_healthy(
    server: str, database: str, databases: Databases, tmp_path: Path
) -> None:
    """The database's clock is a minute ahead."""
    settings = written(tmp_path, database)
    prepared(settings)
    ahead = """
    DO $do$ DECLARE text text := pg_get_functiondef('cloudid.commit'::regproc); BEGIN
        EXECUTE replace(text, 'clock_timestamp()', 'clock_timestamp() + interval ''1 minute''');
    END $do$"""
    databases.execute(ahead, database=database)
    with Running(f"cloudid_servers.{server}", "--settings", str(settings)) as running:
        (problem,) = wait_until(lambda: told(running, "sys/health").get("problem_details"))
        assert re.fullmatch(r"this machine's clock is [56]\d\.\d s behind the store's", problem["text"])
        answer = ask(running.url, "GET", "sys/health", token="")
        assert answer.status_code == 503
        assert 50_000 < answer.json()["clock_skew_ms"] < 70_000
        assert ask(running.url, "GET", "auth/token/lookup-self").status_code == 200, "it serves all the same"
