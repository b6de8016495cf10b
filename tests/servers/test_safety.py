"""Unsafe ways to run a server: a first start refuses them, and a store that exists is served with a warning."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

import httpx
import pytest

from cloudid_core.health.problems import HealthProblem
from cloudid_servers.settings.safety import doubts, is_on_loopback, weak_sslmode
from cloudid_servers.settings.settings import ServerSettings, SettingsError, is_like_address, read_file
from tests.waiting import PATIENT

from .running import SERVERS, Running, finished, initialise

pytestmark = pytest.mark.one_server

CANARY: Final = "c4n4ry"
LIKE_ADDRESSES: Final = (
    f"mysql://u:{CANARY}@h/db",
    f"mysql:/u:{CANARY}@h/db",
    f"POSTGRESQL://u:{CANARY}@h/db",
    f"postgresql+asyncpg://u:{CANARY}@h/db",
    f"postgresql:u:{CANARY}@h/db",
    f"u:{CANARY}@h/db",
    f"host=h password={CANARY}",
    f"password={CANARY}",
    f"password = {CANARY}",
    f"sslmode=require {CANARY}",
    f"data/host=h user=u {CANARY}",
    "file:///var/lib/cloudid.sqlite",
)
PATHS: Final = ("cloudid.sqlite", "/var/lib/cloudid/store", "my data/store.db", "a=b.db", "@home/x", "a:b")


def settings_file(folder: Path, **server: object) -> Path:
    path = folder / "cloudid.toml"
    values = {"listen": "127.0.0.1:0", **server}.items()
    texts = [f"{name} = {str(value).lower() if value in (True, False) else repr(value)}" for name, value in values]
    path.write_text("\n".join(["[server]", *texts, ""]))
    return path


def command(server: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return finished(f"cloudid_servers.{server}", *arguments)


@pytest.mark.parametrize("store", LIKE_ADDRESSES)
def test_a_store_that_looks_like_an_address_is_refused_without_being_shown(store: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="or a plain path") as refused:
        read_file(settings_file(tmp_path, store=store))
    assert CANARY not in str(refused.value)
    assert "mysql" not in str(refused.value)


@pytest.mark.parametrize(
    "address, mode",
    {
        "postgresql://u@db.example/d": "prefer",
        "postgresql://u@db.example:5433/d?sslmode=require": "require",
        "postgresql://u@db.example/d?sslmode=verify-ca": "verify-ca",
        "postgresql://u@127.0.0.1,db.example/d": "prefer",
        "postgresql:///d?host=db.example": "prefer",
        "postgresql://u@127.0.0.1/d?hostaddr=203.0.113.7": "prefer",
        "postgresql://u@db.example/d?sslmode=verify-full": "",
        "postgresql://u@db.example/d?sslrootcert=system": "",
        "postgresql://u@127.0.0.1:5432,[::1]:5433,localhost/d": "",
        "postgresql:///d?host=/var/run/postgresql": "",
        "postgresql://u@%2Fvar%2Frun%2Fpostgresql/d": "",
        "postgresql:///d": "",
        "etcd://db.example:2379/d": "",
    }.items(),
)
def test_a_database_beyond_this_machine_needs_a_verified_certificate(address: str, mode: str) -> None:
    found = doubts(ServerSettings(store=address))
    assert found.get(HealthProblem.DATABASE_EXPOSED, {}).get("mode", "") == mode
    assert not doubts(ServerSettings(store=address, allow_exposed_database=True))


def test_the_environment_of_libpq_says_how_a_database_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOST", "db.example")
    assert weak_sslmode("postgresql:///d") == "prefer"
    monkeypatch.setenv("PGSSLMODE", "verify-full")
    assert weak_sslmode("postgresql:///d") == ""


@pytest.mark.parametrize("store", PATHS)
def test_a_plain_path_is_a_store(store: str, tmp_path: Path) -> None:
    assert not is_like_address(store)
    server = read_file(settings_file(tmp_path, store=store)).server
    assert (server.store, server.is_store_misnamed) == (str(tmp_path / store), False)


@pytest.mark.parametrize("name", ["init", "rekey", "backup", "copy-store"])
def test_no_command_makes_or_shows_a_store_of_such_a_name(name: str, tmp_path: Path) -> None:
    (tmp_path / "good").mkdir()
    good = settings_file(tmp_path / "good")
    bad = settings_file(tmp_path, store=f"host=h password={CANARY}")
    more = {"rekey": ("--finish",), "backup": (str(tmp_path / "copy"),), "copy-store": (str(good),)}
    for arguments in ((str(bad), *more.get(name, ())), *(((str(good), str(bad)),) if name == "copy-store" else ())):
        ended = command("trio_server", name, "--settings", *arguments)
        assert ended.returncode == 1
        assert "[server]" in ended.stderr
        assert CANARY not in ended.stdout + ended.stderr
    assert not [path for path in tmp_path.rglob("*") if CANARY in path.name]


def test_a_store_that_exists_under_such_a_name_is_served_and_never_shown(tmp_path: Path) -> None:
    settings = settings_file(tmp_path)
    token = initialise("trio_server", settings)
    (tmp_path / "cloudid.sqlite").rename(tmp_path / f"host=h password={CANARY}")
    settings = settings_file(tmp_path, store=f"host=h password={CANARY}", log_level="debug")
    with Running("cloudid_servers.trio_server", "--settings", str(settings)) as running:
        found = httpx.get(f"{running.url}/v1/sys/health", headers={"x-vault-token": token}, **PATIENT)
        assert found.json()["problems"] == ["store_misnamed"]
        again = command("aiohttp_server", "--settings", str(settings))
        assert "the store is in use by another process" in again.stderr
        assert command("trio_server", "backup", "--settings", str(settings), str(tmp_path / "copy")).returncode == 0
        refused = command("trio_server", "backup", "--settings", str(settings), str(tmp_path / "copy"))
        _, log = running.stop()
    init = command("trio_server", "init", "--settings", str(settings))
    assert "the store is already initialised" in init.stderr
    for said in (log, again.stderr, refused.stderr, init.stderr, found.text):
        assert CANARY not in said
    assert '"code":"store_misnamed"' in log.replace(": ", ":")


@pytest.mark.parametrize("server", SERVERS)
def test_a_store_that_others_may_use_is_served_with_a_warning_until_that_is_accepted(
    server: str, tmp_path: Path
) -> None:
    settings = settings_file(tmp_path)
    token = initialise(server, settings)
    (tmp_path / "cloudid.sqlite").chmod(0o644)
    for accepted in (False, True):
        settings = settings_file(tmp_path, allow_shared_store=accepted)
        with Running(f"cloudid_servers.{server}", "--settings", str(settings)) as running:
            stranger = httpx.get(f"{running.url}/v1/sys/health", **PATIENT)
            known = httpx.get(f"{running.url}/v1/sys/health", headers={"x-vault-token": token}, **PATIENT)
            _, log = running.stop()
        assert (stranger.status_code, stranger.json()["problems"]) == (200, [] if accepted else ["store_shared"])
        assert ("0644" in known.text, "0644" in log) == (not accepted, not accepted)


def test_init_refuses_a_file_that_others_may_use(tmp_path: Path) -> None:
    (tmp_path / "cloudid.sqlite").touch(0o644)
    (tmp_path / "cloudid.sqlite").chmod(0o644)
    refused = command("trio_server", "init", "--settings", str(settings_file(tmp_path)))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "allow_shared_store" in refused.stderr
    initialise("trio_server", settings_file(tmp_path, allow_shared_store=True))


def test_init_refuses_plain_http_beyond_loopback(tmp_path: Path) -> None:
    refused = command("trio_server", "init", "--settings", str(settings_file(tmp_path, listen="0.0.0.0:8200")))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "allow_plain_http" in refused.stderr
    assert not (tmp_path / "cloudid.sqlite").exists()
    initialise("trio_server", settings_file(tmp_path, listen="0.0.0.0:8200", allow_plain_http=True))


@pytest.mark.parametrize("server", SERVERS)
def test_a_server_for_trying_things_out_is_for_this_machine_only(server: str) -> None:
    refused = command(server, "--dev", "--listen", "0.0.0.0:0")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "allow_exposed_dev" in refused.stderr


@pytest.mark.parametrize(
    "listen, is_local",
    [
        ("127.0.0.1:0", True),
        ("127.8.0.1:8200", True),
        ("[::1]:8200", True),
        ("localhost:8200", True),
        ("0.0.0.0:8200", False),
        ("[::]:8200", False),
        ("192.0.2.1:8200", False),
    ],
)
def test_plain_http_is_safe_on_loopback_only(listen: str, is_local: bool) -> None:
    assert is_on_loopback(listen) == is_local
    plain = ServerSettings(listen=listen, store="nowhere")
    assert (HealthProblem.PLAIN_HTTP in doubts(plain)) == (not is_local)
    for safe in ({"tls_certificate": "a", "tls_key": "b"}, {"allow_plain_http": True}):
        assert not doubts(ServerSettings(listen=listen, store="nowhere", **safe))


def test_a_host_without_an_address_is_refused_when_it_is_bound() -> None:
    assert is_on_loopback("nowhere.invalid:1")


@pytest.mark.parametrize("name", ["apply_folder", "apply_secrets", "publish_to"])
def test_a_folder_that_others_may_write_to_is_reported_by_check_and_health(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "trusted"
    folder.mkdir()
    server = ServerSettings(**{name: str(folder)})  # type: ignore[arg-type]
    for mode, is_reported in ((0o755, False), (0o700, False), (0o775, True), (0o757, True), (0o777, True)):
        folder.chmod(mode)
        assert (HealthProblem.FOLDER_WRITABLE in doubts(server)) is is_reported, oct(mode)
    folder.chmod(0o777)
    path = settings_file(tmp_path, **{name: str(folder)})
    found = finished("cloudid_servers.cli", "check", "--settings", str(path))
    assert found.returncode == 1
    assert "UNSAFE" in found.stdout
    assert f"write to {folder}" in " ".join(found.stdout.split())


def test_a_folder_of_another_user_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    found = doubts(ServerSettings(apply_folder=str(tmp_path)))
    assert (HealthProblem.FOLDER_WRITABLE in found) is (os.getuid() != 0)
