"""The roles of a secrets engine: which credentials they issue, and for how long."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from attrs import evolve, frozen
from msgspec.structs import replace

from ..context import Context, LeaseSubject, LeaseTerms
from ..deadline import Deadline
from ..effects import Instant
from ..errors import Code, EntryDamaged, Problem, Refused
from ..forms import (
    BOOLEAN,
    INTEGER,
    SECONDS,
    AsWritten,
    FieldType,
    Terms,
    bounded,
    effective,
    one_of,
    setting,
    show,
    shown_members,
)
from ..leases import Attempts, Scope, count_leases
from ..messages import DELETE, LIST, READ, WRITE, Answer
from ..mounts import Mount, require_live
from ..provider import (
    FEDERATED,
    GRACE,
    PROOFS,
    SECRET,
    Client,
    Description,
    FreshObject,
    Provisioned,
    Rights,
    applications,
    rights_made,
)
from ..routing import LEFT, PROVIDER, Answers, Call, capture_name, route
from ..store import NO_CHANGES, Changes, Found, keys, retry_on_conflict
from ..values import coercion, listing
from .config import REFERENCE, Config, clamped_warnings, find_config, in_use
from .grants import (
    APP_ROLE_GRANTS,
    DIRECTORY_ROLE_GRANTS,
    GROUP_GRANTS,
    ROLE_GRANTS,
    AppRoleGrant,
    DirectoryRoleGrant,
    GroupGrant,
    RoleGrant,
    find_app_roles,
    find_directory_roles,
    find_groups,
    resolve,
    resolve_roles,
)
from .limits import may_issue, refuse_kept
from .persistent_app import PersistentApp, forget, persist, pointing, require_changed, without_gone
from .provisioning import SIGN_IN_AUDIENCES, provider_spelling
from .token_secret import TokenSecret, forget_secret

MOST_COUNTED: Final = 1000
"""Maximum number of remaining leases that a response counts."""

MOST_EXAMINED: Final = 1000
"""Maximum number of roles that are read to find the scopes in them."""

UNRECORDED: Final = "the lease has no record of what it grants: request new credentials"
GIVEN_UP: Final = "the app registration no longer belongs to its role"
TEN_YEARS: Final = 10 * 365 * 24 * 3600
DURATIONS: Final = ("ttl", "max_ttl", "explicit_max_ttl")
MOST_TAGS: Final = 100
TAG_LIMIT: Final = 256
_TAG: Final = re.compile(rf"\S{{1,{TAG_LIMIT}}}")


def _tags(raw: object) -> tuple[str, ...]:
    tags = tuple(filter(None, listing.comma_list(raw)))
    if len(tags) > MOST_TAGS or not all(_TAG.fullmatch(tag) and tag.isprintable() for tag in tags):
        limits = f"at most {MOST_TAGS} tags of at most {TAG_LIMIT} printable characters"
        raise ValueError(f"must have {limits}, without white space")
    return tags


TAGS: Final = FieldType("list of tags", _tags, list, normal=lambda tags: tuple(sorted(set(tags))))
MOST_SCOPES: Final = 32
_SCOPE: Final = re.compile(r"[!#-\[\]-~]{1,500}/\.default")
"""RFC 6749, appendix A.4. Azure issues a token for all of an app registration's rights at a resource, or none."""


def _token_scopes(raw: object) -> tuple[str, ...]:
    scopes = tuple(filter(None, listing.comma_list(raw)))
    if len(scopes) > MOST_SCOPES or not all(_SCOPE.fullmatch(scope) for scope in scopes):
        raise ValueError(f"must have at most {MOST_SCOPES} scopes, each a resource and /.default")
    return scopes


TOKEN_SCOPES: Final = FieldType("list of scopes of tokens", _token_scopes, list)
OBJECT_ID: Final = FieldType("string", coercion.text, normal=str.lower)


