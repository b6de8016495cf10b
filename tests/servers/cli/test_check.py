"""`check`: each look at the settings, with what it finds good, unsafe and wrong; and nothing is made or changed."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from cloudid_servers.cli.main import commands
from cloudid_servers.command.check import findings
from cloudid_servers.terminal import Exit

from ..certificates import self_signed, write_certificate
from ..running import initialise

KEY = "ab" * 32


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a store that was prepared."""
    folder = tmp_path_factory.mktemp("prepared")
    write(folder / "cloudid.key", KEY.encode())
    write(folder / "cloudid.toml", b"")
    initialise("trio_server", folder / "cloudid.toml")
    return (folder / "cloudid.sqlite").read_bytes()


def write(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    path.chmod(0o600)


@pytest.fixture
def folder(prepared: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Settings that are good, of a store that was prepared."""
    write(tmp_path / "cloudid.sqlite", prepared)
    write(tmp_path / "cloudid.key", KEY.encode())
    monkeypatch.delenv("CLOUDID_MASTER_KEY", raising=False)
    tmp_path.chmod(0o700)
    return tmp_path


def checked(folder: Path, server: str = "", rest: str = "") -> tuple[int, dict[str, list[tuple[str, str]]]]:
    """The exit code, and the results and texts of each check."""
    path = folder / "cloudid.toml"
    listen = "" if server.startswith("listen") else 'listen = "127.0.0.1:0"\n'
    path.write_text(f"[server]\n{listen}{server}\n{rest}")
    before = contents(folder)
    ran = CliRunner().invoke(commands, ["check", "--settings", str(path), "--format", "json"], standalone_mode=False)
    assert contents(folder) == before
    found: dict[str, list[tuple[str, str]]] = {}
    for row in json.loads(ran.stdout):
        found.setdefault(row["check"], []).append((row["result"], row["found"]))
    code: Any = ran.return_value
    return code, found


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_good_settings_end_with_0(folder: Path) -> None:
    code, found = checked(folder)
    assert code == Exit.DONE
    assert {result for rows in found.values() for result, _ in rows} <= {"ok", "note"}
    assert list(found) == ["settings", "environment", "listen", "store", "master key", "certificate", "audit"]
    (folder / "shop").mkdir()
    assert checked(folder, 'apply_folder = "shop"')[1]["folder"] == [("ok", f"{folder / 'shop'}: 0 files")]


def test_people_get_a_table(folder: Path) -> None:
    (folder / "cloudid.toml").write_text('[server]\nlisten = "127.0.0.1:0"\n')
    ran = CliRunner().invoke(commands, ["check", "--settings", str(folder / "cloudid.toml")])
    assert ran.stdout.splitlines()[0].split() == ["result", "check", "found"]


def test_before_init_there_is_nothing_wrong(folder: Path) -> None:
    for name in ("cloudid.sqlite", "cloudid.key"):
        (folder / name).unlink()
    code, found = checked(folder, rest='[audit.a]\ntype = "file"\nfile_path = "audit/a.log"')
    assert code == Exit.DONE
    assert [found[name][0][0] for name in ("store", "master key", "audit")] == ["note", "note", "note"]


@pytest.mark.parametrize(
    "server, rest, check, result, text",
    [
        ('listen = "nowhere"', "", "settings", "WRONG", "nowhere is not HOST:PORT"),
        ("color = 1", "", "settings", "WRONG", '"color" is unknown'),
        ('listen = "203.0.113.1:0"', "", "listen", "WRONG", "cannot listen on 203.0.113.1:0"),
        ('store = "away/s.sqlite"', "", "store", "WRONG", "does not exist: create it"),
        ('key_file = "missing.key"', "", "master key", "WRONG", "restore it"),
        ('key_file = "short.key"', "", "master key", "WRONG", "does not hold 64"),
        ('key_file = "other.key"', "", "master key", "WRONG", "does not open the key ring: name the key of"),
        ('store = "other.sqlite"', "", "master key", "WRONG", "other.sqlite cannot be read: file is not a database"),
        ('store = "folder"', "", "store", "WRONG", "folder is not a file: name a file"),
        ('store = "empty.sqlite"', "", "master key", "WRONG", "empty.sqlite is not a store"),
        ('tls_certificate = "c.pem"\ntls_key = "c.pem"', "", "certificate", "WRONG", "cannot be used"),
        (
            'tls_certificate = "no.pem"\ntls_key = "no.key"',
            "",
            "certificate",
            "WRONG",
            "no.pem cannot be read: No such file",
        ),
        ('audit_checkpoint_command = ["no-such-program"]', "", "audit", "WRONG", "no-such-program"),
        ("", '[audit.a]\ntype = "file"\nfile_path = "away/a.log"', "audit", "WRONG", "does not exist"),
        ('store = "postgresql://u:hunter2@h/d@"', "", "store", "WRONG", "URL"),
        ('apply_folder = "away"', "", "folder", "WRONG", "away is not a folder"),
        ('publish_to = "away"', "", "publication", "WRONG", "away does not exist or is not writable"),
        (
            'publish_to = "https://id.example"\npublish_credential_file = "other.sqlite"',
            "",
            "publication",
            "WRONG",
            "a line that is neither",
        ),
        ('listen = "127.0.0.1:8200"\nmetrics_listen = "127.0.0.1:8200"', "", "settings", "WRONG", "must differ from"),
        ('apply_folder = "folder"', "", "folder", "WRONG", "odd.toml: odd is not a path where"),
        ('listen = "0.0.0.0:0"', "", "plain_http", "UNSAFE", "tls_certificate"),
    ],
)
def test_what_is_wrong_is_found(folder: Path, server: str, rest: str, check: str, result: str, text: str) -> None:
    write(folder / "short.key", b"ab")
    write(folder / "other.key", b"cd" * 32)
    write(folder / "other.sqlite", b"text")
    write(folder / "empty.sqlite", b"")
    (folder / "folder").mkdir()
    write(folder / "folder/odd.toml", b"")
    code, found = checked(folder, server, rest)
    assert code == Exit.FAILED
    assert [row for row in found[check] if row[0] == result and text in row[1]], found
    assert "hunter2" not in str(found)
    assert "store_shared" not in found


def test_tracing_that_is_not_installed_is_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "tracing" not in checked(folder)[1]
    monkeypatch.setitem(sys.modules, "cloudid_servers.tracing", None)
    code, found = checked(folder, "tracing = true")
    assert code == Exit.FAILED
    ((result, text),) = found["tracing"]
    assert (result, "cloudid[otel]" in text) == ("WRONG", True)


def test_what_others_can_use_is_unsafe(folder: Path) -> None:
    (folder / "cloudid.sqlite").chmod(0o640)
    (folder / "password").write_text("hunter2")
    (folder / "password").chmod(0o644)
    folder.chmod(0o777)
    code, found = checked(folder, 'store_password_file = "password"')
    folder.chmod(0o700)
    assert code == Exit.FAILED
    assert {name for name, rows in found.items() for result, _ in rows if result == "UNSAFE"} == {
        "permissions",
        "store_shared",
    }
    assert [text.partition("run ")[2] for _, text in found["permissions"]] == [
        f"chmod go-w {folder}",
        f"chmod 600 {folder / 'password'}",
    ]


def test_a_database_is_named_without_its_password(folder: Path) -> None:
    code, found = checked(folder, 'store = "etcd://127.0.0.1:1,127.0.0.1:2/d"')
    assert (code, found["store"][0]) == (Exit.FAILED, ("WRONG", "etcd://127.0.0.1:1,127.0.0.1:2/d"))
    code, found = checked(folder, 'store = "postgresql://u:hunter2@127.0.0.1:1/d"')
    [(result, text)] = found["store"]
    assert (code, result) == (Exit.FAILED, "WRONG")
    assert text.startswith("postgresql://u@127.0.0.1:1/d: the database cannot be used")
    assert "hunter2" not in text


def test_one_member_of_etcd_that_answers_is_enough(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as member:
        place = f"127.0.0.1:{member.getsockname()[1]}"
        code, found = checked(folder, f'store = "etcd://127.0.0.1:1,{place}/d"')
    assert (code, found["store"]) == (
        Exit.DONE,
        [
            ("ok", f"etcd://127.0.0.1:1,{place}/d"),
            ("note", "http://127.0.0.1:1 cannot be reached: connection refused"),
        ],
    )


def test_a_missing_store_beside_its_key_is_wrong(folder: Path) -> None:
    """A volume that is not mounted looks like a server that was never prepared."""
    (folder / "cloudid.sqlite").unlink()
    code, found = checked(folder)
    [(result, text)] = found["store"]
    assert (code, result) == (Exit.FAILED, "WRONG")
    assert "mount its volume or restore a backup" in text


def test_a_full_disk_is_wrong(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=4096))
    code, found = checked(folder, rest='[audit.a]\ntype = "file"\nfile_path = "a.log"')
    full = ("WRONG", f"the disk of {folder} is full: only 4 KiB are free, so make room for at least 16 MiB")
    assert (code, full in found["store"], full in found["audit"]) == (Exit.FAILED, True, True)


def test_a_change_of_the_master_key_that_is_not_finished_is_a_note(folder: Path) -> None:
    command = [sys.executable, "-m", "cloudid_servers.trio_server", "rekey", "--settings", str(folder / "cloudid.toml")]
    checked(folder)
    subprocess.run([*command, "--new-key-file", str(folder / "new.key")], check=True, capture_output=True)
    code, found = checked(folder)
    assert (code, found["master key"][1]) == (
        Exit.DONE,
        ("note", "1 more master key can open it: run rekey --finish to complete the change"),
    )
    subprocess.run([*command, "--finish"], check=True, capture_output=True)
    assert len(checked(folder)[1]["master key"]) == 1


def test_variables_are_read_as_a_server_reads_them(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUD_TENANT_ID", "not a tenant")
    monkeypatch.setenv("CLOUD_TENANTID", "x")
    code, found = checked(folder)
    assert (code, "CLOUD_TENANT_ID" in found["environment"][0][1]) == (Exit.FAILED, True)
    monkeypatch.setenv("CLOUD_TENANT_ID", "6b2d7a3e-0f2c-4a71-9d54-8a2b8f0c1d11")
    code, found = checked(folder)
    assert code == Exit.DONE
    assert found["environment"] == [
        ("ok", "variables that change configurations: CLOUD_TENANT_ID"),
        ("note", "CLOUD_TENANTID has no effect; did you mean CLOUD_TENANT_ID?"),
    ]


@pytest.mark.parametrize("days, result", [(-1, "WRONG"), (1, "note"), (100, "ok")])
def test_a_certificate_is_told_with_its_end(folder: Path, days: int, result: str) -> None:
    write_certificate(folder, "localhost", timedelta(days=days))
    (folder / "key.pem").chmod(0o600)
    tls = 'tls_certificate = "cert.pem"\ntls_key = "key.pem"'
    code, found = checked(folder, tls)
    assert (code, found["certificate"][0][0]) == (Exit.FAILED if result == "WRONG" else Exit.DONE, result)
    (folder / "key.pem").chmod(0o644)
    code, found = checked(folder, tls)
    assert (code, found["certificate"][1][0]) == (Exit.FAILED, "UNSAFE")


def test_a_certificate_that_is_not_valid_yet_is_told_with_its_start(folder: Path) -> None:
    key, certificate = self_signed("localhost", timedelta(days=9), starts=timedelta(days=1))
    (folder / "both.pem").write_bytes(key + certificate)
    code, found = checked(folder, 'tls_certificate = "both.pem"\ntls_key = "both.pem"')
    [(result, text), *_] = found["certificate"]
    assert (code, result) == (Exit.FAILED, "WRONG")
    assert re.search(r"both\.pem, from \S+ \S+ UTC: it is not valid yet", text)


def test_where_documents_are_published_is_looked_at_and_an_address_not_asked(folder: Path) -> None:
    (folder / "documents").mkdir()
    code, found = checked(folder, 'publish_to = "documents"')
    assert (code, found["publication"]) == (Exit.DONE, [("ok", str(folder / "documents"))])
    (folder / "credential").write_text("Authorization: Bearer hunter2\n")
    (folder / "credential").chmod(0o644)
    code, found = checked(folder, 'publish_to = "https://id.example"\npublish_credential_file = "credential"')
    assert (code, [result for result, _ in found["publication"]]) == (Exit.FAILED, ["ok", "UNSAFE"])
    assert "hunter2" not in str(found)


def test_a_certificate_in_a_form_that_openssl_alone_reads_is_no_bug(folder: Path) -> None:
    key, certificate = self_signed("localhost")
    (folder / "both.pem").write_bytes(key + certificate.replace(b" CERTIFICATE", b" TRUSTED CERTIFICATE"))
    (folder / "both.pem").chmod(0o600)
    code, found = checked(folder, 'tls_certificate = "both.pem"\ntls_key = "both.pem"')
    assert (code, found["certificate"][0][0]) == (Exit.DONE, "note")


def test_an_address_that_is_taken_may_be_that_of_the_running_server(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for setting in ("listen", "metrics_listen"):
            code, found = checked(folder, f'{setting} = "127.0.0.1:{port}"')
            assert (code, found["listen"][-1][0]) == (Exit.DONE, "note")
            assert "perhaps by the server with these settings" in found["listen"][-1][1]
    code, found = checked(folder, 'metrics_listen = "127.0.0.1:0"')
    assert (code, found["listen"][-1]) == (Exit.DONE, ("ok", "127.0.0.1:0, only for metrics"))


def test_an_audit_file_that_cannot_be_written_is_wrong(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declared = '[audit.a]\ntype = "file"\nfile_path = "main.log"'
    path = folder / "main.log"
    path.mkdir()
    code, found = checked(folder, rest=declared)
    assert (code, found["audit"][0][0]) == (1, "WRONG")
    assert "is not a file" in found["audit"][0][1]
    path.rmdir()
    path.write_bytes(b"")
    assert checked(folder, rest=declared)[1]["audit"][0][0] == "ok"
    access = os.access
    monkeypatch.setattr(os, "access", lambda name, mode: str(name) != str(path) and access(name, mode))
    code, found = checked(folder, rest=declared)
    assert (code, found["audit"][0][0]) == (1, "WRONG")
    assert "is not readable and writable by this user" in found["audit"][0][1]


def test_what_the_system_or_openssl_refuses_is_a_sentence(tmp_path: Path) -> None:
    write_certificate(tmp_path, "127.0.0.1")
    (tmp_path / "other").mkdir()
    write_certificate(tmp_path / "other", "127.0.0.1")
    lines = ['tls_certificate = "cert.pem"', 'tls_key = "other/key.pem"', 'store_password_file = "db.password"']
    (tmp_path / "cloudid.toml").write_text("\n".join(["[server]", *lines, ""]))
    shown = {name: found for _, name, found in findings(tmp_path / "cloudid.toml")}
    assert "the key does not belong to the certificate: set tls_key" in shown["certificate"]
    assert shown["permissions"].endswith("db.password cannot be used: No such file or directory")
    assert not any("[" in shown[name] for name in ("certificate", "permissions"))
