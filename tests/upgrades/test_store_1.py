"""A store that version 0.1.0 made before its modules and records were renamed: it opens, and everything in it works.

`store-1.sqlite` was made by that version's own server beside the simulated cloud: logins, tokens, policies, roles,
leases, a role that keeps its application, a rotation that overlaps, an intent that could not be undone, a moved mount.
The store is tried on a deterministic world that starts a minute after it was made, beside a cloud that knows nothing
of its objects.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from cloudid_core import HttpRequest, Request, Response, Secret, Service, Settings, open_service
from cloudid_core.clouds import CLOUDS, Cloud
from cloudid_core.store.memory import MemoryStore
from cloudid_core.testing import World
from servers.provider_simulator import Simulator
from servers.stores.sqlite import SqliteStore

FOLDER: Final = Path(__file__).parent
FILE: Final = FOLDER / "store-1.sqlite"
MADE: Final[dict[str, Any]] = json.loads((FOLDER / "store-1.json").read_text())
ROOT: Final[str] = MADE["root_token"]
ADDRESS: Final = "http://cloud.test"


def entries() -> dict[str, bytes]:
    connection = sqlite3.connect(f"file:{FILE}?mode=ro", uri=True)
    try:
        return dict(connection.execute("SELECT key, value FROM entry"))
    finally:
        connection.close()


class OldWorld(World):
    """The service over a copy of the old store, its clock a minute after the store was made."""

    def __init__(self) -> None:
        store = MemoryStore()
        store.commit({}, entries(), ())
        super().__init__(0, lambda request: self.cloud.handle(request), store, MADE["made_at"] + 60.0)
        self.cloud = Simulator(0, ADDRESS, lambda: self.clock)
        clouds = {
            name: Cloud(
                login=f"{ADDRESS}/login",
                resource_manager=f"{ADDRESS}/arm",
                resource_audience=known.resource_audience,
                directory=f"{ADDRESS}/graph",
            )
            for name, known in CLOUDS.items()
        }
        settings = Settings(master_key=Secret(MADE["master_key"]), clouds=clouds, verify_credentials=False)
        self.service: Service = self.perform(open_service(settings))

    def ask(self, method: str, path: str, body: object = None, token: str = ROOT) -> Any:
        """The JSON of an answer that must be a success."""
        raw = b"" if body is None else msgspec.json.encode(body)
        request = Request(method, f"/v1/{path}", {"x-service-token": token}, raw)
        response: Response = self.perform(self.service.handle(request))
        assert response.status < 300, (path, response.status, response.body, response.failure)
        return msgspec.json.decode(response.body) if response.body else None

    def tick(self, seconds: float) -> None:
        """Background work for so long."""
        until = self.clock + seconds
        while self.clock < until:
            self.perform(self.service.tick())
            self.advance(60)


@pytest.fixture
def world() -> OldWorld:
    return OldWorld()


def test_the_file_is_opened_as_it_is(tmp_path: Path) -> None:
    shutil.copy(FILE, tmp_path / "store.sqlite")
    store = SqliteStore(tmp_path / "store.sqlite")
    assert store.read("mounts") is not None
    store.close()


@pytest.mark.parametrize("token", ["root_token", "login_token", "child_token", "batch_token"])
def test_its_tokens_are_good(world: OldWorld, token: str) -> None:
    world.ask("GET", "auth/token/lookup-self", token=MADE[token])


def test_its_login_token_can_be_renewed(world: OldWorld) -> None:
    assert world.ask("POST", "auth/token/renew-self", {}, MADE["login_token"])["auth"]["renewable"]


def test_its_configurations_and_roles_are_read(world: OldWorld) -> None:
    assert world.ask("GET", "auth/cloud/config")["data"]["tenant_id"] == MADE["tenant_id"]
    assert world.ask("GET", "auth/cloud/role/dev")["data"]["policies"] == ["team"]
    assert world.ask("GET", "cloud/config")["data"]["tenant_id"] == MADE["tenant_id"]
    assert world.ask("GET", "cloud/roles/fresh")["data"]["azure_roles"][0]["role_name"] == "Reader"
    kept = world.ask("GET", "cloud/roles/kept")["data"]
    assert kept["persist_app"]
    assert kept["application_object_id"]
    assert world.ask("GET", "auth/token/roles/ci")["data"]["token_period"] == 3600
    assert "sys/mounts" not in world.ask("GET", "sys/policies/acl/team")["data"]["policy"]


def test_its_mounts_are_where_they_were(world: OldWorld) -> None:
    assert {"cloud/", "team/c/"} <= set(world.ask("GET", "sys/mounts")["data"])


def test_its_leases_are_known_and_renewed(world: OldWorld) -> None:
    kept, existing = MADE["leases"][1:]
    assert world.ask("POST", "sys/leases/lookup", {"lease_id": kept})["data"]["renewable"]
    assert world.ask("POST", "sys/leases/renew", {"lease_id": existing})["lease_duration"]


def test_a_revocation_that_had_failed_is_still_listed_with_its_reason(world: OldWorld) -> None:
    [stuck] = world.ask("GET", "sys/leases")["data"]["leases"]
    assert stuck["lease_id"] == MADE["leases"][0]
    assert "403" in stuck["error"]


def test_its_rotation_goes_on(world: OldWorld) -> None:
    assert world.ask("GET", "cloud/rotation")["data"]["phase"] == "overlapping"


def test_what_is_due_is_worked_off(world: OldWorld) -> None:
    """The cloud knows none of its objects, so leases and intents end when the settle time has passed."""
    application = msgspec.json.decode(
        world.cloud.handle(HttpRequest("GET", f"{ADDRESS}/simulator/world")).response.body
    )["applications"][0]
    secret = {"client_id": application["client_id"], "client_secret": application["client_secret"]}
    world.ask("POST", "cloud/config", secret)
    for lease in MADE["leases"]:
        world.ask("POST", "sys/leases/revoke", {"lease_id": lease, "sync": False})
    world.tick(3 * 3600)
    assert world.store.list("lease/", "", 10) == ()
    assert [key for key in world.store.list("mount/", "", 100) if "/intent/" in key] == []
