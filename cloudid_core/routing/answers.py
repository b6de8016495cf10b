"""Answers: what a route returns, for the OpenAPI document. Tests compare them with actual responses."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from ..errors import Code
from ..forms import Schema, schemas

ENVELOPE: Final = "envelope"
PLAIN: Final = "plain"
COPIED: Final = "copied"
CHOSEN: Final = "chosen"


@frozen(kw_only=True, eq=False)
class Answers:
    """What a route returns after success, and its refusals besides those of all routes."""

    data: Schema | None = None
    """The member `data`. `None`: there is none."""
    shape: str = ENVELOPE
    """`PLAIN`: `data` without an envelope. `COPIED`: its members are repeated beside it.

    `CHOSEN`: like `PLAIN`, with a status that the request chooses.
    """
    token: bool = False
    """The member `auth` has a token."""
    lease: bool = False
    """The answer is about a lease."""
    nothing: bool = False
    """If there is nothing to return, the status is 204."""
    accepted: Schema | None = None
    """The `data` of a response with status 202, if there is one."""
    refusals: tuple[Code, ...] = ()
    """Refusals with a status that not every route has."""


DONE: Final = Answers(nothing=True)
GIVES_TOKEN: Final = Answers(token=True)
KEYS: Final = Answers(data=schemas.members(LIST="keys"))
LEFT: Final = schemas.members(INTEGER="left", LIST="reasons", TEXT="path")
"""The `data` of a response before everything is done: `path` shows the state."""
PROVIDER: Final = (Code.PROVIDER_REFUSED,)
"""The refusals of a route that calls Azure."""
