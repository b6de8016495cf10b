"""Logs: JSON lines, and no secrets in them."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from structlog.typing import FilteringBoundLogger

from cloudid_core.errors import ProviderUnreachable
from cloudid_core.events import Problem, RequestAnswered, RequestReceived
from cloudid_core.values.secret import Secret
from cloudid_servers.logs import logs
from cloudid_servers.logs.logs import EventLog, LogFile, LogLevel, adopt_libraries, describe_error, open_log
from cloudid_servers.machine import streams
from cloudid_servers.machine.streams import LOOK_EVERY
from tests.servers.running import SERVERS, Running, initialise
from tests.waiting import PATIENT


class LogOfATest:
    """A log in a file."""

    def __init__(self, path: Path, level: LogLevel | str = "info") -> None:
        self._path = path
        self.descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
        self.log: FilteringBoundLogger = open_log(level, self.descriptor)

    @property
    def text(self) -> str:
        return self._path.read_text()

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines() if line]


def failed() -> ValueError:
    secret = "hunter2"
    try:
        raise ValueError(secret)
    except ValueError as error:
        return error


def test_events_are_lines_of_json_of_some_importance(tmp_path: Path) -> None:
    log = LogOfATest(tmp_path / "log", "warning")
    log.log.info("quiet")
    log.log.warning("loud", path="/v1/\n")
    [line] = log.lines
    assert (line["event"], line["level"], line["path"]) == ("loud", "warning", "/v1/\n")
    assert line["timestamp"].endswith("Z")
    os.close(log.descriptor)


def test_the_level_of_an_open_log_can_be_changed(tmp_path: Path) -> None:
    level = LogLevel("warning")
    log = LogOfATest(tmp_path / "log", level)
    for name in ("warning", "debug", "error"):
        level.name = name
        log.log.debug("debug", at=name)
        log.log.info("info", at=name)
    assert [(line["event"], line["at"]) for line in log.lines] == [("debug", "debug"), ("info", "debug")]
    os.close(log.descriptor)


RECEIVED = RequestReceived(request_id="1", time=0.0, operation="read", path="sys/health", mount_accessor="system_0")
ANSWERED = RequestAnswered(
    request_id="1", time=0.0, status=500, path="sys/health", problem=Problem("ValueError", where=("a.py:1 f",))
)


def test_a_request_is_logged_by_its_answer(tmp_path: Path) -> None:
    log = LogOfATest(tmp_path / "log")
    log_event = EventLog(LogFile("info", log.descriptor))
    log_event(RECEIVED)
    log_event(ANSWERED)
    [line] = log.lines
    assert (line["event"], line["level"], line["status"]) == ("request", "warning", 500)
    assert (line["error"], line["where"]) == ("ValueError", ["a.py:1 f"])
    assert line["ms"] > 0
    assert not {"type", "time", "problem"} & line.keys()
    os.close(log.descriptor)


def test_the_beginning_of_a_request_is_for_a_log_of_everything(tmp_path: Path) -> None:
    log = LogOfATest(tmp_path / "log")
    EventLog(LogFile("debug", log.descriptor))(RECEIVED)
    [line] = log.lines
    assert (line["event"], line["level"]) == ("request received", "debug")
    os.close(log.descriptor)


def test_the_time_of_a_line_is_now_in_utc(tmp_path: Path) -> None:
    log = LogOfATest(tmp_path / "log")
    before = datetime.now(UTC)
    log.log.info("now")
    [line] = log.lines
    assert before - timedelta(seconds=0.1) < datetime.fromisoformat(line["timestamp"]) < datetime.now(UTC)
    os.close(log.descriptor)


def test_a_log_on_a_full_disk_loses_lines_and_nothing_else() -> None:
    """/dev/full answers each write with "no space left on device"."""
    full = os.open("/dev/full", os.O_WRONLY)
    open_log("info", full).error("lost")
    os.close(full)


def test_a_log_into_a_broken_pipe_loses_lines_and_nothing_else() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    open_log("info", writing).error("lost")
    os.close(writing)


def test_a_log_that_nobody_reads_loses_lines_and_does_not_wait_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pipe is full because its reader hangs. A reader that comes back finds whole lines."""
    reading, writing = os.pipe()
    log = open_log("info", writing)
    waits: list[float] = []
    is_writable = streams.is_writable

    def waiting(descriptor: int, patience: float) -> bool:
        waits.append(patience)
        return is_writable(descriptor, patience)

    monkeypatch.setattr(streams, "is_writable", waiting)
    for number in range(2000):
        log.info("line", number=number, text="x" * 200)
    full = waits.index(0.0)
    assert waits == [logs.PATIENCE] * full + [0.0] * (2000 - full)
    received = b""
    while len(received) < 40_000:
        received += os.read(reading, 1000)
    log.info("back")
    os.close(writing)
    with os.fdopen(reading, "rb") as rest:
        received += rest.read()
    found = [json.loads(line) for line in received.splitlines() if line]
    *read, back = found
    assert [line["number"] for line in read] == list(range(len(read)))
    assert back["lost_lines"] == 2000 - len(read)