@frozen(kw_only=True)
class Role(AsWritten):
    """What is stored for a role. `client_id` belongs to `application_object_id`; `persistent_app` to a role that keeps
    its own application; `token_secret` to one that has given access tokens."""

    azure_roles: tuple[RoleGrant, ...] = setting(
        ROLE_GRANTS, (), "Azure roles to assign to the service principals, as a JSON string."
    )
    azure_groups: tuple[GroupGrant, ...] = setting(
        GROUP_GRANTS, (), "Groups to add the service principals to, as a JSON string."
    )
    directory_roles: tuple[DirectoryRoleGrant, ...] = setting(
        DIRECTORY_ROLE_GRANTS,
        (),
        "Directory roles to assign to the service principals, as a JSON string. Only those in "
        "`allowed_directory_roles`.",
    )
    app_roles: tuple[AppRoleGrant, ...] = setting(
        APP_ROLE_GRANTS,
        (),
        "App roles of APIs to assign to the service principals, as a JSON string. Only those in `allowed_app_roles`.",
    )
    application_object_id: str = setting(OBJECT_ID, "", "Object id of an existing app registration to use instead.")
    persist_app: bool = setting(
        BOOLEAN, False, "Use one app registration and service principal for the lifetime of the role."
    )
    ttl: int = setting(SECONDS, 0, "Default TTL of the leases.")
    max_ttl: int = setting(SECONDS, 0, "Maximum TTL of the leases.")
    explicit_max_ttl: int = setting(
        SECONDS, 0, "Maximum lifetime of a lease and its service principal, whatever the TTLs. 0: ten years."
    )
    max_leases: int = setting(bounded(INTEGER, 0, 2**31), 0, "Maximum number of leases. 0: no limit.")
    permanently_delete: bool = setting(
        BOOLEAN, False, "Delete objects permanently, instead of leaving them soft-deleted."
    )
    sign_in_audience: str = setting(
        one_of(*SIGN_IN_AUDIENCES), "", "Who can sign in to the app registrations. Empty: only accounts of the tenant."
    )
    tags: tuple[str, ...] = setting(TAGS, (), "Tags of the app registrations.")
    service_management_reference: str = setting(
        REFERENCE,
        "",
        "Service management reference of the app registrations, which some tenants require. Empty: the "
        "one in the configuration.",
        shown_empty=False,
    )
    token_scopes: tuple[str, ...] = setting(
        TOKEN_SCOPES,
        (),
        "Scopes for which the role issues access tokens of its app registration. Empty: it issues none.",
    )
    proof: str = setting(
        one_of(*PROOFS),
        SECRET,
        "Credential for requesting access tokens: a client secret of the app registration, a certificate "
        "whose key never leaves cloudid, or a federated credential, which needs neither.",
    )
    client_id: str = ""
    persistent_app: PersistentApp | None = None
    token_secret: TokenSecret | None = None

    @property
    def memberships(self) -> dict[str, tuple[str, ...]]:
        """The ids of its memberships, by the kinds of `MEMBERSHIPS`."""
        return {
            "groups": tuple(one.object_id for one in self.azure_groups),
            "directory_roles": tuple(one.role_id for one in self.directory_roles),
            "app_roles": tuple(one.pair for one in self.app_roles),
        }

    @property
    def subscription(self) -> str:
        """The only subscription in its assignments. Empty if there is none or several."""
        heads = [grant.scope.split("/")[1:3] for grant in self.azure_roles]
        named = {head[1].lower() for head in heads if len(head) == 2 and head[0].lower() == "subscriptions"}
        return named.pop() if len(named) == 1 else ""

    @property
    def cap(self) -> int:
        """The maximum lifetime of a lease and its secret, in seconds."""
        return self.explicit_max_ttl or TEN_YEARS

    @property
    def existing_id(self) -> str:
        """The object id of the existing app registration that gets the client secrets.

        Empty if each lease creates its own.
        """
        return self.persistent_app.provisioned.application_id if self.persistent_app else self.application_object_id

    @property
    def existing_client_id(self) -> str:
        return self.persistent_app.provisioned.client_id if self.persistent_app else self.client_id

    @property
    def held(self) -> tuple[Provisioned, ...]:
        """What it owns in Azure."""
        return tuple(kept.provisioned for kept in (self.persistent_app, self.token_secret) if kept is not None)

    def propagation(self, now: Instant) -> FreshObject:
        """Return the errors of a new client secret that are retried."""
        kept = self.persistent_app
        is_fresh = kept is not None and now < kept.provisioned.made_at + GRACE
        return FreshObject.APPLICATION if is_fresh else FreshObject.SHARED

    def clamped(self, config: Config) -> dict[str, int]:
        """Return the durations that exceed a configuration's limit for secrets, with the longest allowed values."""
        most = config.max_secret_ttl
        return {name: most for name in DURATIONS if most and getattr(self, name) > most}

    def terms(self, context: Context, mount: Mount, config: Config) -> Terms:
        """Return the limits of its leases.

        They end with the secret, which `max_secret_ttl` of the configuration limits.
        """
        return Terms(
            default=mount.default_ttl(context.settings),
            max=mount.max_ttl(context.settings),
            ttl=self.ttl,
            max_ttl=self.max_ttl,
            explicit_max_ttl=config.capped(self.cap),
        )


