"""What several servers tell of themselves: who they are, who does the background work, and in what they differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.servers.running import SERVERS, Running, wait_until
from tests.stores.test_served import ask, prepared, written

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
        Running(f"servers.{SERVERS[0]}", "--settings", str(settings[0]), "--workers", "2") as first,
        Running(f"servers.{SERVERS[1]}", "--settings", str(settings[1])) as second,
    ):
        own = told(second, "sys/health")["node_id"]
        wait_until(lambda: len(told(second, "sys/ha-status")["data"]["nodes"]) == 3)
        wait_until(lambda: "settings differ" in first.log() + second.log())
        nodes = told(second, "sys/ha-status")["data"]["nodes"]
        assert [node["background_node"] for node in nodes].count(True) == 1
        assert {node["hostname"].rpartition("/")[2] for node in nodes if node["node_id"] != own} == {"1", "2"}
        leader = told(second, "sys/leader")
        assert (leader["ha_enabled"], leader["is_self"]) == (True, True)
        assert [leader["background_node_id"]] == [node["node_id"] for node in nodes if node["background_node"]]
        health = told(second, "sys/health")
        assert (health["standby"], health["settings_that_differ"]) == (False, ["settle_time"])
        assert 0 <= health["store_latency_ms"] < 5000
        assert abs(health["clock_skew_ms"]) < 5000
