"""The routes of rate-limit quotas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from attrs import evolve

from ..api.fields import show
from ..api.response import NOTHING, Answer
from ..api.routing import Call, Operation, Route, capture_name
from ..errors import Code, Refused
from ..mounts.table import Mount, MountTable, mount_table
from ..quotas.rate_limit import forget_quotas
from ..quotas.record import QuotaConfig, Quotas, RateLimit
from ..store import keys
from ..values.folding import fold

TYPE: Final = "rate-limit"


async def write_rate_limit(call: Call) -> Answer:
    """Set the given fields of a quota. It must be for a mount that is there, or for all paths."""
    name = capture_name(call)
    mounts = (await mount_table(call.context.records)).record

    def changed(quotas: Quotas) -> Quotas:
        limit = evolve(quotas.rate_limits.get(name, RateLimit()), **call.given.values)
        if not limit.rate:
            raise Refused(Code.FIELD_REQUIRED, '"rate"')
        if limit.role and not limit.path:
            raise Refused(Code.FIELD_REQUIRED, '"path"')
        if limit.path and mount_of(mounts, limit.path) is None:
            raise Refused(Code.MOUNT_NOT_FOUND)
        return quotas.with_rate_limit(name, limit)

    await _change(call, changed)
    return NOTHING


def mount_of(mounts: MountTable, path: str) -> Mount | None:
    """The mount that the path of a quota belongs to. The path is in lower case, that of the mount may be in any."""
    path = path.removesuffix("*").removesuffix("/")
    return next((mount for mount in mounts.live if f"{path}/".startswith(f"{fold(mount.path)}/")), None)


async def read_rate_limit(call: Call) -> Answer:
    name = capture_name(call)
    limit = (await _quotas(call)).rate_limits.get(name)
    if limit is None:
        raise Refused(Code.NOT_FOUND)
    data = {"name": name, "type": TYPE, **show(limit)}
    if not limit.inheritable:
        del data["inheritable"]  # existing clients compare the members with those that they wrote
    return Answer(data=data)


async def list_rate_limits(call: Call) -> Answer:
    return Answer(data={"keys": sorted((await _quotas(call)).rate_limits)})


async def delete_rate_limit(call: Call) -> Answer:
    name = capture_name(call)
    await _change(call, lambda quotas: quotas.without_rate_limit(name))
    return NOTHING


async def write_config(call: Call) -> Answer:
    await _change(call, lambda quotas: evolve(quotas, config=evolve(quotas.config, **call.given.values)))
    return NOTHING


async def read_config(call: Call) -> Answer:
    return Answer(data=show((await _quotas(call)).config))


async def _quotas(call: Call) -> Quotas:
    found = await call.context.records.find(keys.QUOTAS, Quotas)
    return found.record if found else Quotas()


async def _change(call: Call, change: Callable[[Quotas], Quotas]) -> None:
    await call.context.records.update(keys.QUOTAS, Quotas, lambda quotas: change(quotas or Quotas()))
    forget_quotas(call.context)


ROUTES: Final = (
    Route(
        path="quotas/rate-limit/:name",
        operation=Operation.WRITE,
        program=write_rate_limit,
        form=RateLimit,
        doc="Limits how many requests each source may make; the most specific quota counts, on each node by itself.",
    ),
    Route(path="quotas/rate-limit/:name", operation=Operation.READ, program=read_rate_limit, doc="Reads a rate limit."),
    Route(
        path="quotas/rate-limit/:name",
        operation=Operation.DELETE,
        program=delete_rate_limit,
        doc="Removes a rate limit.",
    ),
    Route(
        path="quotas/rate-limit",
        operation=Operation.LIST,
        program=list_rate_limits,
        doc="Lists the names of all rate limits.",
    ),
    Route(
        path="quotas/config",
        operation=Operation.WRITE,
        program=write_config,
        form=QuotaConfig,
        doc="Sets what holds for all quotas.",
    ),
    Route(path="quotas/config", operation=Operation.READ, program=read_config, doc="Reads what holds for all quotas."),
)
