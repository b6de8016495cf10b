"""The evidence: what is publicly known of Azure's answers, one table for each family of calls.

A table (`families/*.toml`) has shapes of documents, and exchanges: a call, and a status with which Azure answers it.
Each exchange names its public sources: recordings of real sessions, answers quoted in issues, or documentation. An
exchange without a source is what the product expects and nothing public confirms.

The types of a member, of which a value has one:

    text, number, boolean, null, list, object     `list` and `object`: also empty ones
    guid, time, fine-time                         texts: a GUID, a time in whole seconds, a time with a fraction
    id, id/resourcegroups                         a resource id; one in which that segment is in lower case
    'Word'                                        a word of a closed vocabulary
    any                                           whatever it is

A `?` behind a member: some answers lack it. `x[]` is each element of a list, `*` each other member, and `x{key}` the
names of the members of an object whose members are named by Azure's users.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Set
from functools import cache
from importlib.resources import files
from typing import Any, Final
from urllib.parse import parse_qsl

from attrs import field, frozen

FOLDER: Final = files(__package__) / "families"
SOURCES: Final = "sources"
ERRORS: Final = "errors"
ANY: Final = "ANY"
"""The method of an error that any call of its API may get."""
CONTENT_TYPES: Final = {
    "graph": "application/json;odata.metadata=minimal;odata.streaming=true;IEEE754Compatible=false;charset=utf-8",
    "arm": "application/json; charset=utf-8",
    "login": "application/json; charset=utf-8",
}
"""Of every answer with a body, by API."""
UNCOMPARED: Final = frozenset({"api-version", "$top", "$skiptoken", "%24skiptoken"})
"""Parameters of a query that do not make it another call."""

_STEP: Final = re.compile(r"(@odata\.\w+|\*|[^.\[{]+)(\[\]|\{key\})?\.?")
_WORD: Final = re.compile(r"'[^']*'|\S+")
_GUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?P<fraction>\.\d+)?Z?")


@frozen
class Shape:
    """What a value is like: its types, and what its members or elements are like."""

    types: tuple[str, ...] = ()
    """None: an object whose members say all."""
    is_optional: bool = False
    members: dict[str, Shape] = field(factory=dict)
    elements: Shape | None = None
    keys: tuple[str, ...] = ()
    """The types of the names of members that users name."""

    def differences(self, value: Any, at: str = "answer") -> Iterator[str]:
        """Say where a value is not like this."""
        if not self._fits(value):
            yield f"{at} is {describe(value)}, not {' or '.join(self.types) or 'object'}"
        elif isinstance(value, dict):
            yield from self._differences_of_members(value, at)
        elif isinstance(value, list) and self.elements is not None:
            for element in value:
                yield from self.elements.differences(element, f"{at}[]")

    def _fits(self, value: Any) -> bool:
        return _has_type(value, "object") if not self.types else any(_has_type(value, name) for name in self.types)

    def _differences_of_members(self, value: dict[str, Any], at: str) -> Iterator[str]:
        if not self.members and not self.keys:
            return
        yield from (f"{at}.{name} is missing" for name in self.required - value.keys())
        for name, member in value.items():
            shape = self.members.get(name) or self.members.get("*")
            if shape is None:
                yield f"{at}.{name} is not in the table"
            else:
                yield from shape.differences(member, f"{at}.{name}")
            if self.keys and not any(_has_type(name, kind) for kind in self.keys):
                yield f"a name in {at} is not {' or '.join(self.keys)}"

    @property
    def required(self) -> set[str]:
        return {name for name, shape in self.members.items() if not shape.is_optional and name != "*"}


@frozen
class Exchange:
    """A call, and an answer to it."""

    family: str
    method: str
    api: str
    path: str
    """A pattern: `{}` is any segment or text, `{scope}` any scope of Azure Resource Manager."""
    query: tuple[tuple[str, str], ...]
    status: int
    code: str = ""
    sends: frozenset[str] = frozenset()
    """Members of the bodies that were sent."""
    answer: str = ""
    """A shape of the family, `[shape]` for a list of them, `error`, or nothing."""
    header_names: frozenset[str] = frozenset()
    """Headers that every recorded answer has, besides its content type."""
    versions: tuple[str, ...] = ()
    """API versions of the recordings."""
    recorded: tuple[str, ...] = ()
    reported: tuple[str, ...] = ()
    documented: tuple[str, ...] = ()

    @property
    def call(self) -> str:
        query = "&".join(f"{name}={value}" for name, value in self.query)
        return f"{self.method} {self.api} {self.path}{'?' if query else ''}{query}"

    @property
    def name(self) -> str:
        return f"{self.call} {self.status}{' ' if self.code else ''}{self.code}"

    @property
    def evidence(self) -> str:
        """The strongest kind of evidence."""
        kinds = ("recorded", "reported", "documented")
        return next((kind for kind in kinds if getattr(self, kind)), "not confirmed")

    def is_of(self, api: str, method: str, path: str, query: str) -> bool:
        """Whether a request is this call. Its path is below the API's address, its query encoded."""
        given = {name: value for name, value in parse_qsl(query, keep_blank_values=True) if name not in UNCOMPARED}
        wanted = dict(self.query)
        return self.is_at(api, method, path, given.keys()) and (
            self.method == ANY or all(_pattern(wanted[name]).fullmatch(value) for name, value in given.items())
        )

    def is_at(self, api: str, method: str, path: str, parameters: Set[str]) -> bool:
        """Whether a request is this call as far as its path and the names of its parameters say."""
        if self.method == ANY:
            return self.api == api
        return (
            (self.api, self.method) == (api, method)
            and bool(_pattern(self.path).fullmatch(path))
            and {name for name, _ in self.query} == parameters - UNCOMPARED
        )


