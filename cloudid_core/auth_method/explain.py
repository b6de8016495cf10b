"""Explain: every check of a login and its verdict, for operators who need to know why a login is refused.

The login is given by its body, or by claims and facts as data. A body is verified as in a login: nothing of a token is
shown before its signature is verified, and facts come from Azure. Claims that are given as data are not proven, so
Azure is not queried about them. No token is issued either way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from attrs import define

from ..caches import Caches
from ..effects import Instant
from ..errors import Code, Refused, reason_of
from ..forms import ANY, TEXT, schemas, setting
from ..messages import WRITE, Answer
from ..mounts import mount_table
from ..policies import Acl
from ..provider import PROVIDER_FAILURES, Machine, known_keys, refusal_of
from ..routing import PROVIDER, Call, route
from ..store import retry_on_conflict
from ..values import fold, fold_location
from .claims import Claims, read
from .decision import NOT_ASKED, Case, Facts, NotAsked, Trust, lacking, plan_of
from .explanation import FAILED, REFUSED, explanation_of
from .form import LoginForm, validate
from .login import facts_at_hand, fetched_facts, fetched_keys, trust_of, verified_claims
from .snapshot import Snapshot, read_snapshot

CALLER: Final = "caller"
"""Stands for the address of the request, if the machine itself requests the explanation."""
UNVERIFIED: Final = (Code.JWT_MALFORMED, Code.LOGIN_REFUSED, Code.JWT_CLAIM_MISSING)
"""Codes with which the verification of a token refuses."""


@define(kw_only=True)
class ExplainForm(LoginForm):
    jwt: str = setting(TEXT, "", "The machine's signed token. Use `claims` instead if you have no token.", repr=False)
    claims: Any = setting(
        ANY, None, "The claims of a token as an object. `iss`, `aud`, `tid` and `exp` can be omitted."
    )
    facts: Any = setting(
        ANY, None, "With `claims`: what Azure would return for `machine` and `groups`. null: Azure does not know it."
    )
    remote_address: str = setting(
        TEXT,
        "",
        f"Source address of the login. `{CALLER}`: the address of this request. Empty: the check is undecided.",
    )


def may_explain(acl: Acl, mount_path: str) -> bool:
    """Return whether a caller may see what the roles and the configuration of a mount demand of a login."""
    path = f"{mount_path}/explain"
    return acl.is_sudo(path) and acl.allows(WRITE.value, path)


CHECK: Final = schemas.members(TEXT="check verdict code", expected=schemas.ANY, found=schemas.ANY)
MEMBERS: Final = schemas.members(TEXT="role verdict", LIST="codes", checks=schemas.list_of(CHECK))


@route("explain", WRITE, MEMBERS, refusals=PROVIDER, form=ExplainForm, requires_all=True, role_field="role")
@retry_on_conflict
async def explain_login(call: Call) -> Answer:
    """Returns every check of a login and its verdict. Needs `sudo`, and never issues a token."""
    if not call.token.acl.is_sudo(f"{call.mount.path}/explain"):
        raise Refused(Code.PERMISSION_DENIED)
    form = call.form(ExplainForm)
    validate(form)
    if bool(form.jwt) == (form.claims is not None):
        code = Code.FIELDS_EXCLUSIVE if form.jwt else Code.FIELD_REQUIRED
        raise Refused(code, '"jwt", "claims": exactly one of them is required')
    if form.facts is not None and form.claims is None:
        raise Refused(Code.FIELDS_EXCLUSIVE, '"jwt", "facts": facts can only be combined with claims')
    mounts = await mount_table(call.context.records)
    snapshot = await read_snapshot(call.context, mounts, call.mount.id, form.role.lower())
    call.view.expects = snapshot.expects
    bounds = snapshot.role.bounds
    warnings: tuple[str, ...] = ()
    if form.claims is not None:
        key_set = known_keys(snapshot.base.identity, call.now) or await fetched_keys(call, snapshot.base)
        if not isinstance(form.claims, dict):
            raise Refused(Code.FIELD_INVALID, '"claims" must be an object')
        trust = trust_of(call.context.settings, snapshot.base, key_set)
        claims = given_claims(form.claims, trust, call.now, call.context.caches)
    else:
        try:
            claims, key_set = await verified_claims(call, form, snapshot.base)
        except Refused as refusal:
            if refusal.code not in UNVERIFIED:
                raise
            wire = refusal.code.wire  # the content of a token that cannot be verified is not looked at
            check = {"check": "signature", "verdict": FAILED, "code": wire, "expected": "a key of the tenant"}
            checks = [{**check, "found": None}]
            return Answer(data={"role": snapshot.role_name, "verdict": REFUSED, "codes": [wire], "checks": checks})
        trust = trust_of(call.context.settings, snapshot.base, key_set)
    address = (call.remote_address if form.remote_address == CALLER else form.remote_address) or None
    case = Case(claims, trust, call.now, address, bounds, form)
    if form.claims is not None:
        case.facts = given_facts(form.facts or {}, claims)
    else:
        case.facts, warnings = await _provider_facts(call, snapshot, case)
    return Answer(data={"role": snapshot.role_name, **explanation_of(case).described}, warnings=warnings)


async def _provider_facts(call: Call, snapshot: Snapshot, case: Case) -> tuple[Facts, tuple[str, ...]]:
    """Return the facts that the decision needs, and a warning if Azure does not return them now."""
    facts = facts_at_hand(snapshot.base.identity, case.claims, call.now)
    needs = lacking(plan_of(case), facts)
    if needs is None:
        return facts, ()
    try:
        return await fetched_facts(call, snapshot, case.claims, facts, needs), ()
    except (Refused, *PROVIDER_FAILURES) as failure:
        return facts, (f"facts are missing: {reason_of(refusal_of(failure))}",)


FACTS_RULE: Final = (
    '"facts" must be {"machine": {"location", "principals", "scale_set", "vm_id"} or null, "groups": [] or null}'
)
LIFETIME: Final = 3600
"""Seconds for which claims are valid that were given as data without `exp`."""


class GivenMachine(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The facts that Azure would return about the machine."""

    location: str = ""
    principals: tuple[str, ...] = ()
    scale_set: str | None = None
    """`None`: it is in none, as `explain` answers it."""
    vm_id: str | None = None
    """The `vmId` of a virtual machine."""


