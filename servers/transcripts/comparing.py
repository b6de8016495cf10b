"""The comparison of transcripts: with the simulated cloud, and with what is publicly known of Azure.

With the simulated cloud: calls of one kind within one step, their last answers, and the members of these. With the
tables: the outcome of each call that they have, and what its answer is like.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from .evidence import ANY, Exchange, Shape, exchanges, shape_of

Line = dict[str, Any]
_NUMBER: Final = re.compile(r"\b(id|name)-\d+")
_KEYED: Final = re.compile(r"\((\w+)\)")
DEEPEST: Final = 20
THROTTLED: Final = 429
REMOVAL: Final = "removal"
"""The step of what is removed in the background, which may begin during others and looks again after a refusal."""
ABSENT: Final = " is missing"
NOT_TEXT: Final = ("number", "boolean", "null", "list", "object", "any")


def differences(recorded: Sequence[Line], ours: Sequence[Line]) -> Iterator[str]:
    """Say where what was recorded differs from ours. More tries are no difference, nor are members that we do not have.

    What an answer lacks, the tables decide for the calls that they have: some members are not in all answers.
    """
    theirs, mine = _by_kind(recorded), _by_kind(ours)
    for kind in theirs | mine:
        name = " ".join(kind)
        if kind not in mine:
            if not _is_removal(kind, mine):
                yield f"{name}: called there, not here"
        elif kind not in theirs:
            if not _is_removal(kind, theirs):
                yield f"{name}: called here, not there"
        else:
            there, here = theirs[kind], mine[kind]
            if _outcome(there) != _outcome(here):
                yield f"{name}: there {_shown(there)}, here {_shown(here)}"
            else:
                is_known = bool(exchanges_of(there))
                found = _shapes(there.get("answer"), here.get("answer"), "answer")
                yield from (f"{name}: {each}" for each in found if not (is_known and each.endswith(ABSENT)))


def unlike_the_tables(recorded: Sequence[Line]) -> Iterator[str]:
    """Say where what was recorded is not as the tables have it. Calls that no table has are left out."""
    for kind, line in _by_kind(recorded).items():
        known = exchanges_of(line)
        if not known or line.get("status") in (None, THROTTLED):
            continue
        name = " ".join(kind)
        exchange = next((each for each in known if (each.status, each.code) == _outcome(line)), None)
        if exchange is None:
            yield f"{name}: there {_shown(line)}, which is not in the tables"
        elif (shape := shape_of(exchange)) is not None:
            yield from (f"{name}: {each}" for each in dict.fromkeys(_unlike(shape, line.get("answer"), "answer")))


def _by_kind(lines: Sequence[Line]) -> dict[tuple[str, ...], Line]:
    """The last line of each kind; one that was throttled only if there is no other."""
    members = ("step", "method", "api", "path")
    found: dict[tuple[str, ...], Line] = {}
    for line in lines:
        kind = tuple(_NUMBER.sub(r"{\1}", str(line.get(name))) for name in members)
        if line.get("status") != THROTTLED or kind not in found:
            found[kind] = line
    return found


def _is_removal(kind: tuple[str, ...], others: Mapping[tuple[str, ...], Line]) -> bool:
    """Whether a call that only one transcript has in a step may be one of the background."""
    return kind[0] == REMOVAL or (REMOVAL, *kind[1:]) in others


def exchanges_of(line: Line) -> list[Exchange]:
    """The exchanges of a call, whose keys and filters are not known; none if only errors of any call are."""
    path = _KEYED.sub(r"(\1='x')", str(line.get("path")))
    query = line.get("query")
    names = {name for name in query if name.startswith("$")} if isinstance(query, dict) else set[str]()
    found = [each for each in exchanges() if each.is_at(str(line.get("api")), str(line.get("method")), path, names)]
    return found if any(each.method != ANY for each in found) else []


def _outcome(line: Line) -> tuple[object, object]:
    return line.get("status"), line.get("code") or ""


def _shown(line: Line) -> str:
    return " ".join(str(each) for each in _outcome(line) if each not in (None, "")) or "no answer"


def _unlike(shape: Shape, there: Any, at: str, depth: int = 0) -> Iterator[str]:
    """Where the shape of an answer is not that of a table."""
    if depth > DEEPEST:
        return
    if not _fits(shape, there):
        yield f"{at} is {_type(there)} there, {' or '.join(shape.types) or 'object'} in the table"
    elif isinstance(there, list):
        for each in there if shape.elements else ():
            yield from _unlike(shape.elements or shape, each, f"{at}[]", depth + 1)
    elif isinstance(there, dict) and shape.members:
        yield from (f"{at}.{name}{ABSENT}" for name in sorted(shape.required - there.keys()))
        for name, each in there.items():
            if (member := shape.members.get(name) or shape.members.get("*")) is not None:
                yield from _unlike(member, each, f"{at}.{name}", depth + 1)


def _fits(shape: Shape, there: Any) -> bool:
    kind = _type(there)
    types = shape.types or ("object",)
    if kind in types or "any" in types or f"'{kind}'" in types:
        return True
    is_text = isinstance(there, str) and kind not in NOT_TEXT
    return is_text and any(each not in NOT_TEXT and not each.startswith("'") for each in types)


def _shapes(there: Any, here: Any, at: str, depth: int = 0) -> Iterator[str]:
    """What we answer that they do not, or as another type."""
    if depth > DEEPEST:
        return
    if isinstance(there, dict) and isinstance(here, dict):
        for name, value in here.items():
            if name not in there:
                yield f"{at}.{name}{ABSENT}"
            else:
                yield from _shapes(there[name], value, f"{at}.{name}", depth + 1)
    elif isinstance(there, list) and isinstance(here, list):
        if there and here:
            yield from _shapes(there[0], here[0], f"{at}[]", depth + 1)
    elif there is not None and here is not None and _type(there) != _type(here):
        yield f"{at} is {_type(there)} there, {_type(here)} here"


def _type(shape: Any) -> str:
    if isinstance(shape, str):
        return "text" if _NUMBER.fullmatch(shape) else shape
    return "null" if shape is None else "object" if isinstance(shape, dict) else "list"
