"""Two servers over one database publish at one place: whoever leads writes, and nothing older takes its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import httpx

from cloudid_core.effects import HttpRequest
from cloudid_core.testing.conformance import Scripted
from tests.hosts.opened import serving
from tests.hosts.shelf import CREDENTIAL, Shelf
from tests.servers.running import SERVERS, Running
from tests.stores.test_served import ask, prepared, written
from tests.waiting import PATIENT, wait_until

from .test_hand_over import leads

KEYS: Final = "identity/oidc/.well-known/keys"


class Remembering(Shelf):
    """Remembers how many keys each document had that was put."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: list[int] = []

    def __call__(self, request: HttpRequest) -> Scripted:
        answer = super().__call__(request)
        if request.method == "PUT" and f"{KEYS}?" in request.url:
            self.counts.append(len(json.loads(request.body)["keys"]))
        return answer


def test_the_leader_publishes_and_so_does_who_takes_over(database: str, tmp_path: Path) -> None:
    shelf = Remembering()
    with serving(shelf) as place:
        (tmp_path / "credential").write_text(CREDENTIAL)
        settings = written(tmp_path, database)
        text = settings.read_text().replace(
            "[server]\n", f'[server]\npublish_to = "{place}"\npublish_credential_file = "credential"\n'
        )
        settings.write_text(f'{text}\n[service]\nissuer = "{place}"\n')
        prepared(settings)

        def rotated(asked: Running) -> bool:
            """Whether a key that one server made is published; which of them wrote it is all the same."""
            ask(asked.url, "POST", "identity/oidc/key/default/rotate").raise_for_status()
            own = httpx.get(f"{asked.url}/v1/{KEYS}", **PATIENT).json()
            wait_until(lambda: json.loads(shelf.documents[f"/v1/{KEYS}"]) == own)
            return True

        first, second = (f"cloudid_servers.{server}" for server in SERVERS)
        with Running(first, "--settings", str(settings)) as staying:
            wait_until(lambda: f"/v1/{KEYS}" in shelf.documents)
            with Running(second, "--settings", str(settings)) as leading:
                wait_until(lambda: leads(leading) and not leads(staying))
                assert rotated(staying)
                leading.stop()
            wait_until(lambda: leads(staying))
            assert rotated(staying)
        assert shelf.counts == sorted(shelf.counts)
        assert shelf.counts[-1] == 3
