"""Both servers answer every case of `raw_cases` as the table says, and alike."""

from __future__ import annotations

import json
import re
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from attrs import frozen

from cloudid_servers.provider_simulator import Simulator, start
from tests.servers.running import Running

from .raw_cases import CASES, REFUSALS, TOKEN, Case, answered, finished, get

RUNTIMES: Final = ("trio", "aiohttp")
SETTINGS: Final = '[server]\nhead_timeout = "2s"\nbody_timeout = "2s"\nlog_level = "error"\n'
PATIENCE: Final = 6.0
"""Seconds to wait for an answer; longer than the timeouts above."""

PAUSE: Final = 0.001
"""Seconds between two pieces, so that they arrive apart."""

NO_CONTENT: Final = (204, 304)
VARIABLE: Final = re.compile(
    rb"date: [^\r]+|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|"
    rb'"server_time_utc":\s?\d+|"(cluster_\w+|node_\w+)":\s?"[^"]*"|"store_latency_ms":\s?\d+'
)
"""What differs between two answers to the same request: times and ids."""

DATE: Final = re.compile(rb"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT")

DEVIATIONS: Final[dict[str, str]] = {}
"""Cases that fail today, and where: at a server, or because both do not answer alike.

`sometimes`: it depends on which of two events the server sees first. A repair removes its row; a row too many fails.
"""


@frozen
class Answer:
    """One answer, taken apart."""

    status: int
    head: bytes
    body: bytes

    @property
    def fields(self) -> list[tuple[bytes, bytes]]:
        lines = self.head.split(b"\r\n")[1:]
        return [(name.lower(), value.strip()) for name, _, value in (line.partition(b":") for line in lines)]

    def values(self, name: bytes) -> list[bytes]:
        return [value for found, value in self.fields if found == name]

    @property
    def says_close(self) -> bool:
        return self.values(b"connection") == [b"close"]

    @property
    def stable(self) -> bytes:
        """The bytes that must be the same on both servers."""
        return VARIABLE.sub(b"", self.head) + b"\r\n\r\n" + VARIABLE.sub(b"", self.body)


@frozen
class Transcript:
    """Everything that came back on one connection."""

    answers: tuple[Answer, ...]
    is_closed: bool
    """Whether the server has ended the connection; otherwise it has answered one more request on it."""

    problem: str = ""
    """What ended the reading too early."""


class Unreadable(Exception):
    """What came back is no answer."""


class Reader:
    """Reads the answers on a connection, strictly."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._unread = b""

    def next(self, *, to_head: bool) -> Answer | None:
        """The next answer; None once the server has closed the connection between two answers."""
        while b"\r\n\r\n" not in self._unread:
            if not self._receive():
                if self._unread:
                    raise Unreadable(f"the connection ended within an answer: {self._unread[:200]!r}")
                return None
        head, _, self._unread = self._unread.partition(b"\r\n\r\n")
        found = re.fullmatch(rb"HTTP/1\.1 (\d{3}) [ -~]*", head.partition(b"\r\n")[0])
        if found is None:
            raise Unreadable(f"no status line: {head[:200]!r}")
        answer = Answer(int(found[1]), head, b"")
        has_body = not (to_head or answer.status in NO_CONTENT or answer.status < 200)
        return Answer(answer.status, head, self._body(answer) if has_body else b"")

    def _body(self, answer: Answer) -> bytes:
        lengths = answer.values(b"content-length")
        if len(lengths) != 1 or not lengths[0].isdigit() or answer.values(b"transfer-encoding"):
            raise Unreadable(f"no length: {answer.head!r}")
        length = int(lengths[0])
        while len(self._unread) < length:
            if not self._receive():
                raise Unreadable(f"the connection ended within a body: {self._unread[:200]!r}")
        body, self._unread = self._unread[:length], self._unread[length:]
        return body

    def _receive(self) -> bool:
        try:
            data = self._connection.recv(65536)
        except ConnectionResetError:
            raise Unreadable("the connection was reset") from None
        except TimeoutError:
            raise Unreadable(f"nothing came for {PATIENCE:g} s") from None
        self._unread += data
        return bool(data)


def perform(port: int, case: Case) -> Transcript:
    """Send what the case says; what came back."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        reader = Reader(connection)
        answers: list[Answer] = []

        def read() -> bool:
            answer = reader.next(to_head=case.to_head)
            if answer is not None:
                answers.append(answer)
            return answer is not None

        try:
            for piece in case.sent:
                if isinstance(piece, int):
                    if not read() or answers[-1].status != piece:
                        return Transcript(tuple(answers), True, f"no answer {piece}")
                else:
                    send(connection, piece)
            if case.finishes:
                connection.shutdown(socket.SHUT_WR)
            while len(answers) < len(case.statuses):
                if not read():
                    return Transcript(tuple(answers), True)
            if not (case.finishes or (answers and answers[-1].says_close)):
                connection.sendall(get())
            if (last := reader.next(to_head=False)) is None:
                return Transcript(tuple(answers), True)
        except (Unreadable, OSError) as problem:
            return Transcript(tuple(answers), False, str(problem))
        if case.finishes or b"sealed" not in last.body:
            return Transcript((*answers, last), False, "an answer too many came")
        return Transcript(tuple(answers), False)


