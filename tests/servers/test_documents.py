"""Printed parts of pages are those of the code; the commands and errors that the operators' page shows exist."""

from __future__ import annotations

import re
from typing import Final

from cloudid_core.errors import Code
from cloudid_servers.command.documents import DOCS, PAGES, PARTS, printed
from cloudid_servers.provider_simulator.documents import page

TEXT: Final = (DOCS / "reference" / "settings.md").read_text()


def test_the_page_about_the_simulator_is_what_it_says_of_itself() -> None:
    """`docs/reference/simulator.md` is what `python -m cloudid_servers.provider_simulator.documents` prints."""
    assert (DOCS / "reference" / "simulator.md").read_text() == page()


def test_the_printed_parts_are_those_of_the_code() -> None:
    """`python -m cloudid_servers.command.documents` writes them."""
    texts = [path.read_text() for path in PAGES]
    assert [printed(text) for text in texts] == texts
    assert sorted(name for text in texts for name in re.findall(r"<!-- printed: (\w+) -->", text)) == sorted(PARTS)


def test_the_error_codes_exist() -> None:
    shown = set(re.findall(r"(?:code|503) `([a-z_]+)`", TEXT))
    assert shown
    assert shown <= {code.wire for code in Code}
