"""The same core, host and store behind hypercorn's HTTP on trio: `python -m benchmarks.baselines.hypercorn_trio …`

It takes the options of the servers.
"""

from __future__ import annotations

import socket
import sys
from typing import Any

import trio
from attrs import evolve
from hypercorn.config import Config
from hypercorn.trio import serve as serve_asgi

from cloudid_core.run import run
from cloudid_servers.command.bootstrap import Setup
from cloudid_servers.command.program import main
from cloudid_servers.host.app import App
from cloudid_servers.http1.heads import Head
from cloudid_servers.trio_server.host import open_host
from cloudid_servers.trio_server.serve import SERVER


def serve(setup: Setup) -> None:
    """Serve until the process is asked to end."""
    trio.run(_serve, setup)


async def _serve(setup: Setup) -> None:
    log, _ = setup.open_log()
    listener = socket.create_server(setup.server.address)
    config = Config()
    config.bind = [f"fd://{listener.fileno()}"]
    config.keep_alive_max_requests = sys.maxsize  # it would close each connection after a thousand
    async with open_host(setup.store, setup.platform) as host:
        service = await run(setup.open(setup.url(*listener.getsockname()[:2])), host)
        app = App(service, host, log, setup.trusted_proxies)
        setup.announce(*listener.getsockname()[:2])
        await serve_asgi(application(app), config)


def application(app: App) -> Any:
    """The service as an ASGI application."""

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            while (await receive())["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            await send({"type": "lifespan.shutdown.complete"})
            return
        body = b""
        more = True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        query = scope["query_string"]
        target = (scope["raw_path"] + (b"?" + query if query else b"")).decode("ascii")
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        head = Head(scope["method"], target, headers, closes=False)
        response = await app.answer_in_time(app.begin(head, body, scope["client"][0]))
        fields = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in response.headers.items()]
        fields.append((b"content-length", str(len(response.body)).encode()))
        await send({"type": "http.response.start", "status": response.status, "headers": fields})
        await send({"type": "http.response.body", "body": response.body})

    return answer


if __name__ == "__main__":
    sys.exit(main("hypercorn_trio", evolve(SERVER, serve=serve)))
