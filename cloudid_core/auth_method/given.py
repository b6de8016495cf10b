"""Claims and facts that are given as data: of a login that is not made, for explanations and tests of roles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ..caches import Caches
from ..effects import Instant
from ..errors import Code, Refused
from ..provider import Machine
from ..values import fold, fold_location
from .claims import Claims, read
from .decision import NOT_ASKED, Facts, NotAsked
from .explanation import Trust

FACTS_RULE: Final = (
    '"facts" must be {"machine": {"location", "principals", "scale_set", "vm_id"} or null, "groups": [] or null}'
)
LIFETIME: Final = 3600
"""Seconds for which claims hold that were given as data without `exp`."""


class GivenMachine(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What the provider would say of the machine."""

    location: str = ""
    principals: tuple[str, ...] = ()
    scale_set: str | None = None
    """`None`: it is in none, as `explain` answers it."""
    vm_id: str | None = None
    """The `vmId` of a virtual machine."""


class GivenFacts(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What the provider would say; null: that it does not know the machine or the principal."""

    machine: GivenMachine | msgspec.UnsetType | None = msgspec.UNSET
    groups: tuple[str, ...] | msgspec.UnsetType | None = msgspec.UNSET


def given_claims(members: Mapping[str, Any], trust: Trust, now: Instant, caches: Caches) -> Claims:
    """Claims given as the payload of a token. Of `iss`, `aud`, `tid` and `exp` those that are left out are right.

    Raises `Refused` with `JWT_CLAIM_MISSING` as for a token.
    """
    issuer = min(trust.issuers, default="-")
    usual = {"iss": issuer, "aud": trust.audience, "tid": trust.tenant_id, "exp": now + LIFETIME}
    return read(msgspec.json.encode({**usual, **members}), caches)


def given_facts(members: object, claims: Claims) -> Facts:
    """Facts given as data; what is left out is unknown. Raises `Refused` with `FIELD_INVALID`."""
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
