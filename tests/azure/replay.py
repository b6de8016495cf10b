"""A host that answers as Azure does: the answers of the tables, with the values of a simulated cloud as placeholders.

What happens, and the values, a simulated cloud decides. The form of an answer is that of the table: its headers, its
members, and only these. A request or an outcome that no table has is noted.

It can leave out every member that not all answers have, compress and split bodies, begin lists with an empty page, and
be in trouble: answer the next calls with an error of a table, or with something else.
"""

from __future__ import annotations

import gzip
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from attrs import define, frozen

from cloudid_core.effects import HttpRequest, HttpResponse
from cloudid_core.provider.calls import CLIENT_REQUEST_IDS
from cloudid_servers.provider_simulator import Simulator
from cloudid_servers.provider_simulator.server import fetch_over_http
from cloudid_servers.transcripts.evidence import ANY, CONTENT_TYPES, Exchange, Shape, exchanges, find, shape_of

APIS: Final = ("graph", "arm", "login")
COMMON: Final = {"graph": ("request-id",), "arm": ("x-ms-request-id", "x-ms-correlation-request-id"), "login": ()}
"""Headers of every answer of an API."""
ISSUER: Final = "https://issuer.example"
EMPTY: Final[tuple[Any, ...]] = (None, "", [], {})
CHUNK: Final = 700


@frozen
class Form:
    """How answers are written."""

    least: bool = False
    """Without the members that are empty and that some recorded answers lack."""
    compressed: bool = False
    """With gzip, in chunks."""
    first_page_empty: bool = False


@define
class Trouble:
    """The next calls of a kind are answered in another way. `call`: a regular expression of METHOD API PATH."""

    call: str
    response: HttpResponse
    times: int = 1
    seen: int = 0


def error_of(status: int, code: str) -> HttpResponse:
    """An error as the tables have it, found by its status and code."""
    exchange = next(each for each in exchanges() if (each.status, each.code) == (status, code))
    headers = {"content-type": CONTENT_TYPES[exchange.api], **dict.fromkeys(exchange.header_names, "gateway")}
    if exchange.api == "login":
        body: dict[str, Any] = {"error": "invalid_client", "error_description": f"{code}: do not repeat me"}
        body |= {"error_codes": [int(code.removeprefix("AADSTS"))], "timestamp": "2024-12-03 13:51:30Z"}
    else:
        body = {"error": {"code": code, "message": "do not repeat me"}}
    return HttpResponse(status, headers, json.dumps(body).encode())


