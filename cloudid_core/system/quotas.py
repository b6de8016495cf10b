"""The routes of quotas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from attrs import evolve

from ..errors import Code, Refused
from ..forms import schemas, show, shown_members
from ..messages import DELETE, LIST, NOTHING, READ, WRITE, Answer
from ..mounts import AUTH, BUILT_IN, Mount, MountTable, mount_table
from ..quotas import (
    READ_AGAIN,
    LeaseCount,
    QuotaConfig,
    Quotas,
    RateLimit,
    forget_quotas,
    quota_named,
    with_quota,
    without_quota,
)
from ..routing import Call, Route, capture_name, name_as_written, route
from ..store import Changes, keys, retry_on_conflict
from ..values import fold


def check_rate_limit(limit: RateLimit, mounts: MountTable) -> None:
    """Check that it is for an existing mount, or for all paths."""
    if not limit.rate:
        raise Refused(Code.FIELD_REQUIRED, '"rate"')
    if limit.path and mount_of(mounts, limit.path) is None:
        raise Refused(Code.MOUNT_NOT_FOUND)


def check_lease_count(count: LeaseCount, mounts: MountTable) -> None:
    """Check that it is for a mounted secrets engine, or for all of them."""
    if not count.max_leases:
        raise Refused(Code.FIELD_REQUIRED, '"max_leases"')
    if not count.path:
        return
    mount = mount_of(mounts, count.path)
    if mount is None:
        raise Refused(Code.MOUNT_NOT_FOUND)
    if mount.kind == AUTH:
        raise Refused(Code.FIELD_INVALID, '"path" is an auth method, which issues tokens, not leases')
    if mount in BUILT_IN:
        raise Refused(Code.FIELD_INVALID, '"path" is a mount without leases')
    if count.path != fold(mount.path):
        raise Refused(Code.FIELD_INVALID, 'with "role", "path" must be the path of a mount')


def mount_of(mounts: MountTable, path: str) -> Mount | None:
    """Return the mount of a quota's path. The path is in lower case; the mount's path may have any case."""
    path = path.removesuffix("*").removesuffix("/")
    return next((mount for mount in mounts.live if f"{path}/".startswith(f"{fold(mount.path)}/")), None)


@route("quotas/config", WRITE, form=QuotaConfig)
async def write_config(call: Call) -> Answer:
    """Sets options for all quotas."""
    return await _change(call, lambda quotas, _: evolve(quotas, config=evolve(quotas.config, **call.given.values)))


@route("quotas/config", READ, shown_members(QuotaConfig))
async def read_config(call: Call) -> Answer:
    """Reads options for all quotas."""
    return Answer(data=show((await _quotas(call)).config))


async def _quotas(call: Call) -> Quotas:
    found = await call.context.records.find(keys.QUOTAS, Quotas)
    return found.record if found else Quotas()


@retry_on_conflict
async def _change(call: Call, change: Callable[[Quotas, MountTable], Quotas]) -> Answer:
    """Replace the quotas with the result of a pure function of them and the mounts.

    The quotas of a mount are deleted with it.
    """
    records = call.context.records
    mounts = await mount_table(records)
    found, expects = await records.find_for_writing(keys.QUOTAS, Quotas)
    changed = change(found.record if found else Quotas(), mounts.record)
    await records.commit(Changes({**mounts.expected, **expects}, {keys.QUOTAS: changed}))
    forget_quotas(call.context)
    return NOTHING


def _routes(
    name: str, member: str, form: type[Any], check: Callable[[Any, MountTable], None], doc: str
) -> tuple[Route, ...]:
    """Return the routes of a kind of quota. They are all in `member` of `Quotas`; `check` refuses invalid ones."""
    base, what = f"quotas/{name}", f"{name} quota"
    one = f"{base}/:name"

    def of_kind(quotas: Quotas) -> dict[str, Any]:
        found: dict[str, Any] = getattr(quotas, member)
        return found

    def with_all(quotas: Quotas, named: dict[str, Any]) -> Quotas:
        change: dict[str, Any] = {member: named}
        return evolve(quotas, **change)

    @route(one, WRITE, form=form, doc=doc)
    async def write(call: Call) -> Answer:
        written = name_as_written(call)

        def changed(quotas: Quotas, mounts: MountTable) -> Quotas:
            others = of_kind(quotas)
            _, stored = quota_named(others, written) or (written, form())
            quota = evolve(stored, **call.given.values)
            if quota.normal.role and not quota.normal.path:
                raise Refused(Code.FIELD_REQUIRED, '"path"')
            check(quota.normal, mounts)
            return with_all(quotas, with_quota(others, written, quota))

        return await _change(call, changed)

    shown = schemas.joined(schemas.members(TEXT="name type"), shown_members(form))

    @route(one, READ, shown, doc=f"Reads a {what}.")
    async def read(call: Call) -> Answer:
        found = quota_named(of_kind(await _quotas(call)), capture_name(call))
        if found is None:
            raise Refused(Code.NOT_FOUND)
        return Answer(data={"name": found[0], "type": name, **show(found[1])})

    @route(one, DELETE, doc=f"Deletes a {what}.")
    async def delete(call: Call) -> Answer:
        gone = capture_name(call)
        return await _change(call, lambda quotas, _: with_all(quotas, without_quota(of_kind(quotas), gone)))

    @route(base, LIST, doc=f"Lists the names of all {what}s.")
    async def names(call: Call) -> Answer:
        return Answer(data={"keys": sorted(of_kind(await _quotas(call)))})

    return write, read, delete, names


ROUTES: Final = (
    *_routes(
        "rate-limit",
        "rate_limits",
        RateLimit,
        check_rate_limit,
        "Limits how many requests each source address may make, on each node separately. The most "
        "specific quota for the path applies, and in addition the quota for the role. Other nodes apply a "
        f"change within {READ_AGAIN:.0f} seconds.",
    ),
    *_routes(
        "lease-count",
        "lease_counts",
        LeaseCount,
        check_lease_count,
        "Limits the number of leases on all nodes together. The most specific quota applies.",
    ),
    write_config,
    read_config,
)
