"""Verification alone: whether a workload's signed identity is admitted, as a pure function of data.

It needs no service: no store, master key, host or clock. `Verifier` holds what a token is held against, and
`Verifier.verify` answers `Admitted`, `Refused` or `NeedsFacts`. Signature, claims, bounds and decision are those of the
authentication method, where the bounds are a role's; see `docs/how-to/verify-only.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from math import isfinite
from typing import Any, Final, Literal, TypeAlias

import msgspec
from attrs import frozen

from . import errors
from .auth_method import (
    Claims,
    LoginForm,
    Needs,
    Role,
    UnknownKey,
    check_claims,
    check_lifetime,
    check_role,
    decide,
    given_facts,
    verify_login_jwt,
)
from .auth_method import GivenFacts as Facts
from .auth_method import GivenMachine as MachineFacts
from .caches import JwtCaches
from .effects import Instant
from .errors import Code
from .forms import parse
from .provider import KeyDocument, KeySet, usable_keys
from .values.guid import guid

__all__ = ["Admitted", "Code", "Facts", "Identity", "MachineFacts", "NeedsFacts", "Refused", "Verdict", "Verifier"]

LONGEST_TOKEN: Final = 2**14
NO_FACTS: Final = Facts()
NOT_SAID: Final = "-"
"""Stands in the form for what no claim says."""


@frozen(kw_only=True)
class Identity:
    """Who a token's signature proves the caller to be. Ids are in lower case but where it says otherwise."""

    tenant_id: str
    principal_id: str
    app_id: str
    """As it was written; empty when the token names none."""
    token_type: str
    """`app`: a workload that acts for itself; `user`: a person."""
    groups: frozenset[str]
    """Ids of groups that the token lists."""
    machine_id: str
    """Resource id of the machine as it was written; empty when the token names none."""
    expires_at: Instant
    """When the token expires, in seconds since the epoch."""


@frozen
class Admitted:
    """Signature, audience, tenant and times are right, and every bound is met."""

    identity: Identity


@frozen
class Refused:
    """The token is not admitted, for the first check that failed."""

    code: Code
    """Its name in lower case, `code.wire`, is the code that the service answers."""
    reason: str
    """A sentence that holds nothing of the token."""
    unknown_kid: str = ""
    """The id of the key that the token names, where the key set does not have it: perhaps there is a newer set."""


@frozen
class NeedsFacts:
    """All that the token can tell is right, but a bound rests on what only the provider knows. Nobody is admitted yet.

    Fetch what is asked for, and call `Verifier.verify` again with it.
    """

    identity: Identity
    machine: bool
    """Location, scale set, `vmId` and identities of the machine `identity.machine_id` are needed."""
    groups: bool
    """The groups of the principal are needed: it is in more than the token can carry."""


Verdict: TypeAlias = Admitted | Refused | NeedsFacts


