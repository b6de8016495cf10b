"""Addresses of databases: what is understood, what is refused, and that no password is ever shown."""

from __future__ import annotations

import shutil
import traceback
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from cloudid_core.errors import StoreFailed
from cloudid_core.values.secret import Secret
from cloudid_servers.command.bootstrap import open_store
from cloudid_servers.settings.settings import ServerSettings, read_file
from cloudid_servers.stores.postgres import Address, PostgresStore
from tests.hosts.opened import on
from tests.servers.certificates import self_signed

from .cluster import PASSWORD, Cluster, running_cluster
from .test_postgres import nothing, with_store

CANARY: Final = "c4n4ry"
NAMES: Final = ("server", "other")


def test_an_address_shows_where_the_database_is_and_no_secret() -> None:
    address = Address.parse(
        f"postgresql://cloudid:{CANARY}@db1,db2:5433/store?sslmode=verify-full&sslpassword={CANARY}"
    )
    assert str(address) == "postgresql://cloudid@db1,db2:,5433/store"
    assert CANARY not in f"{address!r} {PostgresStore(address)!r} {PostgresStore(address)}"
    assert address.options["sslmode"] == "verify-full"
    assert CANARY.encode() in address.conninfo()


def test_of_several_hosts_one_that_takes_writes_is_used() -> None:
    several, one = (Address.parse(f"postgresql://{hosts}/store") for hosts in ("a,b", "a"))
    assert several.options["target_session_attrs"] == "read-write"
    assert "target_session_attrs" not in one.options
    chosen = Address.parse("postgresql://a,b/store?target_session_attrs=any")
    assert chosen.options["target_session_attrs"] == "any"


def test_a_password_from_elsewhere_goes_before_one_in_the_address() -> None:
    address = Address.parse("postgresql://u:old@127.0.0.1/d", lambda: Secret(r"it's a \ b")).resolved()
    assert r"password='it\'s a \\ b'" in address.conninfo().decode()


def test_hosts_are_resolved_beforehand() -> None:
    """libpq would block the event loop."""
    found = Address.parse("postgresql://localhost:1,/run/sockets:2/d").resolved()
    numbers = found.options["hostaddr"].split(",")
    assert numbers[-1] == ""
    assert "127.0.0.1" in numbers
    assert len(found.options["host"].split(",")) == len(found.options["port"].split(",")) == len(numbers)


@pytest.mark.parametrize("host", ["no-such-host.invalid", "no..host", "h" * 64 + ".invalid"])
def test_a_host_that_cannot_be_found_is_unknown(host: str) -> None:
    with pytest.raises(StoreFailed, match="host is unknown"):
        Address.parse(f"postgresql://{host}/d").resolved()


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://user:{CANARY}@more@host/db",
        f"postgresql://user:{CANARY}/more@host/db",
        f"postgresql://user:more?{CANARY}@host/db",
        f"postgresql://user:{CANARY}#more@host/db",
        f"postgresql://user:{CANARY} more@host/db",
        f"postgresql://user:{CANARY}%zz@host/db",
        f"postgresql://user:{CANARY}@[host/db",
        f"postgresql://host/db?no_such_option={CANARY}",
        f"postgresql://host/db?{CANARY}",
    ],
)
def test_a_malformed_address_is_refused_without_being_shown(address: str) -> None:
    with pytest.raises(StoreFailed) as failure:
        Address.parse(address)
    shown = "".join(traceback.format_exception(failure.value))
    assert CANARY not in shown


