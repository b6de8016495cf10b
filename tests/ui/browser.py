"""Chromium beside a server of `cloudid dev`, by the driver of the same package: nothing is downloaded."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import Any, Final

from attrs import frozen
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.servers.running import Running
from tests.waiting import wait_until

NEEDED: Final = ("chromium", "chromedriver")
MISSING: Final = [name for name in NEEDED if which(name) is None]
ROOT_TOKEN: Final = "root.page"


@frozen
class Browser:
    """One window that shows the page."""

    driver: webdriver.Chrome
    url: str

    def find(self, selector: str) -> Any:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def text(self, selector: str) -> str:
        """All that an element says, also what is folded; read at once, since the page replaces its parts."""
        said = self.driver.execute_script("return document.querySelector(arguments[0])?.textContent ?? ''", selector)
        return str(said)

    def until(self, selector: str, said: str) -> None:
        wait_until(lambda: said in self.text(selector))

    def sign_in(self, token: str = ROOT_TOKEN) -> None:
        self.find("#token").send_keys(token, Keys.ENTER)

    def click(self, selector: str) -> None:
        """The page replaces its parts, also between the look for one and the click."""

        def clicked() -> bool:
            try:
                self.find(selector).click()
            except StaleElementReferenceException:
                return False
            return True

        wait_until(clicked)

    def is_unfolded(self, selector: str) -> bool:
        """Read at once, as `text` is."""
        return bool(self.driver.execute_script("return document.querySelector(arguments[0]).open", selector))

    def unfold(self, selector: str) -> None:
        """At once: the page replaces its parts."""
        self.driver.execute_script("document.querySelector(arguments[0]).open = true", selector)

    def look_as(self, scheme: str, width: int, height: int) -> None:
        """`scheme`: light or dark."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def colour(self, selector: str) -> str:
        return str(self.find(selector).value_of_css_property("background-color"))

    def log_in_and_be_refused(self) -> None:
        """Give the page something to show: a login, a lease and a refusal."""
        self.click("#log-in")
        self.until("#happened", "web is logged in")
        self.click("#issue")
        self.until("#happened", "The machine holds credentials")
        self.driver.execute_script("document.querySelector('#machine').value = 'web-evil'")
        self.click("#log-in")
        self.until("#logins", "refused")


@contextmanager
def window(*arguments: str) -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    options.binary_location = which("chromium") or ""
    usual = ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1100,900")
    for argument in (*usual, *arguments):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    options.set_capability("acceptInsecureCerts", False)
    driver = webdriver.Chrome(options, webdriver.ChromeService(which("chromedriver")))
    try:
        driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
        yield driver
    finally:
        driver.quit()


@contextmanager
def browser(server: str = "trio") -> Iterator[Browser]:
    command = ("dev", "--server", server, "--listen", "127.0.0.1:0", "--root-token", ROOT_TOKEN)
    with Running("cloudid_servers.cli", *command) as running, window() as driver:
        driver.get(f"{running.url}/ui/")
        yield Browser(driver, running.url)


def screenshots(path: Path) -> None:
    """Take the page after a login, a lease and a refusal: light at `path`, dark and narrow in `build`."""
    with browser() as page:
        page.look_as("light", 1100, 860)
        page.sign_in()
        page.log_in_and_be_refused()
        page.unfold("#logins details")
        page.until("#mounts", "auth/cloud/")
        page.until("#rotations", "idle")
        page.until("#leases", " s")
        page.driver.save_screenshot(str(path))
        for name, scheme, width in (("dark", "dark", 1100), ("narrow", "light", 400)):
            page.look_as(scheme, width, 1400 if width == 400 else 1300)
            Path("build").mkdir(exist_ok=True)
            page.driver.save_screenshot(f"build/page-{name}.png")


if __name__ == "__main__":
    screenshots(Path(sys.argv[1]))
