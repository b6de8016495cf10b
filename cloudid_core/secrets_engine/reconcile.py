"""Reconciliation: find objects in Azure that no record lists, and objects in records that Azure no longer has.

The report changes nothing. A repair does not call Azure for changes either: it passes a limited number of objects to
the journal and to the revocation of leases, which remove them safely. While an entry of the store is damaged, its
contents are unknown and may be in use. Then there is no repair, unless damaged leases and intents are dropped with
`force`.

The search covers app registrations, service principals, credentials of app registrations, and the role assignments of
app registrations that roles own. Memberships have no marker.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from attrs import frozen

from ..background import Intent, abandoned_intent
from ..credentials import Key
from ..effects import ABSENT, Instant, in_turns
from ..errors import Code, Conflict, EntryDamaged, Refused
from ..forms import BOOLEAN, INTEGER, Json, bounded, schemas, setting
from ..leases import LEASES_AT_ONCE, Lease, end_leases, find_undamaged_leases, forget_lease
from ..messages import ACCEPTED, READ, WRITE, Answer
from ..mounts import mount_table
from ..provider import MOST_SELECTED, Client, Provisioned, other_assignments
from ..rotation import Rotation, find_undamaged_rotation
from ..routing import PROVIDER, Answers, Call, route
from ..store import Changes, keys
from ..values import fold, rfc3339
from . import config
from .inventory import Object, Shown, list_marked_objects, look_up, objects_of, provisioned_of
from .ownership import AT_ONCE, Ownership, Reader, read_ownership, roles_of
from .roles import find_role
from .static_roles import StaticRole

MOST_EXAMINED: Final = 1000
"""How many suspected objects of each type one request checks."""
USUAL_REPAIRS: Final = 10
PAGE: Final = LEASES_AT_ONCE
"""How many changes of a repair are in one commit."""
MOST_NAMED: Final = 10
"""Maximum number of damaged entries in a refusal."""
KEYS_STAY: Final = (
    "the client secret of a static role is missing. Clients may use another secret of its app "
    "registration, so none is removed until the role is rotated (rotate-role with force=true)"
)
INCOMPLETE: Final = (
    f"not all marked objects were listed, because there are more than {MOST_SELECTED} of a kind, or the "
    "time was over. The setting request_deadline limits the time"
)
NOT_SEARCHED: Final = ("membership", "deleted item")


@frozen(kw_only=True)
class RepairForm:
    """The limits of a repair."""

    max: int = setting(
        bounded(INTEGER, 1, MOST_EXAMINED), USUAL_REPAIRS, "Maximum number of objects to remove and leases to revoke."
    )
    force: bool = setting(BOOLEAN, False, "First drop damaged leases and intents of the mount.")


@frozen(kw_only=True)
class Holder:
    """A lease, a role or a static role, with its objects and their creation time."""

    provisioned: Provisioned
    since: Instant
    lease_id: str = ""
    role: str = ""
    static_role: str = ""

    @property
    def named(self) -> dict[str, Json]:
        names: dict[str, Json] = {"lease_id": self.lease_id, "role": self.role, "static_role": self.static_role}
        return {member: name for member, name in names.items() if name}


@frozen
class Missing:
    """An object in a record that Azure does not have."""

    one: Object
    holder: Holder


@frozen(kw_only=True)
class Findings:
    """The results of a reconciliation. `too_fresh`: unaccounted for, but created within the settle time."""

    unaccounted: tuple[Object, ...]
    missing: tuple[Missing, ...]
    too_fresh: tuple[Object, ...]
    unexamined: int
    """How many more suspected objects there are."""
    damaged: tuple[EntryDamaged, ...]
    is_complete: bool
    """Whether all marked objects were listed."""
    unrecorded: tuple[tuple[str, str], ...]
    """Roles, with the paths of role assignments of their app registrations that the roles do not list."""

    @property
    def warnings(self) -> tuple[str, ...]:
        return () if self.is_complete else (INCOMPLETE,)


OBJECT: Final = schemas.members({"TEXT": "application_object_id"}, TEXT="kind id display_name", TIME="made_at")
HELD: Final = schemas.joined(OBJECT, optional={"TEXT": "lease_id role static_role"})
DAMAGED: Final = schemas.members(TEXT="kind entry id")
MEMBERS: Final = schemas.members(
    unaccounted=schemas.list_of(OBJECT),
    missing=schemas.list_of(HELD),
    too_fresh=schemas.list_of(OBJECT),
    INTEGER="unexamined",
    BOOLEAN="complete",
    unrecorded_assignments=schemas.list_of(schemas.members(TEXT="role id")),
    damaged=schemas.list_of(DAMAGED),
    LIST="not_searched",
)
REPAIRED: Final = schemas.members({"INTEGER": "dropped", "TEXT": "path"}, INTEGER="repaired left")


@route("reconcile", READ, MEMBERS, refusals=PROVIDER)
async def report(call: Call) -> Answer:
    """Lists objects in Azure that no record lists, and objects in records that Azure no longer has.

    `complete` is false if Azure has more marked objects than the request had time to list, or more than 100,000 of a
    type. `unrecorded_assignments`: role assignments of app registrations that roles own, created by others or lost from
    the store. They exist as long as the role; remove them in Azure. `unexamined` counts listed objects that were not
    looked up.
    """
    findings = await _examine(call, await config.client(call.context, call.mount, call.deadline))
    data: dict[str, Json] = {
        "unaccounted": [_described(one) for one in findings.unaccounted],
        "missing": [{**_described(each.one), **each.holder.named} for each in findings.missing],
        "too_fresh": [_described(one) for one in findings.too_fresh],
        "unexamined": findings.unexamined,
        "complete": findings.is_complete,
        "unrecorded_assignments": [{"role": role, "id": path} for role, path in findings.unrecorded],
        "damaged": [await _described_damage(call, each) for each in findings.damaged[:MOST_EXAMINED]],
        "not_searched": NOT_SEARCHED,
    }
    return Answer(data=data, warnings=findings.warnings)


@route("reconcile", WRITE, Answers(data=REPAIRED, accepted=REPAIRED, refusals=PROVIDER), form=RepairForm)
async def repair(call: Call) -> Answer:
    """Removes objects that no record lists, and revokes leases whose objects no longer exist.

    It handles up to `max` of both together, and returns 202 with the path of the report while the removal is in
    progress, or 200 if there was nothing to do.

    App registrations stay among the deleted items, where they can be restored. If an object of a role is missing, it is
    only reported: delete the role and create it again. While the client secret of a static role is missing, for example
    after a restore, no other secret of its app registration is removed, because clients may use it. Rotate the role
    with `force` first.
    """
    client = await config.client(call.context, call.mount, call.deadline)
    form = call.form(RepairForm)
    dropped = await _drop_damaged(call) if form.force else 0
    findings = await _examine(call, client)
    if findings.damaged:
        entries = ", ".join(each.digest for each in findings.damaged[:MOST_NAMED])
        cure = "drop leases and intents with force=true, rewrite or delete roles"
        raise Refused(Code.ENTRY_DAMAGED, f"entries {entries}; {cure}")
    most = form.max
    waiting = {each.one.application_id for each in findings.missing if each.holder.static_role}
    stays = [one for one in findings.unaccounted if one.application_id in waiting]
    unaccounted = [one for one in findings.unaccounted if one.application_id not in waiting][:most]
    ended = [each.holder.lease_id for each in findings.missing if each.holder.lease_id][: most - len(unaccounted)]
    repaired = len(ended)
    for first in range(0, len(unaccounted), PAGE):
        repaired += await _give_up(call, client, unaccounted[first : first + PAGE])
    for first in range(0, len(ended), PAGE):
        await end_leases(call.context, ended[first : first + PAGE], call.now)
    left = len(findings.unaccounted) + len(findings.missing) + findings.unexamined - repaired
    data: dict[str, Json] = {"repaired": repaired, "left": left, **({"dropped": dropped} if form.force else {})}
    warnings = (*findings.warnings, *((KEYS_STAY,) if stays else ()))
    if not repaired:
        return Answer(data=data, warnings=warnings)
    path = f"{call.mount.path}/reconcile"
    return Answer(data={**data, "path": path}, warnings=warnings, status=ACCEPTED, wake_at=call.now)


async def _drop_damaged(call: Call) -> int:
    """Delete the damaged leases and intents of the mount. Return how many.

    Their objects are found as unaccounted for.
    """
    mount_id, dropped = call.mount.id, 0
    lease_ids = await call.context.records.names(keys.mount_leases(mount_id))
    _, damaged = await call.context.records.find_all_fresh([keys.lease(each) for each in lease_ids], Lease)
    for each in damaged:
        await call.deadline.remaining()
        dropped += await forget_lease(call.context, each.key.removeprefix(keys.LEASES), mount_id, call.now)
    intent_ids = await call.context.records.names(keys.intents(mount_id))
    _, damaged = await call.context.records.find_all_fresh([keys.intent(mount_id, each) for each in intent_ids], Intent)
    for each in damaged:
        await call.deadline.remaining()
        await call.context.records.commit(Changes({each.key: each.version}, deletes=(each.key,)))
    return dropped + len(damaged)


async def _give_up(call: Call, client: Client, objects: Sequence[Object]) -> int:
    """Pass objects to the journal, which removes them. Return how many, or 0 if another request handles one of them."""
    mounts = await mount_table(call.context.records)
    changes = Changes(mounts.expected)
    for one in objects:
        intent_id = f"reconcile-{one.id}"
        changes |= Changes({keys.intent(call.mount.id, intent_id): ABSENT})
        given_up = abandoned_intent(intent_id, call.mount.id, provisioned_of(one, client.tenant), call.now)
        changes |= given_up.abandonment
    if call.mount.id not in mounts.record.by_id:
        return 0
    try:
        await call.context.records.commit(changes)
    except Conflict:
        return 0
    return len(objects)


async def _examine(call: Call, client: Client) -> Findings:
    """Compare Azure's objects with the records.

    Azure is queried first, so that an object whose record is written in the meantime is not reported. Lists may be out
    of date, and names can be changed, so each suspected object is looked up by its id before it is reported.
    """
    reader = Reader(call)
    application_ids = {role.existing_id for role in (await roles_of(reader, call.mount)).values()} - {""}
    static_roles = await reader.below(keys.static_roles(call.mount.id), StaticRole)
    application_ids |= {found.record.normal.application_object_id for found in static_roles}
    shown, holders_shown = await list_marked_objects(client, call.context.marker_prefix, application_ids)
    accounts = await read_ownership(call)
    marked = shown.marked(call.context.marker_prefix, sorted(holders_shown))
    suspected = await in_turns(marked, lambda one: () if accounts.covers(one) else (one,), AT_ONCE)
    settled = call.now - call.context.settings.settle_time
    unaccounted = [one for one in suspected if one.made_at <= settled]

    def doubts(holder: Holder) -> Iterator[Holder]:
        if holder.since <= settled and _gone(shown, holder) is not None:
            yield holder

    doubted = await in_turns(await _owners(accounts, client.tenant), doubts, AT_ONCE)
    examined, questioned = unaccounted[:MOST_EXAMINED], doubted[:MOST_EXAMINED]
    again = await look_up(
        client, [*examined, *(one for holder in questioned for one in objects_of(holder.provisioned))]
    )
    missing = [
        Missing(one, holder)
        for holder in questioned
        if (one := _gone(again, holder)) and await _still_holds(call, holder)
    ]
    return Findings(
        unaccounted=tuple(one for one in examined if again.has(one)),
        missing=tuple(missing),
        too_fresh=tuple(one for one in suspected if one.made_at > settled)[:MOST_EXAMINED],
        unexamined=len(unaccounted) - len(examined) + len(doubted) - len(questioned),
        damaged=accounts.damaged,
        is_complete=shown.is_complete,
        unrecorded=await _unrecorded_assignments(call, client, accounts),
    )


async def _unrecorded_assignments(call: Call, client: Client, accounts: Ownership) -> tuple[tuple[str, str], ...]:
    """Return the role assignments of roles' app registrations that the roles do not list, by role."""
    found: list[tuple[str, str]] = []
    for name, role in list(accounts.roles.items())[:MOST_EXAMINED]:
        kept = role.persistent_app.provisioned if role.persistent_app else None
        if kept is None or not kept.assignments or kept.tenant.lower() not in ("", client.tenant.lower()):
            continue
        paths = await other_assignments(client, kept.principal_id, kept.assignments)
        again = await find_role(call.context, call.mount, name)
        listed = again.record.persistent_app.provisioned.assignments if again and again.record.persistent_app else paths
        found += [(name, path) for path in paths if fold(path) not in set(map(fold, listed))]
    return tuple(found)


