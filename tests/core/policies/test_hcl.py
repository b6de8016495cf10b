"""HCL texts of policies: what is read, what is refused, and that hostile texts cost little."""

from __future__ import annotations

import sys
from time import process_time
from typing import Any

import pytest

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
        ("a = f(1)", "line 1, column 6"),
        ('a = "open', "line 1, column 5"),
        ("/* open", "line 1, column 1"),
        ("a = [b]", "not quoted"),
        ('a = "\\q"', "bad escape"),
        ("a = [for x in y : x]", "not quoted"),
        ("a " + '"b"' * 3000 + " {}", "not well-formed"),
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


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 20_000,
        "a {" * 20_000,
        "a = [" + "1," * 200_000 + "]",
        "a = <<E" + "\n" * 200_000,
        "/*" * 100_000,
        "a = " + '"' * 200_001,
        "a = " + '"' + "\\\\" * 100_000,
        "a = " + '"' + "$" * 200_000,
        "-" * 200_000,
        "a " * 200_000,
    ],
)
def test_hostile_texts_are_refused_at_once(text: str) -> None:
    started = process_time()
    refusal(text)
    assert process_time() - started < 1.5


def test_without_the_parser_hcl_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hcl2", None)
    assert "not installed" in refusal('path "a" {}')
