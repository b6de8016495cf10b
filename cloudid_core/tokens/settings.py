"""The token settings of a role: the fields that all kinds of roles share, and their rules."""

from __future__ import annotations

from functools import cached_property
from typing import Final, TypeVar

from attrs import evolve, frozen

from ..errors import Code, Refused
from ..forms import (
    BOOLEAN,
    INTEGER,
    NETWORKS,
    SECONDS,
    AsWritten,
    FieldType,
    ParsedFields,
    Terms,
    bounded,
    fields_of,
    one_of,
    setting,
)
from ..mounts import Mount
from ..policies import DEFAULT as DEFAULT_POLICY
from ..policies import RESPONSE_WRAPPING, ROOT, normalised
from ..settings import Settings
from ..values import comma_list, policy_name

SERVICE: Final = "service"
BATCH: Final = "batch"
DEFAULT: Final = "default"
MOST_POLICIES: Final = 256
"""Maximum number of policies: each use of a token reads them, and logs them in both entries of every audit device."""


def _policies(raw: object) -> tuple[str, ...]:
    names = tuple(filter(None, comma_list(raw)))
    if len(names) > MOST_POLICIES:
        raise ValueError(f"must be at most {MOST_POLICIES}")
    for name in names:
        policy_name(name)
    return names


POLICIES: Final = FieldType("list of policies", _policies, list, normal=normalised)


@frozen(kw_only=True, slots=False)  # its subclasses have cached properties, and so no slots
class TokenLimits(AsWritten):
    """The settings of a role that limit its tokens. Base class of all roles."""

    token_bound_cidrs: tuple[str, ...] = setting(
        NETWORKS,
        (),
        "Source addresses (CIDR blocks) from which logins and their tokens are accepted.",
        old_name="bound_cidrs",
    )
    token_explicit_max_ttl: int = setting(SECONDS, 0, "Maximum lifetime of the tokens, including renewals.")
    token_no_default_policy: bool = setting(BOOLEAN, False, "Do not add the policy `default`.")
    token_num_uses: int = setting(
        bounded(INTEGER, 0, 2**31), 0, "How often a token can be used. 0: no limit.", old_name="num_uses"
    )
    token_period: int = setting(
        SECONDS, 0, "Makes tokens periodic: each renewal extends them by this period.", old_name="period"
    )
    token_type: str = setting(
        one_of(SERVICE, BATCH, DEFAULT), DEFAULT, "`service`, `batch`, or `default` for the mount's type."
    )
    spelled_old: tuple[str, ...] = ()
    """Deprecated spellings with which this role was written. Reads repeat them."""


@frozen(kw_only=True, slots=False)  # slots and cached properties take a `__getattr__`, which slows all down
class TokenSettings(TokenLimits):
    """The settings of a role for the tokens of its logins. Base class of roles for machines."""

    token_ttl: int = setting(SECONDS, 0, "Default lifetime. A renewal uses the current value.", old_name="ttl")
    token_max_ttl: int = setting(SECONDS, 0, "Maximum lifetime. A renewal uses the current value.", old_name="max_ttl")
    token_policies: tuple[str, ...] = setting(POLICIES, (), "Policies of the tokens.", old_name="policies")

    @cached_property
    def policies(self) -> tuple[str, ...]:
        """Return the policies of a login's token."""
        return normalised(
            self.token_policies if self.token_no_default_policy else (*self.token_policies, DEFAULT_POLICY)
        )

    def terms(self, mount: Mount, settings: Settings) -> Terms:
        return Terms(
            default=mount.default_ttl(settings),
            max=mount.max_ttl(settings),
            ttl=self.token_ttl,
            max_ttl=self.token_max_ttl,
            period=self.token_period,
            explicit_max_ttl=self.token_explicit_max_ttl,
        )


R = TypeVar("R", bound=TokenLimits)


def merged(role: R, given: ParsedFields) -> R:
    """Return the role with the given fields changed."""
    old = {name: name in role.spelled_old for field in fields_of(type(role)) if (name := field.old_name)}
    old.update(given.spelled_old)
    values = dict(given.values)
    if "token_type" in values:
        values["token_type"] = values["token_type"] or DEFAULT
    return evolve(role, **values, spelled_old=tuple(name for name, used in old.items() if used))


def check_limits(role: TokenLimits, mount: Mount, settings: Settings) -> None:
    """Refuse limits that contradict each other."""
    if role.token_type in (BATCH, f"{DEFAULT}-{BATCH}") and (role.token_period or role.token_num_uses):
        raise Refused(Code.FIELDS_EXCLUSIVE, '"token_type" batch with "token_period" or "token_num_uses"')
    if role.token_period > mount.max_ttl(settings):
        raise Refused(Code.TTL_EXCEEDS_MAX, '"token_period", the maximum of the mount')


def check(role: TokenSettings, mount: Mount, settings: Settings) -> tuple[str, ...]:
    """Refuse settings that contradict each other. Return warnings for the writer."""
    policies = role.normal.token_policies
    if ROOT in policies:
        raise Refused(Code.ROOT_POLICY_REFUSED)
    if RESPONSE_WRAPPING in policies:
        raise Refused(Code.FIELD_INVALID, f'"token_policies": {RESPONSE_WRAPPING} cannot be assigned')
    check_limits(role, mount, settings)
    if role.token_max_ttl and role.token_ttl > role.token_max_ttl:
        raise Refused(Code.TTL_EXCEEDS_MAX, '"token_ttl", "token_max_ttl"')
    if role.token_max_ttl > mount.max_ttl(settings):
        return ('"token_max_ttl" is greater than the mount\'s maximum, which is used instead',)
    return ()
