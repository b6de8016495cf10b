"""Tracing: spans of requests, of their calls to the provider and of their commits, for OpenTelemetry.

It puts itself around the methods of one service and one host, so that a server without it has no branch for it. What a
span may have is said here, value by value: nothing that a client or the provider makes up, but for the id of a trace.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from threading import Thread
from typing import Final, TypeAlias
from weakref import ref

from attrs import evolve
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from cloudid_core.dispatch import Exchange
from cloudid_core.effects import HttpRequest, HttpResponse, Program
from cloudid_core.messages import METHODS, Response
from cloudid_core.version import VERSION

from .host import Host, Service
from .stores import Store

Attributes: TypeAlias = Mapping[str, str | int]

CLOSE_SECONDS: Final = 2.0
"""How long the end of a server waits for a collector that takes the last spans."""

STORES: Final = {"EtcdStore": "etcd", "GroupCommit": "sqlite", "InMemory": "memory", "PostgresStore": "postgresql"}
KNOWN: Final = frozenset().union(*METHODS.values())
TRACEPARENT: Final = "traceparent"
LONGEST: Final = 256
"""Characters of a caller's `traceparent` that are looked at; it has 55."""

W3C: Final = TraceContextTextMapPropagator()
_last_call: ContextVar[tuple[Callable[[], HttpRequest | None], int]] = ContextVar(
    "last_call", default=(lambda: None, 0)
)
"""The request that this task sent to the provider last, if it is still there, and how often it was repeated."""


class Tracing:
    """The spans of one service on one host, exported until the host is closed, as the `OTEL_*` variables say.

    Raises `ValueError` if these make no sense.
    """

    def __init__(self, service: Service, host: Host, store: Store, *, trusts_callers: bool) -> None:
        resource = {"service.name": os.environ.get("OTEL_SERVICE_NAME", "cloudid"), "service.version": VERSION}
        self._provider = TracerProvider(resource=Resource.create(resource), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("cloudid", VERSION)
        self._family_of = host.measures.family_of
        self._store = STORES.get(type(store).__name__, "other")
        self._trusts_callers = trusts_callers
        service.work_on = partial(self._answer, service.work_on)  # type: ignore[method-assign]
        service.answer_late = partial(self._answer, service.answer_late)  # type: ignore[method-assign]
        host.call_provider = partial(self._call, host.call_provider)  # type: ignore[method-assign]
        host.commit = partial(self._commit, host.commit)  # type: ignore[method-assign]
        host.start(partial(self._close_after, host.new_event().wait))

    async def _answer(self, answer: Callable[[Exchange], Program[Response]], exchange: Exchange) -> Response:
        method = exchange.request.method if exchange.request.method in KNOWN else "_OTHER"
        attributes: Attributes = {"http.request.method": method, "cloudid.request_id": exchange.request_id}
        with self._span(method, SpanKind.SERVER, attributes, self._parent(exchange)) as span:
            try:
                response = await answer(exchange)
            finally:
                if exchange.route is not None and exchange.mount is not None:
                    route = f"/v1/{exchange.mount.path}/{exchange.route.path}"
                    span.set_attribute("http.route", route)
                    span.update_name(f"{method} {route}")
            span.set_attribute("http.response.status_code", response.status)
            if response.codes:
                span.set_attribute("error.type", response.codes[0])
            if response.status >= 500:
                span.set_status(StatusCode.ERROR)
            return response

    def _parent(self, exchange: Exchange) -> Context | None:
        """Return the context of the application around this one, if there is one.

        Otherwise return that of the client where the settings trust clients: its `traceparent` decides whether spans
        are exported. `tracestate` is left out, since it may hold anything.
        """
        if not self._trusts_callers or trace.get_current_span() is not trace.INVALID_SPAN:
            return None
        return W3C.extract({TRACEPARENT: exchange.request.headers.get(TRACEPARENT, "")[:LONGEST]})

    async def _call(
        self, call: Callable[..., Awaitable[HttpResponse]], request: HttpRequest, timeout: float
    ) -> HttpResponse:
        last, repeats = _last_call.get()
        repeats = repeats + 1 if last() is request else 0
        _last_call.set((ref(request), repeats))
        family = self._family_of(request.url)
        attributes: Attributes = {
            "http.request.method": request.method,
            "http.request.resend_count": repeats,
            "cloudid.family": family,
        }
        with self._span(f"{request.method} {family}", SpanKind.CLIENT, attributes) as span:
            headers = dict(request.headers)
            W3C.inject(headers)
            response = await call(evolve(request, headers=headers), timeout)
            span.set_attribute("http.response.status_code", response.status)
            return response

    async def _commit(
        self,
        commit: Callable[..., Awaitable[int]],
        expects: Mapping[str, int],
        puts: Mapping[str, bytes],
        deletes: tuple[str, ...],
    ) -> int:
        if trace.get_current_span() is trace.INVALID_SPAN:  # of the background, which commits every few seconds
            return await commit(expects, puts, deletes)
        attributes: Attributes = {"db.system.name": self._store, "cloudid.entries": len(puts) + len(deletes)}
        with self._span("commit", SpanKind.CLIENT, attributes):
            return await commit(expects, puts, deletes)

    @contextmanager
    def _span(self, name: str, kind: SpanKind, attributes: Attributes, parent: Context | None = None) -> Iterator[Span]:
        """A span around the block. Of a failure it has the class, since a text may hold anything."""
        span = self._tracer.start_span(name, parent, kind, attributes)
        with trace.use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
            try:
                yield span
            except Exception as error:
                span.set_attribute("error.type", type(error).__name__)
                span.set_status(StatusCode.ERROR)
                raise

    async def _close_after(self, wait: Callable[[], Awaitable[object]]) -> None:
        try:
            await wait()  # until the host is closed
        finally:
            closing = Thread(target=self._provider.shutdown, daemon=True)
            closing.start()
            closing.join(CLOSE_SECONDS)
