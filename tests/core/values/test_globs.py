"""Patterns in which each `*` stands for any text."""

from __future__ import annotations

from fnmatch import fnmatchcase
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.values.globs import have_common, is_like
from tests.sampling import examples

ALPHABET = "ab*/"


@given(text=st.text("ab/", max_size=8), pattern=st.text(ALPHABET, max_size=6))
@examples(20)
def test_patterns_are_matched_as_a_shell_does(text: str, pattern: str) -> None:
    assert is_like(text, pattern) == fnmatchcase(text, pattern)
    assert have_common(text, pattern) == have_common(pattern, text) == fnmatchcase(text, pattern)


def test_patterns_have_a_common_text_exactly_if_one_can_be_found() -> None:
    """A common text needs no more letters than both patterns have."""
    patterns = ["".join(letters) for length in range(4) for letters in product("ab*", repeat=length)]
    texts = ["".join(letters) for length in range(7) for letters in product("ab", repeat=length)]
    matched = {pattern: {text for text in texts if fnmatchcase(text, pattern)} for pattern in patterns}
    for first, second in product(patterns, repeat=2):
        assert have_common(first, second) is not matched[first].isdisjoint(matched[second]), (first, second)
