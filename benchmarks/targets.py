"""The servers under test: each started in a process of its own, on a durable store, ready to log the fleet in."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
from attrs import define, field, frozen

from cloudid_servers.provider_simulator import Simulator
from cloudid_servers.provider_simulator import start as start_simulator

from .fleet import AUDIENCE, ROLE, Fleet
from .load import Load, run_once
from .processes import Cpus, Places, ProcessFailed, background, in_process, server

BATCH_ROLE: Final = "web-batch"
BRIEF_ROLE: Final = "web-brief"
"""Its tokens live for a second."""

POLICY: Final = "bench"
POLICY_TEXT: Final = 'path "cloud/creds/*" { capabilities = ["read"] }'
TOKENS: Final = 32
"""How many service tokens a target hands out for requests that need one."""

WARM_UP_CONNECTIONS: Final = 16
QUOTAS: Final = {"applications": 10**6, "passwords": 10**6, "assignments": 10**6}
"""Of the simulated cloud: most credentials are only made here, and never given back."""


@define
class Target:
    """A server that is ready, and tokens of machines that have logged in."""

    host: str
    port: int
    tokens: tuple[str, ...]
    store: Path | None = None
    pid: int = 0
    """Id of its process. 0: it was not started here."""
    root_token: str = field(default="", repr=False)
    next_machine: int = 0
    """The number of the machine whose turn it is."""

    def written_at(self) -> int | None:
        """When SQLite last wrote to the store's file itself, which only a checkpoint does."""
        return self.store.stat().st_mtime_ns if self.store else None


@frozen
class Installation:
    """What targets are started with."""

    fleet: Fleet
    cloud: str
    folder: Path
    places: Places


