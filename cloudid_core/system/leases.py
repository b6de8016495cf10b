"""The routes of leases: look up, renew, revoke, list, count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Final

from attrs import evolve, frozen
from msgspec.structs import replace

from ..context import Context, LeaseSubject
from ..effects import ListKeys
from ..errors import Code, Refused, reason_of, without_provider_code
from ..forms import (
    BOOLEAN,
    INTEGER,
    SECONDS,
    SHORT,
    Json,
    Terms,
    bounded,
    grant,
    one_of,
    schemas,
    setting,
    spellings_of,
)
from ..leases import (
    Attempts,
    Lease,
    Scope,
    end_lease,
    find_lease,
    find_moved,
    forget_lease,
    local_path,
    next_level,
    rescheduled,
    revoke_one,
    scopes_of,
)
from ..messages import ACCEPTED, LIST, NOTHING, READ, WRITE, Answer
from ..mounts import AUTH, SYSTEM, TOKEN, mount_table
from ..policies import Acl, load_acl, without_default
from ..routing import DONE, LEFT, PROVIDER, Answers, Call, PageForm, Route, may_read_config, reason_for, route
from ..store import Changes, Found, keys, retry_on_conflict
from ..token_store import hard_end
from ..tokens import Token, accessor_of, find_token, lineage
from ..tokens import revoke as revoke_token
from ..values import rfc3339

MOST_LISTED: Final = 10_000
PAGE: Final = 100
"""How many entries are read at a time."""
LOOK_UP_ACCESSOR: Final = f"{TOKEN.path}/lookup-accessor"
"""A caller who may use this path may see which token owns a lease."""


@frozen(kw_only=True)
class LeaseForm:
    lease_id: str = setting(SHORT, "", "Id of the lease. It can be in the path instead.")
    increment: int = setting(SECONDS, 0, "Seconds from now. 0: the default TTL.")
    sync: bool = setting(BOOLEAN, True, "false: answer 202 immediately. true: answer after the secrets are revoked.")


@frozen(kw_only=True)
class PrefixForm:
    sync: bool = setting(BOOLEAN, True, "false: answer 202 immediately. true: answer after the secrets are revoked.")


@frozen(kw_only=True)
class StuckForm:
    type: str = setting(one_of("irrevocable"), "irrevocable", "Which leases: those whose revocation has failed so far.")
    limit: int = setting(bounded(INTEGER, 1, MOST_LISTED), MOST_LISTED, "Maximum number of leases to list.")


def _lease_id(call: Call) -> str:
    lease_id = call.captures.get("lease_id") or call.form(LeaseForm).lease_id
    if not lease_id:
        raise Refused(Code.FIELD_REQUIRED, '"lease_id"')
    return lease_id.strip("/")


LEASE: Final = schemas.members(
    {"BOOLEAN": "revoking", "INTEGER": "revoke_attempts", "TEXT": "revoke_error accessor"},
    TEXT="id",
    TIME="issue_time expire_time",
    BOOLEAN="renewable",
    INTEGER="ttl",
    last_renewal=schemas.nullable(schemas.TIME),
)
STUCK: Final = schemas.members(
    INTEGER="lease_count", leases=schemas.list_of(schemas.members(TEXT="lease_id mount_id error"))
)


@route("leases/lookup", WRITE, LEASE, form=LeaseForm)
async def look_up(call: Call) -> Answer:
    """Reads a lease. `accessor` is the token that owns it, for callers who may look up tokens by accessor.

    It is empty for a batch token's lease, and after the token has ended.
    """
    found = await _find(call, _lease_id(call))
    if found is None:
        raise Refused(Code.LEASE_NOT_FOUND)
    lease, mounts = found.record, (await mount_table(call.context.records)).record
    reason = reason_for(call.caller, mounts.with_storage(lease.mount_id), lease.reason)
    data = described(evolve(lease, reason=reason), call.now)
    if call.token.acl.allows(WRITE.value, LOOK_UP_ACCESSOR):
        data["accessor"] = await _accessor_of_holder(call.context, lease)
    return Answer(data=data)


async def _accessor_of_holder(context: Context, lease: Lease) -> str:
    holder = await find_token(context, lease.token_id) if lease.token_id else None
    return accessor_of(context, holder.record) if holder else ""


def described(lease: Lease, now: float) -> dict[str, Json]:
    data: dict[str, Json] = {
        "id": lease.id,
        "issue_time": rfc3339.show(lease.issued_at),
        "expire_time": rfc3339.show(lease.expires_at),
        "last_renewal": None if lease.last_renewal is None else rfc3339.show(lease.last_renewal),
        "renewable": lease.is_alive(now),
        "ttl": max(0, int(lease.expires_at - now)),
    }
    if lease.revoking:
        data |= {"revoking": True, "revoke_attempts": lease.attempts, "revoke_error": lease.reason}
    return data


@retry_on_conflict
async def renew(place: str, call: Call) -> Answer:
    """Renew a lease with the role's current values, but never beyond the expiry of the credentials in Azure."""
    context = call.context
    found = await _find(call, _lease_id(call))
    if found is None:
        raise Refused(Code.LEASE_NOT_FOUND)
    lease = found.record
    await _check_rights(call, lease, "renew")
    await _check_holder(call, lease, "/".join((SYSTEM.path, place, *filter(None, (call.captures.get("lease_id"),)))))
    terms, expects = await _terms(call, lease)
    granted = grant(terms, start=lease.issued_at, now=call.now, increment=call.form(LeaseForm).increment)
    ttl, warnings = granted.ttl, granted.warnings
    left = int(lease.ends_at - call.now)
    if left < ttl:
        ttl, warnings = left, (f"the TTL is capped, because the credentials expire in {left}s",)
    token_left = await _seconds_of_token(call, lease)
    if token_left is not None and token_left < ttl:
        ttl, warnings = (
            token_left,
            (f"the TTL is capped, because the token of the lease expires in {token_left}s",),
        )
    if ttl <= 0:
        raise Refused(Code.LEASE_NOT_RENEWABLE)
    expires_at = call.now + ttl
    renewed = evolve(lease, expires_at=expires_at, due_at=expires_at, last_renewal=call.now)
    changes = Changes(expects, events=(renewed.event("renewed"),)) | rescheduled(found, renewed)
    await context.records.commit(changes)
    return Answer(lease_id=lease.id, lease_duration=ttl, renewable=True, warnings=warnings, wake_at=expires_at)