def send(connection: socket.socket, data: bytes) -> None:
    """Send it all, unless the server has refused already and hung up."""
    try:
        connection.sendall(data)
    except (BrokenPipeError, ConnectionResetError):
        return
    time.sleep(PAUSE)


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, int]]:
    """Of both servers, which run beside one simulated cloud."""
    settings = tmp_path_factory.mktemp("raw") / "cloudid.toml"
    settings.write_text(SETTINGS)
    with (
        start(Simulator()) as cloud,
        running("trio", settings, cloud.url) as trio,
        running("aiohttp", settings, cloud.url) as aiohttp,
    ):
        yield {"trio": trio.port, "aiohttp": aiohttp.port}


@pytest.fixture(scope="module")
def transcript_of(ports: dict[str, int]) -> Callable[[str, Case], Transcript]:
    """What a server answers to a case. Each case is sent to each server once."""
    transcripts: dict[tuple[str, str], Transcript] = {}

    def transcript_of(runtime: str, case: Case) -> Transcript:
        if (runtime, case.name) not in transcripts:
            transcripts[runtime, case.name] = perform(ports[runtime], case)
        return transcripts[runtime, case.name]

    return transcript_of


def running(runtime: str, settings: Path, provider: str) -> Running:
    options = ("--dev", "--listen", "127.0.0.1:0", "--root-token", "root", "--provider", provider)
    return Running(f"cloudid_servers.{runtime}_server", *options, "--settings", str(settings))


def every_case(where: str) -> pytest.MarkDecorator:
    """A test for each case; those that fail today are marked."""
    parameters = []
    for case in CASES:
        words = DEVIATIONS.get(case.name, "").split()
        is_strict = "sometimes" not in words
        marks = [pytest.mark.xfail(strict=is_strict, reason="not yet as the table says")] if where in words else []
        parameters.append(pytest.param(case, id=case.name, marks=marks))
    return pytest.mark.parametrize("case", parameters)


def check(case: Case, transcript: Transcript) -> None:
    """The transcript is what the table says."""
    assert not transcript.problem, f"{transcript.problem} after {[answer.status for answer in transcript.answers]}"
    assert tuple(answer.status for answer in transcript.answers) == case.statuses
    assert transcript.is_closed == case.closes
    finals = [answer for answer in transcript.answers if answer.status >= 200]
    for answer in finals:
        dates = answer.values(b"date")
        assert len(dates) == 1
        assert DATE.fullmatch(dates[0])
        lengths = answer.values(b"content-length")
        assert len(lengths) <= 1
        if answer.status == 204:
            assert lengths == []
        if answer.status == 205:
            assert answer.body == b""
        if answer.status == 405:
            assert answer.values(b"allow")
    for answer in finals[:-1]:
        assert not answer.says_close
    if finals and not case.finishes:
        assert finals[-1].says_close == case.closes
    if case.shows:
        assert case.shows in finals[-1].body
    if case.is_refusal and not case.to_head:
        assert json.loads(finals[-1].body)["codes"] == [REFUSALS[case.statuses[-1]]]


@every_case("trio")
def test_the_trio_server_answers_as_the_table_says(
    transcript_of: Callable[[str, Case], Transcript], case: Case
) -> None:
    check(case, transcript_of("trio", case))


@every_case("aiohttp")
def test_the_aiohttp_server_answers_as_the_table_says(
    transcript_of: Callable[[str, Case], Transcript], case: Case
) -> None:
    check(case, transcript_of("aiohttp", case))


@every_case("alike")
def test_both_servers_answer_alike(transcript_of: Callable[[str, Case], Transcript], case: Case) -> None:
    """Byte by byte but for times and ids, also where the answer is a refusal."""
    trio, aiohttp = (transcript_of(runtime, case) for runtime in RUNTIMES)
    assert [answer.stable for answer in trio.answers] == [answer.stable for answer in aiohttp.answers]
    assert trio.is_closed == aiohttp.is_closed


def test_each_case_has_a_name_of_its_own() -> None:
    assert [name for name, count in Counter(case.name for case in CASES).items() if count > 1] == []
    assert set(DEVIATIONS) <= {case.name for case in CASES}


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_slow_answer_reaches_a_client_that_has_finished(runtime: str) -> None:
    """The client sends its FIN while the request is still being worked on (RFC 9112, section 9.6)."""
    with Running("tests.servers.fake_server", runtime) as server:
        transcript = perform(server.port, finished("a slow answer", "9112 9.6", get(target="/sleep?0.3")))
    assert [answer.status for answer in transcript.answers] == [200]
    assert transcript.is_closed


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_what_follows_a_close_is_not_executed(ports: dict[str, int], runtime: str) -> None:
    """The policy is not written (RFC 9112, section 9.6)."""
    policy = b'{"policy": ""}'
    length = b"Content-Length: %d" % len(policy)
    late = get(TOKEN, length, method="PUT", target="/v1/sys/policies/acl/late") + policy
    perform(ports[runtime], answered("close", "9112 9.6", get(b"Connection: close") + late, closes=True))
    read = get(TOKEN, target="/v1/sys/policies/acl/late")
    assert perform(ports[runtime], answered("read", "9110 9.3.1", read)).answers[0].status == 404
    perform(ports[runtime], answered("write", "9110 9.3.4", late))
    assert perform(ports[runtime], answered("read", "9110 9.3.1", read)).answers[0].status == 200