def test_a_log_that_can_be_written_again_says_how_many_lines_were_lost(tmp_path: Path) -> None:
    log = LogOfATest(tmp_path / "log")
    full, kept = os.open("/dev/full", os.O_WRONLY), os.dup(log.descriptor)
    os.dup2(full, log.descriptor)
    for _ in range(3):
        log.log.info("lost")
    os.dup2(kept, log.descriptor)
    log.log.info("back")
    log.log.info("again")
    assert [(line["event"], line.get("lost_lines")) for line in log.lines] == [("back", 3), ("again", None)]
    for descriptor in (full, kept, log.descriptor):
        os.close(descriptor)


@pytest.mark.parametrize("is_moved", [True, False])
def test_a_log_that_was_moved_or_removed_is_begun_anew_at_its_path(tmp_path: Path, is_moved: bool) -> None:
    log, old = LogOfATest(tmp_path / "log"), tmp_path / "log.1"
    os.fchmod(log.descriptor, 0o640)
    log.log.info("before")
    (tmp_path / "log").rename(old)
    if not is_moved:
        old.unlink()
    time.sleep(LOOK_EVERY)
    log.log.info("after")
    assert [line["event"] for line in log.lines] == ["after"]
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o640
    if is_moved:
        assert [json.loads(line)["event"] for line in old.read_text().splitlines()] == ["before"]
    os.close(log.descriptor)


def test_ten_rotations_of_a_log_leave_no_descriptor_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "LOOK_EVERY", 0.0)
    log = LogOfATest(tmp_path / "log")
    log.log.info("before")
    before = sorted(os.listdir("/proc/self/fd"))
    for number in range(10):
        (tmp_path / "log").rename(tmp_path / f"log.{number}")
        log.log.info("after")
        assert [line["event"] for line in log.lines] == ["after"]
    assert sorted(os.listdir("/proc/self/fd")) == before
    os.close(log.descriptor)


def test_a_log_that_somebody_replaced_goes_on_in_the_new_file(tmp_path: Path) -> None:
    log = LogOfATest(tmp_path / "log")
    log.log.info("before")
    (tmp_path / "new").write_text('{"event": "theirs"}\n')
    (tmp_path / "new").rename(tmp_path / "log")
    time.sleep(LOOK_EVERY)
    log.log.info("after")
    assert [line["event"] for line in log.lines] == ["theirs", "after"]
    os.close(log.descriptor)


def test_a_log_does_not_follow_a_link_at_its_path(tmp_path: Path) -> None:
    log, other = LogOfATest(tmp_path / "log"), tmp_path / "other"
    log.log.info("before")
    (tmp_path / "log").rename(tmp_path / "log.1")
    other.write_text("precious")
    (tmp_path / "log").symlink_to(other)
    time.sleep(LOOK_EVERY)
    log.log.info("after")
    assert other.read_text() == "precious"
    assert "after" in (tmp_path / "log.1").read_text()
    os.close(log.descriptor)


