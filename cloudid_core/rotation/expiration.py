"""When the root secret that counts ends, as a read of the configuration shows it."""

from __future__ import annotations

from ..api.fields import Json
from ..foundation.context import Context
from ..mounts.table import Mount
from ..values import rfc3339
from .record import find_undamaged_rotation
from .root_credential import RootCredential


async def root_password_expiration(context: Context, mount: Mount, config: RootCredential) -> dict[str, Json]:
    """The member that is shown, or nothing: the end is known only of a stored secret that a rotation made."""
    found = await find_undamaged_rotation(context, mount.id)
    key = found.record.key_of(config.client_secret) if found else None
    if key is None or key.expires_at is None:
        return {}
    return {"root_password_expiration_date": rfc3339.show(key.expires_at)}
