"""Policy documents: the text in HCL or JSON, and the rules in it."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterable, Mapping
from typing import Final, NoReturn

from attrs import evolve, field, frozen

from ..errors import Code, Refused
from ..forms import Json
from ..values import duration, json_text
from . import hcl

LONGEST: Final = 2**18
"""Maximum characters of a policy."""

CAPABILITIES: Final[Mapping[str, str]] = {
    "create": "POST and PUT if the object does not exist yet, and the route makes this distinction",
    "read": "GET",
    "update": "all other POST and PUT requests",
    "patch": "PATCH",
    "delete": "DELETE",
    "list": "LIST, and `GET ?list=true`",
    "sudo": "protected paths, in addition to the other capabilities",
    "deny": "nothing, even if other rules for the same pattern grant it",
    "scan": "nothing; accepted for compatibility with Vault's policies",
    "recover": "nothing, like `scan`",
    "subscribe": "nothing, like `scan`",
}
"""The capabilities of rules, and the requests that each allows."""

DENY: Final = frozenset({"deny"})

_WRITE: Final = frozenset({"create", "read", "update", "delete", "list"})
OLD_LEVELS: Final[Mapping[str, frozenset[str]]] = {
    "deny": DENY,
    "read": frozenset({"read", "list"}),
    "write": _WRITE,
    "sudo": _WRITE | {"sudo"},
}

UNSUPPORTED: Final = frozenset(
    {"control_group", "expiration", "list_scan_response_keys_filter_path", "mfa_methods", "pagination_limit"}
)
"""Restrictions in Vault's policies. Ignoring one would grant more than its author intended."""

KEYS: Final[Mapping[str, str]] = {
    "capabilities": "a list of capabilities",
    "policy": "the older form of `capabilities`: one word",
    "required_parameters": "a list of fields that the request must have",
    "allowed_parameters": "fields that the request may have, each with a list of values; `[]`: any "
    'value. All other fields are refused, unless `"*" = []` allows them. If the field is a list, '
    "each of its elements must match a value",
    "denied_parameters": "fields that the request must not have, each with a list of values; `[]`: any "
    "value; the field `*`: any field. They take precedence over `allowed_parameters`, and ignore "
    "case. If the field is a list, one matching element is enough",
    "min_wrapping_ttl": "the response must be wrapped, for at least this long",
    "max_wrapping_ttl": "the response must be wrapped, for at most this long",
    "comment": "nothing; it is a note for readers",
}
"""The keys that the block of a rule may have."""

CAPABILITIES_ALONE: Final = frozenset({"capabilities"})
"""What most rules have. A policy may hold thousands, so the rest is not looked for."""

Values = Mapping[str, tuple[Json, ...]]
"""Parameter names in lower case, with their allowed or denied values; empty: any value."""


def _deny_alone(capabilities: frozenset[str]) -> frozenset[str]:
    return DENY if "deny" in capabilities else capabilities


@frozen
class Rule:
    """The rule of a policy for one pattern of paths. `deny` excludes all other capabilities."""

    pattern: str
    capabilities: frozenset[str] = field(converter=_deny_alone)
    allowed_parameters: Values = field(factory=dict)
    """In a value, `*` at either end matches any text."""
    denied_parameters: Values = field(factory=dict)
    """In a value, each `*` matches any text."""
    required_parameters: tuple[str, ...] = ()
    min_wrapping_ttl: int = 0
    """Seconds; 0: no limit."""
    max_wrapping_ttl: int = 0

    @property
    def has_inner_stars(self) -> bool:
        """Return whether it allows a value with a `*` in the middle, which is literal.

        New policies must not have one.
        """
        return any(
            isinstance(value, str) and "*" in value[1:-1]
            for values in self.allowed_parameters.values()
            for value in values
        )


@frozen
class Policy:
    """A stored policy: its text, and the rules that were parsed from it once."""

    name: str
    text: str
    rules: tuple[Rule, ...]

    @property
    def has_inner_stars(self) -> bool:
        return any(rule.has_inner_stars for rule in self.rules)


def parse(name: str, text: str) -> Policy:
    """Parse a policy; an empty text grants nothing. Refuse with `POLICY_INVALID`.

    JSON starts with a brace, and everything else is HCL. Both may be base64-encoded.
    """
    if len(text) > LONGEST:
        _refuse(f"longer than {LONGEST} characters")
    text = _decoded(text)
    if not text.strip():
        return Policy(name, text, ())
    document = _json(text) if text.lstrip().startswith("{") else hcl.parse(text)
    if not document.keys() <= {"path", "name"}:
        _refuse('the document may hold only "path" and "name"')
    if not isinstance(document.get("name", ""), str):
        _refuse('"name" must be a string')
    return Policy(name, text, tuple(_rules(document.get("path", []))))


def _decoded(text: str) -> str:
    try:
        return b64decode(text, validate=True).decode()
    except ValueError:
        return text


