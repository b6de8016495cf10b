"""No regular expression of the service takes more than linear time, whatever it is given."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest
from attrs import frozen

import cloudid_core
import cloudid_servers
from tests.properties.patterns import SEARCHES, ambiguity, patterns_in

USES: Final = SEARCHES | {"match", "fullmatch"}
NOT_SERVED: Final = "cloudid_servers.provider_simulator"
HARMLESS: Final = {
    "cloudid_core.errors._ANSWERED": "reads reasons, which are short texts of this service",
    "cloudid_core.policies.hcl._SPACE": "nothing follows the repeat: where a comment is not closed, it ends before it",
    "cloudid_core.values.duration._PART": "reads durations, which are short",
    "cloudid_servers.settings.settings._LIKE_ADDRESS": "reads the settings of an operator",
}
"""Patterns that read some texts in many ways, and why that costs nothing."""

HARMLESS_IN_FUNCTIONS: Final = {"(?<=//).*@": "reads the address of a database, which an operator wrote"}

MADE_AT_USE: Final = {
    "cloudid_core/provider/granted.py": "the actions of a role definition at the provider",
    "cloudid_core/token_store/roles.py": "`fnmatch.translate` never tries a star twice",
    "cloudid_servers/transcripts/evidence.py": "a path of a table, matched with a path of the product",
    "cloudid_servers/settings/master_key.py": "a number of digits, which the code has",
}
"""Where patterns are made of data, and of which."""


@frozen
class Used:
    """A pattern, its place, and the methods by which it is used."""

    place: str
    pattern: re.Pattern[Any]
    uses: frozenset[str]


def modules() -> Iterator[ModuleType]:
    for package in (cloudid_core, cloudid_servers):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.startswith(NOT_SERVED) and not found.name.endswith("__main__"):
                yield importlib.import_module(found.name)


def source(module: ModuleType) -> ast.Module:
    return ast.parse(Path(str(module.__file__)).read_text("utf-8"))


def methods_used(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The names in a module, or of other modules, and the methods that are called of them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in USES:
            if isinstance(node.value, ast.Name):
                yield node.value.id, node.attr
            elif isinstance(node.value, ast.Attribute):
                yield node.value.attr, node.attr


def used_patterns() -> Iterator[Used]:
    """The patterns of all modules. A name with an underscore is used in its module alone."""
    by_module = {module: list(methods_used(source(module))) for module in modules()}
    everywhere = [each for calls in by_module.values() for each in calls]
    for module, own in by_module.items():
        for name, value in vars(module).items():
            for pattern in patterns_in(value):
                calls = own if name.startswith("_") else everywhere
                uses = frozenset(method for used, method in calls if used == name)
                yield Used(f"{module.__name__}.{name}", pattern, uses or frozenset({"fullmatch"}))


def patterns_of_functions() -> Iterator[tuple[str, str | None, str]]:
    """The patterns that functions use without a name: the place, the text (`None`: it is made then), and the use."""
    for module in modules():
        for function in ast.walk(source(module)):
            if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            for node in ast.walk(function):
                match node:
                    case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=use), args=[first, *_]):
                        if use in USES | {"compile"}:
                            place = module.__name__.replace(".", "/") + ".py"
                            text = str(first.value) if isinstance(first, ast.Constant) else None
                            yield place, text, "fullmatch" if use == "compile" else use


def test_no_pattern_reads_one_text_in_many_ways() -> None:
    found = list(used_patterns())
    assert len({each.pattern for each in found}) > 50
    ambiguous = {each.place: reason for each in found if (reason := ambiguity(each.pattern, each.uses))}
    for place in HARMLESS:
        assert ambiguous.pop(place, None), f"{place} is not ambiguous"
    assert ambiguous == {}


def test_no_pattern_within_a_function_reads_one_text_in_many_ways() -> None:
    made = {place for place, text, _ in patterns_of_functions() if text is None}
    assert made == MADE_AT_USE.keys()
    texts = [(place, text, use) for place, text, use in patterns_of_functions() if text is not None]
    ambiguous = {text for _, text, use in texts if ambiguity(re.compile(text), frozenset({use}))}
    assert ambiguous == HARMLESS_IN_FUNCTIONS.keys()


@pytest.mark.parametrize(
    "pattern, match, fullmatch, search",
    [
        ("a+", False, False, False),
        ("a*b*", False, False, False),
        ("ba*", False, False, False),
        ("a*a*", False, True, False),
        ("a*a*b", True, True, True),
        ("a+b", False, False, True),
        ("a+$", False, False, True),
        ("(a*)*b", True, True, True),
        ("(a|a)*b", True, True, True),
        ("(ab?a?)*c", True, True, True),
        ("(?:a++|b++)*c", False, False, True),
        ("[^\\r]*?[\\t ]*\\r", True, True, True),
        ("\\w+\\d{1,2000}x", True, True, True),
        ("\\w+\\d{1,20}x", False, False, True),
        ("(?i:k*)\N{KELVIN SIGN}*x", True, True, True),
    ],
)
def test_what_reads_one_text_in_many_ways_is_found(pattern: str, match: bool, fullmatch: bool, search: bool) -> None:
    compiled = re.compile(pattern)
    found = [bool(ambiguity(compiled, frozenset({use}))) for use in ("match", "fullmatch", "search")]
    assert found == [match, fullmatch, search]
