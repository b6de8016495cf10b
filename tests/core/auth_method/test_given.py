"""Claims and facts that are given as data: what is left out, and what is refused."""

from __future__ import annotations

import pytest

from cloudid_core.audit.device import ADMITTED
from cloudid_core.auth_method.decision import NO_FACTS, Facts
from cloudid_core.auth_method.explain import given_claims, given_facts
from cloudid_core.auth_method.explanation import explanation_of
from cloudid_core.errors import Code, Refused

from ... import cases
from ...minting import GROUP, NOW, PRINCIPAL, VM, new_caches
from .test_explanation import NO_MACHINE, TRUST, case, failed


def test_claims_that_are_left_out_are_right() -> None:
    claims = given_claims({"oid": PRINCIPAL, "xms_mirid": VM}, TRUST, NOW, new_caches())
    assert explanation_of(case(claims=claims)).verdict == ADMITTED
    other = given_claims({"oid": PRINCIPAL, "aud": "another", "exp": NOW}, TRUST, NOW, new_caches())
    assert failed(case(claims=other)) == ["aud", "exp"]


def test_claims_as_data_need_a_principal() -> None:
    with pytest.raises(Refused) as refused:
        given_claims({}, TRUST, NOW, new_caches())
    assert refused.value.code is Code.JWT_CLAIM_MISSING


def test_facts_as_data() -> None:
    claims = cases.claims()
    given = given_facts(
        {"machine": {"location": "West US 2", "principals": [PRINCIPAL.upper()]}, "groups": [GROUP.upper()]}, claims
    )
    assert given == Facts(machine=cases.machine(), groups=frozenset({GROUP}))
    in_no_set = {"machine": {"location": "westus2", "principals": [PRINCIPAL], "scale_set": None}}
    assert given_facts(in_no_set, claims).machine == cases.machine()
    assert given_facts({}, claims) == NO_FACTS
    assert given_facts({"machine": None, "groups": None}, claims) == Facts(machine=None, groups=None)
    assert given_facts({"machine": {}}, cases.claims(**NO_MACHINE)) == NO_FACTS


@pytest.mark.parametrize("facts", [[], "secret", {"machine": "secret"}, {"secret": 1}, {"groups": [1]}])
def test_facts_of_another_shape_are_refused_without_their_content(facts: object) -> None:
    with pytest.raises(Refused) as refused:
        given_facts(facts, cases.claims())
    assert refused.value.code is Code.FIELD_INVALID
    assert "secret" not in str(refused.value)
