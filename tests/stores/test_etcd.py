"""The store on etcd: its address, what it refuses, and the troubles of a cluster."""

from __future__ import annotations

import shutil
import subprocess
import sys
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from cloudid_core.effects import ABSENT, Commit, Entry
from cloudid_core.errors import StoreFailed
from cloudid_core.values.secret import Secret
from cloudid_servers.host.host import Host
from cloudid_servers.stores import GroupCommit, SqliteStore, copy_store
from cloudid_servers.stores.etcd import Address, EtcdStore
from cloudid_servers.stores.etcd import store as etcd_store
from cloudid_servers.stores.etcd.client import Lost
from cloudid_servers.stores.etcd.temporary import HOW, Member, running
from cloudid_servers.stores.postgres.temporary import free_port
from tests.hosts.opened import RUNTIMES, on
from tests.servers.certificates import write_certificate
from tests.servers.running import ROOT, Running
from tests.waiting import PATIENCE, PATIENT, wait_until

from .etcd_cluster import EtcdCluster, etcd_at, running_etcd
from .test_copying import ENTRIES, contents, filled
from .test_served import ask, prepared, written

pytestmark = pytest.mark.tools
on_both = pytest.mark.parametrize("runtime", RUNTIMES)


@pytest.fixture(scope="module")
def single() -> Iterator[EtcdCluster]:
    with running_etcd(1) as cluster:
        yield cluster


def told(
    store: EtcdStore, scenario: Callable[[Host], Awaitable[object]] | None = None, runtime: str = "trio"
) -> object:
    """What a scenario answers on an opened store."""

    async def nothing(host: Host) -> None:
        pass

    with closing(store):
        return on(runtime, scenario or nothing, store)


def test_an_address_names_members_user_and_files() -> None:
    address = Address.parse("etcd://root@127.0.0.1:1,localhost,[::1]:3/a/b", lambda: Secret("hunter2"))
    assert address.members == ("http://127.0.0.1:1", "http://localhost:2379", "http://[::1]:3")
    assert (address.prefix, address.user) == ("a/b", "root")
    assert "hunter2" not in repr(address) + str(address)
    assert Address.parse("etcd://a/p?tls=true").members == ("https://a:2379",)


@pytest.mark.parametrize(
    "text, reason",
    [
        ("etcd://u:hunter2@h/p", "must not contain a password"),
        ("etcd://u@h/p", "needs store_password_file"),
        ("etcd://h", "must be etcd://"),
        ("etcd://h,/p", "must be etcd://"),
        ("etcd://h:x/p", "malformed"),
        ("etcd://h/p?x=1", "other than"),
        ("etcd://h/p?tls=1", "true or false"),
        ("etcd://h/p?ca=/none", "TLS files"),
    ],
)
def test_a_wrong_address_is_refused(text: str, reason: str) -> None:
    with pytest.raises(StoreFailed, match=reason) as refused:
        Address.parse(text)
    assert "hunter2" not in str(refused.value)


def test_a_password_goes_to_other_machines_by_tls_alone() -> None:
    with pytest.raises(StoreFailed, match="sent only over TLS"):
        Address.parse("etcd://root@localhost,10.0.0.7/p", lambda: Secret("hunter2"))
    assert Address.parse("etcd://root@10.0.0.7/p?tls=true", lambda: Secret("hunter2")).user == "root"


@on_both
def test_a_store_goes_from_sqlite_to_etcd_and_back(single: EtcdCluster, tmp_path: Path, runtime: str) -> None:
    first, last = GroupCommit(SqliteStore(tmp_path / "first")), GroupCommit(SqliteStore(tmp_path / "last"))
    with closing(first), closing(last), closing(etcd_at(single.new_prefix())) as between:
        on(runtime, lambda host: filled(first), first)
        on(runtime, lambda host: copy_store(host, first, between, lambda text: None), between)
        again = EtcdStore(between._address)
        with closing(again):

            async def back(host: Host) -> int:
                await last.open(host)
                return await copy_store(host, again, last, lambda text: None)

            on(runtime, back)
        assert on(runtime, lambda host: contents(last), last) == ENTRIES


