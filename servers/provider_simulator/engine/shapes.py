"""Shapes: whether a JSON value from outside has the expected fields and types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from .requests import Json, Refusal

Shape: TypeAlias = Mapping[str, tuple[type, ...]]

NOTHING: Final = type(None)
NUMBER: Final = (int, float)
OPTIONAL_TEXT: Final = (str, NOTHING)
MAX_NUMBER: Final = 1e15

Members: TypeAlias = Mapping[str, Any]
"""What is shown of an object, by name: a text is an attribute, a function shows the object, the rest is itself."""


def show(item: object, members: Members) -> Json:
    return {
        name: getattr(item, shown) if type(shown) is str else shown(item) if callable(shown) else shown
        for name, shown in members.items()
    }


def bad_request(message: str) -> Refusal:
    return Refusal(400, "BadRequest", message)


def require_object(value: Any, shape: Shape, what: str) -> Json:
    """The value, if it is an object whose fields are all in the shape and have one of its types; `Refusal` 400."""
    if type(value) is not dict:
        raise bad_request(f"{what} must be an object.")
    for name, given in value.items():
        if name not in shape:
            raise bad_request(f"{what} has no field {name!r}; it has {', '.join(shape)}.")
        if type(given) not in shape[name] or not _is_sane(given):
            wanted = " or ".join("null" if kind is NOTHING else kind.__name__ for kind in shape[name])
            raise bad_request(f"{name!r} of {what} must be {wanted}.")
    return value


def _is_sane(value: Any) -> bool:
    """Whether a text is printable, or a number small enough to calculate with."""
    if type(value) is str:
        return value.isprintable()
    return type(value) not in NUMBER or abs(value) <= MAX_NUMBER


def require_texts(value: Any, what: str) -> tuple[str, ...]:
    """The value, if it is a list of printable strings that are not empty; `Refusal` 400."""
    if type(value) is not list or not all(type(item) is str and item and _is_sane(item) for item in value):
        raise bad_request(f"{what} must be a list of strings.")
    return tuple(value)
