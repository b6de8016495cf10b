"""The roles of the token store: which tokens callers can create with them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import translate
from functools import cached_property
from typing import Final

from attrs import frozen

from ..context import Context
from ..errors import Code, Refused
from ..forms import BOOLEAN, SECONDS, TEXT, FieldType, Json, Terms, one_of, schemas, setting, show, shown_members
from ..mounts import TOKEN, Mount
from ..policies import DEFAULT as DEFAULT_POLICY
from ..policies import normalised
from ..routing import Call, NamedRecords
from ..store import Found, keys
from ..tokens import BATCH, DEFAULT, MOST_POLICIES, POLICIES, SERVICE, TokenLimits, check_limits, merged
from ..values import listing

MOST_GLOBS: Final = 64
"""Maximum number: each may be compared with each policy of a new token."""
_SUFFIX: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,126}[A-Za-z0-9_])?")


def _globs(raw: object) -> tuple[str, ...]:
    """Return names of policies in which `*` matches any text."""
    globs = tuple(filter(None, listing.comma_list(raw)))
    if len(globs) > MOST_GLOBS:
        raise ValueError(f"must be at most {MOST_GLOBS}")
    POLICIES.parse([glob.replace("*", "x") for glob in globs])
    return globs


GLOBS: Final = FieldType("list of policies, with `*`", _globs, list, normal=normalised)


def _nothing(raw: object) -> tuple[str, ...]:
    if any(listing.comma_list(raw)):
        raise ValueError("must be empty: there are no entities")
    return ()


NO_ALIASES: Final = FieldType("empty list", _nothing, list, limits={"maxItems": 0})
OLD_NAMES: Final[Mapping[str, Json]] = {"period": 0, "explicit_max_ttl": 0}
"""Members with deprecated names that reads always contain, with their values unless such a name was used."""


@frozen(kw_only=True, slots=False)  # slots and cached properties take a `__getattr__`, which slows all down
class TokenRole(TokenLimits):
    """Settings that override the requests of callers who create a token with this role."""

    token_explicit_max_ttl: int = setting(
        SECONDS, 0, "Maximum lifetime, including renewals.", old_name="explicit_max_ttl"
    )
    token_type: str = setting(
        one_of(SERVICE, BATCH, DEFAULT, f"{DEFAULT}-{SERVICE}", f"{DEFAULT}-{BATCH}"),
        DEFAULT,
        "`service` or `batch`: always this type. `default-service` or `default-batch`: a request can override it.",
    )
    allowed_policies: tuple[str, ...] = setting(
        POLICIES, (), "Policies that tokens may have, even if their parent does not have them."
    )
    allowed_policies_glob: tuple[str, ...] = setting(
        GLOBS, (), "Like the list without `_glob`, but `*` matches any text."
    )
    disallowed_policies: tuple[str, ...] = setting(POLICIES, (), "Policies that no token may have.")
    disallowed_policies_glob: tuple[str, ...] = setting(
        GLOBS, (), "Like the list without `_glob`, but `*` matches any text."
    )
    orphan: bool = setting(BOOLEAN, False, "Tokens have no parent.")
    renewable: bool = setting(BOOLEAN, True, "Tokens can be renewed.")
    path_suffix: str = setting(TEXT, "", "Suffix of the path under which tokens are stored.")
    allowed_entity_aliases: tuple[str, ...] = setting(NO_ALIASES, (), "Must be empty. There are no entities.")

    @property
    def rules_policies(self) -> bool:
        """Return whether this role, instead of the parent's policies, decides which policies a token may have."""
        return bool(self._allows_some or self.disallowed_policies or self.disallowed_policies_glob)

    @property
    def _allows_some(self) -> bool:
        return bool(self.allowed_policies or self.allowed_policies_glob)

    @property
    def too_long(self) -> tuple[str, ...]:
        """Return the names of lists that are longer than allowed: earlier versions accepted them."""
        bounds = {
            "allowed_policies": MOST_POLICIES,
            "allowed_policies_glob": MOST_GLOBS,
            "disallowed_policies": MOST_POLICIES,
            "disallowed_policies_glob": MOST_GLOBS,
        }
        return tuple(name for name, most in bounds.items() if len(getattr(self, name)) > most)

    def allows(self, policy: str) -> bool:
        """Return whether a token may have a policy. `default` needs no permission, but may be forbidden."""
        if policy in self.disallowed_policies or self._disallowed.match(policy):
            return False
        allowed = policy in self.allowed_policies or self._allowed.match(policy)
        return bool(allowed) or not self._allows_some or policy == DEFAULT_POLICY

    @cached_property
    def _allowed(self) -> re.Pattern[str]:
        return _any_of(self.allowed_policies_glob)

    @cached_property
    def _disallowed(self) -> re.Pattern[str]:
        return _any_of(self.disallowed_policies_glob)


def _any_of(globs: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern that matches any of some globs. Without globs, it matches nothing."""
    return re.compile("|".join(translate(re.sub(r"([?[])", r"[\1]", glob)) for glob in globs) or "(?!)")


MEMBERS: Final = schemas.joined(
    shown_members(TokenRole, old_names=True), schemas.members(TEXT="name", INTEGER="period explicit_max_ttl")
)


async def find_role(context: Context, name: str) -> Found[TokenRole] | None:
    """Return a role in its normal form."""
    found = await context.records.find(keys.role(TOKEN.id, name), TokenRole)
    return found.with_record(found.record.normal) if found else None


async def _changed(call: Call, role: TokenRole) -> tuple[TokenRole, tuple[str, ...]]:
    role = merged(role, call.given)
    check_limits(role, call.mount, call.context.settings)
    if role.path_suffix and not _SUFFIX.fullmatch(role.path_suffix):
        raise Refused(Code.FIELD_INVALID, '"path_suffix" must be one segment of a path')
    return role, ()


def _shown(name: str, role: TokenRole) -> dict[str, Json]:
    return {"name": name, **OLD_NAMES, **show(role, spelled_old=role.spelled_old)}


ROLES: Final = NamedRecords(path="roles", form=TokenRole, changed=_changed, shown=_shown, members=MEMBERS)


async def token_terms(context: Context, mount: Mount, role: str) -> Found[Terms] | None:
    """Return the current limits for the tokens of a role. `None` if it was deleted."""
    found = await find_role(context, role)
    if found is None:
        return None
    terms = Terms(
        default=mount.default_ttl(context.settings),
        max=mount.max_ttl(context.settings),
        period=found.record.token_period,
        explicit_max_ttl=found.record.token_explicit_max_ttl,
    )
    return found.with_record(terms)
