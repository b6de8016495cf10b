"""Both servers over PostgreSQL: commands, the story of their scenarios, two nodes on one store, one that is killed."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from cloudid_core.run import run
from cloudid_core.service import initialise
from cloudid_core.values.secret import Secret
from cloudid_servers.command.bootstrap import open_store
from cloudid_servers.host.host import Host
from cloudid_servers.provider_simulator import Simulator, start
from cloudid_servers.settings import master_key
from cloudid_servers.settings.settings import read_file
from tests.hosts.opened import on
from tests.servers.running import SERVERS, Running, finished
from tests.servers.story import ROOT as ROOT_TOKEN
from tests.servers.story import login_form, tell
from tests.waiting import PATIENT

from .cluster import PASSWORD, Cluster, Databases

pytestmark = pytest.mark.one_server

SETTINGS: Final = """
[server]
listen = "127.0.0.1:0"
store = "{store}"
store_mode = "{mode}"
key_file = "{folder}/key"
"""


def command(server: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return finished(f"cloudid_servers.{server}", *arguments)


def written(folder: Path, store: str, mode: str = "keys", name: str = "cloudid.toml") -> Path:
    path = folder / name
    path.write_text(SETTINGS.format(store=store, mode=mode, folder=folder))
    return path


@pytest.fixture
def settings(database: str, tmp_path: Path) -> Path:
    return written(tmp_path, database)


def prepared(settings: Path) -> None:
    """As `init` does, but with a root token that the story knows."""
    file = read_file(settings)
    core = file.settings(master_key.find_or_make(file.server))
    with closing(open_store(file.server, is_new=True)) as store:
        on("trio", lambda host: run(initialise(core, Secret(ROOT_TOKEN)), host), store)


@pytest.fixture
def protected(cluster: Cluster) -> Iterator[str]:
    """The address of a database that certainly asks for `PASSWORD`; the server that a variable names may not."""
    with cluster.database() as address:
        assert f":{PASSWORD}@" in address
        yield address


@pytest.mark.parametrize("server", SERVERS)
def test_a_database_is_prepared_once_and_then_served(server: str, protected: str, tmp_path: Path) -> None:
    """No output ever holds the database's password."""
    settings = written(tmp_path, protected)
    before = command(server, "--settings", str(settings))
    first = command(server, "init", "--settings", str(settings))
    again = command(server, "init", "--settings", str(settings))
    assert (before.returncode, first.returncode, again.returncode) == (1, 0, 1)
    assert "already initialised" in again.stderr
    token = first.stdout.partition(": ")[2].strip()
    with Running(f"cloudid_servers.{server}", "--settings", str(settings)) as running:
        answer = httpx.get(f"{running.url}/v1/auth/token/lookup-self", headers={"X-Service-Token": token}, **PATIENT)
        assert answer.json()["data"]["policies"] == ["root"]
        code, log = running.stop()
    assert code == 0
    outputs = [text for done in (before, first, again) for text in (done.stdout, done.stderr)]
    assert PASSWORD not in "".join((*outputs, log, answer.text))


