"""Login: from a machine's signed identity to a service token. The story, in order.

Nothing is said about roles before the signature has held; checks that need no network come before those that do; the
decision itself is one pure function. The token exists only if the configuration, the role and the mount are still those
that the decision rested on: otherwise the login starts again.
"""

from __future__ import annotations

from ..errors import Code, Conflict, Refused
from ..messages import Answer
from ..mounts import mount_table
from ..provider.client import Client
from ..provider.compute import Machine
from ..provider.facts import machine_facts, member_groups
from ..provider.signing_keys import KeySet, refreshed_for, signing_keys
from ..routing import Call
from ..store import keys
from ..store.records import ATTEMPTS, expected
from ..tokens.issue import issue_for_role
from ..values import network
from .claims import Claims, check_claims
from .config import client_of, effective_config
from .decision import NO_FACTS, NOT_ASKED, Facts, Needs, NotAsked, Verified, decide
from .form import LoginForm, validate
from .roles import Role, find_role
from .verification import UnknownKey, verify_login_jwt


async def log_in(call: Call) -> Answer:
    """Answer a login with a token, or refuse it with the code of the check that failed."""
    form = call.form(LoginForm)
    validate(form)
    for _ in range(ATTEMPTS):
        try:
            return await _attempt(call, form)
        except Conflict:
            continue
    raise Refused(Code.STORE_CONTENDED)


async def _attempt(call: Call, form: LoginForm) -> Answer:
    context, mount = call.context, call.mount
    mounts = await mount_table(context)
    config, stored_config = await effective_config(context, mount)
    client = client_of(context, mount, config, stored_config, call.deadline)
    claims, key_set = await _verified_claims(client, form)
    found_role = await find_role(context, mount, form.role.lower())
    if found_role is None:
        raise Refused(Code.ROLE_NOT_FOUND)
    role = found_role.record
    if not network.contains(role.token_bound_cidrs, call.remote_address):
        raise Refused(Code.SOURCE_ADDRESS_REFUSED)
    check_claims(
        claims,
        now=call.now,
        leeway=context.settings.leeway,
        audience=config.resource,
        issuers=key_set.issuers,
        tenant_id=key_set.tenant_id,
        max_jwt_exp=role.max_jwt_exp,
    )
    verified = await _decided(client, claims, role, form)
    issue = await issue_for_role(
        context,
        mount,
        role,
        form.role.lower(),
        now=call.now,
        path=f"{mount.path}/login",
        display_name=f"{mount.path.removeprefix('auth/').replace('/', '-')}-{claims.principal_id}",
        metadata={"role": form.role.lower(), **verified.metadata},
    )
    expects = {**mounts.expected, **expected(stored_config, keys.config(mount.id)), **found_role.expected}
    await context.records.commit(expects, issue.puts)
    return Answer(auth=issue.block, warnings=issue.warnings)


async def _verified_claims(client: Client, form: LoginForm) -> tuple[Claims, KeySet]:
    """The claims of a JWT whose signature holds; an unknown key may have the tenant's keys fetched anew, once."""
    key_set = await signing_keys(client)
    try:
        return _verify(client, form, key_set), key_set
    except UnknownKey as unknown:
        key_set = await refreshed_for(client, unknown.kid)
    try:
        return _verify(client, form, key_set), key_set
    except UnknownKey:
        raise Refused(Code.LOGIN_REFUSED) from None


def _verify(client: Client, form: LoginForm, key_set: KeySet) -> Claims:
    context = client.context
    mount_id = client.owner.partition(":")[0]
    return verify_login_jwt(form.jwt, key_set, context.caches, mount_id, context.settings.jwt_limit)


async def _decided(client: Client, claims: Claims, role: Role, form: LoginForm) -> Verified:
    """The decision, with the facts from the provider that it asks for, and no others."""
    machine_check = client.context.settings.machine_check
    verdict = decide(claims, NO_FACTS, role.bounds, form, machine_check)
    if isinstance(verdict, Needs):
        facts = await _facts(client, claims, verdict)
        verdict = decide(claims, facts, role.bounds, form, machine_check)
    assert isinstance(verdict, Verified)  # all facts that it can need are there
    return verdict


async def _facts(client: Client, claims: Claims, needs: Needs) -> Facts:
    """What only the provider can tell."""
    machine: Machine | NotAsked | None = NOT_ASKED
    groups: frozenset[str] | NotAsked | None = NOT_ASKED
    if needs.machine and (named := claims.machine) is not None:
        machine = await machine_facts(client, named)
    if needs.groups:
        groups = await member_groups(client, claims.principal_id)
    return Facts(machine, groups)