@frozen
class Family:
    """The calls about one kind of object."""

    name: str
    title: str
    unconfirmed: tuple[str, ...]
    shapes: Mapping[str, Shape]
    exchanges: tuple[Exchange, ...]


@cache
def families() -> Mapping[str, Family]:
    """Return all families by name, in the order of their names."""
    names = sorted(each.name.removesuffix(".toml") for each in FOLDER.iterdir() if each.name.endswith(".toml"))
    return {name: _family(name, _read(name)) for name in names if name != SOURCES}


@cache
def sources() -> Mapping[str, Mapping[str, str]]:
    """Return, by the word that references start with, the place of its sources and the years of the answers."""
    return _read(SOURCES)


def exchanges() -> Iterator[Exchange]:
    for family in families().values():
        yield from family.exchanges


def find(api: str, method: str, path: str, query: str) -> list[Exchange]:
    """Find the exchanges of a request, one for each answer that it may get; those of more specific calls first."""
    found = [each for each in exchanges() if each.is_of(api, method, path, query)]
    return sorted(found, key=lambda each: (each.method == ANY, each.path.count("{")))


def shape_of(exchange: Exchange) -> Shape | None:
    """Return the shape of the whole answer; `None` for one without a body."""
    if not exchange.answer:
        return None
    if exchange.answer == "error":
        return families()[ERRORS].shapes[exchange.api]
    text = Shape(("text",))
    context = {"@odata.context": text} if exchange.api == "graph" else {}
    shapes = families()[exchange.family].shapes
    if exchange.answer.startswith("["):
        element = shapes.get(exchange.answer.strip("[]"), Shape(("guid",)))
        following = "@odata.nextLink" if exchange.api == "graph" else "nextLink"
        value = Shape(("list",), elements=element)
        return Shape(members={**context, "value": value, following: Shape(("text",), is_optional=True)})
    shape = shapes[exchange.answer]
    return Shape(members={**context, **shape.members})


