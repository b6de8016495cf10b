"""A configured secrets engine beside a simulated cloud, and short ways to use both."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from attrs import evolve

from cloudid_core import HttpRequest, Request, Secret, open_service
from cloudid_core.api.response import Response
from cloudid_core.background.journal import Intent
from cloudid_core.leases.record import Lease
from cloudid_core.secrets_engine.roles import Role
from cloudid_core.store import keys
from servers.provider_simulator.engine.ledger import LedgerEntry
from tests.simulation.installation import ADDRESS, ROOT, SETTINGS, Installation, Reply

CONFIG: Final = "cloud/config"
ROLE: Final = "cloud/roles/web"
CREDS: Final = "cloud/creds/web"
DAY: Final = 86_400
NOBODY: Final = "00000000-0000-4000-8000-000000000000"
READER: Final = "Reader"


class Engine(Installation):
    """The service with a configured engine, unless that is not wanted."""

    def __init__(self, *, configured: bool = True) -> None:
        super().__init__()
        self.scene = self.cloud("GET", "/simulator/world")
        if configured:
            self.must("POST", CONFIG, self.config)

    @property
    def root_application(self) -> dict[str, str]:
        return self._application(0)

    @property
    def other_application(self) -> dict[str, str]:
        return self._application(1)

    def _application(self, number: int) -> dict[str, str]:
        application: dict[str, str] = self.scene["applications"][number]
        return application

    @property
    def config(self) -> dict[str, str]:
        """The fields of a configuration that works."""
        root = self.root_application
        return {
            "tenant_id": self.scene["tenant"],
            "subscription_id": self.scene["subscriptions"][0],
            "client_id": root["client_id"],
            "client_secret": root["client_secret"],
        }

    @property
    def scope(self) -> str:
        return f"/subscriptions/{self.scene['subscriptions'][0]}"

    @property
    def other_scope(self) -> str:
        return f"/subscriptions/{self.scene['subscriptions'][1]}"

    def group(self, number: int) -> dict[str, str]:
        group: dict[str, str] = self.scene["groups"][number]
        return group

    def grants(self, *names: str, scope: str = "") -> list[dict[str, str]]:
        """The `azure_roles` of a role."""
        return [{"role_name": name, "scope": scope or self.scope} for name in names or (READER,)]

    def groups(self, *numbers: int) -> list[dict[str, str]]:
        """The `azure_groups` of a role."""
        return [{"object_id": self.group(number)["id"]} for number in numbers]

    def write_role(self, **fields: Any) -> Reply:
        return self.ask("POST", ROLE, fields)

    def role(self, **fields: Any) -> None:
        """Write the role; without other fields it gives one role assignment."""
        grants = {} if "application_object_id" in fields else {"azure_roles": self.grants()}
        self.must("POST", ROLE, {**grants, **fields})

    def shown_role(self) -> dict[str, Any]:
        shown: dict[str, Any] = self.must("GET", ROLE).data
        return shown

    def codes(self, path: str, fields: dict[str, Any], status: int = 400) -> list[str]:
        """Why a write is refused."""
        return codes(self.ask("POST", path, fields), status)

    def whole(self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None) -> Response:
        """The response to a request as a host gets it."""
        return self.perform(self.service.handle(self.request(method, path, body, headers)))

    def request(self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None) -> Request:
        content = b"" if body is None else msgspec.json.encode(body)
        return Request(method, f"/v1/{path}", {"x-service-token": ROOT, **(headers or {})}, content, "127.0.0.1")

    def reopen(self, environment: dict[str, str] | None = None, **changes: Any) -> None:
        """Start the service again under other settings."""
        variables = {name: Secret(value) for name, value in (environment or {}).items()}
        self.service = self.perform(open_service(evolve(SETTINGS, environment=variables, **changes)))

    def behave(self, **behaviour: Any) -> None:
        self.cloud("POST", "/simulator/behaviour", behaviour)

    def fault(self, method: str, path: str, times: int | None = 1, after: bool = False, **action: Any) -> None:
        """Let requests fail; `after`: when their work is done."""
        rule = {"match": {"method": method, "path": path}, "times": times, "action": {**action, "after_work": after}}
        self.cloud("POST", "/simulator/faults", [rule])

    def well(self) -> None:
        """No more faults."""
        self.cloud("POST", "/simulator/faults", [])

    def alive(self, *kinds: str) -> list[LedgerEntry]:
        """What we made at the provider and is there."""
        return [made for made in self.simulator.ledger.alive() if made.kind in kinds or not kinds]

    def signs_in(self, client_id: str, client_secret: str) -> bool:
        """Whether the token endpoint accepts these credentials now."""
        form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": client_secret}
        body = urlencode({**form, "scope": "https://graph.microsoft.com/.default"}).encode()
        url = f"{ADDRESS}/login/{self.scene['tenant']}/oauth2/v2.0/token"
        return self.simulator.handle(HttpRequest("POST", url, {}, body)).response.status == 200

    def made(self, kind: str) -> list[LedgerEntry]:
        """All of a kind that we ever made."""
        return [made for made in self.simulator.ledger.entries if made.kind == kind]

    def soft_deleted(self) -> list[LedgerEntry]:
        return self.simulator.ledger.soft_deleted()

    def is_clean(self) -> bool:
        """Whether the provider has nothing of ours, not even among the deleted items."""
        return not self.alive() and not self.soft_deleted()

    def is_over(self) -> bool:
        """Whether there is neither a lease nor anything of ours at the provider; deleted items do not count."""
        return not self.leases() and not self.alive()

    def intents(self) -> list[Intent]:
        found = (self.perform(self.service.context.records.find_fresh(key, Intent)) for key in self._keys("/intent/"))
        return [each.record for each in found if each]

    def lease(self, lease_id: str) -> Lease | None:
        found = self.perform(self.service.context.records.find_fresh(keys.lease(lease_id), Lease))
        return found.record if found else None

    def leases(self) -> list[str]:
        return [key.removeprefix(keys.LEASES) for key in self.store.list(keys.LEASES, "", 1000)]

    def stored_role(self) -> Role:
        (key,) = (key for key in self._keys("/role/") if key.endswith("/web"))
        found = self.perform(self.service.context.records.find(key, Role))
        assert found is not None
        return found.record

    def _keys(self, part: str) -> list[str]:
        return [key for key in self.store.list("mount/", "", 1000) if part in key]

    def asked(self, since: int = 0) -> list[str]:
        """What was asked of the provider, as method and path."""
        requests = (getattr(effect, "request", None) for _, effect in self.trace[since:])
        return [f"{r.method} {r.url.removeprefix(ADDRESS).partition('?')[0]}" for r in requests if r is not None]

    def revoke_all(self) -> None:
        """Revoke every lease, and have it done."""
        self.must("PUT", "sys/leases/revoke-prefix/cloud", {"sync": False})
        self.converge()


def codes(reply: Reply, status: int = 400) -> list[str]:
    assert reply.status == status, reply.body
    found: list[str] = reply.body["codes"]
    return found
