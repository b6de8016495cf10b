"""Work that an input causes, counted, and the inputs: long runs of repeated units, in every place of a request.

Twice the size may cost at most three times the work. The places come from the tables of routes and fields.
"""

from __future__ import annotations

import re
import sys
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, Final

import msgspec
from attrs import frozen

import cloudid_core
import cloudid_servers
from cloudid_core.catalog import CATALOG
from cloudid_core.forms.fields import fields_of
from cloudid_core.messages import Request
from cloudid_core.messages.operations import Operation
from cloudid_core.routing.routes import Route
from tests.installation import ROOT

MOST: Final = 3.0
"""So many times the work at most, for twice the size."""

PACKAGES: Final = tuple(str(Path(str(package.__file__)).parent) for package in (cloudid_core, cloudid_servers))
UNITS: Final = (
    *("a", "A", "0", " ", "\t", "/", ".", ",", ":", ";", "=", "-", "_", "%", "*", "+", "#", "'", '"', "\\", "$", "{"),
    *("a/", "a,", "a ", "1.", "1,", "1h", "::", "a=", "{{", "}}", "{}", "[", "[],", "/*", "/**/", "%41", "\\u0041"),
    *("a-", "../"),
    *("\N{LATIN CAPITAL LETTER E WITH ACUTE}", "\N{KELVIN SIGN}a", "\N{GREEK CAPITAL LETTER SIGMA} ", "\U0001f600"),
    *("/subscriptions/a", "a.b@c:", "10.0.0.0/8,", '{"a":', "\n"),
)
"""What long texts repeat."""

IN_A_HEAD: Final = tuple(unit for unit in UNITS if unit.isascii() and unit.isprintable())


class Counted:
    """Counts the bytecodes of this project's code inside a `with`: work, whatever else the machine does."""

    def __init__(self) -> None:
        self.bytecodes = 0

    def __enter__(self) -> Counted:
        self._before = sys.gettrace()
        sys.settrace(self._enter)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _enter(self, frame: FrameType, event: str, argument: object) -> Any:
        if not frame.f_code.co_filename.startswith(PACKAGES):
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return self._count

    def _count(self, frame: FrameType, event: str, argument: object) -> Any:
        self.bytecodes += event == "opcode"
        return self._count