def test_lines_of_a_log_whose_folder_is_gone_are_lost_and_counted(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    log = LogOfATest(folder / "log")
    log.log.info("before")
    (folder / "log").unlink()
    folder.rmdir()
    time.sleep(LOOK_EVERY)
    log.log.info("lost")
    log.log.info("lost too")
    folder.mkdir()
    log.log.info("after")
    assert [(line["event"], line["lost_lines"]) for line in log.lines] == [("after", 2)]
    os.close(log.descriptor)


def test_of_an_error_kind_and_place_are_logged_but_not_its_text() -> None:
    facts = describe_error(failed())
    assert facts["error"] == "ValueError"
    assert facts["where"][0].endswith(" failed")
    assert "hunter2" not in json.dumps(facts)


def test_our_own_errors_have_texts_for_the_log() -> None:
    assert describe_error(ProviderUnreachable("no answer", sent=True)) == {
        "error": "ProviderUnreachable",
        "reason": "no answer",
    }


@pytest.fixture
def _root_logger() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level, hook = root.handlers[:], root.level, sys.unraisablehook
    yield
    root.handlers[:], root.level, sys.unraisablehook = handlers, level, hook


@pytest.mark.usefixtures("_root_logger")
def test_what_libraries_log_is_logged_without_their_words(tmp_path: Path) -> None:
    log = LogOfATest(tmp_path / "log")
    adopt_libraries(log.log)
    library = logging.getLogger("library.of.others")
    library.info("GET /?token=hunter2")
    library.error("hunter2", exc_info=failed())
    library.log(35, "a level of its own")
    first, second = log.lines
    assert (first["logger"], first["level"], first["error"]) == ("library.of.others", "error", "ValueError")
    assert (second["logger"], second["level"]) == ("library.of.others", "warning")
    assert "hunter2" not in log.text
    os.close(log.descriptor)


@pytest.mark.usefixtures("_root_logger")
def test_an_error_that_python_can_raise_nowhere_is_a_line_of_the_log(tmp_path: Path) -> None:
    class Broken:
        def __del__(self) -> None:
            raise ValueError("hunter2")

    log = LogOfATest(tmp_path / "log")
    adopt_libraries(log.log)
    broken = Broken()
    del broken
    [line] = log.lines
    assert (line["event"], line["error"]) == ("unraisable error", "ValueError")
    assert "hunter2" not in log.text
    os.close(log.descriptor)


def test_a_stream_whose_file_is_rotated_keeps_no_old_file_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "LOOK_EVERY", 0.0)
    path = tmp_path / "log"
    descriptor = os.open(path, streams.APPENDING, 0o600)
    try:
        followed = streams.FollowedPath(descriptor)
        before = len(os.listdir("/proc/self/fd"))
        for number in range(10):
            path.rename(tmp_path / f"log.{number}")
            assert followed.is_there()
            assert path.exists()
        assert len(os.listdir("/proc/self/fd")) == before
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("name", SERVERS)
def test_requests_to_the_page_are_logged_as_others_without_query_and_token(name: str, tmp_path: Path) -> None:
    settings, token = tmp_path / "cloudid.toml", f"cs.{'x' * 24}"
    settings.write_text(
        '[server]\nlisten = "127.0.0.1:0"\nui = true\nstore = "store.sqlite"\nkey_file = "key"\nlog_level = "info"\n'
    )
    initialise(name, settings)
    with Running(f"cloudid_servers.{name}", "--settings", str(settings)) as server:
        for method, path in (("GET", "/ui/"), ("POST", "/ui/"), ("GET", f"/ui/{token}?a=b"), ("GET", "/uix")):
            httpx.request(method, f"{server.url}{path}", **PATIENT)
        code, text = server.stop()
    assert code == 0
    lines = [json.loads(line) for line in text.splitlines()]
    logged = [
        (line["operation"], line["path"], line["status"], line["remote_address"])
        for line in lines
        if line["event"] == "request" and line.get("path", "").startswith("/ui/")
    ]
    assert logged == [
        ("read", "/ui/", 200, "127.0.0.1"),
        ("update", "/ui/", 405, "127.0.0.1"),
        ("read", f"/ui/{Secret.MASK}", 404, "127.0.0.1"),
    ]
    ids = {line["request_id"] for line in lines if line["event"] == "request"}
    assert len(ids) == 4
    assert token not in text
