"""`trace` on a server's audit log: by token, by accessor, and where the service cannot be asked."""

from __future__ import annotations

import io
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from ..client_site import ROOT as ROOT_TOKEN
from ..client_site import Site
from .shell import Shell


@frozen
class Log:
    file: str
    device: str
    shows_accessors: bool
    token: str
    accessor: str


@pytest.fixture(scope="module", params=["true", "false"], ids=["hashed accessors", "clear accessors"])
def log(site: Site, request: pytest.FixtureRequest) -> Iterator[Log]:
    """What a token did that may read a lease's path and nothing of roles."""
    file = Path(tempfile.gettempdir()) / f"trace-{uuid.uuid4().hex}.log"
    options = {"file_path": str(file), "hmac_accessor": request.param}
    name = f"main-{request.param}"
    site.ask("PUT", f"sys/audit/{name}", {"type": "file", "options": options})
    auth = site.ask("POST", "auth/token/create", {"policies": ["app"], "ttl": "1h"})["auth"]
    token, accessor = auth["client_token"], auth["accessor"]
    site.ask("GET", "auth/token/lookup-self", token=token)
    with pytest.raises(Exception, match="403"):
        site.ask("GET", "auth/cloud/role/all", token=token)
    site.ask("POST", "auth/token/lookup", {"token": token})
    yield Log(str(file), name, request.param == "false", token, accessor)
    site.ask("DELETE", f"sys/audit/{name}")
    file.unlink()


def steps(rows: list[dict[str, Any]]) -> list[tuple[str, str, str, str]]:
    return [(row["part"], row["operation"], row["path"], row["outcome"]) for row in rows]


ISSUED = ("issued", "update", "auth/token/create", "done")
DID = [
    ("caller", "read", "auth/token/lookup-self", "done"),
    ("caller", "read", "auth/cloud/role/all", "permission_denied"),
]
NAMED = ("named", "update", "auth/token/lookup", "done")


def test_what_a_token_did(log: Log, cloudid: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    cloudid.set(VAULT_TOKEN=ROOT_TOKEN)
    shown = cloudid("trace", log.token, log.file)
    assert shown.code == 0
    assert "can see this token in the list of processes" in shown.err
    assert steps(shown.json) == [ISSUED, *DID, NAMED]
    assert log.token not in shown.out + shown.err
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{log.token}\n"))
    shown = cloudid("trace", "-", log.file, "--format", "table")
    lines = shown.out.splitlines()
    assert lines[0].split() == ["time", "part", "operation", "path", "outcome"]
    assert lines[3].split()[1:] == ["caller", "read", "auth/cloud/role/all", "permission_denied"]
    assert shown.err.startswith("4 requests in "), "standard input is not warned about"


def test_an_accessor_does_as_well(log: Log, cloudid: Shell) -> None:
    cloudid.set(VAULT_TOKEN=ROOT_TOKEN)
    shown = cloudid("trace", log.accessor, log.file)
    assert steps(shown.json) == [ISSUED, *DID]


def test_without_the_service_only_what_is_clear_is_found(log: Log, cloudid: Shell) -> None:
    """A hash out of a log stands for itself."""
    shown = cloudid("trace", log.accessor, log.file)
    assert steps(shown.json) == ([ISSUED, *DID] if log.shows_accessors else [])
    assert shown.err.startswith("warning: hashed tokens in the logs were not searched: permission denied")
    cloudid.set(VAULT_TOKEN=ROOT_TOKEN)
    hashed = cloudid("write", f"sys/audit-hash/{log.device}", f"input={log.token}", "--field", "hash").out.strip()
    cloudid.set(VAULT_TOKEN="")
    assert steps(cloudid("trace", hashed, log.file).json) == [ISSUED, *DID, NAMED]


def test_a_device_can_be_named_and_must_be_there(log: Log, cloudid: Shell) -> None:
    cloudid.set(VAULT_TOKEN=ROOT_TOKEN)
    shown = cloudid("trace", log.token, log.file, "--device", "nowhere")
    assert (shown.code, shown.json) == (0, [])
    assert "were not searched" in shown.err


def test_a_log_that_cannot_be_read_is_told(cloudid: Shell) -> None:
    shown = cloudid("trace", "token", "/nowhere")
    assert (shown.code, shown.err) == (2, "error: /nowhere cannot be read: No such file or directory\n")
