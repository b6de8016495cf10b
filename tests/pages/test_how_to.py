"""How-to pages are executed as they stand: by a shell in an empty folder, beside a server and a simulated cloud."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.servers.running import SERVERS

from .blocks import ROOT, blocks_of
from .runner import Command, check, commands, missing_programs, place, steps_of

pytestmark = pytest.mark.one_server

FOLDERS: Final = ("docs/start", "docs/how-to", "docs/hosting")
OF_CODE: Final = ("embed", "recipes", "serve-with-a-host", "verify-only", "write-a-host", "write-a-store")
"""Pages for embedders: other tests run the code that they show."""
PAGES: Final = tuple(
    str(path.relative_to(ROOT))
    for folder in FOLDERS
    for path in sorted((ROOT / folder).glob("*.md"))
    if path.stem not in OF_CODE
)


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("page", PAGES)
def test_the_page_shows_what_comes(page: str, server: str, tmp_path: Path) -> None:
    text = (ROOT / page).read_text()
    if missing := missing_programs(text, "curl", "jq", "bash"):
        pytest.skip(f"needs {', '.join(missing)}")
    with place(server, text) as at:
        check(text, at, tmp_path)


def test_the_readme_shows_what_pages_show() -> None:
    """The commands of its block, and what it shows below them, are on pages that are executed."""
    [block] = [block for block in blocks_of("README.md", "console") if "needs a tenant" in block.marks]
    steps = [step for page in PAGES for step in steps_of((ROOT / page).read_text()) if isinstance(step, Command)]
    assert {(each.text, each.shown) for each in commands(block)} <= {(step.text, step.shown) for step in steps}
