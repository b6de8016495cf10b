"""Backup and restore: a copy that is taken under load is consistent, and a restored service can be put right."""

from __future__ import annotations

import re
import resource
import stat
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import httpx
import pytest

from cloudid_core.effects import Commit
from cloudid_core.errors import StoreFailed
from cloudid_servers.provider_simulator import Simulator, start
from cloudid_servers.stores.backup import back_up
from cloudid_servers.stores.sqlite import SqliteStore, compact
from tests.waiting import PATIENT, wait_until

from .credentials import SETTLED_SOON, borrowing, leases
from .deployment import Deployment
from .load import Load
from .running import SERVERS
from .test_commands import command
from .threads import Threads

pytestmark = pytest.mark.one_server

ENOUGH: Final = 12
"""Credentials that are borrowed before the copy is made, and again after it."""
CLIENTS: Final = 4
PATIENT_SERVICE: Final = {**SETTLED_SOON, "request_deadline": "20s"}
"""No request fails, however busy the machine is."""


class Directory:
    """What an operator does to the mount's app registration at the provider."""

    def __init__(self, simulator: str) -> None:
        self.world = httpx.get(f"{simulator}/simulator/world", **PATIENT).json()
        self.application = self.world["applications"][0]
        self._client = httpx.Client(**PATIENT, base_url=simulator)
        form = {"grant_type": "client_credentials", "scope": "https://graph.microsoft.com/.default"}
        form |= {name: self.application[name] for name in ("client_id", "client_secret")}
        answer = self._client.post(f"/login/{self.world['tenant']}/oauth2/v2.0/token", data=form)
        self._client.headers["authorization"] = f"Bearer {answer.json()['access_token']}"
        self._path = f"/graph/v1.0/applications/{self.application['object_id']}"

    def close(self) -> None:
        self._client.close()

    def remove_first_secret(self) -> None:
        """As a rotation does when its overlap is over."""
        first = self._client.get(self._path).json()["passwordCredentials"][0]
        self._client.post(f"{self._path}/removePassword", json={"keyId": first["keyId"]}).raise_for_status()

    def add_secret(self) -> dict[str, str]:
        """What the provider answers, with `secretText` and `keyId`."""
        answer = self._client.post(f"{self._path}/addPassword", json={"passwordCredential": {"displayName": "by hand"}})
        answer.raise_for_status()
        return dict(answer.json())

    def made(self, kind: str, of: str = "") -> set[str]:
        """What lives of what was made for leases: all but what belongs to the mount's app registration.

        `of`: the application that it must belong to.
        """
        ledger = self._client.get("/simulator/ledger").json()
        alive = [one for one in ledger if one["kind"] == kind and not one["deleted_at"]]
        root = self.application["object_id"]
        return {one["id"] for one in alive if root not in one["of"] and (not of or of in one["of"])}


@contextmanager
def serving(deployment: Deployment) -> Iterator[httpx.Client]:
    """A client of the server, which is told to stop at the block's end."""
    with deployment.serving() as server, deployment.client(server) as client:
        yield client
        code, _ = server.stop()
        assert code == 0


@pytest.mark.parametrize("name", SERVERS)
def test_a_restored_service_says_what_is_wrong_and_can_be_put_right(name: str, tmp_path: Path) -> None:
    """The copy is made under load. After it, leases are made and the root secret is rotated; then the store is lost."""
    store, copy = tmp_path / "store.sqlite", tmp_path / "backup.sqlite"
    with start(Simulator()) as cloud, closing(Directory(cloud.url)) as directory:
        deployment = Deployment.prepare(name, tmp_path, cloud.url, PATIENT_SERVICE)
        with deployment.serving() as server:
            deployment.configure(server)
        with serving(deployment) as client:
            client.post("auth/cloud/role/any", json={"bound_service_principal_ids": "*"}).raise_for_status()
            form = {**deployment.form, "role": "any"}
            login = client.build_request("POST", "auth/cloud/login", json=form)
            with Load(*[login] * CLIENTS, may_fail=False), Load(*borrowing(client) * 2, may_fail=False) as load:
                load.wait_for_more(ENOUGH)
                answered_before = {answer["lease_id"] for answer in load.answers}
                settings = str(tmp_path / "cloudid.toml")
                saved = command(f"cloudid_servers.{name}", "backup", "--settings", settings, str(copy))
                assert (saved.returncode, saved.stderr) == (0, "")
                assert saved.stdout.startswith(f"copied {store} to {copy}: {copy.stat().st_size} bytes")
                load.wait_for_more(ENOUGH)
            client.post("cloud/rotate-root", json={"force": True}).raise_for_status()
        by_hand = directory.add_secret()
        directory.remove_first_secret()
        for path in tmp_path.glob("store.sqlite*"):
            path.unlink()
        copy.rename(store)

        with serving(deployment) as client:
            restored = leases(client)
            assert answered_before <= restored
            client.post("auth/cloud/login", json=form).raise_for_status()
            for needs_provider in ("creds/fresh", "reconcile"):
                answer = client.get(f"cloud/{needs_provider}")
                assert (answer.status_code, answer.json()["codes"]) == (502, ["provider_secret_refused"])

            client.post("cloud/config", json={"client_secret": by_hand["secretText"]}).raise_for_status()
            wait_until(lambda: not client.get("cloud/reconcile").json()["data"]["too_fresh"])
            report = client.get("cloud/reconcile").json()["data"]
            assert (report["missing"], report["unexamined"]) == ([], 0)
            fresh, existing = (sum(f"/{role}/" in lease for lease in restored) for role in ("fresh", "existing"))
            other = directory.world["applications"][1]["object_id"]
            for kind, made, kept in (
                ("application", directory.made("application"), fresh),
                ("password", directory.made("password", other), existing),
            ):
                reported = {one["id"] for one in report["unaccounted"] if one["kind"] == kind}
                since = len(made) - kept
                assert reported & made
                assert since - CLIENTS <= len(reported & made) <= since  # what was under way has intents in the copy
                others = reported - made
                assert len(others) == (kind == "password"), "the root secret of the rotation"
                assert by_hand["keyId"] not in others
            client.post("cloud/reconcile", json={"max": 1000}).raise_for_status()
            wait_until(lambda: len(directory.made("application")) == fresh)
            wait_until(lambda: len(directory.made("password")) == len(restored))
            report = client.get("cloud/reconcile").json()["data"]
            assert (report["unaccounted"], report["missing"]) == ([], [])
            assert leases(client) == restored
            client.get("cloud/creds/fresh").raise_for_status()


