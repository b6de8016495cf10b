"""The requirements of a role for logins, read once for each version of the role, and the resulting checks.

A bound is a field `bound_…` of `Role` and its rows in `checks`. `roles` cannot be imported if a field has no row, and
this module cannot be imported if no row reads a claim, or if some token would meet a bound in no row.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Final

from attrs import define, field, frozen
from msgspec.structs import fields

from ..audit import Decision
from ..forms import fields_of
from .checks import ALWAYS, CHECKS, BoundList, Check, Kind, Stage
from .claims import APP, MACHINES, Claims

BOUNDS: Final = tuple({check.name: check for check in CHECKS if check.bound is not None}.values())
"""The bounds that a role may set, each by its first row."""
LISTS: Final[Mapping[str, BoundList]] = {check.name: check.bound for check in CHECKS if check.bound is not None}
"""How their lists are read, by name."""
DESCRIPTIVE: Final = frozenset({"app_id"})
"""Claims that no check reads: they are only included in the metadata of tokens."""


@define(eq=False)
class Plan:
    """The checks that logins of one kind meet under one role, in the order of a login."""

    checks: tuple[Check, ...]
    """All of them, in the order of the table. The other fields leave out those that the kind has settled."""
    by_source: tuple[Check, ...]
    by_token: tuple[Check, ...]
    """Those that need only the token and the form."""
    by_facts: tuple[Check, ...]
    """Those that only Azure can decide."""
    by_role: tuple[Check, ...]
    """Both, one after the other, for a login whose facts are known."""
    needs_machine: bool
    needs_groups: bool
    """Which facts they need."""
    recorded: Decision | None = None
    """The recorded decision for admitted logins, which is the same for all logins of a kind."""


@frozen(kw_only=True)
class Bounds:
    """The requirements of a role: the lists that it sets, and its limits for source and token."""

    lists: Mapping[str, frozenset[str]]
    """The entries by name, ready for comparison. A missing list requires nothing."""
    set_lists: tuple[str, ...]
    """The names of the lists that bind the role, each of which is enough. `*` also binds."""
    bind_machines: bool
    """Something is required of the machine."""
    cidrs: tuple[str, ...] = ()
    max_jwt_exp: int = 0
    weight: int = 0
    """What they weigh where they are remembered: characters of all entries. Every refusal of a login needs it."""
    plans: dict[Kind, Plan] = field(factory=dict[Kind, Plan], init=False, eq=False, repr=False)
    """The plans that were made, by kind. There are few kinds."""

    @classmethod
    def of(cls, role: object) -> Bounds:
        written: dict[str, tuple[str, ...]] = {name: getattr(role, name) for name in LISTS}
        read = {name: LISTS[name].reads(entries) for name, entries in written.items()}
        lists = {name: entries for name, entries in read.items() if entries is not None}
        cidrs: tuple[str, ...] = getattr(role, "token_bound_cidrs", ())
        return cls(
            lists=lists,
            set_lists=tuple(name for name, entries in written.items() if LISTS[name].suffices and entries),
            bind_machines=any(LISTS[name].about_machine for name in lists),
            cidrs=cidrs,
            max_jwt_exp=getattr(role, "max_jwt_exp", 0),
            weight=sum(len(entry) for entries in (*lists.values(), cidrs) for entry in entries),
        )

    @property
    def bind_nothing(self) -> bool:
        """Return whether the role would admit every login."""
        return not self.set_lists


NO_BOUNDS: Final = Bounds(lists={}, set_lists=(), bind_machines=False)
"""For a login whose role is not read."""


def make_plan(bounds: Bounds, kind: Kind, case: object) -> Plan:
    """Pick the checks that a login of this kind meets, of which `case` is one."""
    met = tuple(check for check in CHECKS if check.is_met_by(kind, bounds))
    open_ = [check for check in met if not (check.is_settled(kind) and check.holds(case))]
    ordered = sorted(open_, key=lambda check: check.stage)
    by_facts = tuple(check for check in ordered if check.stage.needs_facts)
    stages = {check.stage for check in by_facts}
    by_token = tuple(check for check in ordered if Stage.SOURCE < check.stage < Stage.MACHINE)
    return Plan(
        checks=met,
        by_source=tuple(check for check in ordered if check.stage is Stage.SOURCE),
        by_token=by_token,
        by_facts=by_facts,
        by_role=by_token + by_facts,
        needs_machine=not stages.isdisjoint((Stage.MACHINE, Stage.MACHINE_FACTS)),
        needs_groups=Stage.GROUPS in stages,
    )


def require_rows(form: type) -> None:
    """Raise `TypeError` for a list `bound_…` of roles that no login would be checked against."""
    rows = {check.name for check in BOUNDS}
    forgotten = [each.name for each in fields_of(form) if each.name.startswith("bound_") and each.name not in rows]
    if forgotten:
        raise TypeError(f"no check of a login is about {', '.join(forgotten)}")


def require_readers(claims: type) -> None:
    """Raise `TypeError` for a stored claim that no check reads."""
    read = DESCRIPTIVE.union(*(check.claims for check in CHECKS))
    forgotten = [each.name for each in fields(claims) if each.name not in read]
    if forgotten:
        raise TypeError(f"no check of a login reads {', '.join(forgotten)}")


def require_deciders(rows: tuple[Check, ...]) -> None:
    """Raise `TypeError` for a bound that some kind of login would meet in no row, or in two."""
    lists = {check.name: check.bound for check in rows if check.bound is not None}
    every = Bounds(lists=dict.fromkeys(lists, frozenset[str]()), set_lists=(), bind_machines=True)
    for has_overflow, machine, (name, bound) in product((False, True), ("", *MACHINES), lists.items()):
        kind = Kind(APP, has_overflow, machine, False, False, "", ALWAYS)
        met = [check for check in rows if check.name == name and check.is_met_by(kind, every)]
        if len(met) != int(kind.has_machine or not bound.about_machine):
            raise TypeError(f"{len(met)} checks are about {name} of {kind}")


require_readers(Claims)
require_deciders(CHECKS)
