"""Rules that became stricter: find the stored records that violate them.

A stricter rule applies to new writes. Stored records never stop a running service: each rule is a row that finds the
records which violate it, and health lists them with their fix. The problem's row says whether they are refused when
used or continue to work. Every node checks at start and occasionally afterwards, never during a request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from attrs import frozen

from .. import applied
from ..audit import SECRETS
from ..auth_method import Role
from ..context import Context
from ..credentials import RootCredential
from ..effects import Instant, ListKeys, Now, Program
from ..errors import EntryDamaged, Refused
from ..forms import effective, listed
from ..health import SEVERAL, HealthProblem, Occurrence
from ..issuer import unpublished
from ..leases import Lease
from ..mounts import AUTH, SECRET, SYSTEM, TOKEN, Mount, MountTable, mount_table
from ..policies import Policy
from ..quotas import LONGEST_BLOCK, Quotas
from ..rotation import credential_risks, find_root, roles_by_target, roles_pointing_at, secret_risks, self_targets
from ..secrets_engine import clamped_roles, count_open_audiences, kept_applications, newly_denied
from ..store import keys
from ..token_store import TokenRole
from ..values import LONGEST_DELAY
from .mounts import AUDIT_KEYS

LOOK_PAUSE: Final = 60.0
"""Minimum seconds between two checks. A fixed problem is reported for this long."""
MOST_OF_THE_TIME: Final = 0.01
"""Maximum share of the time that is spent on checks: a large store is checked less often."""
PAGE: Final = 100
APPLIED: Final = f"{SYSTEM.path}/{applied.PATH}"
NEEDS_NO_SUDO: Final = frozenset({"sudo", "deny"})


@frozen
class Stored:
    """The data for the rules: the table of mounts, and through it all records of mounts."""

    context: Context
    table: MountTable

    async def configurations(self) -> list[tuple[Mount, RootCredential]]:
        """Return the stored configurations of all live mounts."""
        found = []
        for mount in self.table.live:
            with suppress(EntryDamaged):
                root = await find_root(self.context, mount)
                if root is not None:
                    found.append((mount, root.record))
        return found


@frozen
class StoredRule:
    """A row: the problem that health reports, and the function that finds its records."""

    problem: HealthProblem
    breaches: Callable[[Stored], Program[Sequence[Occurrence]]]


async def malformed_configurations(stored: Stored) -> Sequence[Occurrence]:
    """Find ids and names in configurations that cannot be part of a URL."""
    found: list[Occurrence] = []
    for mount, config in await stored.configurations():
        with suppress(Refused):  # a variable of the environment is wrong
            counted = effective(config, stored.context.settings.environment)
            found += [{"mount": mount.path, "field": field} for field in counted.malformed]
    return found


async def secret_audit_keys(stored: Stored) -> Sequence[Occurrence]:
    """Find members that mounts log unhashed although they contain secrets."""
    return [
        {"mount": mount.path, "setting": setting, "field": field}
        for mount in stored.table.live
        for setting in AUDIT_KEYS
        for field in getattr(mount, setting)
        if field in SECRETS
    ]


async def audit_files_anywhere(stored: Stored) -> Sequence[Occurrence]:
    """Find audit devices of requests whose files are not in a folder of the settings."""
    return [{"device": device.name} for device in stored.table.devices if device.is_in_any_folder]


async def audit_files_outside(stored: Stored) -> Sequence[Occurrence]:
    """Find audit devices of requests to other nodes whose files lie below none of this node's folders."""
    return [
        {"device": device.name, "path": device.options["file_path"]}
        for device in stored.table.used_devices
        if not device.declared and device.folder and device.folder not in stored.context.settings.audit_folders
    ]


async def suspended_devices(stored: Stored) -> Sequence[Occurrence]:
    """Find audit devices of requests whose names the settings now use."""
    return [{"device": device.name} for device in stored.table.suspended_devices]


async def clamped_delays(stored: Stored) -> Sequence[Occurrence]:
    """Find delays of auth configurations that are longer than allowed."""
    return [
        {"mount": mount.path, "field": field, "most": str(LONGEST_DELAY)}
        for mount, config in await stored.configurations()
        for field in config.clamped
    ]


async def clamped_quota_blocks(stored: Stored) -> Sequence[Occurrence]:
    """Find quotas that block a source for longer than allowed."""
    found = await stored.context.records.find(keys.QUOTAS, Quotas)
    return [
        {"name": name, "most": str(LONGEST_BLOCK)}
        for name, limit in (found.record.rate_limits.items() if found else ())
        if limit.block < limit.block_interval
    ]


