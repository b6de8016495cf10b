"""Clients that mean no good: `python -m tests.servers.flood KIND COUNT PORT`, until the process is killed.

COUNT clients of one kind talk to the server at PORT. A line on stdout says that all have begun.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

HEAD: Final = b"GET /v1/sys/seal-status HTTP/1.1\r\nHost: test\r\n"
REQUEST: Final = HEAD + b"\r\n"
BODY: Final = b"POST /v1/auth/cloud/login HTTP/1.1\r\nHost: test\r\nContent-Length: 100000\r\n\r\n"
PAUSE: Final = 0.05
"""Seconds between two bytes of a slow client, or two connections of one that comes and goes."""

UNANSWERED: Final = 0.5
"""Seconds without a connection after which a client tries again: the server accepts none."""

RESET: Final = struct.pack("ii", 1, 0)
"""With this as SO_LINGER, closing a socket sends a RST."""


async def idle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Sends nothing."""
    await reader.read()
    await asyncio.sleep(PAUSE)


async def slow_head(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Sends a head, byte by byte, that never ends."""
    await dribble(writer, HEAD + b"X-One: ")


async def slow_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Sends a body, byte by byte."""
    await dribble(writer, BODY)


async def never_reads(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Sends requests and does not read the answers."""
    writer.transport.pause_reading()  # type: ignore[attr-defined]  # every transport of a stream can
    while True:
        writer.write(REQUEST)
        await writer.drain()
        await asyncio.sleep(PAUSE / 10)


async def leaves_in_head(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Leaves when half of a head is sent."""
    writer.write(HEAD)
    await asyncio.sleep(PAUSE)


async def leaves_before_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Leaves, with a RST, when the request is sent."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.write(REQUEST)
    await writer.drain()
    writer.transport.abort()
    await asyncio.sleep(PAUSE)


async def dribble(writer: asyncio.StreamWriter, start: bytes) -> None:
    writer.write(start)
    while True:
        await asyncio.sleep(PAUSE)
        writer.write(b"a")
        await writer.drain()


Client = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
KINDS: Final[dict[str, Client]] = {
    client.__name__: client
    for client in (idle, slow_head, slow_body, never_reads, leaves_in_head, leaves_before_answer)
}


async def come_again(client: Client, port: int, begun: asyncio.Event) -> None:
    """Connect and behave like this client, again and again."""
    while True:
        with suppress(OSError):  # a time-out is one
            async with asyncio.timeout(UNANSWERED):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
            begun.set()
            try:
                await client(reader, writer)
            finally:
                writer.close()
        begun.set()
        await asyncio.sleep(PAUSE / 10)


async def main(kind: str, count: int, port: int) -> None:
    events = [asyncio.Event() for _ in range(count)]
    async with asyncio.TaskGroup() as group:
        for begun in events:
            group.create_task(come_again(KINDS[kind], port, begun))
        for begun in events:
            await begun.wait()
        sys.stdout.write("all have begun\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
