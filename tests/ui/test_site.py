"""The site of the pages, as `make site` builds it: no warning, no dead link, and a real browser finds its way in it."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest
from selenium.webdriver.common.keys import Keys

from tests.waiting import PATIENCE

from .browser import MISSING, Browser, window

pytestmark = pytest.mark.tools

ROOT: Final = Path(__file__).parents[2]
ALONE: Final = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
"""No other host is there."""


def build(source: Path, out: Path) -> str:
    """What the generator complains of."""
    if find_spec("sphinx") is None:
        pytest.skip("sphinx is not installed: `make site`, or pip install --requirement requirements/site.txt")
    strict = ("--quiet", "--no-color", "--fail-on-warning", "--keep-going", "--doctree-dir", f"{out}-cache")
    command = [sys.executable, "-m", "sphinx", *strict, "--conf-dir", str(ROOT / "docs"), str(source), str(out)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert bool(ended.returncode) == bool(ended.stderr)
    return ended.stderr


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object, **__: object) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if MISSING:
        pytest.skip(f"apt-get install chromium chromium-driver: {', '.join(MISSING)} missing")
    out = tmp_path_factory.mktemp("site") / "out"
    assert build(ROOT, out) == ""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(out))) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            with window(ALONE) as driver:
                yield Browser(driver, f"http://127.0.0.1:{server.server_port}")
        finally:
            server.shutdown()


def test_a_reader_gets_from_the_front_page_by_a_search_to_a_task(site: Browser) -> None:
    """Every page of the index is beside the front page, and nothing is asked of another host."""
    site.driver.get(f"{site.url}/")
    assert "gives Azure machines access without storing secrets on them" in site.text("article")
    assert "Operate" in site.text(".sidebar-tree")
    assert "Run several nodes" in site.text(".sidebar-tree")
    site.find(".sidebar-search").send_keys("synchronous standby", Keys.ENTER)
    site.until("#search-results", "Run several nodes")
    site.click("#search-results a[href*='run-several-nodes']")
    site.until("article h1", "Run several nodes")
    assert site.driver.get_log("browser") == []  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("page", ["index", "docs/reference/system", "docs/reference/codes", "docs/start/ten-minutes"])
def test_nothing_is_wider_than_a_narrow_window(page: str, site: Browser) -> None:
    site.look_as("light", 320, 800)
    site.driver.get(f"{site.url}/{page}.html")
    assert site.driver.execute_script("return document.documentElement.scrollWidth") <= 320


def test_a_link_that_leads_nowhere_is_not_let_through(tmp_path: Path) -> None:
    links = ("docs/missing.md", "docs/README.md#missing", "#missing")
    of_tests = ("tests/contract/rows.md", "tests/mutants/survivors.md")
    others = ("docs/README.md", "CHANGELOG.md", "ROADMAP.md", "CODE_OF_CONDUCT.md", *of_tests)
    pages = dict.fromkeys(others, "# A page\n")
    pages["README.md"] = "# The site\n\n" + "\n".join(f"[A link]({link})" for link in links)
    for page, text in pages.items():
        (tmp_path / page).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / page).write_text(text)
    complaints = build(tmp_path, tmp_path / "out").splitlines()
    assert [line.endswith("[myst.xref_missing]") for line in complaints] == [True, True, True], complaints
