"""Filters: the supported forms of OData's `$filter`. Case is ignored; a quote within a text is doubled."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, TypeVar

from attrs import frozen

from .requests import Refusal
from .shapes import Members

T = TypeVar("T")

TEXT: Final = r"'((?:[^']|'')*)'"
EQUALS: Final = re.compile(rf"\s*(\w+)\s+eq\s+{TEXT}\s*")
STARTS: Final = re.compile(rf"\s*startswith\(\s*(\w+)\s*,\s*{TEXT}\s*\)\s*")
ANY: Final = re.compile(rf"\s*(\w+)/any\(\s*(?P<each>\w+)\s*:\s*(?P=each)\s+eq\s+{TEXT}\s*\)\s*")
ANY_STARTS: Final = re.compile(
    rf"\s*(\w+)/any\(\s*(?P<each>\w+)\s*:\s*startswith\(\s*(?P=each)\s*,\s*{TEXT}\s*\)\s*\)\s*"
)
AND: Final = re.compile(r"\s+and\s+")


@frozen
class Filterable:
    """The members of one kind of object that a filter may name, each of which shows an attribute."""

    members: Members
    equals: str = ""
    starts: str = ""
    contains: str = ""

    def select(self, objects: Iterable[T], condition: str | None) -> list[T]:
        """The objects that match: `property eq 'x'`, `startswith(property,'x')`, `properties/any(t:t eq 'x')`, and
        the same with `startswith(t,'x')`, or several of these with `and` between."""
        if condition is None:
            return list(objects)
        for each in _conditions(condition):
            objects = self._matching(objects, each)
        return list(objects)

    def _matching(self, objects: Iterable[T], condition: str) -> list[T]:
        """The objects that match one condition."""
        if match := EQUALS.fullmatch(condition):
            name, text = self._read(self.equals, match)
            return [item for item in objects if _fold(getattr(item, name)) == text]
        if match := STARTS.fullmatch(condition):
            name, text = self._read(self.starts, match)
            return [item for item in objects if _fold(getattr(item, name)).startswith(text)]
        if match := ANY.fullmatch(condition):
            name, text = self._read(self.contains, match)
            return [item for item in objects if text in map(_fold, getattr(item, name))]
        if match := ANY_STARTS.fullmatch(condition):
            name, text = self._read(self.contains, match)
            return [item for item in objects if any(_fold(each).startswith(text) for each in getattr(item, name))]
        raise unsupported()

    def _read(self, names: str, match: re.Match[str]) -> tuple[str, str]:
        """The attribute and the text."""
        if match[1] not in names.split():
            raise unsupported()
        return self.members[match[1]], _fold(unquote_text(match.groups()[-1]))


def _conditions(text: str) -> list[str]:
    """What has `and` between, outside of quotes."""
    conditions = [""]
    for number, piece in enumerate(text.split("'")):
        first, *others = [piece] if number % 2 else AND.split(piece)
        conditions[-1] += f"'{first}" if number else first
        conditions += others
    return conditions


def unsupported() -> Refusal:
    return Refusal(400, "Request_UnsupportedQuery", "The filter is not supported.")


def unquote_text(text: str) -> str:
    """Return the text of a literal, from the part between its quotes."""
    return text.replace("''", "'")


def _fold(value: Any) -> str:
    return "" if value is None else str(value).lower()
