"""The verifier: it decides on a token with the keys that it has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from math import isfinite
from types import MappingProxyType
from typing import Any, Final, Literal, cast

import msgspec
from attrs import asdict

from .. import errors
from ..auth_method import (
    TOKEN_CHECKS,
    Case,
    Claims,
    LoginForm,
    Needs,
    Role,
    Trust,
    admit,
    check_role,
    explanation_of,
    given_facts,
    jws,
    plan_of,
    read_claims,
    run,
)
from ..auth_method import Facts as KnownFacts
from ..caches import JwtCaches
from ..clouds import LOGIN_HOSTS
from ..effects import Instant
from ..errors import Code
from ..forms import parse
from ..provider import KeyDocument, KeySet, usable_keys
from ..values.guid import guid
from .verdicts import NO_FACTS, Admitted, Facts, Identity, NeedsFacts, NotGiven, RefusalCode, Refused, Verdict

LONGEST_TOKEN: Final = 2**14
NOT_SAID: Final = "-"
"""Stands in the form for a place that no claim names."""
NO_BOUND: Final = Code.ROLE_UNBOUND.text.partition(":")[0]
"""How the refusal of a role without bounds begins."""
PUBLIC_AUTHORITY: Final = LOGIN_HOSTS[0][0]
CHINA: Final = LOGIN_HOSTS[2]


class Verifier:
    """Decides on tokens of one tenant, by audience and bounds. It never changes, so threads may share it.

    - `tenant_id`: the tenant's id, a GUID.
    - `audience`: what the token's `aud` must be; of several values, any one.
    - `keys`: the tenant's JSON Web Key Set, as text or decoded. Only its RSA keys of 2048 to 8192 bits are used.
      Without it, the keys come from a `KeyRing`.
    - `required_roles`: application roles (claim `roles`) that the token must all have. They are enough as a bound.
    - `bound_…`: as in a role: every list that is set must match, by any one of its entries. Case does not matter. One
      of them must be set; `bound_service_principal_ids=["*"]` is any principal of the tenant.
    - `bound_token_types`: types of tokens, `app` and `user`. It is not enough as a bound.
    - `max_jwt_exp`: how many seconds ahead a token's `exp` may be; 0: without limit.
    - `authority`: who issues the tenant's tokens. The simulator and national clouds have authorities of their own.
    - `issuers`: the `iss` of the tenant's tokens, if they do not follow from `authority`.
    - `leeway`: seconds of clock skew that `nbf` and `iat` are allowed; `exp` is allowed none.
    - `machine_check`: whether facts about the machine are needed only where the token does not prove a bound
      (`needed`), or for each machine under bounds on machines (`always`, the service's default).

    Raises `ValueError` if an argument cannot be used, if there is no bound, and if no key can be used.
    """

    def __init__(
        self,
        *,
        tenant_id: str,
        audience: str | Iterable[str],
        keys: bytes | str | Mapping[str, Any] | None = None,
        required_roles: Iterable[str] = (),
        bound_service_principal_ids: Iterable[str] = (),
        bound_group_ids: Iterable[str] = (),
        bound_identity_ids: Iterable[str] = (),
        bound_vm_ids: Iterable[str] = (),
        bound_locations: Iterable[str] = (),
        bound_subscription_ids: Iterable[str] = (),
        bound_resource_groups: Iterable[str] = (),
        bound_scale_sets: Iterable[str] = (),
        bound_token_types: Iterable[str] = ("app",),
        max_jwt_exp: int = 0,
        authority: str = PUBLIC_AUTHORITY,
        issuers: Iterable[str] = (),
        leeway: float = 60.0,
        machine_check: Literal["needed", "always"] = "needed",
    ) -> None:
        try:
            tenant = guid(tenant_id)
        except ValueError as error:
            raise ValueError(f"tenant_id {error}") from None
        self._audiences = _texts(audience)
        if not self._audiences or "" in self._audiences:
            raise ValueError("the audience is empty")
        if not authority.startswith(("https://", "http://")):
            raise ValueError("authority must be a URL")
        if not (isfinite(leeway) and leeway >= 0):
            raise ValueError("leeway must be a number of seconds, at least 0")
        if machine_check not in ("needed", "always"):
            raise ValueError('machine_check must be "needed" or "always"')
        self._required_roles = frozenset(_texts(required_roles))
        bounds: dict[str, Iterable[str]] = {
            "bound_service_principal_ids": bound_service_principal_ids,
            "bound_group_ids": bound_group_ids,
            "bound_identity_ids": bound_identity_ids,
            "bound_vm_ids": bound_vm_ids,
            "bound_locations": bound_locations,
            "bound_subscription_ids": bound_subscription_ids,
            "bound_resource_groups": bound_resource_groups,
            "bound_scale_sets": bound_scale_sets,
        }
        lists = {name: entries if isinstance(entries, str) else tuple(entries) for name, entries in bounds.items()}
        if self._required_roles and not any(lists.values()):
            lists["bound_service_principal_ids"] = ("*",)
        self._role = _role(max_jwt_exp, bound_token_types=bound_token_types, **lists)
        self._authority = authority.rstrip("/")
        trusted = frozenset(_texts(issuers)) or _issuers(self._authority, tenant)
        self._key_set = KeySet(tenant_id=tenant, issuers=trusted, keys={}, generation="", fetched_at=0.0)
        if keys is not None:
            self._key_set = _key_set(keys, tenant, trusted)
        self._leeway, self._machine_check = leeway, machine_check

    @property
    def tenant_id(self) -> str:
        return self._key_set.tenant_id

    @property
    def keys_url(self) -> str:
        """Where Azure publishes the tenant's keys."""
        return f"{self._authority}/{self.tenant_id}/discovery/v2.0/keys"

    @property
    def has_keys(self) -> bool:
        return bool(self._key_set.keys)

    def with_keys(self, keys: bytes | str | Mapping[str, Any]) -> Verifier:
        """Return the same verifier with other keys. Raises `ValueError` if none of them can be used."""
        other = copy(self)
        other._key_set = _key_set(keys, self.tenant_id, self._key_set.issuers)
        return other

    def verify(self, token: str, *, now: Instant, facts: Facts = NO_FACTS) -> Verdict:
        """Return the verdict on a token at `now`, in seconds since the epoch.

        No token makes it raise. Raises `ValueError` if `now` is not a time, or `facts` are malformed.
        """
        if not isfinite(now):
            raise ValueError("now must be seconds since the epoch")
        token = token.strip()
        if len(token) > LONGEST_TOKEN:
            return Refused(RefusalCode.TOKEN_TOO_LONG)
        payload = self._signed_payload(token)
        if isinstance(payload, Refused):
            return payload
        try:
            claims = read_claims(payload, JwtCaches(1))
            members: dict[str, Any] = msgspec.json.decode(payload)
        except errors.Refused as refusal:
            return Refused(RefusalCode[refusal.code.name], claim=refusal.problems[0].detail)
        except (ValueError, RecursionError):
            return Refused(RefusalCode.JWT_MALFORMED)
        return self._decide(claims, _identity(claims, members), now, _known(facts, claims))

    def _signed_payload(self, token: str) -> bytes | Refused:
        """Return the payload, if a key of the tenant signed it. Nothing of it is read before."""
        caches, keys = JwtCaches(1), self._key_set.keys
        try:
            signed, signature, digest = jws.split(token)
            parts = jws.decode(signed, signature, digest, caches.jws_headers)
        except errors.Refused as refusal:
            is_malformed = refusal.code is Code.JWT_MALFORMED
            return Refused(RefusalCode.JWT_MALFORMED if is_malformed else RefusalCode.ALGORITHM_NOT_ALLOWED)
        if not keys:
            return Refused(RefusalCode.KEYS_UNAVAILABLE, parts.key_id)
        if parts.key_id not in keys:
            return Refused(RefusalCode.KEY_UNKNOWN, parts.key_id)
        try:
            return jws.verify(parts, keys[parts.key_id])
        except errors.Refused:
            return Refused(RefusalCode.SIGNATURE_INVALID)

    def _decide(self, claims: Claims, identity: Identity, now: Instant, facts: KnownFacts) -> Verdict:
        named = next((each for each in self._audiences if each in claims.audiences), self._audiences[0])
        trust = Trust(
            audience=named,
            tenant_id=self.tenant_id,
            issuers=self._key_set.issuers,
            leeway=self._leeway,
            machine_check=self._machine_check,
        )
        case = Case(claims=claims, trust=trust, now=now, bounds=self._role.bounds, form=form_of(claims), facts=facts)
        plan = plan_of(case)
        try:
            run(TOKEN_CHECKS, case)
            run(plan.by_source, case)
            if not self._required_roles <= identity.roles:
                return Refused(
                    RefusalCode.APPLICATION_ROLE_MISSING,
                    expected=sorted(self._required_roles),
                    found=sorted(identity.roles),
                )
            verdict = admit(plan, case)
        except errors.Refused as refusal:
            return self._refused(refusal.code, case)
        if isinstance(verdict, Needs):
            return NeedsFacts(identity, verdict.machine, verdict.groups)
        return Admitted(identity)

    def _refused(self, code: Code, case: Case) -> Refused:
        """Return the refusal with what the failed check compared, as the service's explanations show it."""
        check = next(check for check in explanation_of(case).checks if check.code is code)
        expected = list(self._audiences) if code is Code.JWT_AUDIENCE_MISMATCH else check.expected
        return Refused(RefusalCode[code.name], expected=expected, found=check.found)


def _texts(values: str | Iterable[str]) -> tuple[str, ...]:
    """Return a tuple of texts. One text is a list of one: not of its characters."""
    return (values,) if isinstance(values, str) else tuple(values)


def _issuers(authority: str, tenant_id: str) -> frozenset[str]:
    """Return the issuers of both versions of tokens."""
    older = "https://sts.chinacloudapi.cn" if authority in CHINA else "https://sts.windows.net"
    newer = CHINA[1] if authority in CHINA else authority
    return frozenset({f"{older}/{tenant_id}/", f"{newer}/{tenant_id}/v2.0"})


def _role(max_jwt_exp: int, **bounds: Iterable[str]) -> Role:
    """Return the bounds as a role has them."""
    lists = {name: bound if isinstance(bound, str) else list(bound) for name, bound in bounds.items()}
    try:
        role = Role(**parse(Role, {**lists, "max_jwt_exp": max_jwt_exp}).values)
        check_role(role)
    except errors.Refused as refusal:
        raise ValueError(errors.reason_of(refusal).replace(NO_BOUND, "give at least one bound constraint", 1)) from None
    return role


def _key_set(keys: bytes | str | Mapping[str, Any], tenant_id: str, issuers: frozenset[str]) -> KeySet:
    text = keys if isinstance(keys, bytes | str) else msgspec.json.encode(keys)
    usable = usable_keys(msgspec.json.decode(text, type=KeyDocument), tenant_id, issuers)
    if not usable:
        raise ValueError(
            "the key set has no key for this tenant's tokens. For clouds other than the public one, set `authority`"
        )
    return KeySet(tenant_id=tenant_id, issuers=issuers, keys=usable, generation="", fetched_at=0.0)


def _known(facts: Facts, claims: Claims) -> KnownFacts:
    """Return the facts as the decision reads them. Raises `ValueError` if they are malformed."""
    given = asdict(facts, filter=lambda _, value: value is not NotGiven.NOT_GIVEN)
    try:
        return given_facts(given, claims)
    except errors.Refused as refusal:
        raise ValueError(errors.reason_of(refusal)) from None


def form_of(claims: Claims) -> LoginForm:
    """Return a login that names the place of its machine as the token does."""
    place = claims.place
    return LoginForm(
        subscription_id=(place and place.subscription) or NOT_SAID,
        resource_group_name=(place and place.resource_group) or NOT_SAID,
    )


def _identity(claims: Claims, members: Mapping[str, Any]) -> Identity:
    found = members.get("roles")
    names = cast("list[object]", found) if isinstance(found, list) else []
    return Identity(
        tenant_id=claims.tenant_id,
        principal_id=claims.principal_id,
        app_id=claims.app_id,
        token_type=claims.token_type,
        groups=claims.groups,
        roles=frozenset(name for name in names if isinstance(name, str)),
        machine_id=claims.machine.written if claims.machine else "",
        expires_at=claims.expires_at,
        claims=MappingProxyType(members),
    )
