"""The commands: `init`, `--dev` and serving a store, with the real service behind both servers."""

from __future__ import annotations

import json
import os
import resource
import signal
import stat
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from cloudid_core.effects import Commit
from cloudid_core.store import keys
from cloudid_core.values.secret import Secret
from cloudid_servers.cli.main import PROGRAM
from cloudid_servers.cli.main import commands as cloudid
from cloudid_servers.command import Options, commands, set_up
from cloudid_servers.command.program import COMMANDS, main
from cloudid_servers.runtime.interrupts import until_interrupted
from cloudid_servers.settings import MASTER_KEY_VARIABLE, SettingsError, master_key
from cloudid_servers.stores import SqliteStore
from cloudid_servers.terminal import run
from cloudid_servers.trio_server.host import open_host

from .running import PATIENCE, ROOT, Running, finished, wait_until

pytestmark = pytest.mark.one_server

SERVERS: Final = ("cloudid_servers.trio_server", "cloudid_servers.aiohttp_server")
HEX: Final = "0123456789abcdef"


def command(server: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return finished(server, *arguments)


def look_up_self(url: str, token: str) -> Any:
    request = urllib.request.Request(f"{url}/v1/auth/token/lookup-self", headers={"X-Service-Token": token})
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.loads(answer.read())["data"]


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    path = tmp_path / "cloudid.toml"
    path.write_text('[server]\nlisten = "127.0.0.1:0"\n')
    return path


@pytest.mark.parametrize("server", SERVERS)
def test_a_store_is_prepared_once_and_then_served(server: str, settings: Path) -> None:
    """The token that `init` prints works, also after a restart; nothing is ever overwritten."""
    first = command(server, "init", "--settings", str(settings))
    assert first.returncode == 0
    assert first.stderr.splitlines() == [
        f"initialised: {settings.parent / 'cloudid.sqlite'}",
        f"master key: in {settings.parent / 'cloudid.key'}: back it up, but not together with the store",
    ]
    shown, _, token = first.stdout.strip().partition(": ")
    assert shown == "root token"
    key_file = settings.parent / "cloudid.key"
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    key = key_file.read_text()
    assert len(key.strip()) == 64
    assert set(key.strip()) <= set(HEX)

    again = command(server, "init", "--settings", str(settings))
    assert (again.returncode, again.stdout) == (1, "")
    assert "already initialised" in again.stderr
    assert key_file.read_text() == key

    for _ in range(2):
        with Running(server, "--settings", str(settings)) as running:
            assert running.introduction == []
            assert look_up_self(running.url, token)["policies"] == ["root"]
            code, log = running.stop()
        assert code == 0
        assert token not in log
        assert key.strip() not in log


def test_a_store_is_served_by_one_process(settings: Path) -> None:
    assert command(SERVERS[0], "init", "--settings", str(settings)).returncode == 0
    with Running(SERVERS[0], "--settings", str(settings)):
        second = command(SERVERS[1], "--settings", str(settings))
    assert (second.returncode, "in use by another process" in second.stderr) == (1, True)


@pytest.mark.parametrize("server", SERVERS)
def test_dev_needs_nothing_and_keeps_nothing(server: str) -> None:
    arguments = ("--dev", "--root-token", "hunter2", "--listen", "127.0.0.1:0")
    with Running(server, *arguments) as running:
        root_token, provider = running.introduction
        assert root_token == "root token: hunter2"
        assert look_up_self(running.url, "hunter2")["policies"] == ["root"]
        url = provider.removeprefix("provider simulator: ")
        with urllib.request.urlopen(f"{url}/simulator/world", timeout=PATIENCE) as world:
            assert json.loads(world.read())["tenant"]
        code, log = running.stop()
    assert code == 0
    assert f"export CLOUDID_ADDR={running.url} CLOUDID_TOKEN=hunter2 SIMULATOR={url}" in log


@pytest.mark.parametrize("server", SERVERS)
def test_dev_says_which_environments_of_the_settings_file_it_replaces(server: str, tmp_path: Path) -> None:
    settings = tmp_path / "cloudid.toml"
    settings.write_text('[server]\nlisten = "127.0.0.1:0"\n[clouds.CloudChinaCloud]\nlogin = "http://127.0.0.1:1"\n')
    with Running(server, "--dev", "--settings", str(settings)) as running:
        assert [line for line in running.introduction if "clouds" in line] == [
            "warning: [clouds.CloudChinaCloud] of the settings file is ignored, because --dev starts a simulated Azure"
        ]


def test_dev_names_the_variable_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUD_TENANT_ID", "no tenant")
    failed = command("cloudid_servers.cli", "dev", "--listen", "127.0.0.1:0")
    assert (failed.returncode, "the environment variable CLOUD_TENANT_ID must be" in failed.stderr) == (1, True)


def test_dev_takes_any_provider_and_makes_up_a_token() -> None:
    with Running(SERVERS[0], "--dev", "--provider", "http://127.0.0.1:1", "--listen", "127.0.0.1:0") as running:
        [root_token] = running.introduction
        assert look_up_self(running.url, root_token.removeprefix("root token: "))["policies"] == ["root"]


@pytest.mark.parametrize(
    "key, reason",
    [
        (None, "cloudid.key is missing: restore it, or run init for a new store"),
        ("too short", "does not hold 64"),
        ("ab" * 32, "not initialised"),
    ],
)
@pytest.mark.parametrize("server", SERVERS)
def test_a_server_that_cannot_start_says_why(server: str, settings: Path, key: str | None, reason: str) -> None:
    if key is not None:
        write_key(settings.parent / "cloudid.key", key)
    failed = command(server, "--settings", str(settings))
    assert (failed.returncode, failed.stdout) == (1, "")
    assert reason in failed.stderr
    assert "Traceback" not in failed.stderr
    assert key is None or key not in failed.stderr


@pytest.mark.parametrize("words", [("serve",), ("init", "--new-root-token"), ("rekey", "--finish")])
def test_a_store_that_is_not_there_is_named_and_not_made(words: tuple[str, ...], settings: Path) -> None:
    """`backup` would copy an empty one without a complaint."""
    write_key(settings.parent / "cloudid.key", "ab" * 32)
    failed = command(SERVERS[0], *words, "--settings", str(settings))
    assert failed.returncode == 1
    assert "cloudid.sqlite does not exist, although " in failed.stderr
    assert "cloudid.key does: mount its volume or restore a backup" in failed.stderr
    assert sorted(path.name for path in settings.parent.iterdir()) == ["cloudid.key", settings.name]


def test_backup_says_what_it_cannot_copy_and_why(settings: Path) -> None:
    """An empty store, which a failed `init` leaves, is not one to come back to."""
    folder = settings.parent
    with closing(SqliteStore(folder / "cloudid.sqlite")) as store:
        failed = command(SERVERS[0], "backup", "--settings", str(settings), str(folder / "copy"))
        assert (failed.returncode, "is not initialised: there is nothing to copy" in failed.stderr) == (1, True)
        store.commit_all([Commit({}, {keys.RING: b"1"})])
        failed = command(SERVERS[0], "backup", "--settings", str(settings), str(folder / "nowhere" / "copy"))
        assert failed.returncode == 1
        assert failed.stderr.endswith("nowhere/copy: No such file or directory\n")


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("contents", [None, "no certificate", "-----BEGIN CERTIFICATE-----\nAA==\n"])
def test_a_certificate_that_cannot_be_used_is_named(server: str, contents: str | None, settings: Path) -> None:
    settings.write_text(settings.read_text() + 'tls_certificate = "cert.pem"\ntls_key = "cert.pem"\n')
    if contents is not None:
        (settings.parent / "cert.pem").write_text(contents)
    failed = command(server, "--dev", "--provider", "http://127.0.0.1:1", "--settings", str(settings))
    assert (failed.returncode, failed.stdout, "Traceback" in failed.stderr) == (1, "", False)
    assert "certificate or key cannot be used" in failed.stderr


def test_an_address_that_is_taken_is_named(settings: Path) -> None:
    with Running(SERVERS[0], "--dev", "--provider", "http://127.0.0.1:1", "--listen", "127.0.0.1:0") as running:
        for server in SERVERS:
            failed = command(
                server, "--dev", "--provider", "http://127.0.0.1:1", "--listen", f"127.0.0.1:{running.port}"
            )
            reason = f"error: cannot listen on 127.0.0.1:{running.port}: Address already in use"
            reason += ": stop the process that listens there, or choose another address\n"
            assert (failed.returncode, failed.stderr) == (1, reason)


def write_key(path: Path, key: str, mode: int = 0o600) -> None:
    path.write_text(key)
    path.chmod(mode)


@pytest.mark.parametrize("mode", [0o644, *(pytest.param(mode, marks=pytest.mark.long) for mode in (0o640, 0o604))])
def test_a_key_file_that_others_may_read_is_refused_with_the_command_that_mends_it(settings: Path, mode: int) -> None:
    """Unless a setting accepts it: orchestrators mount secrets so."""
    key_file = settings.parent / "cloudid.key"
    write_key(key_file, "ab" * 32, mode)
    failed = command(SERVERS[0], "--settings", str(settings))
    assert (failed.returncode, f"mode {mode:04o}" in failed.stderr) == (1, True)
    mend = failed.stderr.partition(": run ")[2].partition(", or")[0]
    assert mend == f"chmod 600 {key_file}"
    settings.write_text(settings.read_text() + "allow_shared_key_file = true\n")
    assert "not initialised" in command(SERVERS[0], "--settings", str(settings)).stderr
    settings.write_text(settings.read_text().replace("allow_shared_key_file = true\n", ""))
    subprocess.run(["sh", "-c", mend], check=True)
    assert "not initialised" in command(SERVERS[0], "--settings", str(settings)).stderr


def test_init_makes_no_key_beside_an_initialised_store(settings: Path) -> None:
    """The key was lost or not mounted: a new one would open nothing."""
    key_file = settings.parent / "cloudid.key"
    assert command(SERVERS[0], "init", "--settings", str(settings)).returncode == 0
    key_file.rename(settings.parent / "kept.key")
    for arguments in ((), ("--new-root-token",)):
        failed = command(SERVERS[0], "init", "--settings", str(settings), *arguments)
        assert (failed.returncode, failed.stdout) == (1, "")
    assert "restore it" in failed.stderr
    assert not key_file.exists()
    assert sorted(path.suffix for path in settings.parent.iterdir() if "new" in path.name) == []


@pytest.mark.parametrize("server", SERVERS)
def test_a_root_token_that_was_never_shown_is_replaced_with_the_key_file(server: str, settings: Path) -> None:
    """`init` cannot print it, says so, and says what to do; then everything goes on."""
    line = f"{sys.executable} -m {server} init --settings {settings} > /dev/full"
    failed = subprocess.run(["sh", "-c", line], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (failed.returncode, "run init --new-root-token" in failed.stderr) == (1, True)
    again = command(server, "init", "--settings", str(settings))
    assert (again.returncode, "its root token was never shown" in again.stderr) == (1, True)
    tokens = []
    for _ in range(2):
        shown = command(server, "init", "--settings", str(settings), "--new-root-token")
        assert (shown.returncode, shown.stderr) == (0, "")
        tokens.append(shown.stdout.strip().removeprefix("root token: "))
        assert "already initialised" in command(server, "init", "--settings", str(settings)).stderr
    with Running(server, "--settings", str(settings)) as running:
        for token in tokens:
            assert look_up_self(running.url, token)["policies"] == ["root"]


def test_a_root_token_takes_the_right_key(settings: Path) -> None:
    new_root_token = ("init", "--settings", str(settings), "--new-root-token")
    write_key(settings.parent / "cloudid.key", "ab" * 32)
    assert "not initialised" in command(SERVERS[0], *new_root_token).stderr
    assert command(SERVERS[0], "init", "--settings", str(settings)).returncode == 0
    write_key(settings.parent / "cloudid.key", "cd" * 32)
    failed = command(SERVERS[0], *new_root_token)
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "the master key does not open the key ring\ncause: " in failed.stderr
    assert "\nfix: Start the server with the right key file, which the setting `key_file` names.\n" in failed.stderr


def rekey(server: str, settings: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return command(server, "rekey", "--settings", str(settings), *arguments)


def test_rekey_over_a_database_that_is_away_says_that_and_nothing_else(settings: Path) -> None:
    settings.write_text(settings.read_text() + 'store = "postgresql://127.0.0.1:1/nothing"\n')
    write_key(settings.parent / "cloudid.key", "ab" * 32)
    failed = rekey(SERVERS[0], settings, "--new-key-file", str(settings.parent / "new.key"))
    assert failed.returncode == 1
    assert failed.stderr.startswith("error: the database cannot be used")
    assert len(failed.stderr.splitlines()) == 1, failed.stderr


def test_a_master_key_is_not_replaced_by_itself(settings: Path) -> None:
    assert command(SERVERS[0], "init", "--settings", str(settings)).returncode == 0
    failed = rekey(SERVERS[0], settings, "--new-key-file", str(settings.parent / "cloudid.key"))
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "this is already the master key of the settings" in failed.stderr


def test_a_store_is_not_copied_to_itself(settings: Path) -> None:
    assert command(SERVERS[0], "init", "--settings", str(settings)).returncode == 0
    other = settings.with_name("other.toml")
    other.write_text('[server]\nstore = "./cloudid.sqlite"\n')
    for target in (settings, other):
        failed = command(SERVERS[0], "copy-store", "--settings", str(settings), str(target))
        assert (failed.returncode, failed.stderr) == (1, "error: both settings files name the same store\n")


@pytest.mark.parametrize("server", SERVERS)
def test_the_master_key_is_changed_in_two_steps(server: str, settings: Path) -> None:
    """Both keys open the store in between; then only the new one does. The same command line can be run again."""
    token = command(server, "init", "--settings", str(settings)).stdout.strip().removeprefix("root token: ")
    new_key_file = settings.parent / "new.key"
    for _ in range(2):
        added = rekey(server, settings, "--new-key-file", str(new_key_file))
        assert (added.returncode, added.stderr) == (0, "")
        assert "rekey --finish" in added.stdout
    assert stat.S_IMODE(new_key_file.stat().st_mode) == 0o600
    renamed = settings.with_name("new.toml")
    renamed.write_text(settings.read_text() + 'key_file = "new.key"\n')
    for each in (settings, renamed):
        with Running(server, "--settings", str(each)) as running:
            assert look_up_self(running.url, token)["policies"] == ["root"]
    for _ in range(2):
        finished = rekey(server, renamed, "--finish")
        assert (finished.returncode, finished.stderr) == (0, "")
        assert finished.stdout.startswith(f"only the master key in {new_key_file} opens the store now;")
    for words in ((), ("check",)):
        refused = command(server, *words, "--settings", str(settings))
        assert (refused.returncode, "not open the key ring" in refused.stdout + refused.stderr) == (1, True)
    with Running(server, "--settings", str(renamed)) as running:
        assert look_up_self(running.url, token)["policies"] == ["root"]
        looked = command(server, "check", "--settings", str(renamed))
        assert (looked.returncode, "new.key; it opens" in looked.stdout) == (0, True), looked.stdout


def test_a_key_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """No part of it is left."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        with pytest.raises(SettingsError, match=rf"key file {tmp_path}/new\.key cannot be written: File too large"):
            master_key.make_file(tmp_path / "new.key")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(SettingsError, match=r"none/new\.key cannot be written: No such file"):
        master_key.make_file(tmp_path / "none/new.key")


def test_a_key_service_holds_the_master_key(settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command prints it; another command or a variable can take its place. No key file is made."""
    kept = settings.parent / "kept"
    write_key(kept, "ab" * 32)
    settings.write_text(settings.read_text() + f'master_key_command = "cat {kept}"\n')
    assert command(SERVERS[0], "init", "--settings", str(settings)).returncode == 0
    assert not (settings.parent / "cloudid.key").exists()
    monkeypatch.setenv("OTHER_KEY", "cd" * 32)
    other = settings.parent / "other"
    write_key(other, "cd" * 32)
    assert rekey(SERVERS[0], settings, "--new-key-variable", "OTHER_KEY").returncode == 0
    assert rekey(SERVERS[0], settings, "--new-key-command", f"cat {other}").returncode == 0
    write_key(kept, "cd" * 32)
    assert rekey(SERVERS[0], settings, "--finish").returncode == 0
    write_key(kept, "ab" * 32)
    assert "does not open the key ring" in command(SERVERS[0], "--settings", str(settings)).stderr


def test_systemd_hands_over_the_master_key(settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a credential, which goes before the key file and may have any mode. `init` makes no key file then."""
    folder = settings.parent / "credentials"
    folder.mkdir()
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(folder))
    write_key(folder / "cloudid.key", "ab" * 32)
    (folder / "cloudid.key").chmod(0o440)
    assert command(SERVERS[0], "init", "--settings", str(settings)).returncode == 0
    assert not (settings.parent / "cloudid.key").exists()
    write_key(settings.parent / "cloudid.key", "cd" * 32)
    again = command(SERVERS[0], "init", "--settings", str(settings), "--new-root-token")
    assert (again.returncode, again.stderr) == (0, "")
    (folder / "cloudid.key").unlink()
    assert "does not open the key ring" in command(SERVERS[0], "--settings", str(settings)).stderr


@pytest.mark.parametrize(
    "line, reason",
    [
        ("false", "failed with exit code 1"),
        ("no-such-command-anywhere", "cannot be run: No such file or directory"),
        ("echo hunter2", "the output of the command for the master key does not hold 64 hexadecimal digits"),
        ("echo 'unfinished", "cannot be run: ValueError"),
        (" ", "cannot be run: IndexError"),
    ],
)
def test_a_command_that_gives_no_key_is_explained(settings: Path, line: str, reason: str) -> None:
    settings.write_text(settings.read_text() + f'master_key_command = "{line}"\n')
    failed = command(SERVERS[0], "init", "--settings", str(settings))
    assert (failed.returncode, failed.stdout) == (1, "")
    assert reason in failed.stderr
    assert "hunter2" not in failed.stderr


def test_a_command_for_the_key_gets_no_secret_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """It prints the digits of the key, and then every variable that it must not have: the key would be too long."""
    monkeypatch.setenv("CLOUD_CLIENT_SECRET", "canary")
    monkeypatch.setenv("PGPASSWORD", "canary")
    key = master_key.from_command(f"sh -c 'echo {'5a' * 32}; env | grep canary || true'")
    assert key.reveal() == "5a" * 32


@pytest.mark.parametrize("server", SERVERS)
def test_an_interrupted_command_ends_without_a_traceback(server: str, settings: Path) -> None:
    marker = settings.parent / "begun"
    key_command = f"sh -c 'touch {marker}; exec sleep 600'"
    settings.write_text(settings.read_text() + f'master_key_command = "{key_command}"\n')
    arguments = [sys.executable, "-m", server, "rekey", "--finish", "--settings", str(settings)]
    log = settings.parent / "log"
    # No pipe: a command that is interrupted while it starts another may leave that behind, which would hold it.
    with log.open("w") as stderr, subprocess.Popen(arguments, cwd=ROOT, stderr=stderr) as process:
        wait_until(lambda: process.poll() is not None or marker.exists())
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE)
    assert (process.returncode, log.read_text()) == (130, "")


@pytest.mark.parametrize("kind", [KeyboardInterrupt, lambda: BaseExceptionGroup("trio", [KeyboardInterrupt()])])
def test_ctrl_c_is_an_exit_code_whichever_runtime_raises_it(kind: Callable[[], BaseException]) -> None:
    def work() -> int:
        raise kind()

    assert until_interrupted(work) == 130
    assert until_interrupted(lambda: 1) == 1


@pytest.mark.parametrize(
    "words, expected",
    [
        (
            ["serve", "--dev", "--root-token", "t", "--listen", "[::1]:0"],
            {"root_token": Secret("t"), "listen": "[::1]:0"},
        ),
        (
            ["serve", "--settings", "a.toml", "--provider", "http://p"],
            {"settings": Path("a.toml"), "provider": "http://p"},
        ),
        (["serve", "--settings", "a.toml"], {"workers": 1, "listen": "", "is_dev": False}),
        (["init", "--settings", "a.toml"], {"settings": Path("a.toml"), "new_root_token": False}),
        (["init", "--new-root-token", "--settings", "a.toml"], {"new_root_token": True}),
        (["backup", "--settings", "a.toml", "copy"], {"settings": Path("a.toml"), "target": Path("copy")}),
        (["compact", "--settings", "a.toml"], {"settings": Path("a.toml")}),
        (["copy-store", "--settings", "a.toml", "b.toml"], {"target": Path("b.toml")}),
        (["rekey", "--settings", "a.toml", "--new-key-file", "b"], {"new_key_file": Path("b"), "finish": False}),
        (["rekey", "--settings", "a.toml", "--finish"], {"new_key_file": None, "finish": True}),
    ],
)
def test_options_are_read(words: list[str], expected: dict[str, Any]) -> None:
    [command] = [command for command in (*COMMANDS, commands.dev) if command.name == words[0]]
    read = command.make_context(words[0], words[1:]).params
    assert {name: read[name] for name in expected} == expected


@pytest.mark.parametrize(
    "arguments, reason",
    [
        ([], "there is no cloudid.toml here; to try cloudid, run cloudid dev"),
        (["init"], "--settings FILE is required, because CLOUDID_SETTINGS is not set"),
        (["init", "--dev", "--settings", "a.toml"], "No such option '--dev'"),
        (["backup", "copy"], "--settings FILE is required, because CLOUDID_SETTINGS is not set"),
        (["backup", "--settings", "a.toml"], "Missing argument 'TARGET'"),
        (["rekey", "--settings", "a.toml"], "give one of --new-key-file, --new-key-variable"),
        (["rekey", "--settings", "a.toml", "--finish", "--new-key-file", "b"], "give one of --new-key-file"),
        (["rekey", "--settings", "a.toml", "--finish", "--new-key-variable", ""], "give one of --new-key-file"),
        (["--settings", "a.toml", "--root-token", "t"], "--root-token is for --dev only"),
        (["--dev", "--workers", "2"], "--workers needs a shared store"),
        (["--settings", "a.toml", "--workers", "65"], "65 is not in the range 1<=x<=64"),
        (["--dev", "--listen", "here"], "here is not HOST:PORT"),
        (["--dev", "--provider", "127.0.0.1:8400"], "127.0.0.1:8400 must be a URL such as http://HOST:PORT"),
        (["--settings", "a.toml", "--provider", ""], "must be a URL such as http://HOST:PORT"),
        (["--settings", "a.toml", "stop"], "Got unexpected extra argument (stop)"),
    ],
)
def test_options_that_make_no_sense_are_explained(
    arguments: list[str], reason: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["server", *arguments])
    assert main("trio_server", commands.Server(serve=unreachable, open_host=open_host, run=unreachable)) == 2
    stderr = capfd.readouterr().err
    assert reason in stderr
    assert stderr.count("\n") == 1


def unreachable(*given: object) -> None:
    raise AssertionError("it must not come to that")


def test_a_key_of_an_empty_name_does_not_finish_the_change(settings: Path) -> None:
    assert command(SERVERS[0], "init", "--settings", str(settings)).returncode == 0
    for option in ("--new-key-variable", "--new-key-command"):
        failed = rekey(SERVERS[0], settings, option, "")
        assert (failed.returncode, failed.stdout, "a bug" in failed.stderr) == (1, "", False)


def test_a_server_that_runs_has_no_master_key_in_its_environment(
    settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs that it starts would inherit the key."""
    monkeypatch.setenv(MASTER_KEY_VARIABLE, "5a" * 32)
    settings.write_text(settings.read_text().replace("key_file", "# key_file"))
    assert command(SERVERS[0], "init", "--settings", str(settings)).returncode == 0
    environments: list[dict[str, str]] = []
    server = commands.Server(lambda setup: environments.append(dict(os.environ)), open_host, trio.run)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)}
    try:
        commands._serve(Options(settings=settings), server)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert [MASTER_KEY_VARIABLE in environment for environment in environments] == [False]


def test_an_embedded_service_leaves_the_master_key_to_its_application(
    settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MASTER_KEY_VARIABLE, "5a" * 32)
    assert command(SERVERS[0], "init", "--settings", str(settings)).returncode == 0
    for _ in range(2):  # an application may open it again
        with set_up(Options(settings=settings)):
            assert os.environ[MASTER_KEY_VARIABLE] == "5a" * 32


def test_settings_are_found_by_a_variable_and_then_here(
    settings: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def check() -> tuple[int, str]:
        code = run(cloudid, PROGRAM, ["check"])
        return code, "".join(capfd.readouterr())

    monkeypatch.delenv("CLOUDID_SETTINGS", raising=False)
    empty = settings.parent / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    assert check() == (
        2,
        "error: --settings FILE is required, because CLOUDID_SETTINGS is not set and there is no cloudid.toml here; "
        "see cloudid check --help\n",
    )
    monkeypatch.setenv("CLOUDID_SETTINGS", str(settings))
    assert str(settings) in check()[1]
    monkeypatch.delenv("CLOUDID_SETTINGS")
    monkeypatch.chdir(settings.parent)
    assert " cloudid.toml" in check()[1]
    for words in (["serve", "--workers", "2"], ["backup", "copy"]):
        assert run(cloudid, PROGRAM, words) == 1  # and not 2: the settings were found
        assert "cloudid" in capfd.readouterr().err


def test_settings_here_that_others_may_write_have_to_be_named(
    settings: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """They name programs that are run: in a folder for everybody, anybody could leave them."""
    monkeypatch.delenv("CLOUDID_SETTINGS", raising=False)
    monkeypatch.chdir(settings.parent)
    settings.chmod(0o666)
    assert run(cloudid, PROGRAM, ["check"]) == 1
    assert "to use it, name it with --settings" in capfd.readouterr().err
    run(cloudid, PROGRAM, ["check", "--settings", "cloudid.toml"])
    assert "cloudid.toml" in capfd.readouterr().out


def test_commands_on_a_store_print_json_where_it_is_asked_for(settings: Path) -> None:
    store, copy = settings.parent / "cloudid.sqlite", settings.parent / "copy.sqlite"
    given = ("--settings", str(settings), "--json")
    made = json.loads(command("cloudid_servers.trio_server", "init", *given).stdout)
    assert {*made} == {"root_token"}
    copied = json.loads(command("cloudid_servers.trio_server", "backup", *given, str(copy)).stdout)
    assert (copied["target"], copied["bytes"]) == (str(copy), copy.stat().st_size)
    compacted = json.loads(command("cloudid_servers.trio_server", "compact", *given).stdout)
    assert compacted["bytes_after"] == store.stat().st_size
    refused = json.loads(command("cloudid_servers.trio_server", "init", *given).stderr)
    assert "already initialised" in refused["errors"][0]
