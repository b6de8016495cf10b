"""The routes of quotas."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from attrs import evolve, frozen

from ..errors import Code, Refused
from ..forms import schemas, show, shown_members
from ..messages import NOTHING, Answer, Operation
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
from ..routing import Answers, Call, Route, capture_name, name_as_written
from ..store import keys
from ..values import fold


@frozen(kw_only=True)
class Kind:
    """A kind of quota."""

    name: str
    """Its type on the wire."""
    form: type
    member: str
    """The member of `Quotas` that holds those of this kind."""
    check: Callable[[Any, MountTable], None]
    """Refuses a quota, in its normal form, that makes no sense."""
    doc: str

    def found_in(self, quotas: Quotas) -> dict[str, Any]:
        """All quotas of this kind by their names."""
        found: dict[str, Any] = getattr(quotas, self.member)
        return found

    def replaced_in(self, quotas: Quotas, replacement: dict[str, Any]) -> Quotas:
        """The quotas with others of this kind."""
        change: dict[str, Any] = {self.member: replacement}
        return evolve(quotas, **change)


async def write_quota(kind: Kind, call: Call) -> Answer:
    """Set the given fields of a quota."""
    name = name_as_written(call)
    mounts = (await mount_table(call.context.records)).record

    def changed(quotas: Quotas) -> Quotas:
        others = kind.found_in(quotas)
        _, stored = quota_named(others, name) or (name, kind.form())
        quota = evolve(stored, **call.given.values)
        if quota.normal.role and not quota.normal.path:
            raise Refused(Code.FIELD_REQUIRED, '"path"')
        kind.check(quota.normal, mounts)
        return kind.replaced_in(quotas, with_quota(others, name, quota))

    await _change(call, changed)
    return NOTHING


def check_rate_limit(limit: RateLimit, mounts: MountTable) -> None:
    """It must be for a mount that is there, or for all paths."""
    if not limit.rate:
        raise Refused(Code.FIELD_REQUIRED, '"rate"')
    if limit.path and mount_of(mounts, limit.path) is None:
        raise Refused(Code.MOUNT_NOT_FOUND)


def check_lease_count(count: LeaseCount, mounts: MountTable) -> None:
    """It must be for a mounted secrets engine, or for all of them."""
    if not count.max_leases:
        raise Refused(Code.FIELD_REQUIRED, '"max_leases"')
    if not count.path:
        return
    mount = mount_of(mounts, count.path)
    if mount is None:
        raise Refused(Code.MOUNT_NOT_FOUND)
    if mount.kind == AUTH:
        raise Refused(Code.FIELD_INVALID, '"path" is an authentication method: leases are counted, tokens are not')
    if mount in BUILT_IN:
        raise Refused(Code.FIELD_INVALID, '"path" has no leases')
    if count.path != fold(mount.path):
        raise Refused(Code.FIELD_INVALID, '"path" must be that of a mount: "role" names one of its roles')


def mount_of(mounts: MountTable, path: str) -> Mount | None:
    """The mount that the path of a quota belongs to. The path is in lower case, that of the mount may be in any."""
    path = path.removesuffix("*").removesuffix("/")
    return next((mount for mount in mounts.live if f"{path}/".startswith(f"{fold(mount.path)}/")), None)


async def read_quota(kind: Kind, call: Call) -> Answer:
    found = quota_named(kind.found_in(await _quotas(call)), capture_name(call))
    if found is None:
        raise Refused(Code.NOT_FOUND)
    name, quota = found
    return Answer(data={"name": name, "type": kind.name, **show(quota)})


async def list_quotas(kind: Kind, call: Call) -> Answer:
    return Answer(data={"keys": sorted(kind.found_in(await _quotas(call)))})


async def delete_quota(kind: Kind, call: Call) -> Answer:
    name = capture_name(call)
    await _change(call, lambda quotas: kind.replaced_in(quotas, without_quota(kind.found_in(quotas), name)))
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


RATE_LIMIT: Final = Kind(
    name="rate-limit",
    form=RateLimit,
    member="rate_limits",
    check=check_rate_limit,
    doc=(
        "Limits how many requests each source may make, on each node by itself; the most specific quota for the path "
        f"counts, and beside it the one for the role. Other nodes learn of a change within {READ_AGAIN:.0f} seconds."
    ),
)
LEASE_COUNT: Final = Kind(
    name="lease-count",
    form=LeaseCount,
    member="lease_counts",
    check=check_lease_count,
    doc="Limits how many leases there may be, over all nodes; of these quotas, the most specific counts.",
)


def _routes(kind: Kind) -> tuple[Route, ...]:
    base = f"quotas/{kind.name}"
    one, what = f"{base}/:name", f"{kind.name} quota"
    return (
        Route(one, Operation.WRITE, partial(write_quota, kind), kind.doc, form=kind.form),
        Route(
            one,
            Operation.READ,
            partial(read_quota, kind),
            f"Reads a {what}.",
            answers=Answers(data=schemas.joined(schemas.members(TEXT="name type"), shown_members(kind.form))),
        ),
        Route(one, Operation.DELETE, partial(delete_quota, kind), f"Removes a {what}."),
        Route(base, Operation.LIST, partial(list_quotas, kind), f"Lists the names of all {what}s."),
    )


ROUTES: Final = (
    *_routes(RATE_LIMIT),
    *_routes(LEASE_COUNT),
    Route("quotas/config", Operation.WRITE, write_config, "Sets what holds for all quotas.", form=QuotaConfig),
    Route(
        "quotas/config",
        Operation.READ,
        read_config,
        "Reads what holds for all quotas.",
        answers=Answers(data=shown_members(QuotaConfig)),
    ),
)
