"""Commands that run with something lent: it is given back however they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cloudid_servers.client import run_command
from cloudid_servers.client.commands import NoSuchCommand

from ..running import PATIENCE, ROOT, wait_until

PROGRAM = """
import os, signal, sys
for stop in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(stop, signal.SIG_DFL)  # a shell cannot trap what was ignored when it began, as in a background job
from cloudid_servers.client import run_command
sys.exit(run_command(sys.argv[1:], os.environ, lambda: print("given back", flush=True)))
"""


def run(*command: str) -> tuple[int, list[str]]:
    back: list[str] = []
    return run_command(command, os.environ, lambda: back.append("given back")), back


def test_the_exit_code_is_the_commands() -> None:
    assert run("true") == (0, ["given back"])
    assert run("sh", "-c", "exit 7") == (7, ["given back"])
    assert run("sh", "-c", "kill -9 $$") == (128 + signal.SIGKILL, ["given back"])


def test_a_command_that_is_not_there_gives_back_too() -> None:
    back: list[str] = []
    for command in ("/nowhere/at/all", str(ROOT)):
        with pytest.raises(NoSuchCommand):
            run_command([command], os.environ, lambda: back.append("given back"))
    assert back == ["given back"] * 2


def test_an_end_that_another_thread_was_told_of_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    class ToldAnother(subprocess.Popen[bytes]):
        looked = False

        def poll(self) -> int | None:
            if self.looked:
                return super().poll()
            self.looked = True
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            signal.sigtimedwait({signal.SIGCHLD}, 0)  # unless another thread was told of it indeed
            return None

    monkeypatch.setattr(subprocess, "Popen", ToldAnother)
    assert run("sh", "-c", "exit 7") == (7, ["given back"])


def test_signals_are_as_before_for_both() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    shown = [sys.executable, "-c", "import signal, sys; sys.exit(len(signal.pthread_sigmask(signal.SIG_BLOCK, ())))"]
    assert run(*shown)[0] == len(before)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
    assert threading.active_count() >= 1


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("handled", [True, False])
def test_a_signal_goes_to_the_command_and_then_it_is_given_back(
    tmp_path: Path, stop: signal.Signals, handled: bool
) -> None:
    trap = f"trap 'echo told; exit 3' {stop.name.removeprefix('SIG')};" if handled else ""
    command = ["sh", "-c", f"{trap} touch {tmp_path}/begun; while :; do sleep 0.05; done"]
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *command], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        wait_until((tmp_path / "begun").exists)
        process.send_signal(stop)
        told, _ = process.communicate(timeout=PATIENCE)
    assert told == ("told\ngiven back\n" if handled else "given back\n")
    assert process.returncode == (3 if handled else 128 + stop)
