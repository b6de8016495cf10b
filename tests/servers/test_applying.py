"""A server that applies a folder itself: when it starts, and at SIGHUP."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from cloudid_servers.provider_simulator import Running as Cloud
from cloudid_servers.provider_simulator import Simulator, start
from tests.pages.blocks import blocks_of
from tests.waiting import PATIENT

from .deployment import Deployment
from .running import SERVERS, Running, wait_until

POLICY: Final = next(
    block.text for block in blocks_of("docs/how-to/set-up-as-files.md") if block.marks.get("file") == "apply.hcl"
)
ROLE: Final = "auth/cloud/role/all"
MANY: Final = 300


@pytest.fixture(scope="module")
def cloud() -> Iterator[Cloud]:
    with start(Simulator()) as cloud:
        yield cloud


@pytest.fixture
def folder(cloud: Cloud, tmp_path: Path) -> Path:
    """Lets every machine of the simulated cloud log in, whose location the service must ask for."""
    world = httpx.get(f"{cloud.url}/simulator/world", **PATIENT).json()
    application = world["applications"][0]
    (tmp_path / "secret").write_text(application["client_secret"])
    fill(
        tmp_path / "folder",
        {
            "auth/cloud/config.toml": {
                "tenant_id": world["tenant"],
                "client_id": application["client_id"],
                "resource": "https://management.azure.com/",
            },
            f"{ROLE}.toml": {
                "bound_subscription_ids": world["subscriptions"],
                "bound_locations": [world["machines"][0]["location"]],
                "token_ttl": 60,
            },
        },
    )
    with (tmp_path / "folder/auth/cloud/config.toml").open("a") as file:
        file.write('client_secret = { file = "secret" }\n')
    return tmp_path / "folder"


def fill(folder: Path, files: Mapping[str, Mapping[str, object]]) -> None:
    for name, fields in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in fields.items()))


def prepared(name: str, place: Path, cloud: Cloud, server: Mapping[str, object]) -> Deployment:
    (place / "server").mkdir()
    return Deployment.prepare(
        name, place / "server", cloud.url, {}, {"apply_folder": "../folder", "apply_secrets": "..", **server}
    )


def problems(client: httpx.Client) -> list[Any]:
    details: list[Any] = client.get("sys/health").json()["problem_details"]
    return [(each["code"], each["text"]) for each in details]


def reload(server: Running) -> None:
    server.process.send_signal(signal.SIGHUP)


def is_applied(client: httpx.Client) -> bool:
    answer = client.get(ROLE)
    return answer.status_code == 200 and answer.json()["data"]["token_ttl"] == 60


def policies(client: httpx.Client) -> set[str]:
    return {*client.request("LIST", "sys/policies/acl").json()["data"]["keys"]}


@pytest.mark.parametrize("name", SERVERS)
def test_machines_log_in_after_every_start_rotation_and_reload(
    name: str, cloud: Cloud, folder: Path, tmp_path: Path
) -> None:
    """The secret that the service has made itself is not written over; nothing is done with more rights than given."""
    deployment = prepared(name, tmp_path, cloud, {})
    deployment.identify()

    def log_in(client: httpx.Client) -> int:
        return client.post("auth/cloud/login", json=deployment.form, headers={"x-service-token": ""}).status_code

    with deployment.serving() as server, deployment.client(server) as client:
        wait_until(lambda: problems(client) != [])
        [(code, text)] = problems(client)
        assert code == "folder_not_applied"
        assert re.search(r"was not applied: \S+: permission denied to the policies ", text), text
        client.post("sys/policies/acl/apply", json={"policy": POLICY}).raise_for_status()
        assert client.get(ROLE).status_code == 404
        file = {"type": "file", "options": {"file_path": "audit.jsonl"}}
        client.post("sys/audit/file", json=file).raise_for_status()
        reload(server)
        wait_until(lambda: is_applied(client) and problems(client) == [])
        entries = [json.loads(line) for line in (tmp_path / "server/audit/audit.jsonl").read_text().splitlines()]
        writers = [e["auth"] for e in entries if e.get("auth") and e["request"]["path"].startswith("sys/applied/")]
        assert {(by["display_name"], by["token_type"], *by["policies"]) for by in writers} == {
            ("apply", "batch", "apply")
        }
        assert log_in(client) == 200
        client.post("auth/cloud/rotate-root").raise_for_status()

    with deployment.serving() as server, deployment.client(server) as client:
        for _ in ("at the start", "at SIGHUP"):
            wait_until(lambda: is_applied(client) and problems(client) == [])
            assert log_in(client) == 200
            client.post(ROLE, json={"token_ttl": 30, "token_max_ttl": 90}).raise_for_status()
            reload(server)
        wait_until(lambda: is_applied(client))
        assert client.get(ROLE).json()["data"]["token_max_ttl"] == 90, "no file names it"

        (tmp_path / "secret").write_text("another")
        (folder / "auth/cloud/role/broken.toml").write_text("token_ttl = 'soon'\n")
        reload(server)
        wait_until(lambda: problems(client) != [])
        assert "auth/cloud/role/broken: " in problems(client)[0][1]
        (folder / "auth/cloud/role/broken.toml").unlink()
        reload(server)
        wait_until(lambda: problems(client) == [])
        assert log_in(client) == 200
        said = [json.loads(line) for line in server.log().splitlines()]
        assert [line["event"] for line in said if "folder" in line] == ["folder not applied"]


@pytest.mark.parametrize("name", SERVERS)
def test_what_a_killed_server_was_applying_is_removed_later(
    name: str, cloud: Cloud, folder: Path, tmp_path: Path
) -> None:
    deployment = prepared(name, tmp_path, cloud, {"apply_prune": True})
    fill(folder, {f"sys/policies/acl/{number}.toml": {"policy": "# one\n"} for number in range(MANY)})
    with deployment.serving() as server, deployment.client(server) as client:
        client.post("sys/policies/acl/apply", json={"policy": POLICY}).raise_for_status()
        reload(server)
        wait_until(lambda: client.get("sys/policies/acl/0").status_code == 200)
        server.process.kill()
    for file in (folder / "sys/policies/acl").iterdir():
        file.unlink()
    with deployment.serving() as server, deployment.client(server) as client:
        wait_until(lambda: policies(client) == {"apply", "default", "root"})


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_stops_while_it_applies(name: str, cloud: Cloud, folder: Path, tmp_path: Path) -> None:
    deployment = prepared(name, tmp_path, cloud, {})
    fill(folder, {f"sys/policies/acl/{number}.toml": {"policy": "# one\n"} for number in range(MANY)})
    with deployment.serving() as server, deployment.client(server) as client:
        client.post("sys/policies/acl/apply", json={"policy": POLICY}).raise_for_status()
        reload(server)
        wait_until(lambda: client.get("sys/policies/acl/0").status_code == 200)
        client.close()
        assert server.stop()[0] == 0