async def long_lists(stored: Stored) -> Sequence[Occurrence]:
    """Find lists of token roles that are longer than allowed."""
    prefix, after = keys.roles(TOKEN.id), ""
    found: list[Occurrence] = []
    while page := await ListKeys(prefix, after, PAGE):
        after = page[-1]
        for role in await stored.context.records.find_undamaged(page, TokenRole):
            name = role.key.removeprefix(prefix)
            found += [{"role": name, "field": field} for field in role.record.too_long]
    return found


async def roles_of_later_versions(stored: Stored) -> Sequence[Occurrence]:
    """Find auth roles with bounds that this node does not know: it refuses their logins."""
    found: list[Occurrence] = []
    for mount in stored.table.live:
        prefix, after = keys.roles(mount.id), ""
        while mount.kind == AUTH and mount.id != TOKEN.id and (page := await ListKeys(prefix, after, PAGE)):
            after = page[-1]
            for role in await stored.context.records.find_undamaged(page, Role):
                if role.record.unknown_bounds:
                    bounds = listed(role.record.unknown_bounds)
                    found.append({"mount": mount.path, "role": role.key.removeprefix(prefix), "bounds": bounds})
    return found


async def inner_stars(stored: Stored) -> Sequence[Occurrence]:
    """Find policies with a value in `allowed_parameters` that looks like a pattern but is not one."""
    after = ""
    found: list[Occurrence] = []
    while page := await ListKeys(keys.POLICIES, after, PAGE):
        after = page[-1]
        for policy in await stored.context.records.find_undamaged(page, Policy):
            if policy.record.has_inner_stars:
                found.append({"policy": policy.record.name})
    return found


async def policies_without_sudo(stored: Stored) -> Sequence[Occurrence]:
    """Find policies for applying folders that lack the required `sudo`."""
    after = ""
    found: list[Occurrence] = []
    while page := await ListKeys(keys.POLICIES, after, PAGE):
        after = page[-1]
        for policy in await stored.context.records.find_undamaged(page, Policy):
            found += [
                {"policy": policy.record.name, "path": rule.pattern}
                for rule in policy.record.rules
                if rule.pattern.startswith(APPLIED) and not rule.capabilities & NEEDS_NO_SUDO
            ]
    return found


async def unadopted_records(stored: Stored) -> Sequence[Occurrence]:
    """Find lists of paths from clients of an earlier version."""
    return [{"name": name} for name in await stored.context.records.names(keys.APPLIED)]


async def roles_that_lend_the_service(stored: Stored) -> Sequence[Occurrence]:
    """Find roles that use an app registration with which the service authenticates."""
    targets = await self_targets(stored.context)
    return [{"mount": each.mount.path, "role": each.role, "path": each.path} for each in targets]


async def roles_that_share_kept_applications(stored: Stored) -> Sequence[Occurrence]:
    """Find roles that use the app registration of a role with `persist_app`, and so grant that role's rights."""
    found: list[Occurrence] = []
    by_target = await roles_by_target(stored.context)  # one listing, because very many roles may have `persist_app`
    shared = [
        (mount, keeper, client_id)
        for mount in stored.table.live
        for keeper, client_id in (await kept_applications(stored.context, mount)).items()
        if by_target.get(keys.targets(client_id), set()) - {keys.target(client_id, mount.id, keeper)}
    ]
    for mount, keeper, client_id in shared:
        for each in await roles_pointing_at(stored.context, client_id):
            if (each.mount.id, each.role) != (mount.id, keeper):
                names = {"role": each.role, "mount": each.mount.path, "path": each.path}
                found.append({**names, "keeper": keeper, "keeping_mount": mount.path})
    return found


async def roles_that_take_over_identities(stored: Stored) -> Sequence[Occurrence]:
    """Find roles that `deny_privileged_roles` now refuses.

    It also covers role definitions that can take over identities.
    """
    mounts = [mount for mount in stored.table.live if mount.kind == SECRET]
    return [{"mount": each.path, "role": role} for each in mounts for role in await newly_denied(stored.context, each)]


async def roles_with_long_lives(stored: Stored) -> Sequence[Occurrence]:
    """Find roles with longer lifetimes than `max_secret_ttl` of their mount allows."""
    mounts = [mount for mount in stored.table.live if mount.kind == SECRET]
    return [each for mount in mounts for each in await clamped_roles(stored.context, mount)]


async def open_audiences(stored: Stored) -> Sequence[Occurrence]:
    """Find mounts with app registrations that were created without a sign-in audience and are not closed yet."""
    counts = [(mount, await count_open_audiences(mount)) for mount in stored.table.live]
    return [{"mount": mount.path, "count": str(count)} for mount, count in counts if count]


