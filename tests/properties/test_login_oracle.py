"""The login decision against an independent oracle, and laws that hold for any two logins that differ in one thing."""

from __future__ import annotations

from collections import Counter
from inspect import signature
from random import Random
from typing import Any

import pytest

from cloudid_core.auth_method.bounds import BOUNDS
from cloudid_core.auth_method.roles import Role
from cloudid_core.forms import fields_of
from cloudid_core.verify import Verifier
from tests import cases
from tests.contract.rows import ROWS

from . import oracle
from .logins import LISTS, bounds_of, changed, consistent, random_login, verdict

CASES = 8_000
PAIRS = 2_000
ROLES = 60
LOGINS = 60
MOST_REFUSALS = 15
"""So many kinds of refusals are seen at least."""


def test_the_decision_is_the_oracles() -> None:
    """Admitted exactly when nothing is against it; else the code is one of the reasons, those without network first."""
    chance = Random(20_261_121)
    seen: Counter[str] = Counter()
    without_machine: Counter[str] = Counter()
    for number in range(CASES):
        login = random_login(chance)
        near, far = oracle.judge(**login)
        found = verdict(login)
        seen[found] += 1
        if oracle.named_machine(login["claims"]) is None:
            without_machine[found] += 1
        assert found in (near or far or {"admitted"}), f"case {number}: {login} is {found}, not {near or far}"
    assert seen["admitted"] > CASES // 5
    assert len(seen) == 1 + 20, f"not all refusals were tried: {sorted(seen)}"
    assert without_machine["admitted"] > CASES // 80
    assert without_machine["SUBSCRIPTION_MISMATCH"] > 0
    assert without_machine["RESOURCE_GROUP_MISMATCH"] > 0


def test_the_decision_is_the_oracles_whatever_logins_the_role_has_seen_before() -> None:
    """The checks that a login meets are remembered by role and kind, so a login must not change what the next meets."""
    chance = Random(20_261_127)
    seen: Counter[str] = Counter()
    for number in range(ROLES):
        role = random_login(chance)["role"]
        bounds = bounds_of(role)
        for _ in range(LOGINS):
            login = {**random_login(chance), "role": role}
            near, far = oracle.judge(**login)
            found = verdict(login, bounds)
            seen[found] += 1
            assert found in (near or far or {"admitted"}), f"role {number}: {login} is {found}, not {near or far}"
    assert seen["admitted"] > ROLES
    assert len(seen) > MOST_REFUSALS


class NotedRole(dict[str, Any]):
    """A role that notes which of its lists the oracle reads."""

    def __init__(self, role: dict[str, Any]) -> None:
        super().__init__(role)
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return super().__getitem__(name)


def test_every_bound_of_a_role_is_in_the_cases_the_random_logins_and_the_oracle() -> None:
    """Otherwise a new bound could be left out of all of them, and nothing would compare it with anything."""
    read: set[str] = set()
    chance = Random(9)
    for _ in range(200):
        login = random_login(chance)
        role = login["role"] = NotedRole(login["role"])
        oracle.judge(**login)
        read |= role.read
    kinds = {"bound_token_types"}
    bounds = {field.name for field in fields_of(Role) if field.name.startswith("bound_")}
    sources = {
        "the table of bounds": {bound.name for bound in BOUNDS},
        "the cases": {*cases.LISTS} | kinds,
        "the random logins": {*LISTS} | kinds,
        "the roles of random logins": set(random_login(chance)["role"]),
        "the oracle": read,
        "the contract": {row for row in ROWS["auth role"] if row.startswith("bound_")} | kinds,
        "the verifier": {name for name in signature(Verifier).parameters if name.startswith("bound_")},
    }
    assert {name: found ^ bounds for name, found in sources.items()} == {name: set() for name in sources}


def logins(seed: int) -> list[dict[str, Any]]:
    chance = Random(seed)
    return [random_login(chance) for _ in range(PAIRS)]


