"""The holders of secrets that are rotated, and the applications at the provider that these belong to."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Final

from attrs import frozen

from ..context import NO_FENCE, Context
from ..credentials import RootCredential, SecretHolder
from ..effects import Instant
from ..errors import Code, Refused
from ..forms import effective, supplied
from ..mounts import Mount, mount_table
from ..provider import Application, Client, applications_by_client_id, find_application
from ..store import NO_CHANGES, Changes, Found, keys
from ..values import Secret
from .record import Rotation, changed, find_rotation

HINT_LENGTH: Final = 3


async def find_root(context: Context, mount: Mount) -> Found[RootCredential] | None:
    """Return the stored configuration of a mount of either kind."""
    form = context.components.of(mount).config
    return await context.records.find(keys.config(mount.id), form) if form else None


async def find_holder(context: Context, mount: Mount, role: str) -> Found[SecretHolder] | None:
    """Return the configuration of a mount, or one of its static roles."""
    if not role:
        root = await find_root(context, mount)
        return Found(root.key, root.record, root.version) if root else None
    form = context.components.of(mount).static_role
    return await context.records.find(keys.static_role(mount.id, role), form) if form else None


@frozen(kw_only=True)
class Subject:
    """Whose secret is rotated: that of a mount, or of a static role of it. `fence`: what background commits expect."""

    context: Context
    mount: Mount
    role: str = ""
    fence: Mapping[str, int] = NO_FENCE

    async def holder(self) -> Found[SecretHolder] | None:
        return await find_holder(self.context, self.mount, self.role)

    async def rotation(self) -> Found[Rotation] | None:
        return await find_rotation(self.context, self.mount.id, self.role)

    async def write(
        self, found: Found[Rotation] | None, after: Rotation, more: Changes = NO_CHANGES
    ) -> Found[Rotation]:
        """Take the rotation from one state to the next; `more` goes into the same commit."""
        version = await self.context.records.commit(Changes(self.fence) | changed(found, after) | more)
        return Found(after.key, after, version)


def is_managed(context: Context, root: SecretHolder) -> bool:
    """Return whether the effective secret is the stored one. Only a stored secret can be replaced."""
    return bool(root.client_secret) and not supplied(type(root), "client_secret", context.settings.environment)


async def is_used_elsewhere(context: Context, mount_id: str, secret: Secret) -> bool:
    """Return whether another mount of this service authenticates with a secret, without which it would be locked out.

    No mount: any.
    """
    for other in (await mount_table(context.records)).record.mounts:
        form = context.components.of(other).config
        if other.id == mount_id or form is None:
            continue
        found = await context.records.find(keys.config(other.id), form)
        if effective(found.record if found else form(), context.settings.environment).client_secret == secret:
            return True
    return False


async def application_of(client: Client, holder: SecretHolder) -> Application:
    """Return the app registration of a secret. The client is always the mount's."""
    if not holder.application_object_id:
        return await root_application(client)
    application = await find_application(client, holder.application_object_id)
    if application is None:
        raise Refused(Code.REFERENCE_NOT_FOUND, '"application_object_id"')
    return application


async def root_application(client: Client) -> Application:
    """Return the mount's app registration. Refuse if there is not exactly one."""
    client_id = client.credentials.client_id
    found = await applications_by_client_id(client, client_id) if client_id else []
    if len(found) != 1:
        raise Refused(Code.REFERENCE_NOT_FOUND, "the mount's app registration")
    return found[0]


def hinted_key(application: Application, secret: Secret, known: Container[str], now: Instant) -> str:
    """Return the key id of a secret, found by its hint. Empty unless exactly one matches."""
    hint = secret.reveal()[:HINT_LENGTH]
    hinted = [
        password.key_id
        for password in application.passwords
        if password.hint == hint
        and password.key_id not in known
        and (password.ends_at is None or now < password.ends_at)
    ]
    return hinted[0] if len(hinted) == 1 else ""