async def _seconds_of_token(call: Call, lease: Lease) -> int | None:
    """Return how long the token of a lease can be valid. `None`: without expiry."""
    token = await find_token(call.context, lease.token_id) if lease.token_id else None
    if token is None:
        return None
    mounts = (await mount_table(call.context.records)).record
    end = await hard_end(call.context, mounts, token.record, call.now)
    return None if end is None else int(end - call.now)


async def _terms(call: Call, lease: Lease) -> tuple[Terms, dict[str, int]]:
    """Return the current limits of a lease (its token, mount and role), and the versions that a commit must expect."""
    context = call.context
    mounts = await mount_table(context.records)
    expects = mounts.expected
    if not lease.is_alive(call.now):
        raise Refused(Code.LEASE_EXPIRED)
    if lease.token_id:
        token = await find_token(context, lease.token_id)
        if token is None or not await lineage(context, mounts.record, token.record, call.now):
            raise Refused(Code.LEASE_EXPIRED)
        expects |= token.expected
    elif lease.batch_mount_id and lease.batch_mount_id not in mounts.record.by_id:
        raise Refused(Code.LEASE_EXPIRED)
    mount = mounts.record.by_id.get(lease.mount_id)
    subject = LeaseSubject(role=lease.role, provisioned=lease.provisioned, rights=lease.rights)
    limit = mount and await context.components.of(mount).lease_terms(context, mount, subject, call.deadline)
    if not limit:
        raise Refused(Code.LEASE_NOT_RENEWABLE, "its role was deleted")
    return limit.terms, {**expects, **limit.expects}


async def _check_rights(call: Call, lease: Lease, action: str) -> None:
    """Refuse if the path names a lease whose mount was moved, and the caller has no permissions at its new path.

    The policies were checked for the path in the request, which belongs to a different mount or to none.
    """
    mount = (await mount_table(call.context.records)).record.by_id.get(lease.mount_id)
    if mount is None or "lease_id" not in call.captures:
        return
    path = f"{mount.path}/{local_path(lease.id)}"
    if path != lease.id and not _allows(call.token.acl, f"sys/leases/{action}/{path}", call):
        raise Refused(Code.PERMISSION_DENIED)


def _allows(acl: Acl, path: str, call: Call) -> bool:
    """Return whether policies allow the fields of a request at a different path."""
    return acl.allows("update", path, call.body, fields=spellings_of(LeaseForm))


