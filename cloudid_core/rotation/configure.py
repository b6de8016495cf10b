"""What both components do with their configurations: the plan is written with them, and reads show the secret's end.

A warning says why the credential of a mount cannot be used or replaced, and when it ends. Client secrets out of folders
of files that are applied again and again are written once, and never over one of ours: what was applied last is
remembered by its hash, which stands beside the configuration and goes with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from attrs import frozen

from ..context import Context
from ..credentials import Key, RootCredential, SecretHolder, owner_of
from ..effects import Instant, RandomBytes
from ..errors import Code, Refused
from ..forms import BOOLEAN, SECRET, Json, effective, schemas, secret_flaw, setting, source_of_secret
from ..messages import WRITE, Answer
from ..mounts import Mount
from ..provider import Client, Family, prove, trouble_of
from ..routing import Call, route
from ..store import Changes, KeyedHash
from ..values import GUID, Secret, rfc3339
from .identities import MOST_COUNTED, rewritten, self_targets
from .plan import Plan, Rule, find_undamaged_plan, replanned, warned_from
from .record import find_undamaged_rotation
from .root import find_holder, find_root, is_managed

LATE: Final = 3600.0
"""Seconds after which a rotation that was due is late."""
KEY_BYTES: Final = 32
SAME: Final = "same"
OTHER: Final = "other"
MADE_HERE: Final = "made_here"
WRITE_ONLY: Final = ("applied", "replace_root_secret", "verify")
"""Fields that say how to write, not what."""
COMPARED: Final = schemas.members(client_secret={**schemas.TEXT, "enum": [SAME, OTHER, MADE_HERE]})


async def credential_warnings(context: Context, mount: Mount, config: RootCredential, now: Instant) -> tuple[str, ...]:
    """Return the warnings of a stored configuration, for its reads and writes and for the status of its rotation."""
    plan, key = await _plan_and_key(context, mount, config)
    return (
        *_unusable(context, config),
        *_of_secret(context, config),
        *_of_rule(context, config, plan),
        *_failed(plan),
        *_of_end(key, now),
        *_of_roles(len(await self_targets(context, mount.id))),
    )


async def credential_risks(context: Context, mount: Mount, config: RootCredential, now: Instant) -> tuple[str, ...]:
    """Return the warnings that need an operator: a credential cannot be used, is not rotated, or expires soon."""
    plan, key = await _plan_and_key(context, mount, config)
    return (*_unusable(context, config), *_failed(plan), *_of_end(key, now))


async def secret_risks(context: Context, mount: Mount, role: str, now: Instant) -> tuple[str, ...]:
    """Return what needs an operator for a static role's secret: it is late, is not rotated, or expires soon."""
    holder = await find_holder(context, mount, role)
    if holder is None:
        return ()
    plan, key = await _plan_and_key(context, mount, holder.record, role)
    due = None if plan is None or plan.slot is None else plan.slot or plan.since
    late = (f"its rotation is overdue since {rfc3339.show(due)}",) if due is not None and due + LATE < now else ()
    return (*late, *_failed(plan), *_of_end(key, now, "secret"))


async def _plan_and_key(
    context: Context, mount: Mount, holder: SecretHolder, role: str = ""
) -> tuple[Plan | None, Key | None]:
    """Return the plan of a holder whose secret is rotated by a rule, and the known key of the effective secret."""
    rotation = await find_undamaged_rotation(context, mount.id, role)
    plan = await find_undamaged_plan(context, mount.id, role)
    key = rotation.record.key_of(holder.client_secret) if rotation else None
    return plan.record if plan and Rule.of(holder) else None, key


def refused_access(context: Context, mount: Mount, version: int) -> str:
    """Why this node got no access token when it asked last under a version of a configuration; empty: it has one."""
    trouble = trouble_of(context.caches, owner_of(mount, version), Family.LOGIN)
    return trouble.reason if trouble is not None else ""


async def read_warnings(
    context: Context, mount: Mount, config: RootCredential, version: int, now: Instant
) -> tuple[str, ...]:
    """Return the warnings for a read of a configuration."""
    failure = refused_access(context, mount, version)
    refused = (f"the last request for an access token failed: {failure}",) if failure else ()
    return (*await credential_warnings(context, mount, config, now), *refused)


async def root_password_expiration(context: Context, mount: Mount, config: RootCredential) -> dict[str, Json]:
    """Return the member that shows when the secret expires. Empty: no rotation has created the secret."""
    found = await find_undamaged_rotation(context, mount.id)
    key = found.record.key_of(config.client_secret) if found else None
    if key is None or key.expires_at is None:
        return {}
    return {"root_password_expiration_date": rfc3339.show(key.expires_at)}


async def commit_config(call: Call, changes: Changes, config: RootCredential | None) -> Answer:
    """Write a configuration (`None`: remove it) together with the plan that follows from it."""
    context, mount = call.context, call.mount
    if config is not None and config.identity_token_audience and not context.settings.issuer:
        raise Refused(Code.ISSUER_MISSING, 'set "issuer" to the https address of this service')
    plan, planned = await replanned(context, mount.id, config, call.now)
    changes |= await rewritten(context, mount, config, call.now)
    await context.records.commit(changes | planned)
    warnings = await credential_warnings(context, mount, config, call.now) if config is not None else ()
    return Answer(warnings=warnings, wake_at=plan.due_at if plan else None)


