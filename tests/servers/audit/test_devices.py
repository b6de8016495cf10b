"""Audit devices on both servers, over real sockets and files: one that works is enough, without one nothing happens."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import httpx
import hvac
import pytest
from attrs import evolve

from cloudid_core import Secret, initialise, open_service, run
from cloudid_core.audit.device import Device
from cloudid_core.effects import ListKeys
from cloudid_core.mounts import change_mounts
from cloudid_core.store import keys
from cloudid_servers.audit.verify import verify
from cloudid_servers.command.bootstrap import open_store
from cloudid_servers.settings import master_key
from cloudid_servers.settings.settings import read_file
from cloudid_servers.trio_server.serve import SERVER
from tests.waiting import PATIENT

from ..running import PATIENCE, ROOT, Running, wait_until
from ..running import initialise as initialise_store

pytestmark = pytest.mark.one_server

RUNTIMES: Final = ("trio_server", "aiohttp_server")
TOKEN: Final = "canary-of-a-root-token"
DEV: Final = ("--dev", "--listen", "127.0.0.1:0", "--root-token", TOKEN)


class Service:
    """A server with a client."""

    def __init__(self, running: Running, token: str = TOKEN) -> None:
        self.running = running
        self.http = httpx.Client(base_url=f"{running.url}/v1/", headers={"x-vault-token": token}, **PATIENT)

    def enable(self, name: str, kind: str = "file", **options: str) -> httpx.Response:
        return self.http.put(f"sys/audit/{name}", json={"type": kind, "options": options})

    def look_up(self) -> int:
        return self.http.get("auth/token/lookup-self").status_code

    def accessors(self) -> int:
        """How many tokens are stored."""
        return len(self.http.request("LIST", "auth/token/accessors").json()["data"]["keys"])

    def stop(self) -> str:
        self.http.close()
        code, log = self.running.stop()
        assert code == 0
        return log


@contextmanager
def serving(runtime: str, *arguments: str, environment: Mapping[str, str] | None = None) -> Iterator[Service]:
    with Running(f"cloudid_servers.{runtime}", *DEV, *arguments, environment=environment) as running:
        service = Service(running)
        try:
            yield service
        finally:
            service.http.close()


@pytest.fixture(params=RUNTIMES)
def service(request: pytest.FixtureRequest) -> Iterator[Service]:
    with serving(request.param) as service:
        yield service


def lines_of(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def problems(*paths: Path, **options: Any) -> list[str]:
    return [
        str(found)
        for found in verify(
            [(str(path), path.read_bytes().splitlines(keepends=True)) for path in paths], **options
        ).problems
    ]


def test_a_file_gets_every_request_and_can_be_verified(service: Service, tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    assert service.enable("file", file_path=str(path)).status_code == 204
    assert path.stat().st_mode & 0o777 == 0o600
    key = service.http.get("sys/audit").json()["data"]["file/"]["checkpoint_key"]
    assert service.look_up() == 200
    assert service.http.get("auth/token/lookup-self", headers={"x-vault-token": "unknown"}).status_code == 403
    service.stop()
    types = [line["type"] for line in lines_of(path)]
    test, listing, look_up, refused = ["request"], ["request", "response"], ["request", "response"], ["response"]
    assert types == ["checkpoint", *test, *listing, *look_up, *refused, "checkpoint"]
    assert TOKEN not in path.read_text()
    assert problems(path, key=key) == []


def test_without_a_device_that_can_be_written_nothing_happens(service: Service, tmp_path: Path) -> None:
    """The only device is on a disk that is full: a request is refused, and no token is stored."""
    path = tmp_path / "audit.log"
    assert service.enable("file", file_path=str(path)).status_code == 204
    before = service.accessors()
    path.unlink()
    path.symlink_to("/dev/full")
    service.running.process.send_signal(signal.SIGHUP)
    wait_until(lambda: service.look_up() == 503)
    answer = service.http.post("auth/token/create", json={})
    assert (answer.status_code, answer.json()["codes"]) == (503, ["audit_unavailable"])
    health = service.http.get("sys/health")
    assert (health.status_code, health.json()["problems"][:1]) == (503, ["audit_unavailable"])
    path.unlink()
    assert service.look_up() == 200, "it is tried again with every request"
    assert service.http.get("sys/health").status_code == 200
    assert service.accessors() == before
    log = service.stop()
    assert log.count("audit device failed") == 1
    assert log.count("audit device works again") == 1
    assert problems(path) == []


def test_a_full_disk_cannot_be_enabled(service: Service, tmp_path: Path) -> None:
    """It takes a part of the first line; what begins with that would be no audit log."""
    path, unlimited = tmp_path / "audit.log", (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    resource.prlimit(service.running.process.pid, resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
    answer = service.enable("full", file_path=str(path))
    assert (answer.status_code, answer.json()["codes"]) == (400, ["audit_device_unusable"])
    assert path.read_bytes() == b""
    resource.prlimit(service.running.process.pid, resource.RLIMIT_FSIZE, unlimited)
    assert service.enable("full", file_path=str(path)).status_code == 204
    service.stop()
    assert problems(path) == []


@pytest.mark.parametrize("content", ["all", "checkpoints"])
def test_a_device_goes_on_with_the_file_of_one_that_was_disabled(
    service: Service, content: str, tmp_path: Path
) -> None:
    """It has another key, so it is the installation that is known by the first line."""
    path = tmp_path / "audit.log"
    for name in ("first", "second"):
        assert service.enable(name, file_path=str(path), content=content).status_code == 204
        assert service.look_up() == 200
        assert service.http.delete(f"sys/audit/{name}").status_code == 204
    assert "audit device failed" not in service.stop()


def test_a_link_leads_no_audit_file_out_of_the_folder(service: Service, tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    outside.mkdir()
    inside.symlink_to(outside)
    for path in (inside / "audit.log", inside / "new" / "audit.log"):
        assert service.enable("file", file_path=str(path)).json()["codes"] == ["audit_device_unusable"]
    assert list(outside.iterdir()) == []


def test_audit_files_lie_beside_the_store(tmp_path: Path) -> None:
    """A relative name is enough; the folder is for its owner only, and `init` makes it."""
    settings = tmp_path / "cloudid.toml"
    settings.write_text('[server]\nlisten = "127.0.0.1:0"\n')
    token = initialise_store("trio_server", settings)
    assert (tmp_path / "audit").stat().st_mode & 0o777 == 0o700
    with Running("cloudid_servers.trio_server", "--settings", str(settings)) as running:
        service = Service(running, token)
        refused = service.enable("file", file_path=str(tmp_path / "audit.log"))
        assert (refused.status_code, refused.json()["codes"]) == (400, ["audit_file_outside"])
        assert service.enable("file", file_path="audit.log").status_code == 204
        service.stop()
    assert problems(tmp_path / "audit" / "audit.log") == []


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_declared_device_on_a_full_disk_refuses_the_start(runtime: str, tmp_path: Path) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text('[audit.main]\ntype = "file"\nfile_path = "/dev/full"\n')
    command = [sys.executable, "-m", f"cloudid_servers.{runtime}", *DEV, "--settings", str(settings)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 1
    lines = ended.stderr.splitlines()
    assert "error: the audit device cannot be written to: /dev/full: No space left on device" in lines
    assert "fix: Fix what the message names, then enable the device again, or start the server again." in lines


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("count", [1, 8])
@pytest.mark.parametrize("room", [500, 3000])
def test_logins_are_refused_and_no_token_stored_once_the_only_device_is_full(
    room: int, count: int, runtime: str, tmp_path: Path
) -> None:
    """The disk takes half of an entry more, or entries of requests but none of a response."""
    settings, path = tmp_path / "settings.toml", tmp_path / "audit.log"
    settings.write_text('[audit.main]\ntype = "file"\nfile_path = "audit.log"\n')
    with serving(runtime, "--settings", str(settings)) as service:
        cloud = next(line for line in service.running.introduction if line.startswith("provider simulator: "))
        body = furnish(service, cloud.removeprefix("provider simulator: "))
        assert service.http.post("auth/cloud/login", json=body).status_code == 200
        before = service.accessors()
        limit = path.stat().st_size + room
        resource.prlimit(service.running.process.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        with ThreadPoolExecutor(count) as pool:
            answers = list(pool.map(lambda _: service.http.post("auth/cloud/login", json=body), range(count)))
        assert [(answer.status_code, answer.json()["codes"]) for answer in answers] == [
            (503, ["audit_unavailable"])
        ] * count
        assert path.read_bytes()[-1:] == b"\n", "the torn entry was taken back"
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(service.running.process.pid, resource.RLIMIT_FSIZE, unlimited)
        assert service.accessors() == before
        service.stop()
    assert problems(path) == [], "the torn entry is no entry, and the log goes on behind it"


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_nothing_happens_when_the_only_device_is_dev_full(runtime: str, tmp_path: Path) -> None:
    """A device that could be written when it was enabled, as the store tells it."""
    path = tmp_path / "settings.toml"
    path.write_text('[server]\nlisten = "127.0.0.1:0"\n')
    file = read_file(path)
    settings, store = file.settings(master_key.find_or_make(file.server)), open_store(file.server, is_new=True)
    full = Device(name="full", type="file", key="5a" * 32, options={"file_path": "/dev/full"})

    async def prepare() -> None:
        await initialise(settings, Secret(TOKEN))
        service = await open_service(settings)
        await change_mounts(service.context.records, lambda table: evolve(table, devices=(full,)))

    async def tokens() -> tuple[str, ...]:
        return await ListKeys(keys.TOKENS)

    SERVER.perform(lambda host: run(prepare(), host), store)
    before = SERVER.perform(lambda host: run(tokens(), host), store)
    store.close()
    with Running(f"cloudid_servers.{runtime}", "--settings", str(path)) as running:
        service = Service(running)
        login = {"role": "web", "jwt": "x", "subscription_id": "x", "resource_group_name": "x"}
        for asked in (("auth/cloud/login", login), ("auth/token/create", {})):
            answer = service.http.post(asked[0], json=asked[1])
            assert (answer.status_code, answer.json()["codes"]) == (503, ["audit_unavailable"])
        service.stop()
    store = open_store(read_file(path).server)
    assert SERVER.perform(lambda host: run(tokens(), host), store) == before
    store.close()


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_an_existing_client_manages_devices(runtime: str, tmp_path: Path) -> None:
    with serving(runtime) as service:
        client = hvac.Client(url=service.running.url, token=TOKEN, timeout=PATIENCE)
        path = str(tmp_path / "audit.log")
        client.sys.enable_audit_device("file", description="all", options={"path": path}, path="file")
        listed = client.sys.list_enabled_audit_devices()["data"]
        assert (listed["file/"]["type"], listed["file/"]["options"]) == ("file", {"path": path})
        hashed = client.sys.calculate_hash("file", TOKEN)["data"]["hash"]
        assert hashed in Path(path).read_text()
        client.sys.disable_audit_device("file")
        assert client.sys.list_enabled_audit_devices()["data"] == {}
        client.adapter.close()


def furnish(service: Service, cloud: str) -> dict[str, Any]:
    """Configure the method for the simulated cloud; the body of a login."""
    world = httpx.get(f"{cloud}/simulator/world", **PATIENT).json()
    machine, application = world["machines"][0], world["applications"][0]
    audience = "https://management.azure.com/"
    config = {name: application[name] for name in ("client_id", "client_secret")}
    config |= {"tenant_id": world["tenant"], "resource": audience}
    assert service.http.post("auth/cloud/config", json=config).status_code == 204
    role = {"bound_subscription_ids": machine["subscription"]}
    assert service.http.post("auth/cloud/role/web", json=role).status_code == 204
    address = f"{cloud}/machines/{machine['name']}/metadata/identity/oauth2/token"
    query = {"api-version": "2018-02-01", "resource": audience}
    token = httpx.get(address, params=query, headers={"metadata": "true"}, **PATIENT).json()["access_token"]
    return {
        "role": "web",
        "jwt": token,
        "subscription_id": machine["subscription"],
        "resource_group_name": machine["resource_group"],
        "vm_name": machine["name"],
    }


def test_a_file_that_is_no_audit_log_is_left_alone(service: Service, tmp_path: Path) -> None:
    """Not a script, not a key file, not a directory, not through a symbolic link, not a pipe."""
    script, keys, link, pipe = (tmp_path / name for name in ("run.sh", "authorized_keys", "link", "pipe"))
    script.write_text("#!/bin/sh\n")
    script.chmod(0o700)
    keys.write_text("ssh-ed25519 AAAA\n")
    link.symlink_to(tmp_path / "elsewhere")
    os.mkfifo(pipe)
    for path in (script, keys, link, pipe, tmp_path):
        assert service.enable("file", file_path=str(path)).json()["codes"] == ["audit_device_unusable"], path
    assert keys.read_text() == "ssh-ed25519 AAAA\n"
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_is_rotated_by_sighup(service: Service, tmp_path: Path) -> None:
    path, old = tmp_path / "audit.log", tmp_path / "audit.log.1"
    service.enable("file", file_path=str(path))
    service.look_up()
    path.rename(old)
    service.look_up()
    service.running.process.send_signal(signal.SIGHUP)
    wait_until(lambda: service.look_up() == 200 and path.exists())
    service.stop()
    assert problems(old, path) == []
    assert problems(old) == problems(path) == [], "each file is whole by itself"
    assert lines_of(path)[0]["follows"]["id"] == lines_of(old)[-1]["chain"]["id"]


@pytest.mark.parametrize("fsync", ["false", "true"])
def test_a_file_that_was_moved_is_left_without_a_signal(service: Service, fsync: str, tmp_path: Path) -> None:
    path, old = tmp_path / "audit.log", tmp_path / "audit.log.1"
    service.enable("file", file_path=str(path), fsync=fsync)
    service.look_up()
    path.rename(old)
    assert service.look_up() == 200
    service.stop()
    assert problems(old, path) == problems(old) == problems(path) == []
    assert lines_of(path)[0]["follows"]["id"] == lines_of(old)[-1]["chain"]["id"]


def test_a_file_that_was_removed_is_made_anew_or_nothing_happens(service: Service, tmp_path: Path) -> None:
    """No request is executed while its entry would be lost with a file that has no name."""
    folder = tmp_path / "audit"
    folder.mkdir()
    path = folder / "audit.log"
    service.enable("file", file_path=str(path))
    path.unlink()
    assert service.look_up() == 200
    kinds = [line["type"] for line in lines_of(path)]
    assert [kind for kind in kinds if kind != "checkpoint"] == ["request", "response"]
    path.unlink()
    folder.rmdir()
    assert service.look_up() == 503
    folder.mkdir()
    assert service.look_up() == 200


def test_a_server_that_was_killed_is_followed_by_the_next(tmp_path: Path) -> None:
    settings, path = tmp_path / "settings.toml", tmp_path / "audit.log"
    settings.write_text(
        '[server]\nlisten = "127.0.0.1:0"\n'
        '[audit.main]\ntype = "file"\nfile_path = "audit.log"\nfsync = true\nmode = "0640"\n'
    )
    token = initialise_store("trio_server", settings)
    with Running("cloudid_servers.trio_server", "--settings", str(settings)) as running:
        service = Service(running, token)
        assert service.look_up() == 200
        service.http.close()
        running.process.send_signal(signal.SIGKILL)
        running.wait()
    assert problems(path) != []
    with path.open("ab") as file:
        file.write(b'{"time":"torn')
    with Running("cloudid_servers.aiohttp_server", "--settings", str(settings)) as running:
        service = Service(running, token)
        assert service.look_up() == 200
        service.stop()
    assert problems(path) == []
    assert path.stat().st_mode & 0o777 == 0o640


def test_one_device_that_works_is_enough(service: Service, tmp_path: Path) -> None:
    """And nothing waits for the others, be it for a moment."""
    path = tmp_path / "audit.log"
    service.enable("file", file_path=str(path))
    with Collector() as gone:
        assert service.enable("tcp", "socket", address=gone.address).status_code == 204
    instants = [time.monotonic()]
    for _ in range(20):
        assert service.look_up() == 200
        instants.append(time.monotonic())
    assert min(after - before for before, after in pairwise(instants)) < 1.0, "each would wait a second or more"
    assert service.stop().count("audit device failed") == 1
    assert problems(path) == []


class Collector:
    """Takes what comes over one kind of socket, for as long as a block lasts; then it is gone, connections and all."""

    def __init__(self, kind: str = "tcp", path: Path | None = None) -> None:
        family = socket.AF_UNIX if kind == "unix" else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM)
        self.socket.bind(str(path) if path else ("127.0.0.1", 0))
        self.address = str(path) if path else f"127.0.0.1:{self.socket.getsockname()[1]}"
        self.taken: list[bytes] = []
        self._reading: list[tuple[socket.socket, threading.Thread]] = []
        if kind == "udp":
            self._start(self._take, self.socket)
        else:
            self.socket.listen()
            self._start(self._accept, self.socket)

    def lines(self) -> list[bytes]:
        return b"".join(self.taken).splitlines(keepends=True)

    def __enter__(self) -> Collector:
        return self

    def __exit__(self, *_: object) -> None:
        for each, thread in self._reading:  # the first is the listener: once its thread has ended, there is no more
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            thread.join(PATIENCE)
            each.close()

    def _start(self, read: Callable[[socket.socket], None], source: socket.socket) -> None:
        thread = threading.Thread(target=read, args=(source,), daemon=True)
        self._reading.append((source, thread))
        thread.start()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                self._start(self._take, listener.accept()[0])

    def _take(self, source: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self.taken.append(data)


@pytest.mark.parametrize("kind", ["tcp", "udp", "unix"])
def test_a_socket_gets_every_request(service: Service, kind: str, tmp_path: Path) -> None:
    with Collector(kind, tmp_path / "s" if kind == "unix" else None) as collector:
        assert service.enable("s", "socket", address=collector.address, socket_type=kind).status_code == 204
        assert [service.look_up() for _ in range(5)] == [200] * 5
        service.stop()
        wait_until(lambda: b'"closed"' in b"".join(collector.taken))
    report = verify([("socket", collector.lines())])
    assert [str(problem) for problem in report.problems] == []
    assert report.lines >= 13


def test_a_socket_that_is_the_only_device_and_hangs_refuses_in_time(service: Service) -> None:
    """Nobody reads: when the buffers are full, requests are refused after the device's time limit."""
    big = {"description": "x"} | {f"unknown{number}": "y" for number in range(200)}
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        assert service.enable("s", "socket", address=address, write_timeout="200ms").status_code == 204
        wait_until(lambda: service.http.post("auth/token/lookup-self", json=big).status_code == 503)


