"""What is forked from a process that has made the imports is as one that an interpreter of its own runs."""

from __future__ import annotations

import json
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from .running import PATIENCE, start

SHOWS_ITSELF = """
import json, os, signal, sys
print(json.dumps({
    "name": __name__,
    "arguments": sys.argv[1:],
    "folder": os.getcwd(),
    "path": sys.path[0],
    "environment": {**os.environ},
    "descriptors": sorted(number for number in range(99) if os.path.exists(f"/proc/self/fd/{number}")),
    "handlers": {name: str(signal.getsignal(signal.Signals[name])) for name in ("SIGINT", "SIGCHLD", "SIGTERM")},
    "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "threads": len(os.listdir("/proc/self/task")),
    "main": sys.modules["__main__"].__dict__ is globals(),
}))
print("a complaint", file=sys.stderr)
if sys.argv[1] == "dies":
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGKILL)
sys.exit(7)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere each has an interpreter of its own")
@pytest.mark.parametrize(("what", "code"), [("ends", 7), ("dies", -signal.SIGKILL)])
def test_what_is_forked_finds_what_a_program_finds(what: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "shows_itself.py").write_text(SHOWS_ITSELF)

    def shown(python: Path | None) -> tuple[Any, str]:
        with tempfile.TemporaryFile("w+") as stdout, tempfile.TemporaryFile("w+") as stderr:
            process = start(
                "shows_itself",
                *(what, "a word"),
                stdout=stdout,
                stderr=stderr,
                folder=tmp_path,
                environment={"GIVEN": "a value"},
                python=python,
            )
            assert (process.wait(PATIENCE), process.poll(), process.returncode) == (code, code, code)
            process.kill()  # it is gone: nobody else is
            stdout.seek(0)
            stderr.seek(0)
            return json.load(stdout), stderr.read()

    assert shown(None) == shown(Path(sys.executable))


def test_a_program_that_goes_on_has_no_end_yet(tmp_path: Path) -> None:
    (tmp_path / "waits.py").write_text("import time\ntime.sleep(999)\n")
    with tempfile.TemporaryFile("w+") as nothing:
        process = start("waits", stdout=nothing, stderr=nothing, folder=tmp_path)
        try:
            assert process.poll() is None
            process.terminate()
            assert process.wait(PATIENCE) == -signal.SIGTERM
        finally:
            process.kill()
