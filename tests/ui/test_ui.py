"""The page at `/ui/` in a real browser, on both servers, and what both answer to whoever asks for its files."""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiohttp import web
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from starlette.applications import Starlette

from cloudid_core.effects import HttpRequest, HttpResponse
from cloudid_core.messages.response import Request
from cloudid_servers.aiohttp_server.application import aiohttp_application
from cloudid_servers.asgi import asgi_application
from cloudid_servers.settings import ServerSettings
from cloudid_servers.ui import OURS, Page
from tests.servers.foreign import served
from tests.servers.running import Running
from tests.waiting import PATIENT, wait_until

from .browser import MISSING, ROOT_TOKEN, Browser, browser, window

NEEDS = f"apt-get install chromium chromium-driver: {', '.join(MISSING)} missing"
DEV = ("dev", "--root-token", ROOT_TOKEN, "--listen")
WIDTHS = [320, 400, 800, 1200, 1300, 1600]
STATIC = Path(__file__).parents[2] / "servers" / "ui" / "static"


BROKEN_CODES = """
const broken = [];
for (const code of document.querySelectorAll("code")) for (const node of code.childNodes) {
  const range = document.createRange();
  range.selectNodeContents(node);
  const isWord = node.nodeType === Node.TEXT_NODE && !node.data.includes(" ");
  if (isWord && range.getClientRects().length > 1) broken.push(node.data);
}
return broken
"""
"""Parts of paths and codes that take more than one line."""
ROWS = """
const cards = [...document.querySelectorAll("section:not([hidden])")].map((card) => card.getBoundingClientRect());
const tops = [...new Set(cards.map((card) => card.top))];
const rows = tops.map((top) => cards.filter((card) => card.top === top));
const edge = Math.max(...cards.map((card) => card.right));
if (rows.some((row) => Math.max(...row.map((card) => card.right)) < edge - 1)) throw new Error("a row has a hole");
return rows.map((row) => row.length)
"""
"""How many cards each row has."""
LISTS_LEASES = "\n".join(
    f'path "sys/leases/lookup{rest}" {{ capabilities = ["list", "update", "sudo"] }}' for rest in ("", "/*")
)
READABLE = ("sys/health", "sys/mounts", "sys/auth", "sys/ha-status", "cloud/rotation")
STUB = """
const real = window.fetch;
const answer = () => %s;
window.fetch = (url, options) => url.includes("sys/ha-status") ? answer() : real(url, options);
"""
FAIL_NODES = STUB % "Promise.resolve(Response.json({ errors: ['the store is away'], codes: [] }, { status: 500 }))"
HANG_NODES = (
    STUB % "new Promise((resolve) => { window.release = () => { window.fetch = real; resolve(Response.json({})); }; })"
)
EXPLAINED = "Response.json({ data: { verdict: 'admitted', codes: [], checks: [] } })"
HANG_EXPLAIN = HANG_NODES.replace("sys/ha-status", "/explain").replace("Response.json({})", EXPLAINED)
PASTE = """
const { role, login } = document.querySelector("#why").elements;
document.querySelector("#explanation").replaceChildren();
[role.value, login.value] = arguments;
login.dispatchEvent(new Event("input"));
"""
RETRY = "document.querySelector('#logins .inside > button').click()"


@pytest.fixture(scope="module", params=["trio", pytest.param("aiohttp", marks=pytest.mark.long)])
def page(request: pytest.FixtureRequest) -> Iterator[Browser]:
    if MISSING:
        pytest.skip(NEEDS)
    with browser(request.param) as page:
        yield page


@pytest.fixture
def fresh(page: Browser) -> Browser:
    """The page anew, which knows no token."""
    page.driver.get(f"{page.url}/ui/")
    page.look_as("light", 1100, 900)
    wait_until(lambda: page.driver.switch_to.active_element.get_attribute("id") == "token")
    return page


def ask(page: Browser, path: str, method: str = "POST", **fields: object) -> Any:
    """The answer to the root token."""
    headers = {"X-Vault-Token": ROOT_TOKEN}
    answer = httpx.request(method, f"{page.url}/v1/{path}", json=fields or None, headers=headers, **PATIENT)
    answer.raise_for_status()
    return answer.json() if answer.content else None


