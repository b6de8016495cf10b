"""Commands that run a server: which one, what they need, and a server from its start to its end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ..running import PATIENCE, ROOT, Running, finished

pytestmark = pytest.mark.one_server


def without(packages: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A module of the servers, as its first argument, where some packages are not installed."""
    code = (
        "import runpy, sys\n"
        f"missing = {packages.split()!r}\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in missing:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "module, *sys.argv[1:] = sys.argv[1:]\n"
        "runpy.run_module(f'cloudid_servers.{module}', run_name='__main__')\n"
    )
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)


@pytest.mark.parametrize(
    "packages, arguments, extra",
    [
        ("click", ["cli", "--version"], "server"),
        ("click", ["trio_server", "--dev"], "server"),
        ("click", ["role_tests", "a"], "server"),
        ("click", ["audit", "verify", "a"], "server"),
        ("click", ["provider_simulator"], "server"),
        ("structlog", ["aiohttp_server", "--dev"], "server"),
        ("structlog", ["cli", "serve", "--settings", "a"], "server"),
        ("trio", ["trio_server", "--dev"], "trio"),
        ("httpcore", ["trio_server", "--dev"], "trio"),
        ("aiohttp", ["aiohttp_server", "--dev"], "aiohttp"),
        ("trio", ["cli", "dev", "--server", "trio"], "trio"),
        ("trio aiohttp", ["cli", "dev"], "server"),
    ],
)
def test_a_missing_extra_is_named_in_one_line(packages: str, arguments: list[str], extra: str) -> None:
    ended = without(packages, *arguments)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.endswith(f"pip install 'cloudid[{extra}]'\n")
    assert ended.stderr.count("\n") == 1


def test_a_store_in_a_database_names_its_extra(tmp_path: Path) -> None:
    settings = tmp_path / "cloudid.toml"
    settings.write_text('[server]\nstore = "postgresql://h/d"\n')
    (tmp_path / "cloudid.key").write_text("ab" * 32)
    (tmp_path / "cloudid.key").chmod(0o600)
    ended = without("psycopg", "cli", "serve", "--settings", str(settings))
    assert (ended.returncode, ended.stderr) == (
        1,
        "error: a store in PostgreSQL needs libpq: pip install 'cloudid[postgres]'\n",
    )


def test_tracing_names_its_extra(tmp_path: Path) -> None:
    settings = tmp_path / "cloudid.toml"
    settings.write_text('[server]\nlisten = "127.0.0.1:0"\ntracing = true\n')
    ended = without("opentelemetry", "cli", "dev", "--settings", str(settings))
    line = "error: [server] \"tracing\" needs OpenTelemetry: pip install 'cloudid[otel]'"
    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (1, line)


def test_commands_without_a_server_need_none(tmp_path: Path) -> None:
    settings = tmp_path / "cloudid.toml"
    settings.write_text("")
    assert finished("cloudid_servers.cli", "init", "--settings", str(settings)).returncode == 0
    ended = without("trio aiohttp", "cli", "backup", "--settings", str(settings), str(tmp_path / "copy"))
    assert (ended.returncode, (tmp_path / "copy").exists()) == (0, True), ended.stderr


def test_the_other_server_is_used_where_one_is_missing(tmp_path: Path) -> None:
    settings = tmp_path / "cloudid.toml"
    settings.write_text("")
    ended = without("trio", "cli", "init", "--settings", str(settings))
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("root token: ")


@pytest.mark.parametrize("server", ["trio", "aiohttp"])
def test_a_store_is_prepared_checked_and_served(server: str, tmp_path: Path) -> None:
    settings = tmp_path / "cloudid.toml"
    settings.write_text('[server]\nlisten = "127.0.0.1:0"\n')
    assert finished("cloudid_servers.cli", "init", "--settings", str(settings)).stdout.startswith("root token: ")
    assert finished("cloudid_servers.cli", "check", "--settings", str(settings)).returncode == 0
    with Running("cloudid_servers.cli", "serve", "--server", server, "--settings", str(settings)) as running:
        assert running.introduction == []
        backed_up = finished(
            "cloudid_servers.cli", "backup", "--settings", str(settings), str(tmp_path / "copy.sqlite")
        )
        assert (backed_up.returncode, backed_up.stderr) == (0, "")
        assert f"to {tmp_path / 'copy.sqlite'}: " in backed_up.stdout
        assert running.stop()[0] == 0