RULES: Final = (
    StoredRule(HealthProblem.CONFIG_INVALID, malformed_configurations),
    StoredRule(HealthProblem.DELAY_CLAMPED, clamped_delays),
    StoredRule(HealthProblem.QUOTA_BLOCK_CLAMPED, clamped_quota_blocks),
    StoredRule(HealthProblem.ROLE_NEWER_THAN_NODE, roles_of_later_versions),
    StoredRule(HealthProblem.LIST_TOO_LONG, long_lists),
    StoredRule(HealthProblem.POLICY_STAR_LITERAL, inner_stars),
    StoredRule(HealthProblem.APPLIED_WITHOUT_SUDO, policies_without_sudo),
    StoredRule(HealthProblem.APPLIED_RECORD_UNADOPTED, unadopted_records),
    StoredRule(HealthProblem.SELF_TARGET, roles_that_lend_the_service),
    StoredRule(HealthProblem.APPLICATION_KEPT, roles_that_share_kept_applications),
    StoredRule(HealthProblem.SECRET_TTL_CLAMPED, roles_with_long_lives),
    StoredRule(HealthProblem.PRIVILEGED_ROLE, roles_that_take_over_identities),
    StoredRule(HealthProblem.AUDIENCE_OPEN, open_audiences),
    StoredRule(HealthProblem.AUDIT_KEYS_SECRET, secret_audit_keys),
    StoredRule(HealthProblem.AUDIT_FILE_ANYWHERE, audit_files_anywhere),
    StoredRule(HealthProblem.AUDIT_FILE_OUTSIDE, audit_files_outside),
    StoredRule(HealthProblem.AUDIT_DEVICE_SUSPENDED, suspended_devices),
)
"""All rules that became stricter, and the functions that find violations."""


async def look(context: Context, rules: Sequence[StoredRule] = RULES) -> Instant:
    """Note for health which records violate which rule. Return the instant of the next check."""
    started = await Now()
    stored = Stored(context, (await mount_table(context.records)).record)
    for rule in rules:
        context.node.note(rule.problem, await rule.breaches(stored))
    now = await Now()
    return now + max(LOOK_PAUSE, (now - started) / MOST_OF_THE_TIME)


# Problems in the background: repeated failures of Azure, and credentials that expire soon.

MOST_COUNTED: Final = 1000
"""Maximum number of leases that are read to count failing revocations."""


async def credentials_at_risk(stored: Stored) -> Sequence[Occurrence]:
    """Find root credentials that cannot be used, are not rotated, or expire soon."""
    now = await Now()
    found: list[Occurrence] = []
    for mount, config in await stored.configurations():
        with suppress(EntryDamaged):
            risks = await credential_risks(stored.context, mount, config, now)
            found += [{"mount": mount.path, "reason": risk} for risk in risks]
    return found


async def static_secrets_at_risk(stored: Stored) -> Sequence[Occurrence]:
    """Find static roles whose client secrets do not exist yet, are not rotated, or expire soon."""
    now = await Now()
    found: list[Occurrence] = []
    for mount in stored.table.live:
        for role in await stored.context.records.names(keys.static_roles(mount.id)):
            with suppress(EntryDamaged):
                risks = await secret_risks(stored.context, mount, role, now)
                found += [{"mount": mount.path, "role": role, "reason": risk} for risk in risks]
    return found


async def failing_revocations(stored: Stored) -> Sequence[Occurrence]:
    """Find mounts with leases whose revocation has failed several times, including retired mounts."""
    listed = await ListKeys(keys.STUCK, "", MOST_COUNTED)
    parts = [key.removeprefix(keys.STUCK).partition("/") for key in listed]
    counts: Counter[str] = Counter()
    for start in range(0, len(parts), PAGE):
        leases = [keys.lease(lease_id) for _, _, lease_id in parts[start : start + PAGE]]
        for lease in await stored.context.records.find_undamaged(leases, Lease):
            counts[lease.record.mount_id] += lease.record.attempts >= SEVERAL
    mounts = {mount_id: stored.table.with_storage(mount_id) for mount_id in counts}
    return [
        {"mount": mount.path, "count": str(counts[mount_id])}
        for mount_id, mount in mounts.items()
        if mount is not None and counts[mount_id]
    ]


TROUBLES: Final = (
    StoredRule(HealthProblem.CREDENTIAL_AT_RISK, credentials_at_risk),
    StoredRule(HealthProblem.STATIC_SECRET_AT_RISK, static_secrets_at_risk),
    StoredRule(HealthProblem.REVOCATIONS_FAILING, failing_revocations),
    StoredRule(HealthProblem.ISSUER_UNPUBLISHED, lambda stored: unpublished(stored.context)),
)
"""All problems that health reports, and the functions that find them."""