def text(unit: str, size: int) -> str:
    return unit * (size // len(unit))


def values(unit: str, size: int) -> Iterator[tuple[str, Any]]:
    """Values of a field that consist of a unit: as one text, a list, an object, objects in a list, JSON in a text."""
    count = size // 8
    members = {f"{number:06}{unit}": unit for number in range(count)}
    yield "text", text(unit, size)
    yield "list", [unit] * count
    yield "list of different texts", list(members)
    yield "object", members
    yield "objects in a list", [{"role_name": unit, "scope": unit, "object_id": unit}] * (count // 4)
    yield "JSON in a text", msgspec.json.encode([{"role_name": unit, "scope": unit}] * (count // 4)).decode()


SHAPES: Final = tuple(name for name, _ in values("a", 64))


@frozen
class Place:
    """Where a request carries a text: what makes the request of a unit, a shape and a size."""

    name: str
    make: Callable[[str, str, int], Request]
    shapes: tuple[str, ...] = ("text",)
    units: tuple[str, ...] = IN_A_HEAD


METHODS: Final[Mapping[Operation, str]] = {
    Operation.READ: "GET",
    Operation.WRITE: "POST",
    Operation.DELETE: "DELETE",
    Operation.LIST: "LIST",
}
MOUNTS: Final = {
    ("secret", "system"): "sys",
    ("auth", "token"): "auth/token",
    ("secret", "identity"): "identity",
    ("auth", "cloud"): "auth/cloud",
    ("secret", "cloud"): "cloud",
}


def request(method: str, target: str, body: object = None, **headers: str) -> Request:
    named = {"x-service-token": ROOT, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return Request(method, target, named, b"" if body is None else msgspec.json.encode(body), "192.0.2.1")


def routes() -> Iterator[tuple[str, Route]]:
    for component in CATALOG:
        for route in component.routes.routes:
            yield MOUNTS[component.kind, component.type], route


def path_of(mount: str, route: Route, captured: str = "x") -> str:
    return "/v1/" + re.sub(r"[:*][a-z_]+", lambda _: captured, f"{mount}/{route.path}")


def places() -> Iterator[Place]:
    yield Place("path", lambda unit, _, size: request("GET", f"/v1/{text(unit, size)}"))
    yield Place("query", lambda unit, _, size: request("GET", f"/v1/sys/seal-status?{text(unit, size)}"))
    yield Place("many parameters", lambda unit, _, size: request("GET", "/v1/sys/auth?" + text(f"{unit}=&", size)))
    yield Place("name of a header", lambda unit, _, size: request("GET", "/v1/sys/auth", **{text(unit, size): "a"}))
    for header in sorted(headers_read()):
        yield header_place(header)
    yield Place(
        "a body without a form",
        lambda unit, shape, size: request("POST", "/v1/sys/wrapping/wrap", {"a": dict(values(unit, size))[shape]}),
        SHAPES,
        UNITS,
    )
    yield Place(
        "names of fields",
        lambda unit, _, size: request("POST", "/v1/auth/cloud/role/x", {text(unit, size): 1}),
        units=UNITS,
    )
    for mount, route in routes():
        yield from places_of(mount, route)


def header_place(header: str) -> Place:
    def make(unit: str, _: str, size: int) -> Request:
        return request("POST", "/v1/sys/capabilities-self", {"paths": ["a"]}, **{header: text(unit, size)})

    return Place(f"header {header}", make)


def places_of(mount: str, route: Route) -> Iterator[Place]:
    """The captures and fields of a route."""
    method = METHODS[route.operation]
    row = f"{method} {mount}/{route.path}"
    if ":" in route.path or "*" in route.path:
        yield Place(row, lambda unit, _, size: request(method, path_of(mount, route, text(unit, size))))
    names = [name for field in fields_of(route.form) for name in (field.name, field.old_name) if name]
    names += ["after", "limit"] * (route.operation is Operation.LIST)
    for name in dict.fromkeys(names):
        yield field_place(row, method, path_of(mount, route), name)


def field_place(row: str, method: str, path: str, name: str) -> Place:
    if method == "POST":
        return Place(
            f"{row}, {name}",
            lambda unit, shape, size: request(method, path, {name: dict(values(unit, size))[shape]}),
            SHAPES,
            UNITS,
        )
    return Place(f"{row}, {name}", lambda unit, _, size: request(method, f"{path}?{name}={text(unit, size)}"))


def login_with(header: Mapping[str, Any], claims: Mapping[str, Any]) -> Request:
    """A login whose token has these members; its signature is none."""

    def part(members: Mapping[str, Any]) -> str:
        return urlsafe_b64encode(msgspec.json.encode(members)).rstrip(b"=").decode()

    jwt = f"{part(header)}.{part(claims)}.{'A' * 342}"
    return request("POST", "/v1/auth/cloud/login", {"role": "x", "jwt": jwt})


# Which headers are read

_READ: Final = re.compile(r"headers(?:\.get\(|\[)\s*(?:\"([a-z0-9-]+)\"|([A-Z_]+))|([A-Z_]*HEADERS?): Final = ")
OF_REQUESTS: Final = ("messages/request.py", "dispatch", "system", "http1", "tracing.py", "embedding.py", "ui")
"""Where headers of requests are read; elsewhere it is those of answers."""


def headers_read() -> set[str]:
    """The names of all headers that are looked at, by the source."""
    found = {"content-length", "transfer-encoding", "host", "connection", "expect", "x-forwarded-for"}
    for package in PACKAGES:
        for part in OF_REQUESTS:
            root = Path(package) / part
            for file in [root] if root.is_file() else root.rglob("*.py"):
                found |= {name for name, *_ in _READ.findall(file.read_text("utf-8")) if name}
    from cloudid_core.messages import request as reading

    for name, value in vars(reading).items():
        if name.endswith(("HEADER", "HEADERS")):
            found |= {value} if isinstance(value, str) else set(value)
    return found
