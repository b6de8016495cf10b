"""Connection: one connection to PostgreSQL over libpq, with nothing but waits for its socket.

libpq's asynchronous interface sends and receives; the runtime says when the socket is ready. The same code runs on trio
and on asyncio, and no thread is on the way.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from attrs import frozen
from psycopg import OperationalError
from psycopg.pq import ConnStatus, DiagnosticField, ExecStatus, Format, PGconn, PollingStatus
from psycopg.pq.abc import PGconn as RawConnection
from psycopg.pq.abc import PGresult as Result

from ...runtime import Runtime

TAKEN: Final = "42P05"
"""Another client has prepared a statement of this name on this connection's backend."""

POOLED: Final = (
    "a connection pooler shares this connection's backend with other clients: connect directly to the "
    "database server, or use session pooling"
)
GOOD: Final = frozenset({ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK})


class ConnectionLost(Exception):
    """The connection is gone. What was asked last may have been done, or may still be done by its backend."""


class StatementFailed(Exception):
    """The database refused a statement and did nothing of it; the connection can be used again.

    `state` is the five characters of SQLSTATE. The text is the primary message, which holds no values of parameters.
    """

    def __init__(self, state: str, message: str) -> None:
        self.state = state
        super().__init__(f"{message} ({state})")


@frozen
class Statement:
    """A statement that is prepared once on each connection, with the types of its parameters (OIDs of `pg_type`)."""

    sql: str
    types: tuple[int, ...] = ()


class Connection:
    """Asks one thing at a time. Parameters and results are in PostgreSQL's binary format."""

    def __init__(self, runtime: Runtime, raw: RawConnection) -> None:
        self._runtime = runtime
        self._raw = raw
        self._prepared: dict[Statement, bytes] = {}
        self._is_asking = False

    @classmethod
    async def open(cls, runtime: Runtime, conninfo: bytes, seconds: float) -> Connection:
        """Raises `ConnectionLost` with libpq's reason when there is no connection within so many seconds."""
        deadline = time.monotonic() + seconds
        raw = PGconn.connect_start(conninfo)
        try:
            await _poll(runtime, raw, deadline)
        except BaseException:
            raw.finish()
            raise
        raw.nonblocking = 1
        return cls(runtime, raw)

    @property
    def server(self) -> tuple[str, str, str]:
        """Name, number and port of the server that was reached."""
        return self._raw.host.decode(), self._raw.hostaddr.decode(), self._raw.port.decode()

    @property
    def server_version(self) -> int:
        return self._raw.server_version

    @property
    def pid(self) -> int:
        """The process at the server that does the work."""
        return self._raw.backend_pid

    def parameter(self, name: str) -> str:
        """A parameter that the server reports by itself, such as `server_encoding`."""
        return (self._raw.parameter_status(name.encode()) or b"").decode()

    async def ask(self, statement: Statement, parameters: Sequence[bytes], seconds: float) -> Result:
        """Run a prepared statement. Raises `ConnectionLost` or `StatementFailed`."""
        deadline = time.monotonic() + seconds
        raw, name = self._raw, self._prepared.get(statement) or b"s%d" % len(self._prepared)
        if statement not in self._prepared:
            try:
                await self._exchange(deadline, lambda: raw.send_prepare(name, statement.sql.encode(), statement.types))
            except StatementFailed as failure:
                if failure.state == TAKEN:
                    raise StatementFailed(TAKEN, POOLED) from None
                raise
            self._prepared[statement] = name
        formats = [Format.BINARY] * len(parameters)
        return await self._exchange(deadline, lambda: raw.send_query_prepared(name, parameters, formats, Format.BINARY))

    async def run(self, script: str, seconds: float) -> Result:
        """Run statements without parameters, all in one transaction; the answer is the last one's, as text."""
        return await self._exchange(time.monotonic() + seconds, lambda: self._raw.send_query(script.encode()))

    def close(self) -> None:
        """Close at once; a task that waits for an answer gets `ConnectionLost`, and closes then."""
        if not self._is_asking:
            self._raw.finish()
            return
        with suppress(OSError, OperationalError), socket.socket(fileno=os.dup(self._raw.socket)) as twin:
            twin.shutdown(socket.SHUT_RDWR)

    async def _exchange(self, deadline: float, send: Callable[[], None]) -> Result:
        self._is_asking = True
        is_answered = False
        try:
            send()
            while self._raw.flush():
                if not await self._runtime.wait_writable(self._raw.socket, deadline - time.monotonic()):
                    raise ConnectionLost("the database does not accept data")
            results = await self._receive(deadline)
            is_answered = self._raw.status == ConnStatus.OK
            if not is_answered:
                raise ConnectionLost(_first_line(self._raw))
        except OperationalError:
            raise ConnectionLost(_first_line(self._raw)) from None
        finally:
            self._is_asking = False
            if not is_answered:
                self._raw.finish()
        for result in results:
            if result.status not in GOOD:
                state = result.error_field(DiagnosticField.SQLSTATE) or b"?????"
                message = result.error_field(DiagnosticField.MESSAGE_PRIMARY) or b"no reason given"
                raise StatementFailed(state.decode(), message.decode(errors="replace"))
        return results[-1]

    def check(self) -> None:
        """Raise `ConnectionLost` if an idle connection has ended. Its last words come before its end: hence twice."""
        try:
            self._raw.consume_input()
            self._raw.consume_input()
        except OperationalError:
            reason = _first_line(self._raw)
            self._raw.finish()
            raise ConnectionLost(reason) from None

    async def _receive(self, deadline: float) -> list[Result]:
        """All results: the failure of an implicit COMMIT comes after the rows."""
        results: list[Result] = []
        while True:
            while self._raw.is_busy():
                if not await self._runtime.wait_readable(self._raw.socket, deadline - time.monotonic()):
                    raise ConnectionLost("the database does not answer")
                self._raw.consume_input()
            result = self._raw.get_result()
            if result is None:
                return results
            results.append(result)


async def _poll(runtime: Runtime, raw: RawConnection, deadline: float) -> None:
    """Bring a connection that was started to its end. libpq may change the socket between two steps."""
    while raw.status != ConnStatus.BAD:
        step = raw.connect_poll()
        if step == PollingStatus.OK:
            return
        if step == PollingStatus.FAILED:
            break
        wait = runtime.wait_readable if step == PollingStatus.READING else runtime.wait_writable
        if not await wait(raw.socket, deadline - time.monotonic()):
            raise ConnectionLost("the database does not answer")
    raise ConnectionLost(_first_line(raw))


def _first_line(raw: RawConnection) -> str:
    """What libpq says of a connection's trouble, on one line."""
    return " ".join(raw.get_error_message().split()) or "the connection was closed"
