"""The page about policies has all of the language."""

from __future__ import annotations

import re
from typing import Final

import pytest

from cloudid_core.policies.document import CAPABILITIES, KEYS, UNSUPPORTED

from .blocks import ROOT

WORDS: Final = frozenset(re.findall(r"\w+", (ROOT / "docs/how-to/policies.md").read_text()))


@pytest.mark.parametrize("words", [CAPABILITIES, KEYS, UNSUPPORTED])
def test_every_word_of_the_language_is_on_the_page(words: frozenset[str]) -> None:
    assert sorted(words - WORDS) == []
