"""Shapes and forms: whether a JSON value from outside has the expected fields and types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeAlias, TypeVar

import msgspec
from msgspec import Meta

from . import Immutable
from .requests import Json, Refusal

T = TypeVar("T")

Shape: TypeAlias = Mapping[str, tuple[type, ...]]

NOTHING: Final = type(None)
NUMBER: Final = (int, float)
OPTIONAL_TEXT: Final = (str, NOTHING)
MAX_NUMBER: Final = 1e15

Text: TypeAlias = Annotated[str, Meta(pattern=r"\A[^\x00-\x1f\x7f-\x9f]*\Z")]
Name: TypeAlias = Annotated[Text, Meta(min_length=1)]
Amount: TypeAlias = Annotated[float, Meta(ge=0, le=MAX_NUMBER)]
Count: TypeAlias = Annotated[int, Meta(ge=0, le=int(MAX_NUMBER))]


class Form(Immutable, msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A value that comes as a JSON object with its fields, and no others. Those with a default may be missing."""


Members: TypeAlias = Mapping[str, Any]
"""What is shown of an object, by name: a text is an attribute, a function shows the object, the rest is itself."""


def show(item: object, members: Members) -> Json:
    return {
        name: getattr(item, shown) if type(shown) is str else shown(item) if callable(shown) else shown
        for name, shown in members.items()
    }


def bad_request(message: str) -> Refusal:
    return Refusal(400, "BadRequest", message)


def read(value: Any, form: type[T], what: str) -> T:
    """The value in its form; `Refusal` 400 says what is wrong with it."""
    try:
        return msgspec.convert(value, form)
    except msgspec.ValidationError as error:
        raise bad_request(f"{what}: {error}.") from None


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
