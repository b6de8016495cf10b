"""Paths from an empty folder that has nothing but a wheel, with the pages alone: their commands, as they stand."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from attrs import frozen

from cloudid_servers.provider_simulator import Simulator, start
from cloudid_servers.stores.postgres.temporary import NoPostgres, Server, guarded_folder
from tests.pages.runner import Place, check, facts_of
from tests.servers.existing_service import CONFIG, SUBSCRIPTION, existing_service
from tests.servers.running import Running
from tests.waiting import PATIENT

from .walking import INSTALLED, SEARCHED, page, walk

CLOUDS: Final = """key_file = "cloudid.key"

[clouds.CloudPublicCloud]
login = "{0}/login"
resource_manager = "{0}/arm"
directory = "{0}/graph"
"""
READER: Final = "/providers/Microsoft.Authorization/roleDefinitions/acdd72a7-3385-48ef-bd42-f606fba81ae7"


@frozen
class Installed(Place):
    """A server of an installation in a folder, whose commands the page's shell finds, and none of this checkout."""

    folder: Path = Path()

    @property
    def environment(self) -> dict[str, str]:
        given = {name: value for name, value in super().environment.items() if name != "PYTHONPATH"}
        return {**given, "PATH": os.pathsep.join((str(self.folder / "venv" / "bin"), SEARCHED))}


@pytest.fixture
def folder(venv: Path, wheel: Path, tmp_path: Path) -> Path:
    """An empty one, but for the wheel and what it was installed into."""
    (tmp_path / "venv").symlink_to(venv)
    (tmp_path / wheel.name).symlink_to(wheel)
    return tmp_path


@pytest.fixture
def cloud() -> Iterator[str]:
    with start(Simulator()) as simulator:
        yield simulator.url


@pytest.fixture
def world(cloud: str) -> dict[str, Any]:
    found: dict[str, Any] = httpx.get(f"{cloud}/simulator/world", **PATIENT).json()
    return found


def test_a_newcomer_gets_from_a_wheel_to_a_lent_credential(folder: Path) -> None:
    """`cloudid dev`, and the ten minutes with it."""
    python = folder / "venv" / "bin" / "python"
    with Running("cloudid_servers.cli", "dev", "--listen", "127.0.0.1:0", python=python, folder=folder) as running:
        check(page("start/ten-minutes"), Installed(*facts_of(running), is_started_by_page=True, folder=folder), folder)


def test_an_operator_gets_from_a_wheel_to_a_copy_that_was_tried(folder: Path, cloud: str) -> None:
    """TLS, `init`, a tenant (simulated), policies, an upgrade that was tried on a copy, the way back, and audit."""
    pages = (INSTALLED, *map(page, ("how-to/connect-a-tenant", "how-to/policies", "how-to/upgrade")))
    walk("\n".join(pages), folder, SIMULATOR=cloud)


def test_an_operator_runs_two_nodes(folder: Path) -> None:
    """Over one PostgreSQL: each knows the other, and goes on without it."""
    try:
        with guarded_folder(None) as home:
            server = Server(home)
            server.create()
            server.start()
            (folder / "db.password").write_text(server.password)
            address = server.admin.replace(f":{server.password}@", "@")
            walk(re.sub(r'store = ".*"', f'store = "{address}"', page("how-to/run-several-nodes")), folder)
    except NoPostgres as missing:
        pytest.skip(str(missing))


def test_an_embedder_gets_from_a_wheel_to_a_login_beside_other_routes(
    folder: Path, cloud: str, world: dict[str, Any]
) -> None:
    application = world["applications"][0]
    text = page("how-to/embed").replace('key_file = "cloudid.key"\n', CLOUDS.format(cloud))
    tenant = {"TENANT": world["tenant"], "CLIENT": application["client_id"], "SECRET": application["client_secret"]}
    walk(text, folder, SIMULATOR=cloud, **tenant)


def test_an_embedder_verifies_a_machine_in_fastapi(folder: Path) -> None:
    walk(page("how-to/verify-only"), folder)


def test_a_migrant_gets_from_an_existing_service_to_one_that_is_equal(
    folder: Path, cloud: str, world: dict[str, Any]
) -> None:
    application = world["applications"][0]
    renamed = {CONFIG["tenant_id"]: world["tenant"], CONFIG["client_id"]: application["client_id"]}
    renamed |= {SUBSCRIPTION: world["subscriptions"][0], "/x/y": READER}
    python = folder / "venv" / "bin" / "python"
    options = ("dev", "--provider", cloud, "--root-token", "root", "--listen", "127.0.0.1:0")
    with (
        existing_service(renamed) as existing,
        Running("cloudid_servers.cli", *options, python=python, folder=folder) as running,
    ):
        text = page("how-to/move-from-vault").replace("https://vault.example:8200", existing)
        walk(text, folder, VAULT_ADDR=running.url, VAULT_TOKEN="root", SECRET=application["client_secret"])
