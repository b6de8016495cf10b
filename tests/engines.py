"""An installation with the words of its secrets engine, and configured ones."""

from __future__ import annotations

from functools import cache
from typing import Any, Final
from urllib.parse import urlencode

from cloudid_core import HttpRequest
from cloudid_core.background.journal import Intent
from cloudid_core.leases.record import Lease, find_lease
from cloudid_core.rotation.record import Rotation, find_rotation
from cloudid_core.secrets_engine.roles import Role
from cloudid_servers.provider_simulator.world.objects import APP_ROLES

from .installation import ADDRESS, Installation, Reply

CONFIG: Final = "cloud/config"
ROLE: Final = "cloud/roles/web"
CREDS: Final = "cloud/creds/web"
DAY: Final = 86_400
EVERYTHING: Final = dict.fromkeys(
    ("allowed_scopes", "allowed_role_definitions", "allowed_application_ids", "allowed_group_ids")
)
"""A ceiling that limits nothing but directory roles."""

NO_ID: Final = "00000000-0000-4000-8000-000000000000"
"""The id of no object."""


def engine_config(installation: Installation) -> dict[str, str]:
    """The fields of a configuration that works."""
    scene = installation.scene
    root = scene["applications"][0]
    return {
        "tenant_id": scene["tenant"],
        "subscription_id": scene["subscriptions"][0],
        "client_id": root["client_id"],
        "client_secret": root["client_secret"],
    }


def grants(installation: Installation, *names: str, scope: str = "") -> list[dict[str, str]]:
    """The `azure_roles` of a role: grants of these roles (`Reader`, if there are none) in a scope."""
    scope = scope or f"/subscriptions/{installation.scene['subscriptions'][0]}"
    return [{"role_name": name, "scope": scope} for name in names or ("Reader",)]


def app_roles(installation: Installation, *numbers: int) -> list[dict[str, str]]:
    """App roles of the cloud's API, by their ids."""
    client_id = installation.scene["applications"][1]["client_id"]
    api = installation.simulator.world.directory.principal_of(client_id)
    assert api is not None
    ids = list(APP_ROLES[api.display_name])
    return [{"resource_id": api.id, "app_role_id": ids[number]} for number in numbers]


class SecretsEngine(Installation):
    """An installation whose secrets engine is at `cloud/`; most tests write its role `web`."""

    @property
    def config(self) -> dict[str, str]:
        """The fields of a configuration that works."""
        return engine_config(self)

    @property
    def root_application(self) -> dict[str, str]:
        application: dict[str, str] = self.scene["applications"][0]
        return application

    @property
    def other_application(self) -> dict[str, str]:
        application: dict[str, str] = self.scene["applications"][1]
        return application

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
        return grants(self, *names, scope=scope)

    def app_roles(self, *numbers: int) -> list[dict[str, str]]:
        """The `app_roles` of a role: those of the cloud's API."""
        return app_roles(self, *numbers)

    def groups(self, *numbers: int) -> list[dict[str, str]]:
        """The `azure_groups` of a role."""
        return [{"object_id": self.group(number)["id"]} for number in numbers]

    def write_role(self, **fields: Any) -> Reply:
        return self.ask("POST", ROLE, fields)

    def role(self, **fields: Any) -> None:
        """Write the role; without other fields it gives one role assignment."""
        given = {} if "application_object_id" in fields else {"azure_roles": self.grants()}
        self.must("POST", ROLE, {**given, **fields})

    def shown_role(self) -> dict[str, Any]:
        shown: dict[str, Any] = self.must("GET", ROLE).data
        return shown

    def stored_role(self) -> Role:
        (key,) = (key for key in self.keys("mount/") if "/role/" in key and key.endswith("/web"))
        found = self.perform(self.context.records.find(key, Role))
        assert found is not None
        return found.record

    def issue(self, role: str = "existing", token: str = "root") -> str:
        """Issue credentials of a role; the id of their lease."""
        lease_id: str = self.must("GET", f"cloud/creds/{role}", token=token).body["lease_id"]
        return lease_id

    def revoke_all(self) -> None:
        """Revoke every lease, and have it done."""
        self.must("PUT", "sys/leases/revoke-prefix/cloud", {"sync": False})
        self.converge()

    def signs_in(self, client_id: str, client_secret: str, **_: str) -> bool:
        """Whether the token endpoint accepts these credentials now."""
        form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": client_secret}
        body = urlencode({**form, "scope": "https://graph.microsoft.com/.default"}).encode()
        url = f"{ADDRESS}/login/{self.scene['tenant']}/oauth2/v2.0/token"
        return self.simulator.handle(HttpRequest("POST", url, {}, body)).response.status == 200

    def is_clean(self) -> bool:
        """Whether the provider has nothing of ours, not even among the deleted items."""
        return not self.alive() and not self.soft_deleted()

    def is_over(self) -> bool:
        """Whether there is neither a lease nor anything of ours at the provider; deleted items do not count."""
        return not self.leases() and not self.alive()

    def lease(self, lease_id: str) -> Lease | None:
        found = self.perform(find_lease(self.context, lease_id))
        return found.record if found else None

    def intents(self) -> list[Intent]:
        keys = (key for key in self.keys("mount/") if "/intent/" in key)
        found = (self.perform(self.context.records.find_fresh(key, Intent)) for key in keys)
        return [each.record for each in found if each]

    def rotation(self, path: str = "cloud") -> Rotation:
        found = self.perform(find_rotation(self.context, self.mount(path).id))
        assert found is not None
        return found.record


def configured_engine() -> SecretsEngine:
    """An engine with a configuration and no role."""
    return _configured_engine().copy()


def engine_with_roles() -> SecretsEngine:
    """A configured engine with two roles: `fresh` makes principals, `existing` makes passwords. It verifies neither."""
    return _engine_with_roles().copy()


@cache
def _configured_engine() -> SecretsEngine:
    engine = SecretsEngine()
    engine.must("POST", CONFIG, engine.config)
    return engine


@cache
def _engine_with_roles() -> SecretsEngine:
    engine = SecretsEngine(verify_credentials=False)
    engine.must("POST", CONFIG, engine.config)
    times: dict[str, Any] = {"ttl": "1h", "max_ttl": "4h"}
    engine.must("POST", "cloud/roles/fresh", {"azure_roles": engine.grants(), **times})
    other = engine.other_application["object_id"]
    engine.must("POST", "cloud/roles/existing", {"application_object_id": other, **times})
    return engine