@pytest.fixture
def passwordless(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a database without its password."""
    monkeypatch.delenv("PGPASSWORD", raising=False)
    with cluster.database() as database:
        yield database.replace(f":{PASSWORD}@", "@")


def store_of(folder: Path, *lines: str) -> PostgresStore:
    path = folder / "cloudid.toml"
    path.write_text("[server]\n" + "\n".join(lines))
    store = open_store(read_file(path).server, is_new=True)
    assert isinstance(store, PostgresStore)
    return store


def test_the_password_comes_from_a_file(passwordless: str, tmp_path: Path) -> None:
    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    lines = (f'store = "{passwordless}"', 'store_password_file = "password"')
    with closing(store_of(tmp_path, *lines)) as store:
        assert PASSWORD not in repr(store)
        on("trio", lambda host: nothing(host, store), store)


def test_a_password_that_has_changed_is_read_for_the_next_connection(passwordless: str, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("old")
    with closing(store_of(tmp_path, f'store = "{passwordless}"', 'store_password_file = "password"')) as store:
        with pytest.raises(StoreFailed, match="password authentication failed"):
            on("trio", lambda host: nothing(host, store), store)
        (tmp_path / "password").write_text(PASSWORD)
        on("trio", lambda host: nothing(host, store), store)


def test_the_password_comes_from_the_environment(passwordless: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    with_store(passwordless, nothing)


def test_the_password_comes_from_a_password_file_of_libpq(
    passwordless: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "pgpass"
    file.write_text(f"*:*:*:*:{PASSWORD}\n")
    file.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(file))
    with_store(passwordless, nothing)


def test_a_wrong_password_is_not_shown(passwordless: str) -> None:
    wrong = passwordless.replace("postgres@", f"postgres:{CANARY}@")
    with pytest.raises(StoreFailed, match="password authentication failed") as failure:
        with_store(wrong, nothing)
    assert CANARY not in "".join(traceback.format_exception(failure.value))


def test_a_password_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreFailed, match="nowhere cannot be read"):
        store_of(tmp_path, 'store = "postgresql://h/d"', 'store_password_file = "nowhere"')


def test_settings_do_not_show_the_store(tmp_path: Path) -> None:
    server = ServerSettings(store=f"postgresql://u:{CANARY}@h/d")
    assert server.is_in_database
    assert CANARY not in repr(server)
    assert not ServerSettings(store="postgresql.db").is_in_database
    assert server.store_name == "postgresql://h/d"
    for store in (f"postgres://u:{CANARY}@x@h/d?sslpassword={CANARY}", f"postgresql://h?password={CANARY}"):
        assert CANARY not in ServerSettings(store=store).store_name
    path = tmp_path / "cloudid.toml"
    path.write_text(f'[server]\nstore = "postgresql://u:{CANARY}@h/d"')
    assert read_file(path).server.store == f"postgresql://u:{CANARY}@h/d"


@pytest.fixture
def encrypted() -> Iterator[Cluster]:
    """A server that takes encrypted connections only."""
    with running_cluster() as cluster:
        for name in NAMES:
            key, certificate = self_signed("127.0.0.1")
            (cluster.folder / f"{name}.crt").write_bytes(certificate)
            (cluster.data / f"{name}.crt").write_bytes(certificate)
            file = cluster.data / f"{name}.key"
            file.write_bytes(key)
            file.chmod(0o640)  # root may own it then
            shutil.chown(file, group=cluster.data.group())
        (cluster.data / "pg_hba.conf").write_text(
            "hostnossl all all all reject\nhostssl all all all scram-sha-256\nlocal all all scram-sha-256\n"
        )
        cluster.configure("ssl = on\n")
        cluster.stop()
        cluster.start()
        yield cluster


def test_connections_are_encrypted_as_the_address_asks(encrypted: Cluster) -> None:
    with encrypted.database() as database:
        right, wrong = (f"{database}?sslmode=verify-full&sslrootcert={encrypted.folder / name}.crt" for name in NAMES)
        with_store(right, nothing)
        with_store(f"{database}?sslmode=require", nothing)
        for address, reason in ((wrong, "certificate verify failed"), (f"{database}?sslmode=disable", "no encryption")):
            with pytest.raises(StoreFailed, match=reason) as failure:
                with_store(address, nothing)
            assert PASSWORD not in str(failure.value)
