"""What a person sees while a command waits, and what Ctrl-C says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from cloudid_servers.cli.connection import what_continues

from ..running import PATIENCE, ROOT


class _Slow(BaseHTTPRequestHandler):
    """Answers when the test lets it; before, it asks for another try as often as the test says."""

    may_answer: ClassVar[threading.Event]
    refusals: ClassVar[list[int]]

    def do_GET(self) -> None:
        if self.refusals:
            body = json.dumps({"errors": ["later"], "codes": ["provider_throttled"]}).encode()
            self.send_response(self.refusals.pop())
            self.send_header("retry-after", "2")
        else:
            self.may_answer.wait(PATIENCE)
            body = json.dumps({"data": {"ok": True}}).encode()
            self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        with suppress(OSError):
            self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def slow() -> Iterator[str]:
    _Slow.may_answer, _Slow.refusals = threading.Event(), []
    with ThreadingHTTPServer(("127.0.0.1", 0), _Slow) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        _Slow.may_answer.set()
        server.shutdown()
        thread.join()


class Terminal:
    """A command on a terminal, whose standard output is a pipe."""

    def __init__(self, process: subprocess.Popen[str], ours: int) -> None:
        self.process, self._ours, self.shown = process, ours, ""

    def until(self, text: str) -> None:
        while text not in self.shown:
            chunk = os.read(self._ours, 1 << 16)
            assert chunk, self.shown
            self.shown += chunk.decode()

    def rest(self) -> str:
        with suppress(OSError):  # on Linux a terminal ends so
            while chunk := os.read(self._ours, 1 << 16):
                self.shown += chunk.decode()
        return self.shown


@contextmanager
def on_terminal(url: str, home: Path, *words: str) -> Iterator[Terminal]:
    ours, theirs = os.openpty()
    line = [sys.executable, "-m", "cloudid_servers.cli", *words, "--address", url]
    environment = {"HOME": str(home), "VAULT_TOKEN": "token", "PATH": os.environ["PATH"]}
    with subprocess.Popen(
        line, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs, text=True
    ) as process:
        os.close(theirs)
        yield Terminal(process, ours)
        process.wait(PATIENCE)
    os.close(ours)


def test_a_wait_shows_what_for_how_long_and_which_try(slow: str, tmp_path: Path) -> None:
    _Slow.refusals = [503]
    with on_terminal(slow, tmp_path, "read", "cloud/creds/reader") as terminal:
        terminal.until(f"waiting for cloud/creds/reader at {slow}: ")
        terminal.until("try 2 of 3 after 2 s: it answered 503")
        terminal.until("(try 2 of 3); Ctrl-C stops waiting")
        _Slow.may_answer.set()
        out, _ = terminal.process.communicate(timeout=PATIENCE)
        assert terminal.rest().endswith("\r\033[K"), "the line is gone when the answer is here"
    assert json.loads(out)["data"] == {"ok": True}


def test_ctrl_c_says_what_continues_at_the_service(slow: str, tmp_path: Path) -> None:
    with on_terminal(slow, tmp_path, "creds", "reader", "--tenant", "t") as terminal:
        terminal.until("waiting for cloud/creds/reader")
        terminal.process.send_signal(signal.SIGINT)
        terminal.process.wait(PATIENCE)
        shown = terminal.rest()
    assert terminal.process.returncode == 130
    assert "the service revokes what it created for cloud/creds/reader, because no one received it" in shown


@pytest.mark.parametrize(
    "method, path, begin",
    [
        ("POST", "auth/cloud/login", "the service revokes what it created for auth/cloud/login"),
        ("GET", "cloud/token/web", "the service revokes what it created"),
        ("POST", "sys/leases/revoke", "the service continues to revoke"),
        ("GET", "sys/mounts", "the service was only reading"),
        ("POST", "cloud/config", "the service may still make the change: check with cloudid read cloud/config"),
    ],
)
def test_what_continues_depends_on_the_request(method: str, path: str, begin: str) -> None:
    assert what_continues(method, path).startswith(begin)


def test_in_a_pipe_nothing_is_shown_of_a_wait(slow: str, tmp_path: Path) -> None:
    line = [sys.executable, "-m", "cloudid_servers.cli", "read", "sys/mounts", "--address", slow]
    environment = {"HOME": str(tmp_path), "VAULT_TOKEN": "token", "PATH": os.environ["PATH"]}
    _Slow.refusals = [503]
    _Slow.may_answer.set()
    done = subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