class Verifier:
    """Verifies tokens of one tenant for one audience and one set of bounds. It never changes: threads may share it.

    - `tenant_id`: the directory's id, a GUID.
    - `audience`: what the token's `aud` must be.
    - `keys`: the tenant's JSON Web Key Set, as text or decoded. Only its RSA keys of 2048 to 8192 bits count.
    - `bound_…`: as in a role: every list that is set must match, within a list any one entry. Case never matters. One
      of them must be set; `bound_service_principal_ids=["*"]` is any principal of the tenant.
    - `bound_token_types`: kinds of tokens, `app` and `user`. It is no bound.
    - `max_jwt_exp`: how many seconds ahead a token's `exp` may lie; 0: without limit.
    - `issuers`: the `iss` of the tenant's tokens; empty: those of the public cloud.
    - `leeway`: seconds of clock skew that `nbf` and `iat` are allowed; `exp` is allowed none.
    - `machine_check`: whether the provider's word on the machine is needed only where the token cannot prove what is
      bound (`needed`), or for each machine of bounds on resources (`always`, the service's default).

    Raises `ValueError` when something of it cannot be used, so also when there is no bound or no usable key.
    """

    def __init__(
        self,
        *,
        tenant_id: str,
        audience: str,
        keys: bytes | str | Mapping[str, Any],
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
        issuers: Iterable[str] = (),
        leeway: float = 60.0,
        machine_check: Literal["needed", "always"] = "needed",
    ) -> None:
        try:
            tenant = guid(tenant_id)
        except ValueError as error:
            raise ValueError(f"tenant_id {error}") from None
        if not audience:
            raise ValueError("the audience is empty")
        if not (isfinite(leeway) and leeway >= 0):
            raise ValueError("leeway must be a number of seconds, at least 0")
        if machine_check not in ("needed", "always"):
            raise ValueError('machine_check must be "needed" or "always"')
        self._role = _role(
            max_jwt_exp,
            bound_service_principal_ids=bound_service_principal_ids,
            bound_group_ids=bound_group_ids,
            bound_identity_ids=bound_identity_ids,
            bound_vm_ids=bound_vm_ids,
            bound_locations=bound_locations,
            bound_subscription_ids=bound_subscription_ids,
            bound_resource_groups=bound_resource_groups,
            bound_scale_sets=bound_scale_sets,
            bound_token_types=bound_token_types,
        )
        usual = (f"https://sts.windows.net/{tenant}/", f"https://login.microsoftonline.com/{tenant}/v2.0")
        named = frozenset((issuers,) if isinstance(issuers, str) else issuers)
        self._key_set = _key_set(keys, tenant, named or frozenset(usual))
        self._audience, self._leeway, self._machine_check = audience, leeway, machine_check

    def with_keys(self, keys: bytes | str | Mapping[str, Any]) -> Verifier:
        """The same verifier with other keys; `ValueError` when none of them can be used."""
        other = copy(self)
        other._key_set = _key_set(keys, self._key_set.tenant_id, self._key_set.issuers)
        return other

    def verify(self, token: str, *, now: Instant, facts: Facts = NO_FACTS) -> Verdict:
        """The verdict on a token, at `now` (seconds since the epoch), with what the provider says.

        Nothing that a token says makes it raise. `ValueError` when `now` is no time: nothing is ever later than "nan".
        """
        if not isfinite(now):
            raise ValueError("now must be seconds since the epoch")
        key_set, role = self._key_set, self._role
        try:
            claims = verify_login_jwt(token.strip(), key_set, JwtCaches(1), "", LONGEST_TOKEN)
            check_claims(
                claims,
                now=now,
                leeway=self._leeway,
                audience=self._audience,
                issuers=key_set.issuers,
                tenant_id=key_set.tenant_id,
            )
            check_lifetime(claims, now, role.max_jwt_exp)
            known = given_facts(msgspec.to_builtins(facts), claims)
            verdict = decide(claims, known, role.bounds, _form(claims), self._machine_check)
        except UnknownKey as unknown:
            return Refused(Code.LOGIN_REFUSED, Code.LOGIN_REFUSED.text, unknown.kid)
        except errors.Refused as refusal:
            return Refused(refusal.code, errors.reason_of(refusal))
        identity = _identity(claims)
        return (
            NeedsFacts(identity, verdict.machine, verdict.groups) if isinstance(verdict, Needs) else Admitted(identity)
        )


def _role(max_jwt_exp: int, **bounds: Iterable[str]) -> Role:
    """The bounds as a role has them."""
    lists = {name: bound if isinstance(bound, str) else list(bound) for name, bound in bounds.items()}
    try:
        role = Role(**parse(Role, {**lists, "max_jwt_exp": max_jwt_exp}).values)
        check_role(role)
    except errors.Refused as refusal:
        raise ValueError(errors.reason_of(refusal)) from None
    return role


def _key_set(keys: bytes | str | Mapping[str, Any], tenant_id: str, issuers: frozenset[str]) -> KeySet:
    text = keys if isinstance(keys, bytes | str) else msgspec.json.encode(keys)
    usable = usable_keys(msgspec.json.decode(text, type=KeyDocument), tenant_id, issuers)
    if not usable:
        raise ValueError(
            "the key set has no key for this tenant's tokens: in other clouds than the public one give issuers"
        )
    return KeySet(tenant_id=tenant_id, issuers=issuers, keys=usable, generation="", fetched_at=0.0)


def _form(claims: Claims) -> LoginForm:
    """A login that says of its machine what the token says."""
    place = claims.place
    return LoginForm(
        subscription_id=(place and place.subscription) or NOT_SAID,
        resource_group_name=(place and place.resource_group) or NOT_SAID,
    )


def _identity(claims: Claims) -> Identity:
    return Identity(
        tenant_id=claims.tenant_id,
        principal_id=claims.principal_id,
        app_id=claims.app_id,
        token_type=claims.token_type,
        groups=claims.groups,
        machine_id=claims.machine.written if claims.machine else "",
        expires_at=claims.expires_at,
    )
