"""The comparison of transcripts: calls of one kind within one step, their last answers, and the members of these."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

Line = dict[str, Any]
_NUMBER: Final = re.compile(r"\b(id|name)-\d+")
DEEPEST: Final = 20


def differences(recorded: Sequence[Line], ours: Sequence[Line]) -> Iterator[str]:
    """Where what was recorded differs from ours. More tries are no difference, nor are members that we do not have."""
    theirs, mine = _by_kind(recorded), _by_kind(ours)
    for kind in theirs | mine:
        name = " ".join(kind)
        if kind not in mine:
            yield f"{name}: asked there, not here"
        elif kind not in theirs:
            yield f"{name}: asked here, not there"
        else:
            there, here = theirs[kind], mine[kind]
            outcome = [(line.get("status"), line.get("code")) for line in (there, here)]
            if outcome[0] != outcome[1]:
                yield f"{name}: there {_shown(outcome[0])}, here {_shown(outcome[1])}"
            else:
                yield from (f"{name}: {each}" for each in _shapes(there.get("answer"), here.get("answer"), "answer"))


def _by_kind(lines: Sequence[Line]) -> dict[tuple[str, ...], Line]:
    """The last line of each kind."""
    members = ("step", "method", "api", "path")
    return {tuple(_NUMBER.sub(r"{\1}", str(line.get(name))) for name in members): line for line in lines}


def _shown(outcome: tuple[object, object]) -> str:
    return " ".join(str(each) for each in outcome if each is not None) or "no answer"


def _shapes(there: Any, here: Any, at: str, depth: int = 0) -> Iterator[str]:
    """What we answer that they do not, or as another type."""
    if depth > DEEPEST:
        return
    if isinstance(there, dict) and isinstance(here, dict):
        for name, value in here.items():
            if name not in there:
                yield f"{at}.{name} is not there"
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
    return "object" if isinstance(shape, dict) else "list"
