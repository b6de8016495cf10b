"""The checks: what is checked of every token, and that none of them can be forgotten."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import make_class
from msgspec.structs import replace

from cloudid_core.auth_method.checks import CHECKS, require_checks
from cloudid_core.auth_method.claims import Claims
from cloudid_core.auth_method.decision import alike
from cloudid_core.auth_method.roles import Role
from cloudid_core.errors import Code
from cloudid_core.forms import IDENTIFIERS, fields_of, setting

from ...cases import TRUST, case, claims, decided, form
from ...minting import AUDIENCE, ISSUER, NOW, SUBSCRIPTION, TENANT


def checked(found: Claims, max_jwt_exp: int = 0, **trust: Any) -> Code | None:
    role = Role(bound_service_principal_ids=("*",), max_jwt_exp=max_jwt_exp)
    outcome = decided(replace(case(found, role=role, login=form()), trust=replace(TRUST, **trust)))
    return outcome if isinstance(outcome, Code) else None


def with_claims(**changes: Any) -> Claims:
    return replace(claims(), **changes)


def test_a_name_and_a_code_stand_in_one_row() -> None:
    assert len({check.name for check in CHECKS}) == len({check.code for check in CHECKS}) == len(CHECKS)


def test_a_list_of_a_role_without_a_check_is_noticed() -> None:
    """A role with one more field would accept, store and show it, and admit machines of any name."""
    forgetful = make_class("Role", {"bound_vm_names": setting(IDENTIFIERS, (), "Names.")}, bases=(Role,), kw_only=True)
    with pytest.raises(TypeError, match="bound_vm_names"):
        require_checks(field.name for field in fields_of(forgetful))
    require_checks(field.name for field in fields_of(Role))


def test_what_machines_have_in_common_is_decided_once_and_never_for_others() -> None:
    """What one machine has passed counts for those alone that are alike in all that was looked at."""
    role = Role(bound_subscription_ids=(SUBSCRIPTION,))
    first = case(claims(), role=role, login=form(), machine_check="needed")
    assert not isinstance(decided(first), Code)
    assert len(role.bounds.passed) == 1
    others = {
        Code.JWT_ISSUER_MISMATCH: replace(first, claims=with_claims(issuer="another")),
        Code.JWT_AUDIENCE_MISMATCH: replace(first, trust=replace(first.trust, audience="another")),
        Code.JWT_EXPIRED: replace(first, now=first.claims.expires_at),
        Code.BOUND_TOKEN_TYPE_MISMATCH: replace(first, claims=with_claims(token_type="user")),
        Code.MACHINE_REQUIRED: replace(first, form=form(subscription_id="")),
        Code.MACHINE_CLAIM_MISSING: replace(first, claims=claims(xms_mirid=None)),
        Code.SUBSCRIPTION_MISMATCH: replace(first, form=form(subscription_id=TENANT)),
        Code.VM_NAME_MISMATCH: replace(first, form=form(vm_name="another")),
    }
    assert {code: decided(other) for code, other in others.items()} == {code: code for code in others}
    assert alike(first) in role.bounds.passed


def test_what_is_remembered_of_fleets_is_bounded() -> None:
    role = Role(bound_service_principal_ids=("*",))
    for number in range(1000):
        told = with_claims(audiences=(AUDIENCE, str(number)))
        assert not isinstance(decided(case(told, role=role, login=form())), Code)
    assert len(role.bounds.passed) <= 256


def test_a_good_token_passes() -> None:
    assert checked(claims()) is None


@pytest.mark.parametrize(
    "changes, code",
    [
        ({"issuer": ISSUER.upper()}, Code.JWT_ISSUER_MISMATCH),
        ({"issuer": ISSUER.rstrip("/")}, Code.JWT_ISSUER_MISMATCH),
        ({"audiences": (AUDIENCE.rstrip("/"),)}, Code.JWT_AUDIENCE_MISMATCH),
        ({"audiences": (AUDIENCE.upper(),)}, Code.JWT_AUDIENCE_MISMATCH),
        ({"audiences": ()}, Code.JWT_AUDIENCE_MISMATCH),
        ({"audiences": (AUDIENCE + "x", AUDIENCE)}, None),
        ({"tenant_id": SUBSCRIPTION}, Code.JWT_TENANT_MISMATCH),
        ({"expires_at": NOW}, Code.JWT_EXPIRED),
        ({"expires_at": NOW - 30}, Code.JWT_EXPIRED),
        ({"expires_at": NOW + 0.001}, None),
        ({"valid_from": NOW + 60}, None),
        ({"valid_from": NOW + 60.5}, Code.JWT_NOT_YET_VALID),
    ],
)
def test_each_claim_is_checked(changes: dict[str, Any], code: Code | None) -> None:
    assert checked(with_claims(**changes)) is code


def test_the_tenant_may_be_written_in_upper_case() -> None:
    assert checked(claims(), tenant_id=TENANT.upper()) is None


def test_leeway_is_settable_and_never_forgives_expiry() -> None:
    assert checked(with_claims(valid_from=NOW + 1), leeway=0) is Code.JWT_NOT_YET_VALID
    assert checked(with_claims(valid_from=NOW + 300), leeway=300) is None
    assert checked(with_claims(expires_at=NOW - 1), leeway=300) is Code.JWT_EXPIRED


def test_a_role_may_limit_how_long_a_token_still_lasts() -> None:
    lasting = with_claims(expires_at=NOW + 100)
    assert checked(lasting, max_jwt_exp=100) is None
    assert checked(lasting, max_jwt_exp=99) is Code.JWT_EXPIRES_TOO_LATE
    assert checked(lasting, max_jwt_exp=0) is None