async def _check_holder(call: Call, lease: Lease, path: str) -> None:
    """Refuse callers who have only the policy `default`, which all tokens have, and do not own the lease.

    Its owners are its token, all ancestors of the token, and batch tokens that end with the same token.
    """
    context, caller = call.context, call.token.token
    others = await load_acl(context, without_default(caller.policies))
    if _allows(others, path, call):
        return
    if caller.is_batch and _holds(caller, lease):
        return
    holder = await find_token(context, lease.token_id) if lease.token_id else None
    mounts = (await mount_table(context.records)).record
    line = await lineage(context, mounts, holder.record, call.now) if holder is not None else ()
    if holder is not None and not line:
        raise Refused(Code.LEASE_EXPIRED)
    if caller.id not in {token.id for token in line}:
        raise Refused(Code.PERMISSION_DENIED)


def _holds(caller: Token, lease: Lease) -> bool:
    """Return whether a lease belongs to a batch token, through its parent or through the same principal.

    Leases of earlier releases have no owner: those of a mount's batch tokens belong to all of them.
    """
    if caller.parent or lease.token_id:
        return caller.parent == lease.token_id
    is_of_mount = caller.mount_id == lease.batch_mount_id
    return is_of_mount and lease.batch_holder in ("", caller.batch_holder)


async def revoke(call: Call) -> Answer:
    """Revoke a lease and remove its objects from Azure. Unknown leases are ignored."""
    found = await _find(call, _lease_id(call))
    if found is None:
        return NOTHING
    await _check_rights(call, found.record, "revoke")
    if call.form(LeaseForm).sync:
        return await revoke_one(call.context, found.record, call.now, call.deadline)
    await end_lease(call.context, found.record.id, call.now)
    return Answer(status=ACCEPTED, wake_at=call.now)


async def revoke_prefix(call: Call) -> Answer:
    """Revoke all leases below a path, and below `auth` all tokens that were issued there.

    All leases are marked first. Then the request itself revokes as many as its time allows.
    """
    path, sync, attempts = _prefix(call), call.form(PrefixForm).sync, Attempts(call.context, call.now, call.deadline)
    scopes = scopes_of((await mount_table(call.context.records)).record, path)
    for scope in scopes:
        await attempts.mark(scope, attempts.due_at if sync else call.now)
    await _revoke_tokens(call, scopes)
    if not sync:
        return Answer(status=ACCEPTED, wake_at=call.now)
    for scope in scopes:
        await attempts.work_off(scope)
    answer = await attempts.answer(f"sys/leases/lookup/{path}", wake_at=attempts.due_at)
    if not answer.data:
        return answer
    # The leases of a prefix may belong to several mounts: codes are shown to a caller who may know those of all.
    may_know = all(may_read_config(call.caller, scope.mount) for scope in scopes)
    reasons = [reason if may_know else without_provider_code(reason) for reason in answer.data["reasons"]]
    return replace(answer, data={**answer.data, "reasons": reasons})


async def _revoke_tokens(call: Call, scopes: Sequence[Scope]) -> None:
    """Revoke the tokens that were issued in some scopes.

    They are invalid immediately, and their children and leases follow.
    """
    if not any(scope.mount.kind == AUTH for scope in scopes):
        return
    after = ""
    while page := await ListKeys(keys.TOKENS, after, PAGE):
        await call.deadline.remaining()
        for found in await call.context.records.find_undamaged(page, Token):
            if any(scope.has_token(found.record) for scope in scopes):
                await revoke_token(call.context, found.record.id, call.now)
        after = page[-1]


async def revoke_force(call: Call) -> Answer:
    """Delete all leases below a path immediately. The journal removes their objects in the background."""
    dropped = 0
    for scope in scopes_of((await mount_table(call.context.records)).record, _prefix(call)):
        after = ""
        while page := await ListKeys(scope.index, after, PAGE):
            await call.deadline.remaining()
            for lease_id in scope.select(page):
                dropped += await forget_lease(call.context, lease_id, scope.mount_id, call.now)
            after = page[-1]
    if not dropped:
        return NOTHING
    leases = "1 lease was" if dropped == 1 else f"{dropped} leases were"
    warning = f"{leases} dropped; their objects are removed from Azure in the background"
    return Answer(warnings=(warning,), wake_at=call.now)


def _prefix(call: Call) -> str:
    """Return the prefix of the request. A lease id is one too."""
    prefix = call.captures["prefix"].strip("/")
    if not prefix:
        raise Refused(Code.FIELD_REQUIRED, '"prefix"')
    return prefix