class Replay(ThreadingHTTPServer):
    """The host. `unknown`: what no table has; `untold`: members that were sent and that no table has."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.simulator = Simulator(7, self.url, fetch=self._fetch)
        self.product = ""
        """The address of the server whose documents the token endpoint fetches."""
        self.form = Form()
        self.troubles: list[Trouble] = []
        self.requests: list[HttpRequest] = []
        self.unknown: list[str] = []
        self.untold: list[str] = []
        self.used: set[str] = set()
        """The names of the exchanges that were answered."""
        self._lock = threading.RLock()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def _fetch(self, url: str) -> HttpResponse:
        """GET a document of the product's issuer. `OSError` for every other host: no name is looked up."""
        if not self.product or not url.startswith(f"{ISSUER}/"):
            raise OSError(f"{url} is not a document of the product's issuer")
        return fetch_over_http(url.replace(ISSUER, self.product, 1))

    def close(self) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()

    @property
    def settings(self) -> str:
        """The table of a settings file by which a server uses it."""
        bases = {"login": "login", "resource_manager": "arm", "directory": "graph"}
        return "\n".join(["[clouds.CloudPublicCloud]", *(f'{k} = "{self.url}/{v}"' for k, v in bases.items())])

    @contextmanager
    def written(self, form: Form) -> Iterator[None]:
        """For as long as the block lasts, answers have another form."""
        self.form = form
        try:
            yield
        finally:
            self.form = Form()

    @contextmanager
    def trouble(self, *troubles: Trouble) -> Iterator[None]:
        self.troubles = list(troubles)
        try:
            yield
        finally:
            self.troubles = []

    def answer(self, request: HttpRequest) -> HttpResponse:
        with self._lock:
            parts = urlsplit(request.url)
            api, _, rest = parts.path.removeprefix("/").partition("/")
            path = f"/{unquote(rest)}"
            if api not in APIS:
                return self.simulator.handle(request).response
            self.requests.append(request)
            if (troubled := self._troubled(f"{request.method} {api} {path}")) is not None:
                return troubled
            return self._replayed(request, api, path, parts.query)

    def _troubled(self, call: str) -> HttpResponse | None:
        for trouble in self.troubles:
            if trouble.seen < trouble.times and re.fullmatch(trouble.call, call):
                trouble.seen += 1
                return trouble.response
        return None

    def _replayed(self, request: HttpRequest, api: str, path: str, query: str) -> HttpResponse:
        found = find(api, request.method, path, query)
        if not [each for each in found if each.method != ANY]:
            self.unknown.append(f"{request.method} {api} {path}?{unquote(query)}")
            return self.simulator.handle(request).response
        self._compare(request, api, found)
        is_list = any(each.answer.startswith("[") for each in found) and request.method == "GET"
        if is_list and self.form.first_page_empty and "skiptoken" not in query:
            following = f"{self.url}{urlsplit(request.url).path}?{query}{'&' if query else ''}%24skiptoken=0"
            return self._written(found[0], {"value": [], _next_link(api): following})
        given = self.simulator.handle(request).response
        value = json.loads(given.body) if given.body else None
        code = _code(given.status, value)
        exchange = next((each for each in found if (each.status, each.code) == (given.status, code)), None)
        if exchange is None:
            self.unknown.append(f"{request.method} {api} {path}?{unquote(query)} {given.status} {code}")
            return given
        self.used.add(exchange.name)
        return self._written(exchange, value)

    def _compare(self, request: HttpRequest, api: str, found: list[Exchange]) -> None:
        """Note what is sent that no exchange of the call has."""
        known = {name for each in found for name in each.sends}
        self.untold += [f"{found[0].call}: {name}" for name in _sent(request) - known]
        wanted = {"accept", *CLIENT_REQUEST_IDS, *([] if api == "login" else ["authorization"])}
        self.untold += [f"{found[0].call}: without {name}" for name in wanted - request.headers.keys()]

    def _written(self, exchange: Exchange, value: Any) -> HttpResponse:
        names = {*COMMON[exchange.api], *exchange.header_names}
        headers = dict.fromkeys(names, "00000000-0000-4000-8000-000000000001")
        headers |= {name: "1199" for name in names if "ratelimit" in name}
        headers |= {name: self.url for name in names if name == "location"}
        shape = shape_of(exchange)
        if shape is None or value is None:
            return HttpResponse(exchange.status, headers)
        headers["content-type"] = CONTENT_TYPES[exchange.api]
        body = json.dumps(self._shaped(shape, value)).encode()
        return HttpResponse(exchange.status, headers, body)

    def _shaped(self, shape: Shape, value: Any) -> Any:
        """The value with the members of the shape, and no others."""
        if isinstance(value, list) and shape.elements is not None:
            return [self._shaped(shape.elements, each) for each in value]
        if not isinstance(value, dict) or not shape.members:
            return value
        kept = {}
        for name, given in value.items():
            member = shape.members.get(name) or shape.members.get("*")
            if member is not None and not (self.form.least and member.is_optional and given in EMPTY):
                kept[name] = self._shaped(member, given)
        return kept


def _next_link(api: str) -> str:
    return "@odata.nextLink" if api == "graph" else "nextLink"


def _code(status: int, value: Any) -> str:
    if status < 400 or value is None:
        return ""
    numbers = value.get("error_codes")
    return f"AADSTS{numbers[0]}" if numbers else str(value["error"]["code"])


def _sent(request: HttpRequest) -> set[str]:
    """The members of the body, as the tables write them: below an object that has members, only these."""
    if not request.body:
        return set()
    if "urlencoded" in request.headers.get("content-type", ""):
        return set(dict(parse_qsl(request.body.decode())))
    return set(_members(json.loads(request.body), ""))


def _members(value: Any, at: str) -> Iterator[str]:
    for name, each in value.items():
        path = f"{at}{name}"
        inner = [f"{path}.", each] if isinstance(each, dict) else [f"{path}[].", each[0]] if _has_objects(each) else []
        if inner:
            yield from _members(inner[1], str(inner[0]))
        else:
            yield path


def _has_objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16

    def exchange(self) -> None:
        host = cast(Replay, self.server)
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = host.answer(HttpRequest(self.command, host.url + self.path, headers, body))
        content = answer.body
        self.send_response_only(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if host.form.compressed and content:
            content = gzip.compress(content)
            self.send_header("content-encoding", "gzip")
            self.send_header("transfer-encoding", "chunked")
            chunks = [content[start : start + CHUNK] for start in range(0, len(content), CHUNK)]
            content = b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in chunks) + b"0\r\n\r\n"
        elif answer.status != 204:
            self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = exchange

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the standard library's
        """Requests are not logged."""


@contextmanager
def replay() -> Iterator[Replay]:
    host = Replay()
    try:
        yield host
    finally:
        host.close()
