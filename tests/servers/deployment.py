"""One of the servers on a durable store beside a simulated cloud, configured; it can be killed and started again."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import httpx
from attrs import define, field

from benchmarks.sweep import count_entries
from cloudid_core.store.keys import TOKENS
from tests.waiting import PATIENT

from .running import Running, initialise
from .story import RESOURCE, login_form

SERVER: Final = """
[server]
listen = "127.0.0.1:0"
store = "store.sqlite"
key_file = "key"
log_level = "error"
"""
POLICY: Final = 'path "cloud/creds/*" { capabilities = ["read"] }'
RETRIES: Final = {"max_retries": 2, "retry_delay": 1, "max_retry_delay": 1}


def service_table(values: Mapping[str, object]) -> str:
    """The `[service]` table of a file of settings."""
    return "\n".join(["\n[service]", *_lines(values), ""])


def _lines(values: Mapping[str, object]) -> list[str]:
    return [f"{name} = {json.dumps(value)}" for name, value in values.items()]


@define
class Deployment:
    """Where everything is: the server's module, its folder, the cloud's address, and the root token."""

    name: str
    folder: Path
    cloud: str
    root: str = field(repr=False)
    form: dict[str, str] = field(factory=dict, repr=False)
    """A login that succeeds, under the role `all`."""

    @classmethod
    def prepare(
        cls,
        name: str,
        folder: Path,
        cloud: str,
        service: Mapping[str, object],
        server: Mapping[str, object] = MappingProxyType({}),
    ) -> Deployment:
        """Make the store. `service` and `server`: values of these tables of the settings."""
        (folder / "cloudid.toml").write_text("\n".join([SERVER, *_lines(server)]) + service_table(service))
        return cls(name, folder, cloud, initialise(name, folder / "cloudid.toml"))

    def stored_tokens(self) -> int:
        """How many tokens the store holds, dead or alive."""
        return count_entries(self.folder / "store.sqlite", TOKENS)

    @contextmanager
    def serving(self) -> Iterator[Running]:
        """The server, for as long as the block lasts; its end is that of `kill -9`."""
        arguments = ("--settings", str(self.folder / "cloudid.toml"), "--provider", self.cloud)
        with Running(f"cloudid_servers.{self.name}", *arguments) as server:
            yield server
            server.process.send_signal(signal.SIGKILL)

    def client(self, server: Running, token: str | None = None) -> httpx.Client:
        """A client of the server's API; without a token, the operator's."""
        headers = {"X-Service-Token": self.root if token is None else token}
        return httpx.Client(base_url=f"{server.url}/v1", headers=headers, **PATIENT)

    def configure(self, server: Running, token_ttl: str = "1h", lease_ttl: str = "1h") -> None:
        """A login role `all`; engine roles `fresh` (makes principals) and `existing` (uses an application)."""
        world = httpx.get(f"{self.cloud}/simulator/world", **PATIENT).json()
        application, other = world["applications"][:2]
        root = {name: application[name] for name in ("client_id", "client_secret")}
        root |= {"tenant_id": world["tenant"]}
        scope = f"/subscriptions/{world['subscriptions'][0]}"
        assignments = json.dumps([{"role_name": "Reader", "scope": scope}])
        documents: dict[str, Mapping[str, Any]] = {
            "auth/cloud/config": {**root, **RETRIES, "resource": RESOURCE},
            "auth/cloud/role/all": {
                "bound_subscription_ids": world["subscriptions"],
                "token_policies": "app",
                "token_ttl": token_ttl,
            },
            "sys/policies/acl/app": {"policy": POLICY},
            "cloud/config": {**root, "subscription_id": world["subscriptions"][0]},
            "cloud/roles/fresh": {"azure_roles": assignments, "ttl": lease_ttl},
            "cloud/roles/existing": {"application_object_id": other["object_id"], "ttl": lease_ttl},
        }
        with self.client(server) as client:
            for path, document in documents.items():
                client.post(path, json=document).raise_for_status()
        self.identify()

    def identify(self) -> None:
        """Have the machine that logs in get a new identity."""
        world = httpx.get(f"{self.cloud}/simulator/world", **PATIENT).json()
        form = login_form(self.cloud, world["machines"][0])
        assert form is not None
        self.form = form

    def login_bytes(self) -> bytes:
        """The login as it is sent."""
        content = json.dumps(self.form).encode()
        head = f"POST /v1/auth/cloud/login HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(content)}\r\n\r\n"
        return head.encode() + content
