"""The story of a transcript: a service of its own does with a tenant all that services do, and takes it back.

Its store lies beside the transcript until nothing is left at the provider: a run that was interrupted is taken back by
the next one, by the same records by which a service that was killed takes back what it made. One process has the store:
no request of an earlier run is alive, so none is waited for.
"""

from __future__ import annotations

import json
import secrets
import shutil
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from attrs import evolve, field, frozen

from cloudid_core import Request
from cloudid_core.background import Intent, different_reasons, rescheduled
from cloudid_core.clouds import DEFAULT_ENVIRONMENT
from cloudid_core.deadline import Deadline
from cloudid_core.effects import ListKeys, Now, Sleep
from cloudid_core.errors import CloudidError, Refused
from cloudid_core.installation import initialise, is_initialised, make_root_token
from cloudid_core.leases import Remains, what_remains
from cloudid_core.mounts import mount_table
from cloudid_core.provider import PROVIDER_FAILURES, machine_facts
from cloudid_core.provider.provisioned import UNSETTLED
from cloudid_core.routing import mount_client
from cloudid_core.run import run
from cloudid_core.service import Service, open_service
from cloudid_core.store import Found, keys
from cloudid_core.values import resource_id
from cloudid_core.values.secret import Secret

from ..client import RESOURCE
from ..command import open_store
from ..host import App
from ..logs import open_log
from ..machine import Platform
from ..settings import clouds_at, master_key, read_settings
from .recording import Recorder

PATIENCE: Final = 900.0
"""Seconds until everything has to be removed."""
PAUSE: Final = 0.5
HOUR: Final = 3600.0
LOOKS: Final = 3
"""How often it is looked for what a request may have made that did not end."""
MOST: Final = 1000
ISSUER: Final = "https://cloudid.invalid"
"""Of federated credentials that no token is asked for with: Azure refuses to fetch its keys, and that is recorded."""
UNLIMITED: Final = ("allowed_scopes", "allowed_role_definitions", "allowed_application_ids", "allowed_group_ids")


class NotRemoved(CloudidError):
    """Something is left at the provider."""


@frozen
class Tenant:
    """Where it is recorded."""

    tenant: str
    subscription: str
    resource_group: str
    client_id: str
    client_secret: Secret = field(repr=False)
    machines: tuple[str, ...] = ()
    """The resource ids of machines to look up."""
    group: str = ""
    """The object id of a group that a service principal joins for the time."""
    directory_role: str = ""
    """The name of a directory role that one has for the time."""
    app_role: str = ""
    """API/ROLE, by their ids: an app role that one has for the time."""

    @property
    def scope(self) -> str:
        return f"/subscriptions/{self.subscription}/resourceGroups/{self.resource_group}"


def record(
    tenant: Tenant, folder: Path, write: Callable[[dict[str, Any]], None], provider: str = ""
) -> tuple[dict[str, int], bool]:
    """Record everything; the status of each step, and whether all that was made is certainly gone.

    `folder` has the store until it is. `provider`: a simulated cloud.

    Raises `NotRemoved`, and what opening a store raises.
    """
    import trio  # optional

    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    settings: dict[str, Any] = {"server": {"store": str(folder / "store.sqlite"), "key_file": str(folder / "key")}}
    settings["service"] = {"issuer": ISSUER}
    steps, is_gone = trio.run(_told, settings, tenant, write, provider)
    if is_gone:
        shutil.rmtree(folder)
    return steps, is_gone


