"""Filters: the supported forms of OData's `$filter`. Case is ignored; a quote within a text is doubled."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

from attrs import frozen

from .requests import Refusal

T = TypeVar("T")

TEXT: Final = r"'((?:[^']|'')*)'"
EQUALS: Final = re.compile(rf"\s*(\w+)\s+eq\s+{TEXT}\s*")
STARTS: Final = re.compile(rf"\s*startswith\(\s*(\w+)\s*,\s*{TEXT}\s*\)\s*")
ANY: Final = re.compile(rf"\s*(\w+)/any\(\s*(\w+)\s*:\s*\2\s+eq\s+{TEXT}\s*\)\s*")


@frozen
class Filterable:
    """The properties that a filter of one kind of object may name, and the attributes that hold them."""

    equals: Mapping[str, str]
    starts: Mapping[str, str] = {}
    contains: Mapping[str, str] = {}

    def select(self, objects: Iterable[T], condition: str | None) -> list[T]:
        """The objects that match: `property eq 'x'`, `startswith(property,'x')`, `properties/any(t:t eq 'x')`."""
        if condition is None:
            return list(objects)
        if match := EQUALS.fullmatch(condition):
            name, text = self._read(self.equals, match[1], match[2])
            return [item for item in objects if _fold(getattr(item, name)) == text]
        if match := STARTS.fullmatch(condition):
            name, text = self._read(self.starts, match[1], match[2])
            return [item for item in objects if _fold(getattr(item, name)).startswith(text)]
        if match := ANY.fullmatch(condition):
            name, text = self._read(self.contains, match[1], match[3])
            return [item for item in objects if text in map(_fold, getattr(item, name))]
        raise unsupported()

    @staticmethod
    def _read(names: Mapping[str, str], name: str, text: str) -> tuple[str, str]:
        if name not in names:
            raise unsupported()
        return names[name], _fold(unquote_text(text))


def unsupported() -> Refusal:
    return Refusal(400, "Request_UnsupportedQuery", "The filter is not supported.")


def unquote_text(text: str) -> str:
    """The text of a literal, from what stands between its quotes."""
    return text.replace("''", "'")


def _fold(value: Any) -> str:
    return "" if value is None else str(value).lower()