@frozen(kw_only=True)
class DeleteRoleForm:
    """A deletion of a role."""

    revoke_leases: bool = setting(BOOLEAN, False, "Also revoke its leases.")


def check(role: Role) -> None:
    """Refuse a role whose merged fields contradict each other."""
    problems: list[Problem] = []
    for shorter, longer in (("ttl", "max_ttl"), ("ttl", "explicit_max_ttl"), ("max_ttl", "explicit_max_ttl")):
        limit = getattr(role, longer)
        if limit and getattr(role, shorter) > limit:
            problems.append(Problem(Code.TTL_EXCEEDS_MAX, f'"{shorter}", "{longer}"'))
    if not (role.application_object_id or role.azure_roles or role.directory_roles or role.app_roles):
        problems.append(
            Problem(Code.FIELD_REQUIRED, '"application_object_id", "azure_roles", "directory_roles" or "app_roles"')
        )
    if role.token_scopes and not (role.application_object_id or role.persist_app):
        detail = (
            '"token_scopes" needs "persist_app" or "application_object_id", because tokens outlive the '
            "service principals of leases"
        )
        problems.append(Problem(Code.FIELD_REQUIRED, detail))
    for flag in ("persist_app", "permanently_delete"):
        if role.application_object_id and getattr(role, flag):
            problems.append(Problem(Code.FIELDS_EXCLUSIVE, f'"application_object_id", "{flag}"'))
    if problems:
        raise Refused.because(problems)


def require_issuer(context: Context, proof: str) -> None:
    """Refuse a federated credential that Azure could not verify."""
    if proof == FEDERATED and not context.settings.issuer.startswith("https://"):
        raise Refused(Code.ISSUER_MISSING, 'set "issuer" to the https address of this service')


MEMBERS: Final = shown_members(Role)


async def find_role(context: Context, mount: Mount, name: str) -> Found[Role] | None:
    """Return a role in its normal form."""
    found = await context.records.find(keys.role(mount.id, name), Role)
    return found.with_record(found.record.normal) if found else None


