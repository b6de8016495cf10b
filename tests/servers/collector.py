"""A collector of spans: it takes them by OTLP over HTTP, and keeps every byte."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Span

from tests.waiting import wait_until

OTHERS_SPAN: Final = "00f067aa0ba902b7"


def traceparent(trace: str) -> dict[str, str]:
    """The header of a caller, in a trace by its hexadecimal id."""
    return {"traceparent": f"00-{trace}-{OTHERS_SPAN}-01"}


class Collector:
    """What has come so far."""

    def __init__(self, port: int) -> None:
        self.bodies: list[bytes] = []
        self.environment = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
            "OTEL_BSP_SCHEDULE_DELAY": "20",
            "NO_PROXY": "127.0.0.1",
        }
        """Of a server that exports to it."""

    def trace(self, trace: str) -> list[Span]:
        """The spans of a trace, once its request's is there: those of its calls and commits have come before."""
        return wait_until(lambda: self._with_server(bytes.fromhex(trace)))

    @property
    def spans(self) -> list[Span]:
        exported = [ExportTraceServiceRequest.FromString(body) for body in self.bodies]
        scopes = [scope for each in exported for resource in each.resource_spans for scope in resource.scope_spans]
        return [span for scope in scopes for span in scope.spans]

    def _with_server(self, trace: bytes) -> list[Span]:
        found = [span for span in self.spans if span.trace_id == trace]
        return found if any(span.kind == Span.SPAN_KIND_SERVER for span in found) else []


def facts(span: Span) -> dict[str, Any]:
    """The attributes of a span."""
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


@contextmanager
def collector() -> Iterator[Collector]:
    """A collector on loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            collected.bodies.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collected = Collector(server.server_port)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield collected
        finally:
            server.shutdown()
            thread.join()
