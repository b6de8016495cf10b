"""Azure in trouble, on the page: it shows the problem and the fix that health reports, and draws attention to them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.core.system.test_provider_health import WAYS, break_azure, engine

from .browser import MISSING, Browser, browser

pytestmark = pytest.mark.tools
SHOW_HEALTH = """
const [answer, done] = arguments;
const real = window.fetch;
window.fetch = async (url, options) => url.includes("sys/health") ? Response.json(answer) : real(url, options);
show("health", health).then(() => done(document.title));
"""
"""Show the card of health as if the service had answered so; answer the title."""
CELLS = "return [...document.querySelectorAll('#health tbody td')].map((cell) => cell.textContent)"


@pytest.fixture(scope="module")
def page() -> Iterator[Browser]:
    if MISSING:
        pytest.skip(f"apt-get install chromium chromium-driver: {', '.join(MISSING)} missing")
    with browser() as page:
        page.sign_in()
        page.until("#state", "healthy")
        yield page


@pytest.mark.parametrize("way", WAYS)
def test_the_page_shows_what_health_says_when_azure_breaks(way: str, page: Browser) -> None:
    world = engine()
    break_azure(world, way)
    health = world.must("GET", "sys/health").body
    [problem] = health["problem_details"]
    title = page.driver.execute_async_script(SHOW_HEALTH, health)
    assert page.driver.execute_script(CELLS) == [problem["text"], problem["remedy"]]
    assert WAYS[way][3] in problem["text"]
    assert (title, page.text("#state")) == ("⚠ 1 problem – cloudid", "1 problem")