def test_checkpoints_go_to_another_device(service: Service, tmp_path: Path) -> None:
    path, anchor = tmp_path / "audit.log", tmp_path / "anchor.log"
    service.enable("anchor", file_path=str(anchor), content="checkpoints")
    assert service.enable("file", file_path=str(path)).status_code == 204
    assert service.look_up() == 200
    service.stop()
    kept = anchor.read_bytes().splitlines(keepends=True)
    states = [line.get("state") for line in map(json.loads, kept)]
    assert states == ["opened", None, "opened", "closed"], "its own checkpoint and a test come first"
    lines = path.read_bytes().splitlines(keepends=True)
    anchors = [("anchor.log", kept)]
    for key in ("", json.loads(lines[0])["key"]):
        assert verify([("a.log", lines)], checkpoints=anchors, key=key).problems == []
    assert verify([("a.log", lines[:-2])], checkpoints=anchors, accepts_open_end=True).problems


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_checkpoints_go_to_a_command(runtime: str, tmp_path: Path) -> None:
    settings, kept = tmp_path / "settings.toml", tmp_path / "kept"
    command = json.dumps(["/bin/sh", "-c", f"cat >> {kept}"])
    settings.write_text(
        f'[server]\naudit_checkpoint_command = {command}\n[audit.main]\ntype = "file"\nfile_path = "audit.log"\n'
    )
    with serving(runtime, "--settings", str(settings)) as service:
        assert service.look_up() == 200
        wait_until(kept.exists)
        wait_until(lambda: kept.read_bytes().endswith(b"\n"))
    assert json.loads(kept.read_bytes().splitlines()[0])["state"] == "opened"


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("is_pipe", [True, False])
def test_standard_output_is_a_device(runtime: str, is_pipe: bool, tmp_path: Path) -> None:
    settings, path = tmp_path / "settings.toml", tmp_path / "out"
    settings.write_text('[audit.main]\ntype = "stdout"\n')
    with path.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", f"cloudid_servers.{runtime}", *DEV, "--settings", str(settings)],
            cwd=ROOT,
            stdout=subprocess.PIPE if is_pipe else file,
            stderr=subprocess.DEVNULL,
        )
        with process:
            if is_pipe:
                out: list[bytes] = []
                reader = threading.Thread(target=lambda: out.extend(process.stdout or ()), daemon=True)
                reader.start()
                wait_until(lambda: any(line.startswith(b"listening on") for line in out))
            else:
                wait_until(lambda: b"listening on" in path.read_bytes())
            process.terminate()
            process.wait(PATIENCE)
            if is_pipe:
                reader.join(PATIENCE)
    lines = out if is_pipe else path.read_bytes().splitlines(keepends=True)
    report = verify([("out", [line for line in lines if line.startswith(b"{")])])
    assert [str(problem) for problem in report.problems] == []
    assert report.lines == 3