@route(
    "roles/:name",
    WRITE,
    refusals=PROVIDER,
    form=Role,
    exists=lambda call: call.context.records.has(keys.role(call.mount.id, capture_name(call))),
)
@retry_on_conflict
async def write_role(call: Call) -> Answer:
    """Creates or updates a role. Everything that it refers to must exist.

    The app registration of a role with `persist_app` is created or updated before the role is stored.
    """
    context, mount, name = call.context, call.mount, capture_name(call)
    await require_live(context.records, mount)
    config, client, config_expects = await in_use(context, mount, call.deadline)
    key = keys.role(mount.id, name)
    found, expects = await context.records.find_for_writing(key, Role)
    stored = found.record if found else Role()
    role = evolve(stored, **_changed_fields(stored, call.given.values))
    role = role if role.proof else evolve(role, proof=SECRET)
    check(role)
    require_issuer(context, role.proof)
    role = await _resolved(context, client, role)
    role = _without_what_is_over(role)
    if role.persistent_app and role.persistent_app.left:
        role = evolve(role, persistent_app=await without_gone(client, role.persistent_app))
    await may_issue(context, config, client, rights_of(role))
    grounds = Changes({**expects, **config_expects}, deletes=_index_keys(mount, name, stored)) | _given_up(
        stored, role, mount, call.now
    )
    warnings: tuple[str, ...] = ()
    if role.persist_app:
        warnings = await persist(call, client, key, role, description_of(config, role), grounds)
    else:
        grounds |= Changes(puts={key: role})
        if role.client_id:
            grounds |= await pointing(call, role.client_id)
        await context.records.commit(grounds)
    warnings += clamped_warnings(role.clamped(config))
    return Answer(warnings=warnings, wake_at=call.now if stored.held else None)


def _without_what_is_over(role: Role) -> Role:
    """Return the role without an app registration or a secret that it no longer needs."""
    role = role if role.persist_app else evolve(role, persistent_app=None)
    held = role.token_secret.provisioned if role.token_secret and role.token_scopes else None
    is_kept = held and (held.password_on, held.proof) == (role.normal.existing_id, role.proof)
    return role if is_kept else evolve(role, token_secret=None)


def _given_up(stored: Role, role: Role | None, mount: Mount, now: Instant) -> Changes:
    """Return the change that passes to the journal what a role no longer owns. `None`: the role is deleted."""
    kept, secret = stored.persistent_app, stored.token_secret
    if kept is not None and (role is None or role.persistent_app is None):
        return forget(kept, secret, mount, now)
    if secret is not None and (role is None or role.token_secret is None):
        return forget_secret(secret, mount, now)
    return NO_CHANGES