@pytest.mark.tools
def test_a_login_a_lease_that_ends_and_a_refusal_are_shown(fresh: Browser) -> None:
    page = fresh
    page.sign_in()
    page.until("#state", "healthy")
    page.log_in_and_be_refused()
    page.until("#leases", "cloud/creds/reader/")
    page.until("#objects", "1 × application")
    page.until("#logins", "bound_resource_group_mismatch")
    assert "prod-evil" in page.text("#logins .inside tbody tr")
    assert "Fix: Add the group to bound_resource_groups" in page.text("#logins .inside .advice")
    lease = page.driver.find_element(By.CSS_SELECTOR, "[data-ends]").get_attribute("data-id")
    ask(page, "sys/leases/revoke", lease_id=lease)
    page.until("#leases", "No leases.")
    page.until("#objects", "removed again: 4")
    told = page.driver.get_log("browser")  # type: ignore[no-untyped-call]
    assert [each for each in told if each["source"] != "network"] == [], "the page breaks its own policy for content"


@pytest.mark.tools
def test_azure_can_be_broken_and_repaired(fresh: Browser) -> None:
    fresh.sign_in()
    fresh.until("#state", "healthy")
    fresh.click("#break")
    fresh.until("#happened", "refuses every call")
    fresh.click("#issue")
    fresh.until("#happened", "provider")
    fresh.until("#happened", "(provider_failed)")
    fresh.driver.refresh()
    fresh.sign_in()
    fresh.until("#break", "Repair Azure")
    fresh.click("#break")
    fresh.until("#happened", "works again")


@pytest.mark.tools
def test_a_wrong_token_is_told_and_nothing_is_kept_of_a_right_one(fresh: Browser) -> None:
    fresh.sign_in("root.wrong")
    fresh.until("#notice", "This token is not valid")
    assert not fresh.find("#mounts").is_displayed()
    fresh.sign_in()
    fresh.until("#mounts", "auth/cloud/")
    kept = "localStorage.length, sessionStorage.length, document.cookie, location.href, document.body.outerHTML"
    *counts, cookie, address, markup = fresh.driver.execute_script(f"return [{kept}]")
    assert (counts, cookie) == ([0, 0], "")
    assert "root.page" not in address + markup + fresh.find("#token").get_attribute("value")
    fresh.driver.refresh()
    assert fresh.find("#sign-in").is_displayed()
    fresh.sign_in()
    fresh.until("#mounts", "auth/cloud/")
    fresh.click("#forget")
    assert fresh.text("#mounts > div") == ""


@pytest.mark.tools
def test_a_token_that_ends_meanwhile_is_told(fresh: Browser) -> None:
    token = ask(fresh, "auth/token/create", ttl="1h")["auth"]["client_token"]
    fresh.sign_in(token)
    fresh.until("#mounts", "auth/cloud/")
    fresh.click("#log-in")
    fresh.until("#happened", "web is logged in")
    ask(fresh, "auth/token/revoke", token=token)
    fresh.until("#notice", "This token has ended")
    assert fresh.find("#sign-in").is_displayed()
    assert fresh.text("#mounts > div") + fresh.text("#happened") == ""


@pytest.mark.tools
def test_logins_go_on_below_a_line_that_was_unfolded_by_the_mouse(fresh: Browser) -> None:
    fresh.sign_in()
    fresh.until("#state", "healthy")
    fresh.log_in_and_be_refused()
    fresh.click("#logins summary")
    assert fresh.is_unfolded("#logins details")
    before = fresh.text("#logins")
    wait_until(lambda: fresh.text("#logins") != before)
    assert fresh.is_unfolded("#logins details")


@pytest.mark.tools
def test_of_many_leases_each_is_told_from_the_others(fresh: Browser) -> None:
    page = fresh
    for _ in range(101):
        ask(page, "cloud/creds/reader", "GET")
    page.sign_in()
    page.until("#leases", "There are more")
    rows = page.driver.execute_script(
        "return [...document.querySelectorAll('#leases tbody code')].map(c => c.textContent)"
    )
    assert len(set(rows)) == len(rows) == 100
    assert page.find("#leases").rect["height"] < 600
    ask(page, "sys/leases/revoke-prefix/cloud")
    page.until("#leases", "No leases.")


