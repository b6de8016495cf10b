"""An installation in which root secrets are rotated, and in which the service may never be locked out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import evolve

from cloudid_core import HttpRequest
from cloudid_core.auth_method.config import Config as AuthConfig
from cloudid_core.mounts import MountTable
from cloudid_core.rotation.record import Rotation
from cloudid_core.secrets_engine.config import Config as EngineConfig
from cloudid_core.store import keys
from cloudid_core.store.records import decode
from cloudid_core.testing import Answer
from cloudid_servers.provider_simulator.world.access import permit
from cloudid_servers.provider_simulator.world.objects import Application
from tests.engines import SecretsEngine, engine_config, engine_with_roles

OVERLAP_AND_MORE = 330.0


class Rotating(SecretsEngine):
    """After every call to the provider, of the secrets that are stored for a mount one must work."""

    def call_cloud(self, request: HttpRequest) -> Answer:
        answer = super().call_cloud(request)
        if request.method != "GET":
            for secrets in self.stored_secrets():
                assert any(map(self.knows, secrets)), "locked out"
        return answer

    def knows(self, secret: str) -> bool:
        """Whether a secret is that of an application, whatever the token endpoint makes of it at the moment."""
        applications = self.simulator.world.directory.applications.all()
        return any(password.secret == secret for application in applications for password in application.passwords)

    def stored_secrets(self) -> Iterator[list[str]]:
        """For every mount with a root secret, all that are stored for it."""
        for path, form in (("cloud", EngineConfig), ("auth/cloud", AuthConfig)):
            root = self.read(keys.config(self.mount_ids[path]), form)
            rotation = self.read(keys.rotation(self.mount_ids[path]), Rotation)
            if root is not None and root.client_secret:
                known = [key.secret for key in rotation.known_keys] if rotation else []
                yield [secret.reveal() for secret in (root.client_secret, *known)]

    def read(self, key: str, form: Any) -> Any:
        """A record, beside all effects."""
        entry = self.store.read(key)
        return entry and decode(self.context.records.sealer.open(key, entry.value), form)

    @property
    def mount_ids(self) -> dict[str, str]:
        table = self.read(keys.MOUNTS, MountTable)
        return {mount.path: mount.id for mount in table.mounts}

    def configured(self, path: str = "cloud") -> str:
        """The root secret in the configuration."""
        form = EngineConfig if path == "cloud" else AuthConfig
        secret: str = self.read(keys.config(self.mount_ids[path]), form).client_secret.reveal()
        return secret

    def rotate(self, path: str = "cloud", **fields: object) -> int:
        return self.ask("POST", f"{path}/rotate-root", fields).status

    @property
    def root(self) -> Application:
        """The root application as it really is at the provider."""
        return next(iter(self.simulator.world.directory.applications.all()))

    @property
    def key_ids(self) -> list[str]:
        """Ids of all its passwords."""
        return [password.key_id for password in self.root.passwords]

    def add_secret(self, starting: str = "") -> str:
        """One more secret of the mount's app registration, from its operator."""
        now = self.clock
        password = self.simulator.world.directory.add_password(self.root, "operator", now, now + 10**7)
        if starting:
            chosen = evolve(password, secret=starting + password.secret[len(starting) :])
            passwords = (*(p for p in self.root.passwords if p != password), chosen)
            self.simulator.world.directory.applications.put(self.root.id, evolve(self.root, passwords=passwords))
            return chosen.secret
        return password.secret

    def kill_secret(self, secret: str) -> None:
        """An operator removes a secret of the mount's app registration."""
        (password,) = (password for password in self.root.passwords if password.secret == secret)
        self.simulator.world.directory.remove_password(self.root, password.key_id)

    def promoted_application(self) -> dict[str, str]:
        """The credentials of another application that may do what the mount's app registration may."""
        other = self.scene["applications"][1]
        principal = self.simulator.world.directory.principal_of(other["client_id"])
        assert principal is not None
        permit(self.simulator.world, principal.id, reading=True, writing=True)
        return {name: other[name] for name in ("client_id", "client_secret")}

    def status(self, path: str = "cloud") -> Any:
        return self.must("GET", f"{path}/rotation").data


def rotating() -> Rotating:
    """A world whose secrets engine has the root secret that its operator gave it."""
    return Rotating.copy_of(engine_with_roles())


def with_auth_method(world: Rotating, **fields: object) -> Rotating:
    """The world with the same root secret in the authentication method, or another one."""
    given = engine_config(world)
    del given["subscription_id"]
    world.must("POST", "auth/cloud/config", {**given, "resource": "https://service", **fields})
    return world