def _json(text: str) -> dict[str, Json]:
    try:
        json_text.decode(text)  # stricter than `json`, and its work is bounded
        document: dict[str, Json] = json.loads(text, object_pairs_hook=_unique)
    except json_text.TooComplex as error:
        _refuse(f"the JSON {error}")
    except ValueError:
        _refuse(_fault(text))
    return document


def _fault(text: str) -> str:
    """Return what is wrong with a text that is not JSON."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return f"at line {error.lineno}, column {error.colno}"
    except (ValueError, RecursionError):
        pass
    return "the JSON holds a number or character that is out of range"


def _unique(members: list[tuple[str, Json]]) -> dict[str, Json]:
    """Return an object with unique names. Of two equal names the last would win, so a `deny` could be lost."""
    unique = dict(members)
    if len(unique) != len(members):
        _refuse("a name is repeated in an object")
    return unique


def _rules(paths: Json) -> Iterable[Rule]:
    number = 0
    for group in _objects(paths, '"path"'):
        for pattern, blocks in group.items():
            for block in _objects(blocks, "a path"):
                number += 1
                try:
                    yield _rule(pattern, block)
                except ValueError as error:
                    _refuse(f"path {number}: {error}")


def _objects(raw: Json, what: str) -> list[dict[str, Json]]:
    """Return the objects in an object or a list of objects: repeated HCL blocks, and their JSON form."""
    objects = raw if isinstance(raw, list) else [raw]
    if not all(isinstance(each, dict) for each in objects):
        _refuse(f"{what} must hold objects")
    return objects


def _rule(pattern: str, block: dict[str, Json]) -> Rule:
    """Return the rule of one block. The text of a `ValueError` says what is wrong, and contains no input."""
    if "+*" in pattern:
        raise ValueError("+* is not a pattern")
    if "{{" in pattern:
        raise ValueError("templates are not supported")
    if not UNSUPPORTED.isdisjoint(block):
        raise ValueError("one of " + ", ".join(sorted(UNSUPPORTED)) + " is used, and none is supported")
    if not block.keys() <= KEYS.keys():
        raise ValueError("the keys are " + ", ".join(sorted(KEYS)))
    rule = Rule(pattern.removeprefix("/"), _capabilities(block))
    if rule.capabilities == DENY or block.keys() == CAPABILITIES_ALONE:
        return rule
    rule = evolve(
        rule,
        allowed_parameters=_values(block, "allowed_parameters"),
        denied_parameters=_values(block, "denied_parameters"),
        required_parameters=tuple(name.lower() for name in _texts(block, "required_parameters")),
        min_wrapping_ttl=duration.seconds(block.get("min_wrapping_ttl")),
        max_wrapping_ttl=duration.seconds(block.get("max_wrapping_ttl")),
    )
    if rule.has_inner_stars:
        raise ValueError("a value of allowed_parameters can have * only at its start or end")
    if 0 < rule.max_wrapping_ttl < rule.min_wrapping_ttl:
        raise ValueError("max_wrapping_ttl is less than min_wrapping_ttl")
    return rule


def _capabilities(block: dict[str, Json]) -> frozenset[str]:
    named = frozenset(_texts(block, "capabilities"))
    if not named <= CAPABILITIES.keys():
        raise ValueError("the capabilities are " + ", ".join(sorted(CAPABILITIES)))
    if "policy" in block:
        level = block["policy"]
        if not isinstance(level, str) or level not in OLD_LEVELS:
            raise ValueError("policy must be one of " + ", ".join(OLD_LEVELS))
        named |= OLD_LEVELS[level]
    return named


def _texts(block: dict[str, Json], key: str) -> list[str]:
    texts = block.get(key, [])
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"{key} must be a list of strings")
    return texts


def _values(block: dict[str, Json], key: str) -> Values:
    """Return the parameters of a rule. In HCL they are an object, or blocks, which are a list of objects."""
    objects = block.get(key, {})
    objects = objects if isinstance(objects, list) else [objects]
    members = [member for each in objects if isinstance(each, dict) for member in each.items()]
    if not all(isinstance(each, dict) for each in objects) or not all(
        isinstance(values, list) and all(map(_is_value, values)) for _, values in members
    ):
        raise ValueError(f"{key} must map names to lists of strings, integers, booleans, lists or objects")
    if len({name.lower() for name, _ in members}) != len(members):
        raise ValueError(f"{key} repeats a name")
    return {name.lower(): tuple(values) for name, values in members}


def _is_value(value: Json) -> bool:
    match value:
        case list():
            return all(map(_is_value, value))
        case dict():
            return all(map(_is_value, value.values()))
        case _:
            return isinstance(value, str) or (isinstance(value, int) and abs(value) < 2**63)


def _refuse(detail: str) -> NoReturn:
    raise Refused(Code.POLICY_INVALID, detail) from None