@pytest.mark.tools
def test_a_lease_that_cannot_be_ended_is_told_while_it_has_time_left(fresh: Browser) -> None:
    page = fresh
    page.sign_in()
    page.until("#state", "healthy")
    page.click("#issue")
    page.until("#leases", "cloud/creds/reader/")
    page.click("#break")
    page.until("#happened", "refuses every call")
    lease = page.driver.execute_script("return document.querySelector('[data-ends]').dataset.id")
    ask(page, "sys/leases/revoke", lease_id=lease, sync=False)
    wait_until(lambda: page.text("#leases .pill") in ("ending", "stuck"))
    page.click("#break")
    page.until("#happened", "works again")
    ask(page, "sys/leases/revoke", lease_id=lease)


@pytest.mark.tools
def test_the_keyboard_is_enough(fresh: Browser) -> None:
    """Sign in, explain a login and unfold its checks, without a mouse."""

    def press(*keys: str) -> None:
        fresh.driver.switch_to.active_element.send_keys(*keys)

    def go_to(selector: str) -> None:
        for _ in range(60):
            if fresh.driver.switch_to.active_element == fresh.find(selector):
                return
            press(Keys.TAB)
        raise AssertionError(f"{selector} is not reached")

    press("root.page", Keys.ENTER)
    fresh.until("#mounts", "auth/cloud/")
    assert fresh.find("#main").value_of_css_property("outline-style") == "none", "it cannot be used, it is read on from"
    go_to("#why [name=role]")
    outline = fresh.driver.switch_to.active_element.value_of_css_property("outline-style")
    assert outline == "solid"
    press("web", Keys.TAB)
    press('{"oid": "00000000-0000-0000-0000-000000000001"}', Keys.TAB)
    press(Keys.ENTER)
    fresh.until("#explanation", "refused")
    assert "✗" in fresh.text("#explanation")
    go_to("#explanation summary")
    press(Keys.ENTER)
    wait_until(lambda: fresh.is_unfolded("#explanation details"))


@pytest.mark.tools
@pytest.mark.parametrize("by", ["uvicorn", "aiohttp"])
def test_it_works_within_another_application(fresh: Browser, by: str) -> None:
    application: Any
    if by == "aiohttp":
        application = web.Application()
        application.add_subapp("/cloudid/", aiohttp_application(dev_root_token=ROOT_TOKEN))
    else:
        ours = asgi_application(dev_root_token=ROOT_TOKEN)
        application = Starlette(lifespan=ours.lifespan)
        application.mount("/cloudid", ours)
    with served(by, application) as url:
        fresh.driver.get(f"{url}/cloudid/ui")
        fresh.sign_in()
        fresh.until("#state", "healthy")
        fresh.until("#mounts", "auth/cloud/")
        fresh.until("#machine", "web")


@pytest.mark.tools
@pytest.mark.skipif(bool(MISSING), reason=NEEDS)
def test_a_server_that_is_gone_is_told_until_it_is_back() -> None:
    with window() as driver:
        with Running("cloudid_servers.cli", *DEV, "127.0.0.1:0") as running:
            page = Browser(driver, running.url)
            driver.get(f"{page.url}/ui/")
            page.sign_in()
            page.until("#state", "healthy")
            page.until("#mounts", "auth/cloud/")
        page.until("#state", "no answer")
        assert page.find("#notice").is_displayed()
        assert "auth/cloud/" in page.text("#mounts")
        with Running("cloudid_servers.cli", *DEV, f"127.0.0.1:{running.port}"):
            page.until("#state", "healthy")
            assert not page.find("#notice").is_displayed()


@pytest.mark.tools
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_wider_than_the_window(fresh: Browser, width: int) -> None:
    fresh.look_as("light", width, 800)
    fresh.sign_in()
    fresh.until("#state", "healthy")
    fresh.log_in_and_be_refused()
    fresh.unfold("#logins details")
    fresh.until("#rotations", "idle")
    assert fresh.driver.execute_script("return document.documentElement.scrollWidth") <= width
    assert fresh.driver.execute_script(BROKEN_CODES) == []
    assert fresh.driver.execute_script(ROWS) == ([1] * 8 if width < 960 else [1] * 5 + [2, 1])


@pytest.mark.tools
def test_a_mount_with_a_long_path_hides_no_column(fresh: Browser) -> None:
    ask(fresh, "sys/auth/a-team-with-quite-a-long-name/and/its/department", type="cloud")
    fresh.sign_in()
    fresh.until("#rotations", "department")
    script = "const table = document.querySelector('#rotations .scroll'); return table.scrollWidth <= table.clientWidth"
    assert fresh.driver.execute_script(script)
    ask(fresh, "sys/auth/a-team-with-quite-a-long-name/and/its/department", "DELETE")


