"""Roles with durations that are longer than `max_secret_ttl` of their mount's configuration allows."""

from __future__ import annotations

from typing import Final

from ..context import Context
from ..effects import give_way
from ..health import Occurrence
from ..mounts import Mount
from ..store import keys
from .config import find_config
from .roles import Role
from .static_roles import StaticRole

PAGE: Final = 100


async def clamped_roles(context: Context, mount: Mount) -> list[Occurrence]:
    """Find the stored roles of both types with longer lifetimes than the stored configuration allows."""
    stored = await find_config(context, mount)
    if stored is None or not stored.record.max_secret_ttl:
        return []
    found: list[Occurrence] = []
    sorts: tuple[tuple[str, str, type[Role] | type[StaticRole]], ...] = (
        (keys.roles(mount.id), "roles", Role),
        (keys.static_roles(mount.id), "static-roles", StaticRole),
    )
    for prefix, path, form in sorts:
        names = await context.records.names(prefix)
        for start in range(0, len(names), PAGE):
            page = [f"{prefix}{name}" for name in names[start : start + PAGE]]
            for role in await context.records.find_undamaged(page, form):
                name = role.key.removeprefix(prefix)
                place = {"mount": mount.path, "role": name, "path": f"{path}/{name}"}
                clamped = role.record.clamped(stored.record)
                found += [{**place, "field": field, "most": str(most or '"…"')} for field, most in clamped.items()]
            await give_way()
    return found