@route("leases/lookup", LIST, form=PageForm)
async def list_leases(call: Call) -> Answer:
    """Lists leases by path.

    The response contains the next level below a path: the last segments of leases, or paths with a trailing slash.
    Current mounts decide which leases a path means, not the paths in the ids of the leases.
    """
    path = call.captures.get("prefix", "").strip("/")
    table = (await mount_table(call.context.records)).record
    every_mount = (Scope(mount) for mount in (*table.live, *table.retired.values()))
    form = call.form(PageForm)
    level: set[str] = set()
    for scope in scopes_of(table, path) if path else every_mount:
        level |= await next_level(scope, path, form.after, form.limit)
    return Answer(data={"keys": sorted(level)})


async def _find(call: Call, lease_id: str) -> Found[Lease] | None:
    """Return the lease with an id, or the one that is listed there after its mount was moved."""
    found = await find_lease(call.context, lease_id)
    if found is not None:
        return found
    for scope in scopes_of((await mount_table(call.context.records)).record, lease_id):
        moved_id = await find_moved(scope)
        if moved_id:
            return await find_lease(call.context, moved_id)
    return None


@route("leases", READ, STUCK, form=StuckForm)
async def list_stuck(call: Call) -> Answer:
    """Lists stuck leases."""
    names = await ListKeys(keys.STUCK, "", call.form(StuckForm).limit)
    mount_ids = {keys.lease(lease_id): mount_id for mount_id, lease_id in map(_stuck_lease, names)}
    leases, damaged = await call.context.records.find_all_fresh(tuple(mount_ids), Lease)
    reasons = {found.key: found.record.reason for found in leases} | {each.key: reason_of(each) for each in damaged}
    mounts = (await mount_table(call.context.records)).record
    # Once for each mount: the caller's policies may have very many patterns, and so may the list have leases.
    may_know = {each: may_read_config(call.caller, mounts.with_storage(each)) for each in set(mount_ids.values())}
    stuck = [
        {
            "lease_id": key.removeprefix(keys.LEASES),
            "mount_id": mount_id,
            "error": reasons[key] if may_know[mount_id] else without_provider_code(reasons[key]),
        }
        for key, mount_id in mount_ids.items()
        if key in reasons
    ]
    return Answer(data={"lease_count": len(stuck), "leases": stuck})


@route(
    "leases/count", READ, schemas.members(INTEGER="lease_count", counts=schemas.each(schemas.INTEGER)), form=StuckForm
)
async def count_stuck(call: Call) -> Answer:
    """Counts stuck leases for each mount."""
    mounts = (await mount_table(call.context.records)).record
    counts: Counter[str] = Counter()
    for name in await call.context.records.names(keys.STUCK):
        mount = mounts.with_storage(_stuck_lease(name)[0])
        counts[mount.accessor if mount else ""] += 1
    return Answer(data={"lease_count": counts.total(), "counts": dict(counts)})


def _stuck_lease(name: str) -> tuple[str, str]:
    """Return mount id and lease id from an entry of the index."""
    mount_id, _, lease_id = name.removeprefix(keys.STUCK).partition("/")
    return mount_id, lease_id


RENEWED: Final = Answers(lease=True)
ENDED: Final = Answers(nothing=True, accepted=LEFT, refusals=PROVIDER)
ROUTES: Final = (
    list_stuck,
    count_stuck,
    look_up,
    list_leases,
    evolve(list_leases, path="leases/lookup/*prefix", doc="Lists leases below a path."),
    *(
        Route(f"{place}{rest}", WRITE, program, doc, form=LeaseForm, answers=answers)
        for place, program, answers, doc in (
            ("leases/renew", partial(renew, "leases/renew"), RENEWED, "Renews a lease."),
            ("renew", partial(renew, "renew"), RENEWED, "Renews a lease."),
            ("leases/revoke", revoke, ENDED, "Revokes a lease."),
            ("revoke", revoke, ENDED, "Revokes a lease."),
        )
        for rest in ("", "/*lease_id")
    ),
    *(
        Route(f"{place}{action}/*prefix", WRITE, program, doc, form=PrefixForm, answers=answers)
        for action, program, answers, doc in (
            ("revoke-prefix", revoke_prefix, ENDED, "Revokes all leases below a path."),
            (
                "revoke-force",
                revoke_force,
                DONE,
                "Drops all leases below a path immediately, and removes their objects in the background.",
            ),
        )
        for place in ("leases/", "")
    ),
)
