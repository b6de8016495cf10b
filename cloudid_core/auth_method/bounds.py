"""The bounds: a table in which each stands once, with its check, and what a role demands by them.

A bound is a field `bound_…` of `Role` and a row here. The row is the check: the decision runs it, explanations and
audit entries show it, the reference page prints it. `roles` does not import with a field that has no row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, TypeAlias

from attrs import frozen

from ..errors import Code
from ..forms import Json, fields_of
from ..values import fold, fold_location
from .claims import Claims, NamedMachine

ANY: Final = ("*",)
"""In `bound_service_principal_ids`: any principal of the tenant."""


def _folded(entries: Collection[str]) -> frozenset[str]:
    return frozenset(map(fold, entries))


@frozen(kw_only=True, eq=False)
class Bound:
    """A row of the table. The token proves it or not, or does not say: then the provider tells.

    Its functions get the claims and the ids of the principal's groups; or, of a bound about the machine, the machine as
    the token names it and as the provider knows it.
    """

    name: str
    """The list of the role."""
    code: Code
    """The code of a refusal by it."""
    about_machine: bool = False
    signed: Callable[[Any, frozenset[str]], bool | None] | None = None
    """Whether it is admitted, by what the token says; `None`, or answers it: only the provider can tell."""
    signed_value: Callable[[Any], Json] = lambda subject: None
    """What the token says, to be shown."""
    known: Callable[[Any, frozenset[str]], bool] | None = None
    """Whether it is admitted, by what the provider says; without it, the token tells always."""
    known_value: Callable[[Any], Json] = lambda known: None
    """What the provider says, to be shown."""
    reads: Callable[[tuple[str, ...]], frozenset[str] | None] = lambda entries: _folded(entries) or None
    """The entries, ready for comparison; `None`: the list demands nothing."""
    suffices: bool = True
    """A role with no other bound is bound."""

    def proven(self, subject: object, entries: frozenset[str]) -> bool | None:
        """Whether the token proves it; `None`: only the provider can tell."""
        return self.signed(subject, entries) if self.signed else None


def _groups(claims: Claims, ids: frozenset[str]) -> bool | None:
    return None if claims.groups_overflow else not ids.isdisjoint(claims.groups)


def _scale_set(machine: NamedMachine, names: frozenset[str]) -> bool | None:
    collection = machine.collection
    return None if collection.is_virtual_machine else collection.is_scale_set and machine.name in names


BOUNDS: Final = (
    Bound(
        name="bound_token_types",
        code=Code.BOUND_TOKEN_TYPE_MISMATCH,
        signed=lambda claims, kinds: claims.token_type in kinds,
        signed_value=lambda claims: claims.token_type,
        reads=_folded,  # without a kind, no token is admitted
        suffices=False,
    ),
    Bound(
        name="bound_service_principal_ids",
        code=Code.BOUND_SERVICE_PRINCIPAL_MISMATCH,
        signed=lambda claims, ids: claims.principal_id in ids,
        signed_value=lambda claims: claims.principal_id,
        reads=lambda entries: None if entries == ANY else _folded(entries) or None,
    ),
    Bound(
        name="bound_group_ids",
        code=Code.BOUND_GROUP_MISMATCH,
        signed=_groups,
        signed_value=lambda claims: sorted(claims.groups),
        known=lambda groups, ids: not ids.isdisjoint(groups),
        known_value=sorted,
    ),
    Bound(
        name="bound_identity_ids",
        code=Code.BOUND_IDENTITY_MISMATCH,
        signed=lambda claims, ids: fold(claims.identity) in ids,  # a role holds whole ids, and what equals one is one
        signed_value=lambda claims: claims.identity or None,
    ),
    Bound(
        name="bound_subscription_ids",
        code=Code.BOUND_SUBSCRIPTION_MISMATCH,
        about_machine=True,
        signed=lambda machine, ids: machine.collection.subscription in ids,
        signed_value=lambda machine: machine.collection.subscription,
    ),
    Bound(
        name="bound_resource_groups",
        code=Code.BOUND_RESOURCE_GROUP_MISMATCH,
        about_machine=True,
        signed=lambda machine, names: machine.collection.resource_group in names,
        signed_value=lambda machine: machine.collection.resource_group,
    ),
    Bound(
        name="bound_scale_sets",
        code=Code.BOUND_SCALE_SET_MISMATCH,
        about_machine=True,
        signed=_scale_set,
        signed_value=lambda machine: machine.name if machine.collection.is_scale_set else None,
        known=lambda machine, names: fold(machine.scale_set) in names,
        known_value=lambda machine: machine.scale_set,
    ),
    Bound(
        name="bound_locations",
        code=Code.BOUND_LOCATION_MISMATCH,
        about_machine=True,
        known=lambda machine, places: machine.location in places,
        known_value=lambda machine: machine.location,
        reads=lambda entries: frozenset(map(fold_location, entries)) or None,
    ),
    Bound(
        name="bound_vm_ids",
        code=Code.BOUND_VM_ID_MISMATCH,
        about_machine=True,
        signed=lambda machine, ids: None if machine.collection.is_virtual_machine else False,
        known=lambda machine, ids: machine.vm_id in ids,
        known_value=lambda machine: machine.vm_id or None,
    ),
)
"""In the order of a login and of explanations. Of the principal and of the machine those come first that a token always
tells.
"""

Demand: TypeAlias = tuple[Callable[[Any, frozenset[str]], bool | None], frozenset[str], Bound]
"""What tells whether a bound is met, the entries that the role demands, and the row."""


@frozen(kw_only=True)
class Bounds:
    """What a role demands: the rows whose lists it sets. It is made once for each version of a role."""

    lists: Mapping[str, frozenset[str]]
    """The entries by name, ready for comparison. What is left out demands nothing."""
    bind_nothing: bool
    """The role would admit every login."""
    bind_machines: bool
    """Something is demanded of the machine."""
    signed_principal: tuple[Demand, ...]
    signed_machine: tuple[Demand, ...]
    """Those that a token may tell."""
    known_principal: tuple[Demand, ...]
    known_machine: tuple[Demand, ...]
    """Those that the provider may have to tell."""

    @classmethod
    def of(cls, role: object) -> Bounds:
        written = {bound: getattr(role, bound.name) for bound in BOUNDS}
        read = {bound: bound.reads(entries) for bound, entries in written.items()}
        lists = {bound: entries for bound, entries in read.items() if entries is not None}
        signed = [(bound.signed, entries, bound) for bound, entries in lists.items() if bound.signed]
        known = [(bound.known, entries, bound) for bound, entries in lists.items() if bound.known]
        return cls(
            lists={bound.name: entries for bound, entries in lists.items()},
            bind_nothing=not any(bound.suffices and entries for bound, entries in written.items()),
            bind_machines=any(bound.about_machine for bound in lists),
            signed_principal=tuple(demand for demand in signed if not demand[2].about_machine),
            signed_machine=tuple(demand for demand in signed if demand[2].about_machine),
            known_principal=tuple(demand for demand in known if not demand[2].about_machine),
            known_machine=tuple(demand for demand in known if demand[2].about_machine),
        )


def require_rows(form: type) -> None:
    """Raise `TypeError` for a list `bound_…` of roles that no login would be held against."""
    rows = {bound.name for bound in BOUNDS}
    forgotten = [each.name for each in fields_of(form) if each.name.startswith("bound_") and each.name not in rows]
    if forgotten:
        raise TypeError(f"no check of a login is about {', '.join(forgotten)}")
