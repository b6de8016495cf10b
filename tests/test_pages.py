"""Every link in a page of this repository leads somewhere: to a file that is there, and to a heading in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from .test_laws import ROOT, files_of_the_repository

PAGES: Final = tuple(sorted(path for path in files_of_the_repository() if path.suffix == ".md"))

_CODE: Final = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_INLINE: Final = re.compile(r"\]\(([^)\s]+)\)")
_DEFINITION: Final = re.compile(r"^\[(.+?)\]: (\S+)$", re.MULTILINE)
_HEADING: Final = re.compile(r"^#+ (.+)$", re.MULTILINE)
_ELSEWHERE: Final = re.compile(r"[a-z]+:")


def links(text: str) -> Iterator[str]:
    """The targets of a page, except addresses on the web."""
    shown = _CODE.sub("", text)
    for target in (*_INLINE.findall(shown), *(target for _, target in _DEFINITION.findall(shown))):
        if not _ELSEWHERE.match(target):
            yield target


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings: lower case, blanks as hyphens, without punctuation."""
    headings = _HEADING.findall(_CODE.sub("", text))
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path, text: str) -> list[str]:
    """The links of a page that lead nowhere."""
    broken = []
    for target in links(text):
        name, _, anchor = target.partition("#")
        path = (page.parent / name) if name else page
        if not path.exists() or (anchor and anchor not in anchors(text if path == page else path.read_text())):
            broken.append(target)
    return broken


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    assert broken_links(ROOT / page, (ROOT / page).read_text()) == []


@pytest.mark.parametrize(
    "text",
    [
        "[a page](docs/missing.md)",
        "[a heading](docs/clients.md#missing)",
        "# Here\n[a heading of this page](#missing)",
        "[`name`]\n\n[`name`]: docs/missing.md",
    ],
)
def test_a_link_that_leads_nowhere_is_noticed(text: str) -> None:
    assert len(broken_links(ROOT / "README.md", text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "[a page](docs/clients.md)",
        "[the web](https://example.com/missing)",
        "# It's here: now\n[a heading](#its-here-now)",
        "```\n[code](missing)\n```",
    ],
)
def test_other_links_pass(text: str) -> None:
    assert broken_links(ROOT / "README.md", text) == []