def written(path: Path, count: int) -> None:
    """A store with so many entries, all of one commit each."""
    with closing(SqliteStore(path)) as store:
        for number in range(count):
            [outcome] = store.commit_all([Commit({}, {"first": b"%d" % number, "second": b"%d" % number})])
            assert isinstance(outcome, int)


def test_a_copy_holds_one_state_of_a_store_that_is_being_written(tmp_path: Path) -> None:
    """Each commit writes two entries alike; no copy holds two that differ."""
    path = tmp_path / "store.db"
    written(path, 1)

    def write(stop: threading.Event) -> None:
        while not stop.is_set():
            written(path, 50)

    with Threads(write):
        for number in range(20):
            back_up(path, tmp_path / f"copy-{number}")
    for number in range(20):
        with closing(SqliteStore(tmp_path / f"copy-{number}")) as copy:
            first, second = copy.read("first"), copy.read("second")
            assert first == second
            assert first is not None


def test_a_copy_holds_all_that_was_committed_before_it(tmp_path: Path) -> None:
    """Also what is only in the write-ahead log, while a server has the store open."""
    path, target = tmp_path / "store.db", tmp_path / "copy"
    with closing(SqliteStore(path)) as store:
        for number in range(5):
            store.commit_all([Commit({}, {f"key {number}": b"%d" % number})])
        back_up(path, target)
        store.commit_all([Commit({}, {"later": b""})])
    with closing(SqliteStore(target)) as copy:
        assert copy.list("", "", 10) == tuple(f"key {number}" for number in range(5))
        found = copy.read("key 4")
        assert found is not None
        assert found.value == b"4"


def test_a_copy_is_for_its_owner_only_and_overwrites_nothing(tmp_path: Path) -> None:
    path, target = tmp_path / "store.db", tmp_path / "copy"
    written(path, 1)
    back_up(path, target)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    for there in (target, Path()):  # the second is what an empty word names
        with pytest.raises(StoreFailed, match="exists"):
            back_up(path, there)
    assert not list(tmp_path.glob("*.new"))


def test_a_person_who_waits_is_told_how_far_the_copy_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloudid_servers.stores.backup.BETWEEN_REPORTS", 10)
    told: list[str] = []
    written(tmp_path / "store.db", 50)
    back_up(tmp_path / "store.db", tmp_path / "copy", report=told.append)
    assert re.fullmatch(r"copied: \d+ of \d+ MiB", told[0])
    assert told[-1] == ""


def test_a_disk_without_room_is_told_as_such(tmp_path: Path) -> None:
    """SQLite itself speaks of an I/O error."""
    path = tmp_path / "store.db"
    written(path, 1)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        for work in (SqliteStore, compact, lambda store: back_up(store, tmp_path / "copy")):
            with pytest.raises(StoreFailed, match="disk I/O error: there is no space left"):
                work(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_what_cannot_be_copied_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a store")
    for store, target in (("nowhere", "copy"), ("text", "copy"), ("nowhere", "no/folder")):
        with pytest.raises(StoreFailed):
            back_up(tmp_path / store, tmp_path / target)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["text"]
