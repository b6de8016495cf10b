"""HCL: the text of a policy as plain objects, through `python-hcl2` where it is installed.

A policy is data: blocks, assignments, texts, integers, booleans and lists. The tokens are checked before the parser
sees them: it is slow (some 25 000 tokens a second, and quadratic for a heredoc), and of two equal assignments it keeps
the last without a word, which could lose a `deny`.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from ..api.fields import Json
from ..errors import Code, Refused

_MOST_TOKENS: Final = 10_000
_DEEPEST: Final = 8

_TOKEN: Final = re.compile(
    r"""
      (?P<space>   [ \t\r\n]++ | (?:\#|//)[^\n]*+ | /\*(?:[^*]|\*(?!/))*+\*/ )
    | (?P<scalar>  "(?:[^"\\\n$%]|\\[^\n]|[$%](?!\{))*+" | [A-Za-z_][A-Za-z0-9_-]*+ | [0-9]++ )
      (?P<key>     [ \t\r]*+[=:] )?
    | (?P<open>    [{\[] )
    | (?P<close>   [}\]] )
    | ,
    """,
    re.VERBOSE,
)


def parse(text: str) -> dict[str, Json]:
    """The members of an HCL document; equal blocks are a list of objects. Refused with `POLICY_INVALID`.

    A block with a label is an object with one member. Templates, heredocs and expressions are refused.
    """
    _check(text)
    try:
        import hcl2
    except ImportError:
        raise Refused(Code.POLICY_INVALID, "HCL support is not installed: write JSON") from None
    options = hcl2.SerializationOptions(with_comments=False, explicit_blocks=False)
    try:
        document = hcl2.loads(text, serialization_options=options)
        return {_name(key): _plain(value) for key, value in document.items()}
    except Refused:
        raise
    except Exception as error:  # noqa: BLE001  # the parser declares no errors of its own, and recurses with the text
        line, column = getattr(error, "line", None), getattr(error, "column", None)
        where = f"at line {line}, column {column}" if isinstance(line, int) and line > 0 else "not well-formed"
        raise Refused(Code.POLICY_INVALID, where) from None


def _check(text: str) -> None:
    """Refuse what is no token of a policy, what repeats an assignment, and what is too much or too deep."""
    assigned: list[set[str]] = [{"path"}]  # as an assignment it would replace all blocks of that name
    at = count = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise _refused(text, at)
        count += token["space"] is None
        if token["key"]:
            if token["scalar"] in assigned[-1]:
                raise _refused(text, at, "repeated assignment ")
            assigned[-1].add(token["scalar"])
        elif token["open"]:
            assigned.append(set())
        elif token["close"] and len(assigned) > 1:
            assigned.pop()
        if count > _MOST_TOKENS or len(assigned) > _DEEPEST:
            raise _refused(text, at, "too large or too deep ")
        at = token.end()


def _refused(text: str, at: int, what: str = "") -> Refused:
    line_start = text.rfind("\n", 0, at) + 1
    return Refused(Code.POLICY_INVALID, f"{what}at line {text.count(chr(10), 0, at) + 1}, column {at - line_start + 1}")


def _plain(value: Json) -> Json:
    """A value as JSON would give it: the parser leaves the quotes around a text, and only a text has them."""
    if isinstance(value, dict):
        members = {_name(key): _plain(member) for key, member in value.items()}
        if len(members) != len(value):
            raise Refused(Code.POLICY_INVALID, "repeated assignment")
        return members
    if isinstance(value, list):
        return [_plain(element) for element in value]
    return _text(value) if isinstance(value, str) else value


def _name(key: str) -> str:
    return _text(key) if key.startswith('"') else key


def _text(quoted: str) -> str:
    try:
        return msgspec.json.decode(quoted, type=str)
    except msgspec.DecodeError:
        raise Refused(Code.POLICY_INVALID, "a text has a bad escape, or is not quoted") from None