def test_nobody_else_writes_to_a_store_that_is_copied(single: EtcdCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(etcd_store, "LOCK_SECONDS", 2)
    node = etcd_at(single.new_prefix())

    def again(*, is_exclusive: bool = False) -> EtcdStore:
        return EtcdStore(node._address, is_exclusive=is_exclusive)

    async def scenario(host: Host) -> None:
        await node.commit(Commit({}, {"a": b"1"}))
        copy = again(is_exclusive=True)
        await copy.open(host)
        await copy.commit(Commit({}, {"b": b"2"}))
        with pytest.raises(StoreFailed, match="another process copies this store"):
            await node.commit(Commit({}, {"c": b"3"}))
        with pytest.raises(StoreFailed, match="another process copies this store"):
            await again(is_exclusive=True).open(host)
        with pytest.raises(StoreFailed, match="another process copies this store"):
            await again().open(host)
        assert await node.list("", "", 9) == ("a", "b")

    async def afterwards(host: Host) -> None:
        await later.commit(Commit({}, {"c": b"3"}))

    told(node, scenario)
    later = again()
    told(later, afterwards)  # the lock of the copy, which has not said that it ended, lapses


def test_a_copy_that_lost_its_lock_writes_nothing(single: EtcdCluster) -> None:
    address = Address.parse(single.new_prefix())
    copy = EtcdStore(address, is_new=True, is_exclusive=True)

    async def scenario(host: Host) -> None:
        await copy._client.ask("kv/deleterange", {"key": copy._lock})
        with pytest.raises(StoreFailed, match="the lock of this copy has lapsed"):
            await copy.commit(Commit({}, {"a": b"1"}))

    told(copy, scenario)


def test_a_place_without_a_store_is_refused(single: EtcdCluster) -> None:
    with pytest.raises(StoreFailed, match="run init first"):
        told(etcd_at(single.new_prefix(), is_new=False))


def test_a_store_opens_though_answers_are_lost_meanwhile(single: EtcdCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A member that was asked is killed: what it was asked is asked again of another."""
    store = etcd_at(single.new_prefix())
    ask, lost = store._client.ask, iter([True, False] * 2)

    async def lose_two_answers(call: str, question: object) -> Mapping[str, Any]:
        answer = await ask(call, question)
        if next(lost, False):
            raise Lost("ReadError")
        return answer

    monkeypatch.setattr(store._client, "ask", lose_two_answers)
    told(store)


def test_nobody_there_is_told() -> None:
    with pytest.raises(StoreFailed, match="no member of the cluster can be reached"):
        told(etcd_at("etcd://127.0.0.1:1,127.0.0.1:2/p"))


def test_a_commit_that_fits_no_transaction_is_refused_by_name(single: EtcdCluster) -> None:
    store = etcd_at(single.new_prefix())
    largest = {f"{number:03}": b"" for number in range(126)}

    async def scenario(host: Host) -> None:
        await store.commit(Commit(dict.fromkeys(largest, ABSENT), largest))
        with pytest.raises(StoreFailed, match="expects 0 entries and changes 127: etcd takes at most 126"):
            await store.commit(Commit({}, {**largest, "one more": b""}))
        with pytest.raises(StoreFailed, match="request is too large"):
            await store.commit(Commit({}, {"large": bytes(1_800_000)}))
        assert await store.list("", "", 1000) == tuple(largest)

    told(store, scenario)


def test_clocks_of_the_members_machines_are_compared(single: EtcdCluster) -> None:
    store = etcd_at(single.new_prefix())

    async def scenario(host: Host) -> None:
        assert store.clock is None
        await store.commit(Commit({}, {"a": b""}))
        while store.clock is None:
            await host.sleep(0.01)
        assert abs(store.clock.offset) <= store.clock.uncertainty

    told(store, scenario)


def test_a_writer_whose_key_was_removed_makes_itself_a_new_one(single: EtcdCluster) -> None:
    store = etcd_at(single.new_prefix())

    async def scenario(host: Host) -> None:
        await store._client.ask("kv/deleterange", {"key": _b64(store._writer)})
        version = await store.commit(Commit({"a": ABSENT}, {"a": b"1"}))
        assert await store.read("a") == Entry(b"1", version)

    told(store, scenario)


def _b64(data: bytes) -> str:
    return b64encode(data).decode()


async def fill(store: EtcdStore) -> None:
    for number in range(30):
        await store.commit(Commit({}, {f"{number}": bytes(100_000)}))


def test_without_room_writes_are_refused_and_reads_served() -> None:
    with running_etcd(1, "--quota-backend-bytes", "1000000") as cluster:
        store = etcd_at(cluster.new_prefix())

        async def scenario(host: Host) -> None:
            await store.commit(Commit({}, {"first": b"1"}))
            with pytest.raises(StoreFailed, match="database space exceeded"):
                await fill(store)
            entry = await store.read("first")
            assert entry is not None
            assert entry.value == b"1"

        told(store, scenario)


def make_room(cluster: EtcdCluster, prefix: str) -> None:
    """As an operator does: remove what fills it, forget old revisions, give the space back, end the alarm."""
    url = cluster.members[0].url
    everything = {"key": _b64(f"{prefix}/".encode()), "range_end": _b64(f"{prefix}0".encode())}
    removed = httpx.post(f"{url}/v3/kv/deleterange", json=everything, **PATIENT).raise_for_status().json()
    header = removed["header"]
    for call, body in (
        ("kv/compaction", {"revision": header["revision"], "physical": True}),
        ("maintenance/defragment", {}),
        ("maintenance/alarm", {"action": "DEACTIVATE", "memberID": header["member_id"], "alarm": "NOSPACE"}),
    ):
        httpx.post(f"{url}/v3/{call}", json=body, **PATIENT).raise_for_status()


def test_a_server_without_room_says_so_serves_reads_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    with running_etcd(1, "--quota-backend-bytes", "1000000") as cluster:
        settings = written(tmp_path, cluster.new_prefix())
        prepared(settings)
        with Running("cloudid_servers.trio_server", "--settings", str(settings)) as server:

            def problems() -> tuple[int, list[str]]:
                answer = ask(server.url, "GET", "sys/health", token="")
                return answer.status_code, answer.json()["problems"]

            other = etcd_at(cluster.new_prefix())
            with pytest.raises(StoreFailed, match="database space exceeded"):
                told(other, lambda host: fill(other))
            refused = ask(server.url, "PUT", "sys/policies/acl/late", body={"policy": ""})
            assert (refused.status_code, refused.json()["codes"]) == (503, ["store_unavailable"])
            assert ask(server.url, "GET", "sys/policies/acl/default").status_code == 200
            wait_until(lambda: (told_now := problems())[0] == 503 and "store_unavailable" in told_now[1])
            make_room(cluster, other._address.prefix)
            wait_until(lambda: problems() == (200, []))
            assert ask(server.url, "PUT", "sys/policies/acl/late", body={"policy": ""}).status_code == 204


def test_another_cluster_is_refused_until_its_restore_is_accepted() -> None:
    with running_etcd(1) as cluster, running_etcd(1) as other:
        address = cluster.new_prefix()
        told(etcd_at(address))
        elsewhere = address.replace(cluster.places, other.places)
        row = httpx.post(
            f"{cluster.members[0].url}/v3/kv/range",
            json={"key": _b64(f"{Address.parse(address).prefix}/format".encode())},
            **PATIENT,
        ).json()["kvs"][0]
        put = {"key": row["key"], "value": row["value"]}
        httpx.post(f"{other.members[0].url}/v3/kv/put", json=put, **PATIENT).raise_for_status()
        with pytest.raises(StoreFailed, match="init --accept-restore"):
            told(etcd_at(elsewhere, is_new=False))
        told(EtcdStore(Address.parse(elsewhere), accepts_restore=True))
        told(etcd_at(elsewhere, is_new=False))


def test_init_makes_a_store_and_accepts_a_restore(single: EtcdCluster, tmp_path: Path) -> None:
    settings = tmp_path / "cloudid.toml"
    settings.write_text(f'[server]\nstore = "{single.new_prefix()}"\n')

    def init(*options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "cloudid_servers.cli", "init", "--settings", str(settings), *options]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)

    assert "run init first" in init("--accept-restore").stderr
    first = init()
    assert first.stdout.startswith("root token: "), first.stderr
    assert init("--accept-restore").returncode == 0
    assert "already initialised" in init().stderr
    settings.write_text(f'[server]\nstore = "{tmp_path / "cloudid.sqlite"}"\n')
    assert "is only for stores in etcd" in init("--accept-restore").stderr


def test_a_cluster_that_is_back_from_the_past_is_refused_by_a_running_node(single: EtcdCluster) -> None:
    store = etcd_at(single.new_prefix())

    async def scenario(host: Host) -> None:
        store._revision += 10**6
        with pytest.raises(StoreFailed, match="is back at revision"):
            await store.read("a")

    told(store, scenario)


def test_a_user_is_authenticated_again_when_the_token_is_stale_with_the_password_as_it_is_then() -> None:
    passwords = ["hunter2"]
    with running_etcd(1) as cluster:
        url = cluster.members[0].url
        for call, question in (
            ("user/add", {"name": "root", "password": "hunter2"}),
            ("user/grant", {"user": "root", "role": "root"}),
            ("auth/enable", {}),
        ):
            if call == "user/grant":
                httpx.post(f"{url}/v3/auth/role/add", json={"name": "root"}, **PATIENT)
            httpx.post(f"{url}/v3/auth/{call}".replace("auth/auth", "auth"), json=question, **PATIENT)
        address = cluster.new_prefix().replace("etcd://", "etcd://root@")
        store = EtcdStore(Address.parse(address, lambda: Secret(passwords[-1])), is_new=True)

        async def scenario(host: Host) -> None:
            await store.commit(Commit({}, {"a": b"1"}))
            store._client._token = "stale.1"
            assert await store.list("", "", 9) == ("a",)
            passwords.append("hunter3")
            await store._client.ask("auth/user/changepw", {"name": "root", "password": passwords[-1]})
            assert await store.list("", "", 9) == ("a",)

        told(store, scenario)
        with pytest.raises(StoreFailed, match="authentication failed"):
            told(EtcdStore(Address.parse(address, lambda: Secret("wrong")), is_new=True))


def test_members_and_nodes_know_each_other_by_certificates(tmp_path: Path) -> None:
    """The member takes no connection without a certificate that it trusts, and the node none to another member."""
    if shutil.which("etcd") is None:
        pytest.skip(HOW)
    write_certificate(tmp_path, "127.0.0.1")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    plain, port = free_port(), free_port()
    urls = f"http://127.0.0.1:{plain},https://127.0.0.1:{port}"
    files = ("--cert-file", str(certificate), "--key-file", str(key), "--trusted-ca-file", str(certificate))
    options = ("--listen-client-urls", urls, "--advertise-client-urls", urls, *files, "--client-cert-auth")
    member = Member(name="m", folder=tmp_path, port=plain, peer_port=free_port(), options=options)
    address = f"etcd://127.0.0.1:{port}/tests"
    known = f"{address}?ca={certificate}&certificate={certificate}&key={key}"
    with running([member]):
        told(etcd_at(known))
        for other in (f"{address}?ca={certificate}", f"{address}?tls=true&certificate={certificate}&key={key}"):
            with pytest.raises(StoreFailed, match=r"no member of the cluster can be reached|TLS|SSL|Error"):
                told(etcd_at(other, is_new=False))
