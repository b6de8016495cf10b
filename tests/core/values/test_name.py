"""Names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.values.name import name


@pytest.mark.parametrize("raw", ["a", "_", "0", "dev-role", "a.b", "a..b", "a-._-b", "_x_", "A" * 128])
def test_name(raw: str) -> None:
    assert name(raw) == raw.lower()


@pytest.mark.parametrize(
    "raw",
    [
        "",
        ".",
        "..",
        "-a",
        "a-",
        ".a",
        "a.",
        "a/b",
        "a b",
        "a\n",
        "a\0",
        "é",
        "\N{KELVIN SIGN}",
        "٣",
        "a%2fb",
        "A" * 129,
        None,
        1,
        [],
    ],
)
def test_what_is_no_name(raw: object) -> None:
    with pytest.raises(ValueError, match=r"^must be 1 to 128 letters"):
        name(raw)


@given(st.from_regex(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,126}[A-Za-z0-9_])?", fullmatch=True))
def test_names_ignore_case_and_stay_as_they_are(raw: str) -> None:
    assert name(raw) == name(raw.upper()) == name(name(raw)) == raw.lower()


@given(st.text(max_size=6))
def test_only_safe_characters_get_through(raw: str) -> None:
    try:
        found = name(raw)
    except ValueError:
        return
    assert found.isascii()
    assert found.replace("-", "_").replace(".", "_").replace("_", "a").isalnum()