@pytest.mark.tools
def test_it_is_dark_where_the_machine_is(fresh: Browser) -> None:
    light = fresh.colour("body")
    fresh.look_as("dark", 1100, 800)
    assert fresh.colour("body") != light


@pytest.mark.tools
def test_the_first_view_says_what_the_page_is_and_where_a_token_comes_from(fresh: Browser) -> None:
    assert "health, leases, logins and rotations" in fresh.text("#sign-in")
    assert "A token comes from cloudid login" in fresh.text("#sign-in")
    assert fresh.find("#sign-in").is_displayed()
    fresh.sign_in()
    fresh.until("#state", "healthy")
    assert not fresh.find("#sign-in").is_displayed()


@pytest.mark.tools
def test_a_rejected_credential_is_shown_by_rotation_title_and_icon(fresh: Browser) -> None:
    fresh.sign_in()
    fresh.until("#state", "healthy")
    fresh.until("#rotations", "idle")
    assert (fresh.driver.title, icon(fresh)) == ("cloudid", "icon.svg")
    ask(fresh, "cloud/config", client_secret="wrong")
    try:
        with pytest.raises(httpx.HTTPStatusError):
            ask(fresh, "cloud/creds/reader", "GET")
        fresh.until("#rotations", "AADSTS7000215")
        row = "#rotations tbody tr:last-child"
        assert (fresh.text(f"{row} code"), fresh.text(f"{row} .pill")) == ("cloud/", "failing")
        assert fresh.text(f"{row} .good") == ""
        assert "cloudid write cloud/config" in fresh.text("#health")
        assert (fresh.driver.title, icon(fresh)) == ("⚠ 1 problem – cloudid", "icon-problem.svg")
        assert httpx.get(f"{fresh.url}/ui/icon-problem.svg", **PATIENT).headers["content-type"] == "image/svg+xml"
    finally:
        ask(fresh, "cloud/config", client_secret=world(fresh)["applications"][0]["client_secret"])
        ask(fresh, "cloud/creds/reader", "GET")
    fresh.until("#state", "healthy")
    wait_until(lambda: (fresh.driver.title, icon(fresh)) == ("cloudid", "icon.svg"))
    ask(fresh, "sys/leases/revoke-prefix/cloud")


@pytest.mark.tools
def test_machines_of_one_name_differ_by_resource_group_or_subscription(fresh: Browser) -> None:
    fresh.sign_in()
    fresh.until("#state", "healthy")
    fresh.log_in_and_be_refused()
    fresh.until("#logins", "web in prod-evil")
    fresh.until("#logins", "web in prod")
    one, two = (f"/subscriptions/{name}/resourceGroups/prod/providers/a/b/web" for name in ("one", "two"))
    script = "return machineOf(arguments[0], arguments[1]).map((part) => part.textContent).join('')"
    assert fresh.driver.execute_script(script, one, [one, two]) == "web in prod, one"
    assert fresh.driver.execute_script(script, one, [one]) == "web in prod"


@pytest.mark.tools
def test_a_check_that_is_not_decided_is_explained(fresh: Browser) -> None:
    fresh.sign_in()
    fresh.until("#state", "healthy")
    fresh.log_in_and_be_refused()
    assert "? is not decided: Azure was not asked" in fresh.text("#logins .legend")


@pytest.mark.tools
def test_breaking_azure_does_not_look_like_the_main_action(fresh: Browser) -> None:
    fresh.sign_in()
    fresh.until("#state", "healthy")
    assert fresh.colour("#log-in") == fresh.colour("#why button")
    assert fresh.colour("#break") == "rgba(0, 0, 0, 0)"


@pytest.mark.tools
def test_a_lease_shows_its_holder_and_since_when(fresh: Browser) -> None:
    fresh.sign_in()
    fresh.until("#state", "healthy")
    fresh.log_in_and_be_refused()
    fresh.until("#leases", "web in prod, as web")
    assert re.search(r"\d s ago", fresh.text("#leases td[data-name=since]"))
    fresh.click("#forget")
    fresh.sign_in(limited_token(fresh, LISTS_LEASES))
    fresh.until("#leases td[data-name=holder]", "not permitted")
    ask(fresh, "sys/leases/revoke-prefix/cloud")


