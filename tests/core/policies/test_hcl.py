"""HCL texts of policies: what is read, what is refused, and that a library reads the same."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import hcl2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.errors import Code, Refused
from cloudid_core.policies import hcl


def refusal(text: str) -> str:
    with pytest.raises(Refused) as caught:
        hcl.parse(text)
    assert caught.value.code is Code.POLICY_INVALID
    return caught.value.problems[0].detail


@pytest.mark.parametrize(
    "text, members",
    [
        ("", {}),
        ("# one\n// two\n/* three\n */", {}),
        ('name = "dev"', {"name": "dev"}),
        ('path "a" {}', {"path": [{"a": {}}]}),
        ('path "a" {}\npath "a" {}', {"path": [{"a": {}}, {"a": {}}]}),
        ('path "a" { capabilities = ["read", "list"] } # end', {"path": [{"a": {"capabilities": ["read", "list"]}}]}),
        (
            'path "a" {\r\n  capabilities = [ // why\n    "read",\n  ]\r\n}\r\n',
            {"path": [{"a": {"capabilities": ["read"]}}]},
        ),
        ('a = {"x" = []\n y = [1, true, "*"], "*" : []}', {"a": {"x": [], "y": [1, True, "*"], "*": []}}),
        (r'a = "\"\\\t\u00e9"', {"a": '"\\\té'}),
        ('a = "$ % { # //"', {"a": "$ % { # //"}),
        ("a = null\nb = 007", {"a": None, "b": 7}),
        ('a "x" true {}\na b {c {}}', {"a": [{"x": {"true": {}}}, {"b": {"c": [{}]}}]}),
        ('path "a" { b = ["c"], d {} }, path "e" {},', {"path": [{"a": {"b": ["c"], "d": [{}]}}, {"e": {}}]}),
        (
            '"path" "a" { "b" = ["c"] "d" { "e" = [], "*" = [] } }',
            {"path": [{"a": {"b": ["c"], "d": [{"e": [], "*": []}]}}]},
        ),
        ("a = {b = {1 = [[2], []]} c: 3, true = {}}", {"a": {"b": {"1": [[2], []]}, "c": 3, "true": {}}}),
    ],
)
def test_reads(text: str, members: dict[str, Any]) -> None:
    assert hcl.parse(text) == members


@pytest.mark.parametrize(
    "text, where",
    [
        ('path "a" {\n  capabilities = ["read"\n}', "line 3"),
        ('path "a"\n  {}}', "line 2"),
        ("a = <<E\nx\nE\n", "line 1, column 5"),
        ('\na = "${b}"', "line 2, column 5"),
        ('a = "%{ if b }"', "line 1, column 5"),
        ('a = "b" + "c"', "line 1, column 9"),
        ("a = f(1)", "line 1, column 5"),
        ("a = 1 + 2", "line 1, column 7"),
        ("a = 1b", "line 1, column 5"),
        ("a = [1 2]", "expected , or ] at line 1, column 8"),
        ("a = {b {}}", "line 1, column 8"),
        ("a = 1,, b = 2", "expected a name at line 1, column 7"),
        ('path "a" {\n  capabilities ["read"]\n}', "expected = or { at line 2, column 16"),
        ('path "a" { capabilities = [] ] }', "expected a name or } at line 1, column 30"),
        ('path "a" { capabilities = }', "expected a value at line 1, column 27"),
        ("{}", "expected a name at line 1, column 1"),
        ("a = {[]}", "expected a name or a string at line 1, column 6"),
        ("a = {b []}", "expected = or : at line 1, column 8"),
        ("a: 1", "line 1, column 2"),
        ('a = "open', "unterminated string, or a template in a string, at line 1, column 5"),
        ("/* open", "unterminated comment at line 1, column 1"),
        ("a = [b]", "unquoted string"),
        ('a = "\\q"', "invalid escape"),
        ("a = [for x in y : x]", "unquoted string"),
        ("a " + '"b"' * 3000 + " {}", "nested too deeply at line 1, column 27"),
        ("a {" * 9 + "}" * 9, "nested too deeply at line 1"),
        ("a = [" + "1," * 20_000 + "]", "too large at line 1"),
    ],
)
def test_the_error_names_line_and_column(text: str, where: str) -> None:
    assert where in refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        'path "a" {\n capabilities = ["deny"]\n capabilities = ["read"]\n}',
        'path "a" { capabilities = ["deny"] }\npath = {"a" = {}}',
        'path "a" { capabilities = ["deny"] }\npath = []',
        'a = {"x" = [], "x" = [1]}',
        'a = {"x" = [], x = [1]}',
        r'a = {"x" = [], "\u0078" = [1]}',
    ],
)
def test_a_repeated_assignment_is_refused(text: str) -> None:
    """The last of two would win, and the first may be the one that denies."""
    assert "repeated assignment" in refusal(text)


def test_the_input_is_not_in_the_error() -> None:
    texts = ['s3cret = = "s3cret"', "s3cret = [s3cret]", 's3cret = "s3cret ${s3cret}"', 's3cret = "\\q s3cret"']
    assert [text for text in texts if "s3cret" in refusal(text)] == []


TOKEN: Final = re.compile(
    r"""(?P<comment>(?:\#|//)[^\n]*|/\*.*?\*/)|"(?:[^"\\]|\\.)*"|[A-Za-z_][A-Za-z0-9_-]*|[0-9]+|[{}\[\],=:]""",
    re.DOTALL | re.VERBOSE,
)
NAME_IN_QUOTES: Final = re.compile(r'"[A-Za-z_][A-Za-z0-9_-]*"')


def in_the_second_version(text: str) -> str | None:
    """A document on one line, without what only the first version of HCL has: commas after assignments and blocks, and
    members whose names are in quotes. `None`: a name needs its quotes."""
    kept: list[str] = []
    opened, is_first = ["block"], True
    for token in (match[0] for match in TOKEN.finditer(text) if not match["comment"]):
        word = token
        if opened[-1] == "block" and token == ",":
            continue
        if opened[-1] == "block" and is_first and token.startswith('"'):
            if not NAME_IN_QUOTES.fullmatch(token):
                return None
            word = token.strip('"')
        before = kept[-1] if kept else ""
        if token in ("[", "{"):
            opened.append("value" if token == "[" or before in ("=", ":", "[", ",") else "block")
        elif token in ("]", "}"):
            opened.pop()
        is_first = token in ("{", "}", "]") or before == "="
        kept.append(word)
    return " ".join(kept)


def read_by_the_library(text: str) -> dict[str, Any]:
    """The document as `python-hcl2` reads it, which leaves a text in its quotes."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {plain(name) if name.startswith('"') else name: plain(member) for name, member in value.items()}
        if isinstance(value, list):
            return [plain(element) for element in value]
        return json.loads(value) if isinstance(value, str) else value

    options = hcl2.SerializationOptions(with_comments=False, explicit_blocks=False)
    read: dict[str, Any] = plain(hcl2.loads(text, serialization_options=options))
    return read


NAMES = st.sampled_from(["a", "b-c", "path", "_", "true"])
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="$%")).map(json.dumps)
SPACES = st.sampled_from([" ", "\t", "\n", "\r\n", "# b = {\n", '// "\n', " /* ] \n */ "])
BLANKS = st.sampled_from([" ", "", "\t"])


def joined(*parts: st.SearchStrategy[str] | str) -> st.SearchStrategy[str]:
    return st.tuples(*(st.just(part) if isinstance(part, str) else part for part in parts)).map("".join)


def listed(element: st.SearchStrategy[str], start: str, end: str) -> st.SearchStrategy[str]:
    elements = st.lists(joined(SPACES, element, SPACES), max_size=3)
    return joined(start, elements.map(",".join), SPACES, end)


VALUES = st.recursive(
    TEXTS | st.integers(0, 10**18).map(str) | st.sampled_from(["true", "false", "null"]),
    lambda inner: listed(inner, "[", "]") | listed(joined(TEXTS | NAMES, BLANKS, "=", BLANKS, inner), "{", "}"),
    max_leaves=4,
)
COMMAS = st.sampled_from(["", "", ","])
MEMBERS = NAMES | NAMES.map(json.dumps)
ASSIGNMENTS = joined(MEMBERS, BLANKS, "=", BLANKS, VALUES, SPACES, COMMAS, SPACES)
LABELS = st.lists(joined(TEXTS | NAMES, " "), max_size=2).map("".join)
BODIES = st.recursive(
    ASSIGNMENTS,
    lambda inner: st.lists(
        inner | joined(MEMBERS, " ", LABELS, "{", inner, "}", COMMAS, SPACES),
        max_size=3,
    ).map("".join),
    max_leaves=4,
)
TOKENS = st.sampled_from([*'[]{},=:"', '"x"', "1", "a", "b", "true", "\n", "#", "$", "-"])


def is_read_alike(text: str) -> bool:
    """Whether the library reads the same, if anything is read; `False`: nothing is."""
    try:
        read = hcl.parse(text)
    except Refused:
        return False
    second = in_the_second_version(text)
    assert second is None or read == read_by_the_library(second)
    return True


@given(BODIES)
def test_documents_are_read_as_the_library_reads_them(text: str) -> None:
    if not is_read_alike(text):
        assert re.match("repeated assignment|too deep", refusal(text))


@given(st.lists(TOKENS, max_size=12).map(" ".join))
def test_what_is_read_of_any_tokens_the_library_reads_alike(text: str) -> None:
    is_read_alike(text)
