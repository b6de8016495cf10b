"""The table of checks: each is there once, every bound and every claim has one, and stages come in their order."""

from __future__ import annotations

from itertools import product
from typing import Final

import msgspec
import pytest
from attrs import evolve

from cloudid_core.auth_method.bounds import BOUNDS, NO_BOUNDS, make_plan, require_deciders, require_readers
from cloudid_core.auth_method.checks import ALWAYS, CHECKS, EACH, NEEDED, Check, Kind, Stage
from cloudid_core.auth_method.claims import MACHINES, TOKEN_TYPES, Claims
from cloudid_core.auth_method.decision import Case
from cloudid_core.auth_method.explanation import explained

from ...cases import claims


def test_a_name_has_one_code_and_a_code_one_name() -> None:
    """What the provider decides only where the token does not has two rows, of which a login meets one."""
    codes = {check.name: check.code for check in CHECKS}
    assert len(set(codes.values())) == len(codes)
    assert all(codes[check.name] is check.code for check in CHECKS)


def test_the_checks_of_tokens_read_nothing_of_role_and_form() -> None:
    """They run before the role is looked up, on a case without one."""
    case = Case(claims())
    assert [check.verdict for check in explained(CHECKS[:5], case)] == ["failed"] * 3 + ["passed", "failed"]
    assert [check.stage for check in CHECKS[:6]] == [Stage.TOKEN] * 5 + [Stage.SOURCE]
    names = {name for check in CHECKS[:5] for name in check.holds.__code__.co_names}
    assert names.isdisjoint({"bounds", "form", "facts", "address"})


def test_a_claim_that_no_check_reads_is_noticed() -> None:
    require_readers(Claims)
    forgetful = msgspec.defstruct("Claims", [("issuer", str), ("device", str)])
    with pytest.raises(TypeError, match="device"):
        require_readers(forgetful)


def test_a_bound_that_some_tokens_meet_in_no_row_is_noticed() -> None:
    """A login with such a token would be admitted whatever the role says."""
    require_deciders(CHECKS)
    halves = [check for check in CHECKS if check.name == "bound_group_ids"]
    assert len(halves) == 2
    for half in halves:
        with pytest.raises(TypeError, match="bound_group_ids"):
            require_deciders(tuple(check for check in CHECKS if check is not half))
        with pytest.raises(TypeError, match="bound_group_ids"):
            require_deciders((*CHECKS, half))


CASE: Final = Case(claims())
KINDS: Final = [
    Kind(*parts)
    for parts in product(
        TOKEN_TYPES,
        (False, True),
        ("", *MACHINES),
        (False, True),
        (False, True),
        ("", "vm_name", "vmss_name", "resource_id"),
        (ALWAYS, NEEDED, EACH),
    )
]


def test_every_bound_is_decided_in_one_row_whatever_the_kind_of_the_login() -> None:
    every = evolve(NO_BOUNDS, lists={bound.name: frozenset({"x"}) for bound in BOUNDS}, bind_machines=True)
    for kind in KINDS:
        names = [check.name for check in make_plan(every, kind, CASE).checks if check.bound]
        assert len(names) == len(set(names))
        assert set(names) == {bound.name for bound in BOUNDS if kind.has_machine or not about_machine(bound)}


def about_machine(check: Check) -> bool:
    return check.bound is not None and check.bound.about_machine


def test_a_login_whose_token_decides_everything_needs_no_facts_and_runs_every_check_that_it_meets() -> None:
    every = evolve(NO_BOUNDS, lists={bound.name: frozenset({"x"}) for bound in BOUNDS}, cidrs=("::/0",), max_jwt_exp=1)
    for bounds_of_role, kind in product((NO_BOUNDS, every), KINDS):
        plan = make_plan(bounds_of_role, kind, CASE)
        accepting = [check for check in plan.checks if check.stage is Stage.TOKEN]
        settled = {check for check in plan.checks if check.is_settled(kind) and check.holds(CASE)}
        assert {*accepting, *plan.by_source, *plan.by_token, *plan.by_facts} == {*plan.checks} - settled
        assert bool(plan.by_facts) == (plan.needs_machine or plan.needs_groups)
        stages = [check.stage for check in (*plan.by_source, *plan.by_token, *plan.by_facts)]
        assert stages == sorted(stages)
