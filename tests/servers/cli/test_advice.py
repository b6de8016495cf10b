"""Cause and fix of every error code: in the terminal, in JSON, in the log, and on the page."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from cloudid_core.advice import ADVICE, PLACEHOLDER, fill
from cloudid_core.errors import Code
from cloudid_core.events import RequestAnswered
from cloudid_core.messages.response import Request
from cloudid_servers.cli.advice import filled_advice, names_in
from cloudid_servers.logs.logs import EventLog, LogFile
from cloudid_servers.ui import Page

from .shell import Shell

pytestmark = pytest.mark.usefixtures("nothing_inherited")

PLACE = "team/engine/roles/reader"
NAMES = {"mount": "team/engine", "role": "reader", "path": PLACE}


class _Refusing(BaseHTTPRequestHandler):
    """Refuses each request with the code that its query names."""

    def do_GET(self) -> None:
        code = Code[self.path.partition("code=")[2].upper()]
        body = json.dumps({"errors": [code.text], "codes": [code.wire]}).encode()
        self.send_response(code.status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def refusing() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Refusing) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("code", Code)
def test_the_terminal_prints_cause_and_fix_of_every_code(code: Code, refusing: str, cloudid: Shell) -> None:
    cloudid.set(VAULT_ADDR=refusing, VAULT_TOKEN="token")
    shown = cloudid("read", PLACE, f"code={code.wire}")
    expected = filled_advice([code.wire], NAMES)
    assert expected is not None
    lines = [f"error: {code.text} ({code.wire})", f"cause: {expected.cause}", f"fix: {expected.fix}"]
    more = [f"more: {expected.command}"] if expected.command else []
    assert (shown.code, shown.err.splitlines()) == (1, [*lines, *more])
    assert not PLACEHOLDER.search(expected.command), "a command that cannot be pasted"


@pytest.mark.parametrize("code", Code)
def test_json_has_cause_and_fix_of_every_code(code: Code, refusing: str, cloudid: Shell) -> None:
    cloudid.set(VAULT_ADDR=refusing, VAULT_TOKEN="token")
    shown = cloudid("read", PLACE, f"code={code.wire}", "--json")
    expected = filled_advice([code.wire], NAMES)
    assert expected is not None
    assert (shown.code, shown.out) == (1, "")
    assert json.loads(shown.err) == {"errors": [code.text], "codes": [code.wire], **expected.members}


@pytest.mark.parametrize("code", Code)
def test_the_log_has_cause_and_fix_of_every_code(code: Code, tmp_path: Path) -> None:
    descriptor = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT)
    event = RequestAnswered(request_id="1", time=0.0, status=code.status, codes=(code.wire,), mount="cloud", role="web")
    EventLog(LogFile("info", descriptor))(event)
    os.close(descriptor)
    line, names = json.loads((tmp_path / "log").read_text()), {"mount": "cloud", "role": "web"}
    assert (line["cause"], line["fix"]) == (fill(ADVICE[code].cause, names), fill(ADVICE[code].fix, names))


def test_the_page_has_cause_and_fix_of_every_code() -> None:
    answer = Page().answer(Request("GET", "/ui/codes.json"))
    assert answer is not None
    shown = json.loads(answer.body)
    assert {*shown} == {code.wire for code in Code}
    for code in Code:
        assert (shown[code.wire]["cause"], shown[code.wire]["fix"]) == (ADVICE[code].cause, ADVICE[code].fix)


def test_an_error_is_an_object_only_where_an_option_asks_for_json(refusing: str, cloudid: Shell) -> None:
    cloudid.set(VAULT_ADDR="http://127.0.0.1:9", VAULT_TOKEN="token")
    for words in (["--json"], ["--format", "json"]):
        error = json.loads(cloudid("read", "sys/mounts", *words).err)
        assert error["errors"][0].startswith("the service cannot be reached: ")
        assert error["fix"]
    assert cloudid("read", "sys/mounts").err.startswith("error: the service cannot be reached: ")
    cloudid.set(VAULT_NAMESPACE="team")
    assert json.loads(cloudid("status", "--json").err)["errors"] == ["cloudid has no namespaces: unset VAULT_NAMESPACE"]


@pytest.mark.parametrize(
    "path, names",
    [
        ("cloud/creds/web", {"mount": "cloud", "role": "web"}),
        ("team/engine/static-creds/web", {"mount": "team/engine", "role": "web"}),
        ("auth/team/role/web", {"mount": "auth/team", "role": "web"}),
        ("cloud/config", {"mount": "cloud"}),
        ("sys/leases/revoke", {}),
    ],
)
def test_names_of_mount_and_role_come_from_the_path(path: str, names: dict[str, str]) -> None:
    assert names_in(path) == {"path": path, **names}


def test_a_name_that_a_shell_would_change_is_quoted() -> None:
    advice = filled_advice([Code.CONFIG_INVALID.wire], {"mount": "a b;c"})
    assert advice is not None
    assert advice.command == "cloudid read 'a b;c'/config"