@cache
def vocabulary() -> Mapping[str, frozenset[str]]:
    """Return the words of closed vocabularies, by the member that has them."""
    found: dict[str, set[str]] = {}
    for family in families().values():
        for shape in family.shapes.values():
            for name, member in _all_members(shape):
                types = (*member.types, *(member.elements.types if member.elements else ()))
                words = {each.strip("'") for each in types if each.startswith("'")}
                if words:
                    found.setdefault(name, set()).update(words)
    return {name: frozenset(words) for name, words in found.items()}


def describe(value: Any) -> str:
    """Say what kind of value it is, without its text."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            named = next((name for name in ("guid", "fine-time", "time") if _has_type(value, name)), "text")
            return "text" if named == "text" else named
        case list():
            return "list"
        case _:
            return "object"


def _has_type(value: Any, name: str) -> bool:
    match name:
        case "any":
            return True
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "list":
            return isinstance(value, list)
        case "object":
            return isinstance(value, dict)
    return isinstance(value, str) and _is_text(value, name)


def _is_text(value: str, name: str) -> bool:
    match name:
        case "text":
            return True
        case "guid":
            return bool(_GUID.fullmatch(value))
        case "time" | "fine-time":
            match = _TIME.fullmatch(value)
            return match is not None and bool(match["fraction"]) == (name == "fine-time")
        case "id":
            return value.startswith("/")
        case "id/resourcegroups":
            return value.startswith("/") and "/resourcegroups/" in value
    return f"'{value}'" == name


@cache
def _pattern(template: str) -> re.Pattern[str]:
    """Return the pattern of a path or of a parameter's value."""
    pattern = re.escape(template).replace(re.escape("{scope}"), ".*").replace(re.escape("'{}'"), "'(?:[^']|'')*'")
    return re.compile(pattern.replace(re.escape("{}"), "[^/]+"), re.IGNORECASE)


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((FOLDER / f"{name}.toml").read_text("utf-8"))


def _family(name: str, table: dict[str, Any]) -> Family:
    shapes = {each: _shape(rows) for each, rows in table.get("shapes", {}).items()}
    found = tuple(_exchange(name, row) for row in table["exchanges"])
    return Family(name, table["title"], tuple(table["unconfirmed"]), shapes, found)


def _exchange(family: str, row: dict[str, Any]) -> Exchange:
    method, api, target = row["call"].split(" ", 2)
    path, _, query = target.partition("?")
    pairs = tuple((name, value) for name, _, value in (each.partition("=") for each in query.split("&") if each))
    return Exchange(
        family,
        method,
        api,
        path,
        pairs,
        row["status"],
        code=row.get("code", ""),
        sends=frozenset(row.get("sends", "").split()),
        answer=row.get("answer", ""),
        header_names=frozenset(row.get("headers", "").split()),
        versions=tuple(row.get("versions", "").split()),
        recorded=tuple(row.get("recorded", ())),
        reported=tuple(row.get("reported", ())),
        documented=tuple(row.get("documented", ())),
    )


def _shape(rows: Mapping[str, str]) -> Shape:
    """Build the shape of an object from the rows of its members, which may come in any order."""
    tree: dict[str, Any] = {}
    for path, types in rows.items():
        node = tree
        for name, suffix in _STEP.findall(path.removesuffix("?")):
            node = node.setdefault("members", {}).setdefault(name, {})
            if suffix == "[]":
                node = node.setdefault("elements", {})
        words = tuple(_WORD.findall(types))
        if path.removesuffix("?").endswith("{key}"):
            node["keys"] = words
        else:
            node["types"] = words
            node["is_optional"] = path.endswith("?")
    return _built(tree)


def _built(node: dict[str, Any]) -> Shape:
    members = {name: _built(each) for name, each in node.get("members", {}).items()}
    elements = _built(node["elements"]) if "elements" in node else None
    return Shape(node.get("types", ()), node.get("is_optional", False), members, elements, node.get("keys", ()))


def _all_members(shape: Shape) -> Iterator[tuple[str, Shape]]:
    for name, member in shape.members.items():
        yield name, member
        yield from _all_members(member)
    if shape.elements is not None:
        yield from _all_members(shape.elements)
