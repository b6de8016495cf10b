"""The master key of several nodes is changed while they serve: each is restarted with the new key, one at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.servers.running import SERVERS, Running
from tests.stores.test_served import ask, command, prepared, written

READ = ("GET", "auth/token/lookup-self")
ROTATE = ("POST", "sys/rotate")


@pytest.mark.parametrize("names", [pytest.param(SERVERS, marks=pytest.mark.long), SERVERS[::-1]])
def test_the_other_nodes_go_on_while_the_master_key_is_changed(
    names: tuple[str, str], database: str, tmp_path: Path
) -> None:
    """New data keys, which the key ring has, are learnt by nodes with either key."""
    old = written(tmp_path, database)
    prepared(old)
    new = written(tmp_path, database, name="new.toml")
    new.write_text(new.read_text().replace("/key", "/new.key"))

    def is_served(*nodes: Running) -> bool:
        """Whether all nodes read what each writes under a new data key."""
        for node in nodes:
            answers = [ask(node.url, *ROTATE), ask(node.url, "POST", "auth/token/create", body={})]
            token = answers[1].json()["auth"]["client_token"]
            answers += [ask(other.url, *READ, token) for other in nodes]
            if not all(answer.is_success for answer in answers):
                return False
        return True

    with Running(f"cloudid_servers.{names[0]}", "--settings", str(old)) as first:
        added = command(names[0], "rekey", "--settings", str(old), "--new-key-file", str(tmp_path / "new.key"))
        assert (added.returncode, added.stderr) == (0, "")
        with Running(f"cloudid_servers.{names[1]}", "--settings", str(new)) as second:
            assert is_served(first, second)
            early = command(names[0], "rekey", "--settings", str(new), "--finish")
            assert early.returncode == 1
            assert "servers still use another master key" in early.stderr
            assert is_served(first, second)
            first.stop()
            with Running(f"cloudid_servers.{names[0]}", "--settings", str(new)) as third:
                finished = command(names[0], "rekey", "--settings", str(new), "--finish")
                assert (finished.returncode, finished.stderr) == (0, "")
                assert is_served(second, third)
    assert "the master key does not open the key ring" in command(names[0], "--settings", str(old)).stderr