def _changed_fields(stored: Role, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given fields.

    A client that writes back what it read also sends the app registration that the role owns.
    """
    kept = stored.persistent_app.provisioned.application_id if stored.persistent_app else ""
    names_kept = kept and OBJECT_ID.normal(given.get("application_object_id", "")) == kept
    return {name: value for name, value in given.items() if not (names_kept and name == "application_object_id")}


async def _resolved(context: Context, client: Client, role: Role) -> Role:
    """Return the role with everything that it refers to as in Azure. Refuse unknown objects."""
    if role.application_object_id:
        application = await applications.find_application(client, role.application_object_id)
        if application is None:
            raise Refused(Code.REFERENCE_NOT_FOUND, '"application_object_id"')
        refuse_kept(context, application)
        return evolve(role, client_id=application.client_id)
    return evolve(
        role,
        client_id="",
        azure_roles=await resolve_roles(client, role.azure_roles),
        azure_groups=await resolve(client, "azure_groups", role.azure_groups, find_groups),
        directory_roles=await resolve(client, "directory_roles", role.directory_roles, find_directory_roles),
        app_roles=await resolve(client, "app_roles", role.app_roles, find_app_roles),
    )


def description_of(config: Config, role: Role) -> Description:
    """Return the properties with which the app registration of a role or a lease is created."""
    return Description(
        tags=role.normal.tags,
        sign_in_audience=provider_spelling(role.sign_in_audience),
        service_management_reference=role.service_management_reference or config.service_management_reference,
        display_name_prefix=config.display_name_prefix,
        is_tagged=bool(config.display_name_prefix),
    )


def rights_of(role: Role) -> Rights:
    """Return the rights of a role's credentials, after everything that it refers to is resolved.

    The app registration that a role owns has the rights in the role, since both are stored by one commit, and
    assignments by others that the role once had.
    """
    if role.application_object_id:
        return Rights(application_id=role.application_object_id, client_id=role.client_id)
    left = role.persistent_app.left if role.persistent_app else ()
    return Rights(
        client_id=role.existing_client_id,
        assignments=(
            *((one.scope, one.role_id) for one in role.normal.azure_roles),
            *((one.scope, one.role_id) for one in left),
        ),
        memberships=role.memberships,
    )


async def may_issue_for(context: Context, mount: Mount, config: Config, client: Client, role: Role) -> Changes:
    """Refuse credentials of a role that may not be issued now.

    Return what their commit must expect besides the role.
    """
    grounds = await may_issue(context, config, client, rights_of(role))
    await require_changed(context, mount, config, role)
    return grounds


def _index_keys(mount: Mount, name: str, role: Role) -> tuple[str, ...]:
    return (keys.target(role.existing_client_id, mount.id, name),) if role.existing_client_id else ()


async def target(context: Context, mount: Mount, name: str) -> str:
    """Return the client id of the app registration whose secrets a role issues.

    Empty if each lease has its own, or the role was deleted.
    """
    found = await find_role(context, mount, name)
    return found.record.existing_client_id if found else ""


@route("roles/:name", READ, MEMBERS)
async def read_role(call: Call) -> Answer:
    """Reads a role."""
    found = await call.context.records.find(keys.role(call.mount.id, capture_name(call)), Role)
    if found is None:
        raise Refused(Code.NOT_FOUND)
    return Answer(data={**show(found.record), "application_object_id": found.record.existing_id})


@route("roles", LIST)
async def list_roles(call: Call) -> Answer:
    """Lists the names of all roles."""
    return Answer(data={"keys": await call.context.records.names(keys.roles(call.mount.id))})


@route(
    "roles/:name",
    DELETE,
    Answers(nothing=True, accepted=LEFT, refusals=(Code.NOT_FOUND, *PROVIDER)),
    form=DeleteRoleForm,
)
async def delete_role(call: Call) -> Answer:
    """Deletes a role. Its leases stay valid until they expire, unless `revoke_leases` is set.

    What the role owned in Azure is deleted with it. No leases are issued for a deleted role, so they are searched
    afterwards. If a request was interrupted, repeat it for them.
    """
    leases = Scope(call.mount, f"creds/{capture_name(call)}")
    is_last = call.form(DeleteRoleForm).revoke_leases
    answer = await _delete(call)
    living = await count_leases(leases, MOST_COUNTED)
    if is_last and living:
        return await _end_leases(call, leases, answer.warnings if answer else ())
    if answer is None:
        raise Refused(Code.NOT_FOUND, "the role does not exist")
    if not living:
        return answer
    more = " or more" if living == MOST_COUNTED else ""
    warning = f"leases that stay valid until they expire: {living}{more}; revoke_leases=true revokes them"
    return replace(answer, warnings=(*answer.warnings, warning))


async def _end_leases(call: Call, leases: Scope, warnings: tuple[str, ...]) -> Answer:
    """Revoke leases like a revocation by prefix.

    All are marked, then the request itself revokes as many as its time allows.
    """
    attempts = Attempts(call.context, call.now, call.deadline)
    await attempts.mark(leases, attempts.due_at)
    await attempts.work_off(leases)
    path = f"sys/leases/lookup/{call.mount.path}/{leases.path}"
    answer = await attempts.answer(path, wake_at=attempts.due_at)
    return replace(answer, warnings=(*answer.warnings, *warnings))


@retry_on_conflict
async def _delete(call: Call) -> Answer | None:
    """Delete a role. `None`: it does not exist."""
    try:
        found = await find_role(call.context, call.mount, capture_name(call))
    except EntryDamaged as damaged:
        await call.context.records.commit(Changes({damaged.key: damaged.version}, deletes=(damaged.key,)))
        return Answer(
            warnings=("the role was damaged; its app registration or client secret, if it had one, remains in Azure",)
        )
    if found is None:
        return None
    changes = Changes(found.expected, deletes=(found.key, *_index_keys(call.mount, capture_name(call), found.record)))
    changes |= _given_up(found.record, None, call.mount, call.now)
    await call.context.records.commit(changes)
    return Answer(wake_at=call.now if found.record.held else None)


async def release(context: Context, mount: Mount, now: Instant, fence: Mapping[str, int]) -> None:
    """Delete the roles of a retired mount that issue secrets of an existing app registration.

    Damaged roles are skipped.

    Their app registrations and client secrets are passed to the journal.
    """
    prefix = keys.roles(mount.id)
    names = await context.records.names(prefix)
    for found in await context.records.find_undamaged([f"{prefix}{name}" for name in names], Role):
        index_keys = _index_keys(mount, found.key.removeprefix(prefix), found.record)
        if index_keys:
            changes = Changes({**fence, **found.expected}, deletes=(found.key, *index_keys))
            await context.records.commit(changes | _given_up(found.record, None, mount, now))


async def count_kept(context: Context, mount: Mount) -> int:
    """Count the roles of a mount that own an app registration or a client secret, or are damaged and may own one."""
    names = await context.records.names(keys.roles(mount.id))
    roles, damaged = await context.records.find_all_fresh([keys.role(mount.id, name) for name in names], Role)
    return len(damaged) + sum(bool(found.record.held) for found in roles)


async def granted_scopes(call: Call) -> set[str]:
    """Return the scopes at which roles assign roles, or the configured subscription if there is no such role."""
    prefix = keys.roles(call.mount.id)
    names = await call.context.records.names(prefix)
    found = await call.context.records.find_undamaged([f"{prefix}{name}" for name in names[:MOST_EXAMINED]], Role)
    scopes = {grant.scope for role in found for grant in role.record.normal.azure_roles}
    if scopes:
        return scopes
    stored = await find_config(call.context, call.mount)
    config = effective(stored.record if stored else Config(), call.context.settings.environment)
    return {f"/subscriptions/{config.subscription_id}"} if config.subscription_id else set()


async def lease_terms(context: Context, mount: Mount, lease: LeaseSubject, deadline: Deadline) -> LeaseTerms | None:
    """Return the current limits for renewing a lease. `None` if its role was deleted.

    Refuse if the mount would no longer issue the lease's rights.
    """
    found = await find_role(context, mount, lease.role)
    if found is None:
        return None
    config, client, config_expects = await in_use(context, mount, deadline)
    grounds = await may_hold(context, mount, config, client, found.record, lease)
    expects = {**found.expected, **config_expects, **grounds.expects}
    return LeaseTerms(found.record.terms(context, mount, config), expects)


async def may_hold(
    context: Context, mount: Mount, config: Config, client: Client, role: Role, lease: LeaseSubject
) -> Changes:
    """Refuse a lease whose credentials may not be issued now. Return what its commit must expect besides these."""
    provisioned = lease.provisioned
    if not provisioned.application_id and role.persistent_app and provisioned.password_on == role.existing_id:
        return await may_issue_for(context, mount, config, client, role)
    return await may_issue(context, config, client, _held_by_lease(lease, role))


def _held_by_lease(lease: LeaseSubject, role: Role) -> Rights:
    """Return the rights of a lease, except those of an app registration that its role owns.

    Leases of earlier releases do not record them for shared app registrations.
    """
    provisioned = lease.provisioned
    held = rights_made(provisioned) if provisioned.application_id else lease.rights
    if held is None and provisioned.password_on and provisioned.password_on == role.application_object_id:
        held = rights_of(role)
    if held is None:
        raise Refused(Code.LEASE_NOT_RENEWABLE, UNRECORDED)
    if not (provisioned.application_id or held.application_id):
        raise Refused(Code.LEASE_NOT_RENEWABLE, GIVEN_UP)
    return held