def _unusable(context: Context, config: RootCredential) -> Iterator[str]:
    used = effective(config, context.settings.environment)
    if flaw := secret_flaw(used.client_secret, context.settings.environment):
        yield f"Azure cannot accept the client secret: {flaw}"
    if used.identity_token_audience and not context.settings.issuer:
        yield 'identity_token_audience cannot be used: the setting "issuer" is not set'
    if used.identity_token_audience and not used.client_id:
        yield "identity_token_audience cannot be used: client_id is not set"


def _of_secret(context: Context, config: RootCredential) -> Iterator[str]:
    environment = context.settings.environment
    secret = effective(config, environment).client_secret
    if GUID.fullmatch(secret.reveal().lower()):
        source = source_of_secret(secret, environment)
        yield f"{source} is a GUID: it may be the id of a client secret instead of its value"


def _of_rule(context: Context, config: RootCredential, plan: Plan | None) -> Iterator[str]:
    used = effective(config, context.settings.environment)
    if used.identity_token_audience and used.client_secret:
        yield "identity_token_audience is used, and the client secret from the environment is ignored"
    if Rule.of(config) is None:
        return
    if not is_managed(context, config):
        yield "the mount has no stored client secret: automated rotation has nothing to rotate"
    if plan is not None and plan.is_early:
        yield "the client secret expires before the next rotation, or less than a day after it, so it is rotated early"


def _failed(plan: Plan | None) -> Iterator[str]:
    if plan is not None and plan.error:
        yield f"the last automated rotation failed: {plan.error}"


def _of_end(key: Key | None, now: Instant, secret: str = "root secret") -> Iterator[str]:
    if key is None or key.expires_at is None or now < warned_from(key):
        return
    end = rfc3339.show(key.expires_at)
    yield f"the {secret} expires at {end}" if now < key.expires_at else f"the {secret} expired at {end}"


def _of_roles(count: int) -> Iterator[str]:
    if count:
        many = f"{count} or more" if count == MOST_COUNTED else count
        yield f"roles that use the app registration of this mount: {many}; their credentials are refused"


@frozen(kw_only=True, slots=False)  # a form has two bases, of which one may have slots
class AppliedForm:
    """What a write of a configuration says about its credential."""

    applied: bool = setting(
        BOOLEAN,
        False,
        "`client_secret` comes from files that are applied repeatedly: its hash is stored, and it is "
        "refused if the service has rotated the secret since.",
    )
    replace_root_secret: bool = setting(
        BOOLEAN, False, "With `applied`: replace the secret even if the service has rotated it."
    )
    verify: bool = setting(
        BOOLEAN,
        False,
        "Request an access token with the configuration first. If Azure refuses it, nothing is written. "
        "Azure may not accept a new client secret immediately, so the request is retried until its deadline.",
    )


@frozen(kw_only=True)
class CompareForm:
    """A client secret that is to be applied."""

    client_secret: Secret = setting(SECRET, Secret(), "The client secret.", required=True)


@route("config/applied", WRITE, COMPARED, form=CompareForm, requires_all=True)
async def compare_secret(call: Call) -> Answer:
    """Compares a client secret with the one that was applied last. Changes nothing.

    The result is that it is the same, a different one, or would replace one that the service has rotated.
    """
    found = await find_root(call.context, call.mount)
    secret = call.form(CompareForm).client_secret
    if found is None or not found.record.client_secret:
        verdict = OTHER
    elif found.record.applied_hash == _hash(Secret(found.record.applied_hash.partition(":")[0]), secret):
        verdict = SAME
    else:
        verdict = MADE_HERE if await _is_made_here(call.context, call.mount, found.record) else OTHER
    return Answer(data={"client_secret": verdict})


async def prove_if_asked(call: Call, client: Client) -> None:
    """Prove the credential of a configuration that is about to be written, if the write asks for it.

    Raises what the provider refuses it with.
    """
    if call.given.values.get("verify"):
        await prove(client)


async def with_applied(call: Call, stored: RootCredential, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changes of a write, with the hash of an applied secret. Refuse to replace a secret from a rotation."""
    changes = {name: value for name, value in given.items() if name not in WRITE_ONLY}
    if not given.get("applied") or "client_secret" not in given:
        return changes
    if not given.get("replace_root_secret") and await _is_made_here(call.context, call.mount, stored):
        raise Refused(Code.ROOT_SECRET_MADE_HERE)
    key = Secret((await RandomBytes(KEY_BYTES)).hex())
    return {**changes, "applied_hash": _hash(key, given["client_secret"])}


async def _is_made_here(context: Context, mount: Mount, config: RootCredential) -> bool:
    rotation = await find_undamaged_rotation(context, mount.id)
    key = rotation.record.key_of(config.client_secret) if rotation else None
    return key is not None and key.made_at is not None


def _hash(key: Secret, secret: Secret) -> str:
    """Return the key of the hash, and the hash."""
    return f"{key.reveal()}:{KeyedHash(key).hexadecimal(secret.reveal())}"
