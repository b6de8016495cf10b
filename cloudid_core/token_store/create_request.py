"""A request to create a token, and the checks of it against the parent, the role and `sudo`."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from ..errors import Code, Problem, Refused
from ..forms import BOOLEAN, INTEGER, METADATA, SECONDS, TEXT, FieldType, bounded, one_of, setting
from ..policies import DEFAULT, RESPONSE_WRAPPING, ROOT, normalised, without_default
from ..tokens import BATCH, POLICIES, SERVICE, Token
from ..values import coercion
from .roles import TokenRole

MOST_POLICIES: Final = 256
"""Each use of a token reads its policies, and puts them into both entries of every audit device."""


def _empty(raw: object) -> str:
    if coercion.text(raw):
        raise ValueError("must be empty: there are no entities")
    return ""


def _few_policies(raw: object) -> tuple[str, ...]:
    policies = POLICIES.normal(POLICIES.parse(raw))
    if len(policies) > MOST_POLICIES:
        raise ValueError(f"must be at most {MOST_POLICIES}")
    return policies


EMPTY: Final = FieldType("empty string", _empty)
FEW_POLICIES: Final = FieldType(POLICIES.name, _few_policies, list)


@frozen(kw_only=True)
class CreateForm:
    """The token that is asked for."""

    id: str = setting(TEXT, "", "Text of the token, instead of a random one. Needs sudo.", repr=False)
    policies: tuple[str, ...] = setting(FEW_POLICIES, (), "Policies; none: those of the parent.")
    meta: dict[str, str] = setting(METADATA, {}, "Metadata that look-ups repeat.")
    no_parent: bool = setting(BOOLEAN, False, "Make an orphan. Needs sudo.")
    no_default_policy: bool = setting(BOOLEAN, False, "Leave the policy `default` out.")
    renewable: bool = setting(BOOLEAN, True, "Whether it can be renewed.")
    ttl: int = setting(SECONDS, 0, "Lifetime; 0: that of the mount.", old_name="lease")
    explicit_max_ttl: int = setting(SECONDS, 0, "Hard cap on the lifetime; no renewal exceeds it.")
    display_name: str = setting(TEXT, "", "What logs call it, after `token-`.")
    num_uses: int = setting(bounded(INTEGER, 0, 2**31), 0, "How often it can be used; 0: without limit.")
    period: int = setting(SECONDS, 0, "Makes it periodic: every renewal grants this. Needs sudo.")
    type: str = setting(one_of(SERVICE, BATCH), "", "`service` or `batch`.")
    entity_alias: str = setting(EMPTY, "", "Accepted while it is empty; there are no entities.")


SUDO_FIELDS: Final = ("id", "no_parent", "period")


def check_caller(caller: Token, *, last_use: bool) -> None:
    """Refuse callers that cannot have children."""
    if caller.is_batch:
        raise Refused(Code.BATCH_TOKEN_UNSUPPORTED, "they cannot create tokens")
    if caller.num_uses or last_use:
        raise Refused(Code.TOKEN_RESTRICTED)


def check_sudo(form: CreateForm, role: TokenRole | None, *, has_sudo: bool) -> None:
    """Refuse what needs `sudo`. Under a role that creates orphans, an orphan does not."""
    used = [name for name in SUDO_FIELDS if getattr(form, name)]
    if role is not None and role.orphan and "no_parent" in used:
        used.remove("no_parent")
    if used and not has_sudo:
        raise Refused.because([Problem(Code.TOKEN_SUDO_REQUIRED, f'"{name}"') for name in used])


def type_of(form: CreateForm, role: TokenRole | None) -> str:
    """A role may force a type; otherwise the request chooses."""
    ruled = role.token_type if role else SERVICE
    if role is not None and ruled in (SERVICE, BATCH):
        return ruled
    return form.type or (BATCH if ruled.endswith(BATCH) else SERVICE)


def policies_of(form: CreateForm, role: TokenRole | None, parent: Token, *, has_sudo: bool) -> tuple[str, ...]:
    """The policies of the new token; refused when they are more than the parent or the role allows."""
    wants_default = not (form.no_default_policy or (role and role.token_no_default_policy))
    if role is not None and role.rules_policies:
        policies = _by_role(form.policies, role, parent, wants_default)
    else:
        policies = _by_parent(form.policies, parent, wants_default, has_sudo)
    if ROOT in policies and not parent.is_root:
        raise Refused(Code.POLICY_NOT_SUBSET, "only root tokens create root tokens")
    if RESPONSE_WRAPPING in policies:
        raise Refused(Code.FIELD_INVALID, f'"policies": {RESPONSE_WRAPPING} cannot be assigned')
    return policies if wants_default else without_default(policies)


def _by_role(asked_for: tuple[str, ...], role: TokenRole, parent: Token, wants_default: bool) -> tuple[str, ...]:
    policies = asked_for or role.allowed_policies or parent.policies
    if wants_default and role.allows(DEFAULT):
        policies = (*policies, DEFAULT)
    if not all(role.allows(policy) for policy in policies):
        raise Refused(Code.POLICY_NOT_SUBSET, "the role does not allow one of them")
    return normalised(policies)


def _by_parent(asked_for: tuple[str, ...], parent: Token, wants_default: bool, has_sudo: bool) -> tuple[str, ...]:
    if not asked_for:
        return parent.policies
    if not has_sudo and not set(asked_for) <= set(parent.policies):
        raise Refused(Code.POLICY_NOT_SUBSET)
    if wants_default and (has_sudo or DEFAULT in parent.policies):
        return normalised((*asked_for, DEFAULT))
    return asked_for
