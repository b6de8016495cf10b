"""Answers: what a route answers, as the document of the interface has it. Tests compare them with what is answered."""

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
    """What a route answers when it has done what was asked, and its refusals beside those that all routes have."""

    data: Schema | None = None
    """The member `data`; `None`: there is none."""
    shape: str = ENVELOPE
    """`PLAIN`: `data` without an envelope. `COPIED`: its members are repeated beside it. `CHOSEN`: as `PLAIN`, with a
    status that the request chooses."""
    token: bool = False
    """The member `auth` has a token."""
    lease: bool = False
    """The answer is about a lease."""
    nothing: bool = False
    """With nothing to say, the status is 204."""
    accepted: Schema | None = None
    """The `data` of an answer with status 202, where there is such an answer."""
    refusals: tuple[Code, ...] = ()
    """Refusals with a status that not every route has."""


DONE: Final = Answers(nothing=True)
GIVES_TOKEN: Final = Answers(token=True)
KEYS: Final = Answers(data=schemas.members(LIST="keys"))
LEFT: Final = schemas.members(INTEGER="left", LIST="reasons", TEXT="path")
"""The `data` of an answer before all is done: `path` tells the state."""
PROVIDER: Final = (Code.PROVIDER_REFUSED,)
"""The refusals of a route that asks the provider."""