async def _owners(accounts: Ownership, tenant: str) -> list[Holder]:
    """Yield the static roles of the mount, its active leases, and its roles with objects in `tenant`.

    Static roles come first, so that all those are checked for whose secrets a repair must wait.
    """
    tenants = ("", tenant.lower())

    def by_lease(lease: Lease) -> Iterator[Holder]:
        if not lease.revoking and lease.provisioned.tenant.lower() in tenants:
            yield Holder(provisioned=lease.provisioned, since=lease.issued_at, lease_id=lease.id)

    kept = ((name, provisioned) for name, role in accounts.roles.items() for provisioned in role.held)
    by_roles = (Holder(provisioned=each, since=each.made_at, role=name) for name, each in kept)
    by_static_roles = (_static_holder(each, each.in_use) for each in accounts.static_rotations if each.in_use)
    return [
        *(holder for holder in by_static_roles if holder.provisioned.tenant.lower() in tenants),
        *await in_turns(accounts.leases, by_lease, AT_ONCE),
        *(holder for holder in by_roles if holder.provisioned.tenant.lower() in tenants),
    ]


def _static_holder(rotation: Rotation, key: Key) -> Holder:
    since = key.made_at or 0.0
    return Holder(provisioned=rotation.provisioned(key, since), since=since, static_role=rotation.role)