@pytest.mark.tools
def test_explain_takes_the_names_of_the_machine_from_its_token(fresh: Browser) -> None:
    jwt = token_of_machine(fresh, "web")
    claims = json.loads(urlsafe_b64decode(jwt.split(".")[1] + "=="))
    body = {"role": "web", "jwt": jwt, "resource_group_name": "prod", "vm_name": "web"}
    wrong = {**body, "vm_name": "other"}
    fresh.sign_in()
    fresh.until("#state", "healthy")
    for text, role, verdict in (
        (jwt, "web", "admitted"),
        (json.dumps({"access_token": jwt}), "web", "admitted"),
        (json.dumps(body), "", "admitted"),
        (json.dumps(wrong), "", "refused vm_name_mismatch"),
        (json.dumps(claims), "web", "undecided"),
        (json.dumps({"claims": claims, "facts": {"machine": {"principals": [claims["oid"]]}}}), "web", "admitted"),
    ):
        explain(fresh, role, text)
        fresh.until("#explanation", verdict)
        assert fresh.find("#why [name=role]").get_attribute("value") == "web"
    explain(fresh, "web", "{")
    fresh.until("#explanation", "neither a token nor valid JSON")


@pytest.mark.tools
def test_an_explanation_that_comes_after_signing_out_is_not_shown(fresh: Browser) -> None:
    fresh.sign_in()
    fresh.until("#state", "healthy")
    fresh.driver.execute_script(HANG_EXPLAIN)
    explain(fresh, "web", "{}")
    wait_until(lambda: fresh.driver.execute_script("return 'release' in window"))
    fresh.click("#forget")
    fresh.driver.execute_script("release()")
    fresh.sign_in()
    fresh.until("#nodes", "leads")
    assert fresh.text("#explanation") == ""


@pytest.mark.tools
def test_a_refused_login_fills_the_form_and_is_tried_again(fresh: Browser) -> None:
    fresh.sign_in()
    fresh.until("#state", "healthy")
    fresh.log_in_and_be_refused()
    fresh.driver.execute_script(RETRY)
    fresh.until("#explanation", "refused bound_resource_group_mismatch")
    assert fresh.find("#why [name=role]").get_attribute("value") == "web"
    ask(fresh, "auth/cloud/role/web", bound_resource_groups=["prod", "prod-evil"])
    try:
        fresh.click("#why button")
        fresh.until("#explanation", "undecided")
        assert "✗" not in fresh.text("#explanation")
        assert "only Azure can decide" in fresh.text("#explanation")
    finally:
        ask(fresh, "auth/cloud/role/web", bound_resource_groups=["prod"])


@pytest.mark.tools
def test_what_is_not_permitted_or_failed_is_not_shown_as_empty(fresh: Browser) -> None:
    fresh.sign_in(limited_token(fresh, "\n".join(f'path "{path}" {{ capabilities = ["read"] }}' for path in READABLE)))
    fresh.until("#leases", "Not permitted: this token may not read sys/leases/lookup.")
    fresh.until("#logins", "Not permitted: this token may not read sys/internal/recent-logins.")
    fresh.until("#rotations", "auth/cloud/not permitted")
    fresh.driver.execute_script(FAIL_NODES)
    fresh.until("#nodes", "Failed: the store is away")
    fresh.click("#forget")
    fresh.sign_in(ask(fresh, "auth/token/create", policies=["default"])["auth"]["client_token"])
    for card in ("rotations", "mounts", "leases", "nodes"):
        fresh.until(f"#{card}", "Not permitted" if card != "nodes" else "Failed")


@pytest.mark.tools
def test_a_request_that_waits_shows_what_it_waits_for_and_how_long(fresh: Browser) -> None:
    fresh.sign_in()
    fresh.until("#nodes", "leads")
    fresh.driver.execute_script(HANG_NODES)
    wait_until(lambda: re.fullmatch(r"Waiting for GET sys/ha-status: ([2-9]|\d\d+) s", fresh.text("#waiting")))
    assert fresh.find("#waiting").is_displayed()
    fresh.until("#leases", "No leases.")
    fresh.driver.execute_script("release()")
    wait_until(lambda: not fresh.find("#waiting").is_displayed())


def world(page: Browser) -> Any:
    return cloud(page, "simulator/world")


def cloud(page: Browser, path: str) -> Any:
    """Read from the simulated Azure through the page's server."""
    return httpx.get(f"{page.url}/ui/cloud/{path}", headers={OURS: "1"}, **PATIENT).json()


