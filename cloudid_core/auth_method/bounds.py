"""Bounds: what a role demands of a login, ready for comparison."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from attrs import Factory, field, frozen

from .checks import CHECKS, Check, Kind, Source
from .decision import Alike, Plan, Step

if TYPE_CHECKING:
    from .roles import Role


MOST_REMEMBERED: Final = 256
"""Different fleets of one role that are remembered."""


@frozen(eq=False)
class Bounds:
    """The lists of a role that are not empty, as they are compared, and what its logins have to pass."""

    role: Role = field(repr=False)
    lists: Mapping[str, frozenset[str]]
    bind_machines: bool
    """Whether anything is demanded of the machine."""
    bind_nothing: bool
    passed: dict[tuple[object, ...], Plan] = field(init=False, repr=False, default=Factory(dict))
    """The plans of machines that are alike, by `Alike`, when one of them has passed all near checks."""
    _plans: dict[Kind, Plan] = field(init=False, repr=False, default=Factory(dict))

    @classmethod
    def of(cls, role: Role) -> Bounds:
        read = {check.name: check.bound(getattr(role, check.name)) for check in CHECKS if check.bound}
        return cls(
            role=role,
            lists={name: entries for name, entries in read.items() if entries},
            bind_machines=any(read[check.name] for check in CHECKS if check.binds_machine),
            bind_nothing=not role.bound_by,
        )

    def plan(self, fleet: Alike) -> Plan:
        """The checks that a login of this role meets."""
        kind = Kind(
            names_machine=fleet.names_machine,
            is_virtual_machine=fleet.is_virtual_machine,
            compares_subscription=bool(fleet.asked_subscription and fleet.subscription),
            compares_resource_group=bool(fleet.asked_resource_group and fleet.resource_group),
            named_by=fleet.named_by,
            groups_overflow=fleet.groups_overflow,
            confirms_machines=fleet.trust.machine_check == "always",
        )
        if kind not in self._plans:
            self._plans[kind] = self._plan(kind)
        return self._plans[kind]

    def remember(self, fleet: tuple[object, ...], plan: Plan) -> None:
        """That machines that are alike pass what does not look at each of them."""
        if len(self.passed) >= MOST_REMEMBERED:
            self.passed.clear()
        self.passed[fleet] = plan

    def _plan(self, kind: Kind) -> Plan:
        met = [check for check in CHECKS if self._meets(kind, check)]
        asked = {check.name: check.needs if check.asks(kind) else Source.LOGIN for check in met}
        is_confirmed = kind.names_machine and (
            (self.bind_machines and kind.confirms_machines) or Source.MACHINE in asked.values()
        )
        steps = [
            Step(check, self.lists.get(check.name, frozenset()))
            for check in met
            if is_confirmed or check.needs is not Source.CONFIRMATION
        ]
        near = tuple(step for step in steps if asked[step.check.name] is Source.LOGIN)
        far = (step for step in steps if asked[step.check.name] is not Source.LOGIN)
        return Plan(
            steps=tuple(steps),
            near=near,
            own=tuple((check.passes, entries, check.code) for check, entries in near if check.alike is None),
            far=tuple(sorted(far, key=lambda step: asked[step.check.name])),
            needs_machine=is_confirmed,
            needs_groups=Source.GROUPS in asked.values(),
        )

    def _meets(self, kind: Kind, check: Check) -> bool:
        is_bound = check.bound is None or check.name in self.lists
        return is_bound and (kind.names_machine or not check.binds_machine) and check.is_met(kind, self.role)