async def _told(
    settings: Mapping[str, Any], tenant: Tenant, write: Callable[[dict[str, Any]], None], provider: str
) -> tuple[dict[str, int], bool]:
    import trio

    from ..trio_server.host import open_host

    file = read_settings(settings)
    file = evolve(file, clouds=clouds_at(provider)) if provider else file
    with closing(open_store(file.server, is_new=True)) as store:
        async with open_host(store, Platform()) as host:
            core = file.settings(master_key.find_or_make(file.server))
            is_new = not await run(is_initialised(), host)
            token = await run(initialise(core) if is_new else make_root_token(core), host)
            service = await run(open_service(core), host)
            app = App(service, host, open_log("error"), ())
            story = _Story(service, token, tenant)
            try:
                if not is_new:
                    await run(story.remove(), host)
                recorder = Recorder(file.clouds[DEFAULT_ENVIRONMENT], write)
                host.call_provider = recorder.around(host.call_provider)  # type: ignore[method-assign, assignment]
                try:
                    steps = await run(story.tell(recorder), host)
                finally:
                    with trio.CancelScope(shield=True):
                        recorder.step = "removal"
                        is_gone = await run(story.remove(), host)
                return steps, is_gone
            finally:
                await app.finish()


@frozen
class _Story:
    """What an operator and a machine ask of the service."""

    service: Service
    token: Secret = field(repr=False)
    tenant: Tenant

    async def tell(self, recorder: Recorder) -> dict[str, int]:
        """Everything, in order; a step that fails is an answer too."""
        application = {"client_id": self.tenant.client_id, "client_secret": self.tenant.client_secret.reveal()}
        config = {"tenant_id": self.tenant.tenant, **application, "max_retries": 3}
        assigned = {"azure_roles": [{"role_name": "Reader", "scope": self.tenant.scope}], "ttl": "10m"}
        statuses: dict[str, int] = {}

        async def step(name: str, method: str, path: str, body: object = None) -> Any:
            recorder.step = name
            statuses[name], answer = await self._ask(method, path, body)
            return answer

        await self._ask("POST", "sys/mounts/cloud", {"type": "cloud"})
        await step("configuration of logins", "POST", "auth/cloud/config", {**config, "resource": RESOURCE})
        ceiling = {**dict.fromkeys(UNLIMITED), **self._grants("allowed_directory_roles", "allowed_app_roles")}
        subscription = {"subscription_id": self.tenant.subscription, **ceiling}
        await step("configuration of engines", "POST", "cloud/config", {**config, **subscription})
        for mount in ("auth/cloud", "cloud"):
            await step(f"permissions of {mount}", "GET", f"{mount}/permissions?scope={self.tenant.scope}")
        await self._ask("POST", "auth/cloud/role/any", {"bound_service_principal_ids": "*"})
        await step("keys", "POST", "auth/cloud/login", {"role": "any", "jwt": _made_up(self.tenant.tenant)})
        recorder.step = "machine"
        for machine in self.tenant.machines:
            statuses["machine"] = max(statuses.get("machine", 0), await self._look_up(machine))
        await step("role", "POST", "cloud/roles/lent", {**assigned, "permanently_delete": True})
        lent = await step("credentials", "GET", "cloud/creds/lent")
        await step("revocation", "POST", "sys/leases/revoke", {"lease_id": lent.get("lease_id", ""), "sync": True})
        shared = {**assigned, "persist_app": True, "token_scopes": [f"{RESOURCE}/.default"]}
        await step("shared application", "POST", "cloud/roles/shared", shared)
        await step("password", "GET", "cloud/creds/shared")
        await step("access token", "GET", "cloud/token/shared")
        for proof in ("certificate", "federated_credential"):
            name = proof.replace("_", " ")
            await step(f"role ({name})", "POST", f"cloud/roles/{proof}", {**shared, "proof": proof})
            await step(name, "GET", f"cloud/token/{proof}")
        for name, grants in self._memberships():
            await step(f"role ({name})", "POST", "cloud/roles/member", {**assigned, **grants})
            await step(name, "GET", "cloud/creds/member")
        await step("reconcile", "GET", "cloud/reconcile")
        return statuses

    def _memberships(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """What service principals are given besides role assignments, as far as the tenant names it."""
        if self.tenant.group:
            yield "group", {"azure_groups": [{"object_id": self.tenant.group}]}
        if self.tenant.directory_role:
            yield "directory role", self._grants("directory_roles", "")
        if self.tenant.app_role:
            yield "app role", self._grants("", "app_roles")

    def _grants(self, directory_roles: str, app_roles: str) -> dict[str, Any]:
        """Fields of these names with the roles that the tenant names."""
        resource, _, role = self.tenant.app_role.partition("/")
        given: dict[str, Any] = {}
        if directory_roles and self.tenant.directory_role:
            is_ceiling = directory_roles.startswith("allowed")
            name = self.tenant.directory_role
            given[directory_roles] = [name if is_ceiling else {"role_name": name}]
        if app_roles and self.tenant.app_role:
            given[app_roles] = [{"resource_id": resource, "app_role_id": role}]
        return given

    async def remove(self) -> bool:
        """Take back whatever the service made. Whether it is gone, and not only unseen. Raises `NotRemoved`."""
        until = await Now() + PATIENCE
        await self._ask("DELETE", "sys/mounts/cloud")
        await self._hasten()
        while remains := await self._remains():
            is_unseen = all(
                each.count == each.intents for each in remains
            )  # requests that did not end may have made it
            if is_unseen and all(map(_was_looked_for, await self._intents())):
                return False
            if await Now() > until:
                raise NotRemoved("some objects are not deleted from Azure yet: run the command again")
            await Sleep(PAUSE)
            await self.service.tick()  # without a server, nothing else wakes the background work
        return True

    async def _remains(self) -> list[Remains]:
        """What is left of each mount that is disabled."""
        mounts = (await mount_table(self.service.context.records)).record.retired.values()
        found = [await what_remains(self.service.context, mount) for mount in mounts]
        return [each for each in found if each.count]

    async def _intents(self) -> list[Found[Intent]]:
        """What requests that did not end were about to make."""
        records = self.service.context.records
        mounts = (await mount_table(records)).record.retired
        listed = [key for mount_id in mounts for key in await ListKeys(keys.intents(mount_id), "", MOST)]
        return await records.find_undamaged(listed, Intent)

    async def _hasten(self) -> None:
        """Let that be removed at once."""
        now = await Now()
        for found in await self._intents():
            intent = found.record
            hastened = evolve(intent, last_call_at=min(now, intent.last_call_at), due_at=min(now, intent.due_at))
            if hastened != intent:
                await self.service.context.records.commit(rescheduled(found, hastened))

    async def _look_up(self, machine: str) -> int:
        mounts = await mount_table(self.service.context.records)
        [mount] = [each for each in mounts.record.mounts if each.path == "auth/cloud"]
        try:
            client = await mount_client(self.service.context, mount.id, Deadline(await Now() + HOUR))
            found = await machine_facts(client, resource_id.parse(machine))
        except (Refused, *PROVIDER_FAILURES):
            return 502
        return 200 if found else 404

    async def _ask(self, method: str, path: str, body: object = None) -> tuple[int, dict[str, Any]]:
        headers = {"x-service-token": self.token.reveal()}
        content = b"" if body is None else json.dumps(body).encode()
        response = await self.service.handle(Request(method, f"/v1/{path}", headers, content))
        return response.status, json.loads(response.body or b"{}")


def _was_looked_for(found: Found[Intent]) -> bool:
    """Whether the provider was asked for it several times, and showed nothing."""
    reasons = different_reasons([found.record.reason])
    return found.record.attempts >= LOOKS and bool(reasons) and all(UNSETTLED in reason for reason in reasons)


def _made_up(tenant: str) -> str:
    """An invalid token: the service reads the tenant's keys before it refuses it."""
    claims = {"iss": f"https://sts.windows.net/{tenant}/", "aud": RESOURCE, "tid": tenant, "exp": 1 << 33, "nbf": 0}
    parts = ({"alg": "RS256", "typ": "JWT", "kid": secrets.token_hex(8)}, claims)
    encoded = [urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts]
    return ".".join((*encoded, urlsafe_b64encode(secrets.token_bytes(256)).rstrip(b"=").decode()))