def token_of_machine(page: Browser, name: str) -> str:
    query = "api-version=2018-02-01&resource=https://management.azure.com/"
    return str(cloud(page, f"machines/{name}/metadata/identity/oauth2/token?{query}")["access_token"])


def limited_token(page: Browser, policy: str) -> str:
    ask(page, "sys/policies/acl/limited", policy=policy)
    return str(ask(page, "auth/token/create", policies=["limited"])["auth"]["client_token"])


def icon(page: Browser) -> str:
    return str(page.driver.execute_script("return document.querySelector('#icon').getAttribute('href')"))


def explain(page: Browser, role: str, text: str) -> None:
    """Paste a text into the form and submit it."""
    page.driver.execute_script(PASTE, role, text)
    page.click("#why button")


def asked(target: str, method: str = "GET", *headers: str, page: Page | None = None) -> int | None:
    answer = (page or Page()).answer(Request(method, target, dict.fromkeys(headers, "1")))
    return answer.status if answer else None


@pytest.mark.parametrize(
    "target, method, status",
    [
        ("/ui/", "GET", 200),
        ("/ui/?x", "HEAD", 200),
        ("/ui/page.js", "GET", 200),
        ("/ui/codes.json", "GET", 200),
        ("/ui", "GET", 308),
        ("/ui/", "POST", 405),
        ("/ui/../settings.toml", "GET", 404),
        ("/ui/cloud/simulator/world", "GET", 404),
        ("/uix", "GET", None),
        ("/v1/sys/health", "GET", None),
    ],
)
def test_the_page_answers_for_its_own_place_alone(target: str, method: str, status: int | None) -> None:
    assert asked(target, method) == status


def test_the_simulated_cloud_is_for_the_page_itself() -> None:
    """A page of another site cannot send the header without being asked first, and nothing answers that question."""
    seen: list[HttpRequest] = []

    def cloud(request: HttpRequest) -> HttpResponse:
        seen.append(request)
        return HttpResponse(200, {}, b"{}")

    page = Page(cloud)
    assert asked("/ui/cloud/simulator/world", page=page) == 403
    assert asked("/ui/cloud/simulator/world", "OPTIONS", page=page) == 403
    assert asked("/ui/cloud/simulator/world?a=b", "GET", OURS, page=page) == 200
    assert [request.url for request in seen] == ["/simulator/world?a=b"]


@pytest.mark.parametrize(
    "target, method, headers, status",
    [
        ("/ui/", "GET", {}, 200),
        ("/ui/codes.json", "GET", {}, 200),
        ("/ui", "GET", {}, 308),
        ("/ui/absent", "GET", {}, 404),
        ("/ui/", "POST", {}, 405),
        ("/ui/cloud/simulator/world", "GET", {}, 403),
        ("/ui/cloud/simulator/world", "GET", {OURS: "1"}, 200),
    ],
)
def test_every_status_has_all_security_headers(target: str, method: str, headers: dict[str, str], status: int) -> None:
    answer = Page(lambda request: HttpResponse(200, {}, b"{}")).answer(Request(method, target, headers))
    assert answer is not None
    assert answer.status == status
    expected = {
        "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'",
        "cache-control": "no-cache",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
    }
    assert {name: answer.headers.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    "target, content_type",
    [
        ("/ui/", "text/html; charset=utf-8"),
        ("/ui/page.js", "text/javascript; charset=utf-8"),
        ("/ui/codes.json", "application/json"),
        ("/ui/cloud/simulator/world", "application/json"),
    ],
)
def test_every_file_and_every_answer_of_the_simulated_cloud_has_its_type(target: str, content_type: str) -> None:
    """The browser guesses none."""
    page = Page(lambda request: HttpResponse(200, {}, b"{}"))
    answer = page.answer(Request("GET", target, {OURS: "1"}))
    assert answer is not None
    assert answer.headers["content-type"] == content_type


def test_nothing_is_inline_and_nothing_comes_from_elsewhere() -> None:
    response = Page().answer(Request("GET", "/ui/", {}))
    assert response is not None
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    texts = [path.read_text().replace("http://www.w3.org/2000/svg", "") for path in sorted(STATIC.iterdir())]
    assert len(texts) == 5
    assert not any(word in text for text in texts for word in ("http:", "style=", "onclick", "innerHTML", "Storage"))
    assert sum(text.count("\n") for text in texts) <= 720


def test_it_is_off_unless_asked_for() -> None:
    assert ServerSettings().ui is False