def service_settings(situation: str, machines: int) -> Mapping[str, int]:
    """The `[service]` settings that make what a workload needs.

    A fleet that is taken in turn is never found in a cache that holds half of it: that stands for tokens, and machines,
    that were never seen before.
    """
    unlimited = {"provider_read_rate": 0}
    known = unlimited | {"fact_max_age": 86_400}
    match situation:
        case "warm" | "audited" | "audited_fsync":
            return known
        case "cold":
            return known | {"signature_cache_size": machines // 2}
        case "new":
            return known | {"signature_cache_size": machines // 2, "fact_cache_size": machines // 2}
        case "stale":
            return unlimited | {"fact_max_age": 1}
    raise ValueError(situation)


def audit_settings(situation: str) -> list[str]:
    """The lines of the settings that enable an audit device where a workload needs one."""
    if not situation.startswith("audited"):
        return []
    fsync = str(situation == "audited_fsync").lower()
    return ["[audit.file]", 'type = "file"', 'file_path = "audit.log"', f"fsync = {fsync}"]


@contextmanager
def cloud_of(simulator: Simulator, cpus: Cpus, host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """A simulated cloud over HTTP, in a process of its own for as long as the block lasts; yields its URL."""

    def serve(report: Callable[[str], None]) -> None:
        with start_simulator(simulator, host, port) as running:
            report(running.url)
            while True:
                sleep(3600)

    with background(cpus, serve) as url:
        yield url


@contextmanager
def simulated_cloud(fleet: Fleet, cpus: Cpus, host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """The fleet's cloud, for as long as the block lasts; yields its URL."""
    with cloud_of(fleet.cloud, cpus, host, port) as url:
        httpx.post(f"{url}/simulator/behaviour", json={"quotas": QUOTAS}, trust_env=False).raise_for_status()
        yield url


@contextmanager
def core_server(installation: Installation, module: str, situation: str) -> Iterator[Target]:
    """One of the servers over the core, for as long as the block lasts."""
    folder = installation.folder / f"{module}-{situation}"
    folder.mkdir()
    settings = folder / "settings.toml"
    service = service_settings(situation, len(installation.fleet.members))
    lines = [f"{name} = {value}" for name, value in service.items()]
    settings.write_text(
        "\n".join(['[server]\nlisten = "127.0.0.1:0"', "[service]", *lines, *audit_settings(situation)]), "utf-8"
    )
    root_token = initialise(settings)
    arguments = ("--settings", str(settings), "--provider", installation.cloud)
    with server(installation.places.server, folder / "log", module, *arguments) as running:
        target = prepare(installation, running.url, root_token, folder / "cloudid.sqlite")
        target.pid = running.pid
        yield target


def initialise(settings: Path) -> str:
    """Prepare the store of a settings file; the root token. Raises `ProcessFailed`."""
    done = subprocess.run(
        [sys.executable, "-m", "cloudid_servers.trio_server", "init", "--settings", str(settings)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ProcessFailed(done.stderr)
    return done.stdout.partition("root token: ")[2].strip()


@contextmanager
def fastapi_server(installation: Installation, form: str) -> Iterator[Target]:
    """The baseline on FastAPI in one of its forms, for as long as the block lasts."""
    folder = installation.folder / form
    folder.mkdir()
    fleet = installation.fleet
    config = {
        "keys": httpx.get(f"{installation.cloud}/login/common/discovery/keys", trust_env=False).json(),
        "audience": AUDIENCE,
        "issuer": fleet.issuer,
        "role": fleet.role,
        "database": str(folder / "tokens.sqlite"),
        "grouped": form == "fastapi_grouped",
    }
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    module, config_file = "benchmarks.baselines.fastapi_sqlalchemy", str(folder / "config.json")
    with server(installation.places.server, folder / "log", module, config_file) as running:
        target = warm_up(installation, running.url, folder / "tokens.sqlite")
        target.pid = running.pid
        yield target


def prepare(installation: Installation, url: str, root_token: str, store: Path | None = None) -> Target:
    """Configure a service that serves the API, by its root token, and log the fleet in."""
    fleet = installation.fleet
    application = {name: fleet.application[name] for name in ("client_id", "client_secret")}
    application["tenant_id"] = fleet.tenant_id
    role = dict(fleet.role) | {"token_policies": [POLICY]}
    documents: dict[str, Mapping[str, Any]] = {
        "auth/cloud/config": application | {"resource": AUDIENCE},
        f"auth/cloud/role/{ROLE}": role,
        f"auth/cloud/role/{BATCH_ROLE}": role | {"token_type": "batch"},
        f"auth/cloud/role/{BRIEF_ROLE}": role | {"token_ttl": "1s", "token_max_ttl": "1s"},
        f"sys/policies/acl/{POLICY}": {"policy": POLICY_TEXT},
        "cloud/config": application | {"subscription_id": fleet.role["bound_subscription_ids"][0]},
        "cloud/roles/reader": reader(fleet),
    }
    configure(url, root_token, documents)
    target = warm_up(installation, url, store)
    target.root_token = root_token
    return target


def reader(fleet: Fleet) -> dict[str, Any]:
    """A role of the secrets engine, for credentials that may read a subscription."""
    scope = f"/subscriptions/{fleet.role['bound_subscription_ids'][0]}"
    return {"azure_roles": json.dumps([{"role_name": "Reader", "scope": scope}])}


def configure(url: str, root_token: str, documents: Mapping[str, Mapping[str, Any]]) -> None:
    """Write documents to their paths, in order. Raises `ProcessFailed` when one is refused."""
    with httpx.Client(headers={"x-service-token": root_token}, trust_env=False, timeout=60) as client:
        for path, body in documents.items():
            answer = client.post(f"{url}/v1/{path}", json=body)
            if answer.is_error:
                raise ProcessFailed(f"{url}: POST {path}: {answer.status_code} {answer.text}")


def warm_up(installation: Installation, url: str, store: Path | None = None) -> Target:
    """Log every machine in, and keep some of the tokens."""
    address = urlsplit(url)
    host, port = address.hostname or "127.0.0.1", address.port or 80
    members = installation.fleet.members
    load = Load(host, port, logins(installation.fleet), WARM_UP_CONNECTIONS)
    outcome = in_process(installation.places.load, lambda: run_once(load))
    if outcome.failures or len(outcome.latencies) != len(members):
        raise ProcessFailed(f"{url}: not every machine could log in: {dict(outcome.failures)}")
    with httpx.Client(trust_env=False, timeout=60) as client:
        path = f"{url}/v1/auth/cloud/login"
        answers = [client.post(path, json=json.loads(member.request.body)).json() for member in members[:TOKENS]]
    return Target(host, port, tuple(answer["auth"]["client_token"] for answer in answers), store)


def logins(fleet: Fleet, role: str = ROLE) -> list[bytes]:
    """The login of each machine under a role."""
    bodies = [json.loads(member.request.body) | {"role": role} for member in fleet.members]
    return [post("auth/cloud/login", json.dumps(body).encode()) for body in bodies]


def post(path: str, body: bytes) -> bytes:
    """The bytes of a POST."""
    return _head("POST", path, f"content-type: application/json\r\ncontent-length: {len(body)}\r\n") + body


def get(path: str, token: str = "") -> bytes:
    """The bytes of a GET."""
    return _head("GET", path, f"x-service-token: {token}\r\n" if token else "")


def _head(method: str, path: str, fields: str) -> bytes:
    common = "host: 127.0.0.1\r\nuser-agent: benchmark\r\naccept: */*\r\n"
    return f"{method} /v1/{path} HTTP/1.1\r\n{common}{fields}\r\n".encode()


def is_installed(*packages: str) -> bool:
    return all(importlib.util.find_spec(package) for package in packages)
