"""Lists of texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.values import listing
from cloudid_core.values.json_text import MOST_VALUES


@pytest.mark.parametrize(
    "raw, expected",
    [
        (None, ()),
        ("", ()),
        (" ", ()),
        (",", ("", "")),
        ([], ()),
        ("a", ("a",)),
        (" a , b,c ", ("a", "b", "c")),
        ("a,,b,", ("a", "", "b", "")),
        (["a", " b "], ("a", "b")),
        (["a,b"], ("a,b",)),
        (["a", "", None], ("a", "", "")),
        ([1, True, 1.5], ("1", "1", "1.5")),
        (5, ("5",)),
        (("a", "b"), ("a", "b")),
    ],
)
def test_comma_list(raw: object, expected: tuple[str, ...]) -> None:
    assert listing.comma_list(raw) == expected


@pytest.mark.parametrize(
    "raw, expected",
    [
        (None, ()),
        ("", ()),
        ("a, b", ("a, b",)),
        (["a, b", " c "], ("a, b", " c ")),
        ([""], ("",)),
        (5, ("5",)),
    ],
)
def test_string_list_splits_and_trims_nothing(raw: object, expected: tuple[str, ...]) -> None:
    assert listing.string_list(raw) == expected


@pytest.mark.parametrize("raw", [{}, {"a": "b"}, [["a"]], ["a", {}], b"a"])
def test_what_is_no_list_is_refused_as_such(raw: object) -> None:
    """The error speaks of a list: that the field could be a string is beside the point."""
    for read in (listing.comma_list, listing.string_list):
        with pytest.raises(ValueError, match="must be a list of strings"):
            read(raw)


@pytest.mark.parametrize(
    "raw, expected",
    [
        (None, {}),
        ("", {}),
        ({}, {}),
        ([], {}),
        ({"a": "b", "n": 1, "t": True, "x": None}, {"a": "b", "n": "1", "t": "1", "x": ""}),
        ("a=b", {"a": "b"}),
        ("a=b,c=d", {"a": "b,c=d"}),
        (["a=b", "c=d=e", "f="], {"a": "b", "c": "d=e", "f": ""}),
        (["a=1", "a=2"], {"a": "2"}),
    ],
)
def test_key_values(raw: object, expected: dict[str, str]) -> None:
    assert listing.key_values(raw) == expected


@pytest.mark.parametrize(
    "raw", ["secret", ["secret"], ["=secret"], ["a=b", ""], {"a": ["secret"]}, [{"a": "secret"}], 5]
)
def test_key_values_refuse(raw: object) -> None:
    with pytest.raises(ValueError) as caught:
        listing.key_values(raw)
    assert "secret" not in str(caught.value)


@given(st.lists(st.text(alphabet="ab-_.* é", min_size=1).map(str.strip).filter(bool)))
def test_a_list_and_its_comma_separated_text_are_one(elements: list[str]) -> None:
    assert listing.comma_list(elements) == listing.comma_list(" , ".join(elements)) == tuple(elements)


@given(st.dictionaries(st.text(min_size=1).filter(lambda key: "=" not in key), st.text()))
def test_an_object_and_its_pairs_are_one(members: dict[str, str]) -> None:
    pairs = [f"{key}={value}" for key, value in members.items()]
    assert listing.key_values(pairs) == listing.key_values(members) == members


@pytest.mark.parametrize("raw", [",a" * MOST_VALUES, "," * MOST_VALUES])
def test_a_text_has_no_more_elements_than_a_json_list_may_have(raw: str) -> None:
    assert len(listing.comma_list(raw[: MOST_VALUES - 1])) <= MOST_VALUES
    with pytest.raises(ValueError, match="must have at most 32768 elements"):
        listing.comma_list(raw)
