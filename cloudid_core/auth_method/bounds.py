"""Bounds: what a role demands of a login, ready for comparison."""

from __future__ import annotations

from typing import Final, Protocol

from attrs import field, frozen

from ..values import fold, fold_location

ANY: Final = ("*",)
"""In `bound_service_principal_ids`: any principal of the tenant."""


class BoundLists(Protocol):
    """A role, as far as bounds are concerned: the lists as they were written."""

    @property
    def bound_service_principal_ids(self) -> tuple[str, ...]: ...
    @property
    def bound_group_ids(self) -> tuple[str, ...]: ...
    @property
    def bound_locations(self) -> tuple[str, ...]: ...
    @property
    def bound_subscription_ids(self) -> tuple[str, ...]: ...
    @property
    def bound_resource_groups(self) -> tuple[str, ...]: ...
    @property
    def bound_scale_sets(self) -> tuple[str, ...]: ...
    @property
    def bound_token_types(self) -> tuple[str, ...]: ...


@frozen(kw_only=True)
class Bounds:
    """The lists of a role in lower case, locations without blanks. An empty list demands nothing."""

    principals: frozenset[str]
    any_principal: bool
    """The role says on purpose that any principal of the tenant will do."""
    groups: frozenset[str]
    locations: frozenset[str]
    subscriptions: frozenset[str]
    resource_groups: frozenset[str]
    scale_sets: frozenset[str]
    token_types: frozenset[str]
    """Which of `claims.TOKEN_TYPES` are admitted. That alone binds nothing."""
    bind_resources: bool = field(init=False)
    """Whether anything is demanded of the machine."""
    bind_nothing: bool = field(init=False)

    @bind_resources.default
    def _bind_resources(self) -> bool:
        return bool(self.locations or self.subscriptions or self.resource_groups or self.scale_sets)

    @bind_nothing.default
    def _bind_nothing(self) -> bool:
        return not (self.any_principal or self.principals or self.groups or self.bind_resources)

    @classmethod
    def of(cls, role: BoundLists) -> Bounds:
        any_principal = role.bound_service_principal_ids == ANY
        return cls(
            principals=frozenset() if any_principal else _folded(role.bound_service_principal_ids),
            any_principal=any_principal,
            groups=_folded(role.bound_group_ids),
            locations=frozenset(map(fold_location, role.bound_locations)),
            subscriptions=_folded(role.bound_subscription_ids),
            resource_groups=_folded(role.bound_resource_groups),
            scale_sets=_folded(role.bound_scale_sets),
            token_types=_folded(role.bound_token_types),
        )


def _folded(texts: tuple[str, ...]) -> frozenset[str]:
    return frozenset(map(fold, texts))
