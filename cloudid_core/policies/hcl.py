"""HCL: parse the text of a policy into plain objects.

A policy is data: blocks, assignments, strings, integers, booleans and lists. As in the first version of HCL, a comma
may follow each assignment and block, and names may be quoted. All other features (templates, heredocs, expressions) are
refused. Repeated assignments are refused too: one of them would win, so a `deny` could be lost.
"""

from __future__ import annotations

import re
from typing import Final, NoReturn

import msgspec

from ..errors import Code, Refused
from ..forms import Json

MOST_TOKENS: Final = 15_000
DEEPEST: Final = 8
"""Maximum nesting of braces, brackets and labels."""

# No group is possessive: in Python 3.11.2 such a group keeps what its last, failed repetition has read.
_SPACE: Final = re.compile(r"(?:[ \t\r\n]++|(?:\#|//)[^\n]*+|/\*(?s:.*?)\*/)*")
_TOKEN: Final = re.compile(
    r"""
      (?P<text>   "(?:[^"\\\n$%]|\\[^\n]|[$%](?!\{))*" )
    | (?P<name>   [A-Za-z_][A-Za-z0-9_-]*+ )
    | (?P<number> [0-9]{1,19}+ (?!\w) )
    | (?P<mark>   [{}\[\],=:] )
    | (?P<end>    \Z )
    """,
    re.VERBOSE,
)
_CONSTANTS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None}


def parse(text: str) -> dict[str, Json]:
    """Return the members of an HCL document. Repeated blocks become a list of objects. Refuse with `POLICY_INVALID`.

    A block with a label becomes an object with one member.
    """
    reader = _Reader(text)
    members = reader.body(1)
    if reader.kind != "end":
        reader.refuse("expected a name ")
    return members


class _Reader:
    """Read a text from start to end. A method starts at the current token, and ends after its own last token."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._start = self._end = self._tokens = 0
        self.kind: str | None = None
        self._advance()

    def _advance(self) -> None:
        space = _SPACE.match(self._text, self._end)
        self._start = space.end() if space else self._end
        token = _TOKEN.match(self._text, self._start)
        self._tokens += 1
        if token is None:
            self.refuse(self._fault())
        if self._tokens > MOST_TOKENS:
            self.refuse("too large ")
        self.kind, self._token, self._end = token.lastgroup, token[0], token.end()

    def _fault(self) -> str:
        """Return why no token starts here."""
        if self._text.startswith("/*", self._start):
            return "unterminated comment "
        if self._text.startswith('"', self._start):
            return "unterminated string, or a template in a string, "
        return "expected a name, a quoted string, an integer or one of { } [ ] , = : "

    def refuse(self, what: str) -> NoReturn:
        line = self._text.count("\n", 0, self._start) + 1
        column = self._start - self._text.rfind("\n", 0, self._start)
        raise Refused(Code.POLICY_INVALID, f"{what}at line {line}, column {column}") from None

    def body(self, depth: int) -> dict[str, Json]:
        """Read assignments and blocks up to a closing brace or the end. A comma may follow each."""
        members: dict[str, Json] = {}
        assigned: set[str] = set()
        while self.kind in ("name", "text"):
            name = self._label()
            if name in (members if self._token == "=" else assigned):
                self.refuse("repeated assignment ")
            if self._token == "=":
                assigned.add(name)
                self._advance()
                members[name] = self._value(depth)
            else:
                members.setdefault(name, []).append(self._block(depth))
            if self._token == ",":
                self._advance()
        return members

    def _block(self, depth: int) -> dict[str, Json]:
        """Read labels and a body in braces."""
        self._bound(depth)
        if self.kind in ("text", "name"):
            label = self._label()
            return {label: self._block(depth + 1)}
        self._skip("{", "= or {")
        members = self.body(depth + 1)
        self._skip("}", "a name or }")
        return members

    def _value(self, depth: int) -> Json:
        if self.kind == "text":
            return self._label()
        if self._token in ("[", "{"):
            self._bound(depth)
            return self._list(depth + 1) if self._token == "[" else self._object(depth + 1)
        if self.kind == "number":
            value: Json = int(self._token)
        elif self.kind == "name" and self._token in _CONSTANTS:
            value = _CONSTANTS[self._token]
        else:
            self.refuse("unquoted string " if self.kind == "name" else "expected a value ")
        self._advance()
        return value

    def _list(self, depth: int) -> list[Json]:
        self._skip("[")
        values: list[Json] = []
        while self._token != "]":
            values.append(self._value(depth))
            if self._token != "]":
                self._skip(",", ", or ]")
        self._skip("]")
        return values

    def _object(self, depth: int) -> dict[str, Json]:
        """Read members in braces. A comma may follow each."""
        self._skip("{")
        members: dict[str, Json] = {}
        while self._token != "}":
            name = self._label()
            if name in members:
                self.refuse("repeated assignment ")
            self._skip(":" if self._token == ":" else "=", "= or :")
            members[name] = self._value(depth)
            if self._token == ",":
                self._advance()
        self._skip("}")
        return members

    def _label(self) -> str:
        """Read a string, or a name or number as it is."""
        label = self._token
        if self.kind == "text":
            try:
                label = msgspec.json.decode(label, type=str)
            except msgspec.DecodeError:
                self.refuse("invalid escape in a string ")
        elif self.kind not in ("name", "number"):
            self.refuse("expected a name or a string ")
        self._advance()
        return label

    def _bound(self, depth: int) -> None:
        if depth > DEEPEST:
            self.refuse("nested too deeply ")

    def _skip(self, mark: str, expected: str = "") -> None:
        if self._token != mark:
            self.refuse(f"expected {expected or mark} ")
        self._advance()
