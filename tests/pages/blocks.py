"""Blocks: the code that a page shows, and the marks above it that say what the tests do with it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from typing import Final

from attrs import frozen

ROOT: Final = Path(__file__).parents[2]

_BLOCK: Final = re.compile(
    r"(?P<marks>(?:^ *<!-- [^\n]* -->\n)*)^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$",
    re.DOTALL | re.MULTILINE,
)
_MARK: Final = re.compile(r"<!-- ([^:\n]+?)(?:: (.*?))? -->")


@frozen
class Block:
    """A block of code: its language, its text, and the marks directly above it, by name."""

    language: str
    text: str
    marks: Mapping[str, str]
    line: int
    """Of the block's first line of code in its page, from 1."""


def blocks_of(page: str, language: str = "") -> list[Block]:
    """The blocks of a page of the repository, or those in a language."""
    text = (ROOT / page).read_text()
    return [block for block in parse(text) if language in ("", block.language)]


def python_of(page: str) -> list[str]:
    """The Python code of a page."""
    return [block.text for block in blocks_of(page, "python")]


def parse(text: str) -> list[Block]:
    """The blocks of a text. A mark is a comment on a line of its own: `<!-- name -->`, `<!-- name: value -->`."""
    return [
        Block(
            found["language"],
            dedent(found["text"]) if found["indent"] else found["text"],
            {name: value or "" for name, value in _MARK.findall(found["marks"])},
            text.count("\n", 0, found.start("text")) + 1,
        )
        for found in _BLOCK.finditer(text)
    ]
