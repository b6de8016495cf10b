"""Case folding."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.values.folding import fold, fold_location

KELVIN = "\N{KELVIN SIGN}"
DOTLESS_I = "\N{LATIN SMALL LETTER DOTLESS I}"
DOTTED_I = "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}"
LONG_S = "\N{LATIN SMALL LETTER LONG S}"


@pytest.mark.parametrize("left, right", [("West", "wEST"), ("GROẞE-Ä", "groẞe-ä"), ("ДОМ", "дом"), ("ŽÉ", "žé")])
def test_the_cases_of_a_letter_are_one(left: str, right: str) -> None:
    assert fold(left) == fold(right)


@pytest.mark.parametrize(
    "left, right",
    [
        ("straße", "strasse"),
        ("STRAẞE", "straße"),
        (KELVIN, "k"),
        (DOTLESS_I, "i"),
        (DOTTED_I, "i"),
        (LONG_S, "s"),
        ("ﬁ", "fi"),
    ],
)
def test_different_letters_stay_apart(left: str, right: str) -> None:
    assert fold(left) != fold(right)


@given(st.characters(), st.characters())
def test_only_upper_and_lower_case_meet(left: str, right: str) -> None:
    if fold(left) == fold(right):
        assert left == right or left == right.upper() or right == left.upper()


def test_every_letter_folds_to_the_letter_whose_upper_case_it_is() -> None:
    letters = [chr(code) for code in range(sys.maxunicode + 1)]
    expected = [lower if (lower := letter.lower()).upper() == letter else letter for letter in letters]
    assert list(map(fold, letters)) == expected


def test_a_letter_folds_alike_wherever_it_stands() -> None:
    capital, small = "\N{GREEK CAPITAL LETTER SIGMA}", "\N{GREEK SMALL LETTER SIGMA}"
    assert fold(f"A{capital} {capital}A{KELVIN}{capital}") == f"a{small} {small}a{KELVIN}{small}"


@given(st.text())
def test_folding_is_done_once(text: str) -> None:
    assert fold(fold(text)) == fold(text)
    assert len(fold(text)) == len(text)


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_ascii_folds_as_ever(text: str) -> None:
    assert fold(text) == text.casefold()


@pytest.mark.parametrize("raw", ["westus2", "West US 2", " WEST US\t2 ", "WestUS2"])
def test_spellings_of_one_location(raw: str) -> None:
    assert fold_location(raw) == "westus2"


def test_different_locations_stay_apart() -> None:
    assert fold_location("West US 2") != fold_location("West US 3")


@pytest.mark.parametrize("raw", [None, 2, ["westus2"]])
def test_what_is_no_location(raw: object) -> None:
    with pytest.raises(ValueError, match=r"^must be a location$"):
        fold_location(raw)


@given(st.text())
def test_folding_a_location_is_done_once(raw: str) -> None:
    assert fold_location(fold_location(raw)) == fold_location(raw)