@pytest.mark.parametrize("server", SERVERS)
def test_a_server_says_why_it_cannot_use_a_database(server: str, protected: str, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("ab" * 32)
    (tmp_path / "key").chmod(0o600)
    for store, reason in (
        (protected, "run init first"),
        (f"{protected}_not_there", "does not exist"),
        (protected.replace(PASSWORD, f"wrong-{PASSWORD}"), "password authentication failed"),
        (f"{protected}@{PASSWORD}", "malformed"),
        (f"postgresql://u:{PASSWORD}@127.0.0.1:1/d", "refused"),
    ):
        failed = command(server, "--settings", str(written(tmp_path, store)))
        assert (failed.returncode, failed.stdout) == (1, "")
        assert reason in failed.stderr
        assert PASSWORD not in failed.stderr
        assert "Traceback" not in failed.stderr


@pytest.fixture(scope="module")
def cloud() -> Iterator[str]:
    with start(Simulator()) as cloud:
        yield cloud.url


@pytest.mark.parametrize("store", ["sqlite", "keys", "portable"])
@pytest.mark.parametrize("server", SERVERS)
def test_the_story_is_told_on_every_durable_store(
    server: str, store: str, database: str, tmp_path: Path, cloud: str
) -> None:
    """The scenarios of both servers, which `test_scenarios` tells on the store in memory."""
    is_file = store == "sqlite"
    settings = written(tmp_path, f"{tmp_path}/store.db") if is_file else written(tmp_path, database, store)
    prepared(settings)
    with Running(f"cloudid_servers.{server}", "--settings", str(settings), "--provider", cloud) as running:
        told = tell(running.url, cloud)
        code, log = running.stop()
    assert [(step, status) for step, status, _ in told] == [(step, step.status) for step, _, _ in told]
    assert code == 0
    assert PASSWORD not in log
    assert "background work failed" not in log


def ask(url: str, method: str, path: str, token: str = ROOT_TOKEN, body: Any = None) -> httpx.Response:
    headers = {"X-Service-Token": token} if token else {}
    return httpx.request(method, f"{url}/v1/{path}", headers=headers, json=body, **PATIENT)


def configured(url: str, cloud: str) -> dict[str, str]:
    """A configuration and a role; the form of a login that succeeds."""
    world = httpx.get(f"{cloud}/simulator/world", **PATIENT).json()
    machine, application = world["machines"][0], world["applications"][0]
    config = {"tenant_id": world["tenant"], "resource": "https://management.azure.com/"}
    config |= {name: application[name] for name in ("client_id", "client_secret")}
    ask(url, "POST", "auth/cloud/config", body=config).raise_for_status()
    bounds = {"bound_subscription_ids": [machine["subscription"]]}
    ask(url, "POST", "auth/cloud/role/all", body=bounds).raise_for_status()
    form = login_form(cloud, machine)
    assert form is not None
    return form


@pytest.mark.parametrize("mode", ["keys", "portable"])
def test_what_one_node_answers_counts_at_the_other_at_once(
    mode: str, database: str, tmp_path: Path, cloud: str
) -> None:
    """One of each kind: tokens, their revocation, and a role that changes."""
    settings = written(tmp_path, database, mode)
    prepared(settings)
    arguments = ("--settings", str(settings), "--provider", cloud)
    with (
        Running("cloudid_servers.trio_server", *arguments) as one,
        Running("cloudid_servers.aiohttp_server", *arguments) as other,
    ):
        form = configured(one.url, cloud)
        for here, there in ((one, other), (other, one)):
            login = ask(here.url, "POST", "auth/cloud/login", token="", body=form)
            assert login.status_code == 200
            token = login.json()["auth"]["client_token"]
            assert ask(there.url, "GET", "auth/token/lookup-self", token).status_code == 200
            assert ask(there.url, "POST", "auth/token/revoke-self", token).status_code == 204
            assert ask(here.url, "GET", "auth/token/lookup-self", token).status_code == 403
        assert ask(one.url, "DELETE", "auth/cloud/role/all").status_code == 204
        assert ask(other.url, "POST", "auth/cloud/login", token="", body=form).status_code == 400


@pytest.mark.parametrize("server", SERVERS)
def test_no_answered_token_is_lost_when_a_node_is_killed(
    server: str, settings: Path, databases: Databases, cloud: str
) -> None:
    prepared(settings)
    arguments = ("--settings", str(settings), "--provider", cloud)
    with (
        Running(f"cloudid_servers.{server}", *arguments) as first,
        Running(f"cloudid_servers.{server}", *arguments) as second,
    ):
        form = configured(first.url, cloud)
        logins = [ask(first.url, "POST", "auth/cloud/login", token="", body=form) for _ in range(10)]
        first.process.kill()
        first.process.wait()
        for login in logins:
            token = login.json()["auth"]["client_token"]
            assert ask(second.url, "GET", "auth/token/lookup-self", token).status_code == 200


def test_a_store_is_moved_by_a_command_of_both_servers(database: str, tmp_path: Path, cloud: str) -> None:
    """From SQLite into PostgreSQL by one, and back by the other; tokens stay what they are."""
    old = written(tmp_path, f"{tmp_path}/old.db", name="old.toml")
    between = written(tmp_path, database, name="between.toml")
    new = written(tmp_path, f"{tmp_path}/new.db", name="new.toml")
    prepared(old)
    with Running("cloudid_servers.trio_server", "--settings", str(old), "--provider", cloud) as running:
        busy = command(SERVERS[0], "copy-store", "--settings", str(old), str(between))
        form = configured(running.url, cloud)
        token = ask(running.url, "POST", "auth/cloud/login", token="", body=form).json()["auth"]["client_token"]
        running.stop()
    assert (busy.returncode, "in use by another process" in busy.stderr) == (1, True)
    moves = [command(SERVERS[0], "copy-store", "--settings", str(old), str(between))]
    again = command(SERVERS[0], "copy-store", "--settings", str(old), str(between))
    moves.append(command(SERVERS[1], "copy-store", "--settings", str(between), str(new)))
    assert [(move.returncode, move.stderr) for move in moves] == [(0, ""), (0, "")]
    assert moves[0].stdout == moves[1].stdout
    assert moves[0].stdout.startswith("copied and compared: ")
    assert (again.returncode, "not empty" in again.stderr) == (1, True)
    for settings in (between, new):
        with Running("cloudid_servers.aiohttp_server", "--settings", str(settings), "--provider", cloud) as running:
            assert ask(running.url, "GET", "auth/token/lookup-self", token).status_code == 200


@pytest.mark.parametrize("mode", ["keys", "portable"])
def test_a_store_that_a_server_uses_is_neither_copied_nor_copied_to(mode: str, database: str, tmp_path: Path) -> None:
    """A copy would lack what the server writes meanwhile."""
    used, other = written(tmp_path, database, mode), written(tmp_path, f"{tmp_path}/other.db", name="other.toml")
    prepared(used)
    prepared(other)
    with Running("cloudid_servers.aiohttp_server", "--settings", str(used)) as running:
        for source, target in ((used, other), (other, used)):
            failed = command(SERVERS[0], "copy-store", "--settings", str(source), str(target))
            assert (failed.returncode, failed.stderr) == (
                1,
                "error: the store is in use: stop all servers and other commands that have it open\n",
            )
        running.stop()
    failed = command(SERVERS[0], "copy-store", "--settings", str(used), str(other))
    assert "not empty" in failed.stderr, "now nobody uses it"


@pytest.mark.parametrize("server", SERVERS)
def test_no_server_starts_while_its_store_is_copied(server: str, database: str, tmp_path: Path) -> None:
    """Nor does another copy."""
    settings, new = written(tmp_path, database), written(tmp_path, f"{tmp_path}/new.db", name="new.toml")
    prepared(settings)
    copying = open_store(read_file(settings).server, is_exclusive=True)

    async def start_others(host: Host) -> None:
        for arguments, reason in (
            (("--settings", str(settings)), "is being copied"),
            (("copy-store", "--settings", str(settings), str(new)), "is in use"),
        ):
            failed = await host.in_thread(lambda given: command(server, *given), arguments)
            assert (failed.returncode, reason in failed.stderr) == (1, True)

    with closing(copying):
        on("trio", start_others, copying)
    with Running(f"cloudid_servers.{server}", "--settings", str(settings)):
        """Now it starts."""


def test_a_copy_needs_the_same_master_key(tmp_path: Path) -> None:
    """Nothing is made when it is another one, or when there is none."""
    old, new = (written(tmp_path, f"{tmp_path}/{name}.db", name=f"{name}.toml") for name in ("old", "new"))
    prepared(old)
    new.write_text(new.read_text().replace("/key", "/other"))
    for text in (None, "ab" * 32):
        if text:
            (tmp_path / "other").write_text(text)
            (tmp_path / "other").chmod(0o600)
        failed = command(SERVERS[0], "copy-store", "--settings", str(old), str(new))
        assert (failed.returncode, "the same master key" in failed.stderr) == (1, True)
        assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize(
    "arguments, reason",
    [(("--settings", "a"), "TARGET"), (("b",), "--settings"), (("--settings", "a", "b", "c"), "unexpected")],
)
def test_a_copy_that_is_asked_for_in_part_is_explained(arguments: tuple[str, ...], reason: str) -> None:
    failed = command(SERVERS[0], "copy-store", *arguments)
    assert (failed.returncode, reason in failed.stderr) == (2, True)


def test_a_backup_of_a_database_is_refused(settings: Path, tmp_path: Path) -> None:
    failed = command(SERVERS[0], "backup", "--settings", str(settings), str(tmp_path / "copy"))
    assert (failed.returncode, "pg_dump" in failed.stderr, PASSWORD in failed.stderr) == (1, True, False)