def test_two_devices_never_share_a_file(service: Service, tmp_path: Path) -> None:
    """By no name, and the file keeps its mode."""
    path, link = tmp_path / "audit.log", tmp_path / "link.log"
    assert service.enable("first", file_path=str(path)).status_code == 204
    os.link(path, link)
    for name in (path, link):
        answer = service.enable("second", file_path=str(name), mode="0666")
        assert answer.json()["codes"] == ["audit_device_unusable"]
        assert "is already the file of the audit device first" in answer.text
    assert path.stat().st_mode & 0o777 == 0o600
    assert service.look_up() == 200
    service.stop()
    assert problems(path) == []


def test_the_caller_learns_why_a_device_cannot_be_enabled(service: Service, tmp_path: Path) -> None:
    path = tmp_path / "other.txt"
    path.write_text("something else\n")
    answer = service.enable("file", file_path=str(path))
    assert (answer.status_code, answer.json()["codes"]) == (400, ["audit_device_unusable"])
    assert "is not an audit log of this service" in answer.text


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_the_settings_win_over_a_device_that_a_request_enabled(runtime: str, tmp_path: Path) -> None:
    settings = tmp_path / "cloudid.toml"
    settings.write_text('[server]\nlisten = "127.0.0.1:0"\n')
    token = initialise_store(runtime, settings)
    with Running(f"cloudid_servers.{runtime}", "--settings", str(settings)) as running:
        service = Service(running, token)
        for name in ("main", *(f"other{number}" for number in range(15))):
            assert service.enable(name, file_path="/dev/null").status_code == 204
        service.stop()
    path = tmp_path / "declared.log"
    settings.write_text(f'[server]\nlisten = "127.0.0.1:0"\n[audit.main]\ntype = "file"\nfile_path = "{path}"\n')
    with Running(f"cloudid_servers.{runtime}", "--settings", str(settings)) as running:
        service = Service(running, token)
        assert service.http.get("sys/audit").json()["data"]["main/"]["options"]["file_path"] == str(path)
        wait_until(lambda: "audit_device_suspended" in service.http.get("sys/health").json()["problems"])
        assert service.http.delete("sys/audit/main").status_code == 204, "the suspended one"
        assert service.http.delete("sys/audit/main").json()["codes"] == ["audit_device_declared"]
        service.stop()
    assert problems(path) == []


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_declared_device_that_fails_is_known_before_the_first_request(runtime: str, tmp_path: Path) -> None:
    settings, path = tmp_path / "cloudid.toml", tmp_path / "main.log"
    settings.write_text(f'[server]\nlisten = "127.0.0.1:0"\n[audit.main]\ntype = "file"\nfile_path = "{path}"\n')
    token = initialise_store(runtime, settings)
    with Running(f"cloudid_servers.{runtime}", "--settings", str(settings)) as running:
        Service(running, token).stop()
    path.rename(tmp_path / "main.log.1")
    path.mkdir()
    with Running(f"cloudid_servers.{runtime}", "--settings", str(settings)) as running:
        service = Service(running, token)
        health = service.http.get("sys/health")
        assert (health.status_code, health.json()["problems"][:2]) == (
            503,
            ["audit_unavailable", "audit_device_failing"],
        )
        details = service.http.get("sys/health", headers={"X-Vault-Token": token}).json()["problem_details"]
        assert f"cannot write to {path}: Is a directory" in details[1]["text"]
        path.rmdir()
        wait_until(lambda: service.http.get("sys/health").status_code == 200)
        wait_until(lambda: service.http.get("sys/health").json()["problems"] == [])
        assert service.stop().count("audit device failed") == 1


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_checkpoint_command_gets_no_secret_of_the_environment(runtime: str, tmp_path: Path) -> None:
    settings, kept = tmp_path / "settings.toml", tmp_path / "kept"
    command = json.dumps(["/bin/sh", "-c", f"env > {kept}.new && mv {kept}.new {kept}"])
    settings.write_text(
        f'[server]\naudit_checkpoint_command = {command}\n[audit.main]\ntype = "file"\nfile_path = "audit.log"\n'
    )
    secrets = {"CLOUD_CLIENT_SECRET": "canary", "PGPASSWORD": "canary", "VAULT_TOKEN": "canary"}
    with serving(runtime, "--settings", str(settings), environment={**os.environ, **secrets}) as service:
        assert service.look_up() == 200
        wait_until(kept.exists)
    assert "canary" not in kept.read_text()
    assert "PATH=" in kept.read_text()


def test_an_entry_has_the_port_of_the_client_and_its_correlation_id(service: Service, tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    service.enable("file", file_path=str(path))
    with service.http.stream("GET", "auth/token/lookup-self", headers={"x-correlation-id": "abc-1"}) as answer:
        port = answer.extensions["network_stream"].get_extra_info("client_addr")[1]
        answer.read()
    request = lines_of(path)[-1]["request"]
    assert (request["remote_port"], request["headers"]) == (port, {"x-correlation-id": ["abc-1"]})
    assert service.look_up() == 200
    assert "headers" not in lines_of(path)[-1]["request"]
    assert service.http.delete("sys/config/auditing/request-headers/x-correlation-id").status_code == 204
