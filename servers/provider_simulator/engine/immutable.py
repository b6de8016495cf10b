"""Immutable values, which copies of a world share."""

from __future__ import annotations

from typing import Any, TypeVar

Self = TypeVar("Self", bound="Immutable")


class Immutable:
    """Base of values that never change: a deep copy of one is the value itself."""

    __slots__ = ()

    def __deepcopy__(self: Self, memo: dict[int, Any]) -> Self:
        return self
