"""How-to pages are executed as they stand: by a shell in an empty folder, beside a server and a simulated cloud."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.servers.running import SERVERS

from .blocks import ROOT
from .runner import check, missing_programs, place

pytestmark = pytest.mark.one_server

PAGES: Final = sorted(
    str(path.relative_to(ROOT)) for folder in ("start", "how-to") for path in (ROOT / "docs" / folder).glob("*.md")
)


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("page", PAGES)
def test_the_page_shows_what_comes(page: str, server: str, tmp_path: Path) -> None:
    text = (ROOT / page).read_text()
    if missing := missing_programs(text, "curl", "jq", "bash"):
        pytest.skip(f"needs {', '.join(missing)}")
    with place(server) as at:
        check(text, at, tmp_path)