def test_adding_a_bound_never_admits_more() -> None:
    chance = Random(1)
    for login in logins(2):
        stricter = changed(login)
        name = chance.choice(sorted(LISTS))
        if stricter["role"][name] or not any(login["role"][listed] for listed in LISTS):
            continue  # a longer list admits more, and a role that binds nothing admits nobody
        stricter["role"][name] = list(chance.sample(LISTS[name], 1))
        if verdict(login) != "admitted":
            assert verdict(stricter) != "admitted", (login, stricter)


def test_a_longer_list_never_admits_less() -> None:
    chance = Random(3)
    for login in logins(4):
        name = chance.choice(sorted(LISTS))
        if not login["role"][name] or login["role"][name] == ["*"]:
            continue
        wider = changed(login)
        wider["role"][name] += chance.sample(LISTS[name], 1)
        if verdict(login) == "admitted":
            assert verdict(wider) == "admitted", (login, wider)


def swapped(value: Any) -> Any:
    """The same value, every letter in the other case."""
    match value:
        case str():
            return value.swapcase()
        case list():
            return [swapped(element) for element in value]
        case dict():
            return {name: element if name == "_claim_names" else swapped(element) for name, element in value.items()}
    return value


@pytest.mark.parametrize("part", ["claims", "role", "form", "cloud"])
def test_case_never_matters(part: str) -> None:
    for login in logins(5)[: PAIRS // 2]:
        other = changed(login)
        other[part] = swapped(other[part])
        assert verdict(other) == verdict(login), (login, other)


def altered(chance: Random, text: str) -> str:
    """A text that begins, or is begun by, the given one."""
    return chance.choice((text + "2", text + "-evil", text[:-1] or text + "x", "x" + text))


@pytest.mark.parametrize("place", [4, -1], ids=["resource group", "name"])
def test_a_path_segment_that_is_only_alike_is_another(place: int) -> None:
    """A machine whose resource group or name merely starts like the one that is asked for is never admitted."""
    chance = Random(6)
    tried = 0
    for _ in range(PAIRS):
        login = consistent(chance)
        claim = "xms_az_rid" if "xms_az_rid" in login["claims"] else "xms_mirid"
        names_machine = login["form"]["vm_name"] or login["form"]["resource_id"]
        if verdict(login) != "admitted" or (place == -1 and not names_machine):
            continue
        tried += 1
        pieces = login["claims"][claim].split("/")
        pieces[place] = altered(chance, pieces[place])
        other = changed(login)
        other["claims"][claim] = "/".join(pieces)
        assert verdict(other) != "admitted", (login, other)
    assert tried > PAIRS // 10


@pytest.mark.parametrize("name", ["resource_group_name", "vm_name", "vmss_name", "resource_id"])
def test_a_name_in_the_form_that_is_only_alike_is_another(name: str) -> None:
    chance = Random(7)
    tried = 0
    for _ in range(PAIRS):
        login = consistent(chance)
        if verdict(login) != "admitted" or not login["form"][name]:
            continue
        tried += 1
        other = changed(login)
        other["form"][name] = altered(chance, other["form"][name])
        assert verdict(other) != "admitted", (login, other)
    assert tried > PAIRS // 20


@pytest.mark.parametrize("name", sorted(LISTS))
def test_a_bound_that_is_only_alike_is_another(name: str) -> None:
    chance = Random(8)
    for _ in range(PAIRS // 2):
        login = consistent(chance)
        if not login["role"][name] or login["role"][name] == ["*"] or verdict(login) != "admitted":
            continue
        other = changed(login)
        other["role"][name] = [f"{entry}!" for entry in other["role"][name]]
        assert verdict(other) != "admitted", (login, other)


def test_what_the_form_ignores_does_not_matter() -> None:
    for login in logins(9)[: PAIRS // 2]:
        other = changed(login)
        if login["form"]["vmss_name"]:
            other["form"] |= {"vm_name": "other", "resource_id": "/other"}
        elif login["form"]["vm_name"]:
            other["form"]["resource_id"] = "/other"
        assert verdict(other) == verdict(login), (login, other)


def test_confirming_every_machine_never_admits_more() -> None:
    for login in logins(10)[: PAIRS // 2]:
        if verdict({**login, "machine_check": "always"}) == "admitted":
            assert verdict({**login, "machine_check": "needed"}) == "admitted", login