def _gone(shown: Shown, holder: Holder) -> Object | None:
    """Return the first missing object of a holder. Objects that are deleted with it are omitted."""
    return next((one for one in objects_of(holder.provisioned) if not shown.has(one)), None)


async def _still_holds(call: Call, holder: Holder) -> bool:
    """Return whether the holder still lists the missing object."""
    if holder.lease_id:
        leases = await find_undamaged_leases(call.context, (holder.lease_id,))
        return any(not lease.record.revoking for lease in leases)
    if holder.static_role:
        rotation = await find_undamaged_rotation(call.context, call.mount.id, holder.static_role)
        key = rotation.record.in_use if rotation else None
        return key is not None and key.id == holder.provisioned.password_key_id
    role = await find_role(call.context, call.mount, holder.role)
    return role is not None and holder.provisioned in role.record.held


def _described(one: Object) -> dict[str, Json]:
    """Return the members of an object in the report."""
    return {
        "kind": one.kind.value,
        "id": one.id,
        "display_name": one.name,
        "made_at": rfc3339.show(one.made_at),
        **({"application_object_id": one.application_id} if one.application_id else {}),
    }


async def _described_damage(call: Call, damaged: EntryDamaged) -> dict[str, Json]:
    """Return the members of a damaged entry in the report, without names from other mounts."""
    if damaged.key.startswith(keys.LEASES):
        kind, name = "lease", damaged.key.removeprefix(keys.LEASES)
        is_ours = await call.context.records.has(keys.mount_lease(call.mount.id, name))
    else:
        _, mount_id, *path = damaged.key.split("/")
        kind, name = path[0], "/".join(path[1:])
        is_ours = mount_id == call.mount.id
    return {"kind": kind, "entry": damaged.digest, "id": name if is_ours else ""}
