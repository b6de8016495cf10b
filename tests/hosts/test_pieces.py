"""Answers of the provider that come in very many pieces, on trio: aiohttp joins them before the host sees them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

import pytest

from cloudid_core.effects import HttpRequest, HttpResponse
from cloudid_core.errors import ProviderUnreachable
from cloudid_servers.host.host import Host
from cloudid_servers.trio_server.host import MOST_PIECES, PIECES_AT_ONCE
from tests.hosts.opened import on
from tests.servers.running import PATIENCE


@contextmanager
def answering_in_chunks(count: int) -> Iterator[str]:
    """The address of a provider that answers one request in so many chunks of one byte."""

    def answer() -> None:
        client, _ = listener.accept()
        with closing(client), suppress(ConnectionError):
            client.recv(65_536)
            client.sendall(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            client.sendall(b"1\r\na\r\n" * count + b"0\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        finally:
            thread.join()


async def called(host: Host, url: str) -> tuple[HttpResponse, int]:
    """The answer, and how many turns another task had meanwhile."""
    turns, is_answered = 0, False

    async def take_turns() -> None:
        nonlocal turns
        while not is_answered:
            await host.next_turn()
            turns += 1

    host.start(take_turns)
    try:
        return await host.call_provider(HttpRequest("GET", url), PATIENCE), turns
    finally:
        is_answered = True


def test_others_have_their_turns_between_the_pieces_of_an_answer() -> None:
    pieces = 200 * PIECES_AT_ONCE
    with answering_in_chunks(pieces) as url:
        response, turns = on("trio", lambda host: called(host, url))
    assert len(response.body) == pieces
    assert turns >= 200


def test_an_answer_of_too_many_pieces_is_refused() -> None:
    with answering_in_chunks(2 * MOST_PIECES) as url, pytest.raises(ProviderUnreachable, match="too large"):
        on("trio", lambda host: called(host, url))