class GivenFacts(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The facts that Azure would return. Null: it does not know the machine or the principal."""

    machine: GivenMachine | msgspec.UnsetType | None = msgspec.UNSET
    groups: tuple[str, ...] | msgspec.UnsetType | None = msgspec.UNSET


def given_claims(members: Mapping[str, Any], trust: Trust, now: Instant, caches: Caches) -> Claims:
    """Read claims that were given as the payload of a token. Omitted `iss`, `aud`, `tid` and `exp` are valid ones.

    Raises `Refused` with `JWT_CLAIM_MISSING` as for a token.
    """
    issuer = min(trust.issuers, default="-")
    usual = {"iss": issuer, "aud": trust.audience, "tid": trust.tenant_id, "exp": now + LIFETIME}
    return read(msgspec.json.encode({**usual, **members}), caches)


def given_facts(members: object, claims: Claims) -> Facts:
    """Read facts that were given as data. Omitted facts are unknown. Raises `Refused` with `FIELD_INVALID`."""
    try:
        given = msgspec.convert(members, GivenFacts)
    except msgspec.ValidationError:
        raise Refused(Code.FIELD_INVALID, FACTS_RULE) from None
    machine, groups = given.machine, given.groups
    return Facts(
        machine=_machine(machine, claims) if isinstance(machine, GivenMachine) else _unless_null(machine),
        groups=frozenset(map(fold, groups)) if isinstance(groups, tuple) else _unless_null(groups),
    )


def _unless_null(given: msgspec.UnsetType | None) -> NotAsked | None:
    return None if given is None else NOT_ASKED


def _machine(given: GivenMachine, claims: Claims) -> Machine | NotAsked:
    if claims.machine is None:
        return NOT_ASKED
    return Machine(
        resource_id=claims.machine.resource_id,
        location=fold_location(given.location),
        principals=frozenset(map(fold, given.principals)),
        scale_set=given.scale_set or "",
        vm_id=fold(given.vm_id or ""),
    )
