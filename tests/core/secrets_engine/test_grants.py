"""What a role may ask for: how it is written, and how it resolves."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.secrets_engine.grants import GROUP_GRANTS, MOST, ROLE_GRANTS
from cloudid_servers.provider_simulator.world.roles import AMBIGUOUS
from tests.engines import NO_ID, ROLE, SecretsEngine, configured_engine

SCOPE = "/subscriptions/00000000-0000-4000-8000-000000000001"
ENTRY = {"role_name": "Reader", "scope": SCOPE}


@pytest.fixture(scope="module")
def engine() -> SecretsEngine:
    """For writes that are refused, or of one role."""
    return configured_engine()


@pytest.mark.parametrize("kind, entry", [(ROLE_GRANTS, ENTRY), (GROUP_GRANTS, {"group_name": "a"})])
def test_json_text_and_plain_arrays_are_the_same(kind: Any, entry: dict[str, str]) -> None:
    assert kind.parse(json.dumps([entry])) == kind.parse([entry])
    spellings: list[object] = ["", None, "[]", [], "null"]
    assert [kind.parse(nothing) for nothing in spellings] == [()] * 5


@pytest.mark.parametrize("kind", [ROLE_GRANTS, GROUP_GRANTS])
@pytest.mark.parametrize(
    "raw",
    [
        "nonsense",
        "{}",
        {},
        7,
        "[null]",
        "[1]",
        ["text"],
        [[]],
        [{}],
        [{"role_name": "", "group_name": ""}],
        [{"colour": "red"}],
        [{"role_name": 1, "scope": SCOPE}],
        [{"object_id": ["a"]}],
        "[" * 2000,
        [ENTRY] * (MOST + 1),
        [{"group_name": "a"}] * (MOST + 1),
    ],
)
def test_other_values_are_refused(kind: Any, raw: object) -> None:
    with pytest.raises(ValueError, match=r"must|needs|has"):
        kind.parse(raw)


NAMES = st.sampled_from(("role_name", "role_id", "scope", "group_name", "object_id")) | st.text()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.just(SCOPE),
    lambda inside: st.lists(inside) | st.dictionaries(NAMES, inside),
    max_leaves=10,
)


@pytest.mark.parametrize("kind", [ROLE_GRANTS, GROUP_GRANTS])
@given(raw=JSON)
def test_any_value_is_accepted_or_refused_with_a_value_error(kind: Any, raw: object) -> None:
    """No other exception is raised, for a JSON text and for a plain value."""
    for spelling in (raw, json.dumps(raw)):
        with suppress(ValueError):
            assert kind.parse(kind.show(kind.parse(spelling))) == kind.parse(spelling)


@pytest.mark.parametrize("entry", [{"role_name": "Reader"}, {"role_name": "Reader", "scope": ""}])
def test_the_error_for_an_entry_without_a_scope_says_so(entry: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r'^needs "scope" in each element$'):
        ROLE_GRANTS.parse([entry])


@pytest.mark.parametrize(
    "scope",
    ["//", "nowhere", "/subscriptions", "/subscriptions/x", f"{SCOPE}//", f"{SCOPE}/../x", "/subscriptions//"],
)
def test_a_text_that_is_no_scope_is_refused(scope: str) -> None:
    with pytest.raises(ValueError, match=r'^has an element whose "scope" must be'):
        ROLE_GRANTS.parse([{"role_name": "Reader", "scope": scope}])


@pytest.mark.parametrize(
    "scope",
    [
        SCOPE,
        f"{SCOPE}/resourceGroups/prod",
        f"{SCOPE}/resourceGroups/prod/providers/Microsoft.Compute/virtualMachines/web",
        "/providers/Microsoft.Management/managementGroups/all",
    ],
)
def test_scopes_of_every_kind_are_accepted(scope: str) -> None:
    (grant,) = ROLE_GRANTS.parse([{"role_name": "Reader", "scope": scope}])
    assert grant.scope == scope


def test_a_scope_reads_back_with_its_final_slash_and_works_without_it() -> None:
    engine = configured_engine()
    for fields in ({}, {"persist_app": True}):
        written = engine.grants(scope=f"{engine.scope}/")
        engine.role(azure_roles=written, **fields)
        assert engine.shown_role()["azure_roles"][0]["scope"] == f"{engine.scope}/"
        engine.must("GET", "cloud/creds/web")
    scopes = {assignment.scope for assignment in engine.simulator.world.role_assignments.table.all()}
    assert engine.scope in scopes
    assert f"{engine.scope}/" not in scopes


def test_the_same_scope_in_two_spellings_is_the_same_scope(engine: SecretsEngine) -> None:
    twice = [*engine.grants(), *engine.grants(scope=f"{engine.scope}/")]
    assert engine.refused("POST", "cloud/roles/web", {"azure_roles": twice}) == (400, "field_invalid")


def test_a_role_shows_both_name_and_id_of_what_was_written_by_either(engine: SecretsEngine) -> None:
    """The id decides, whatever name comes with it; a name is the one that people read, not that of the resource."""
    engine.role()
    (by_name,) = engine.shown_role()["azure_roles"]
    assert by_name["role_name"] == "Reader"
    assert by_name["role_id"].startswith(f"{engine.scope}/providers/Microsoft.Authorization/roleDefinitions/")
    engine.role(azure_roles=[{"role_id": by_name["role_id"], "role_name": "Owner", "scope": engine.scope}])
    assert engine.shown_role()["azure_roles"] == [by_name]
    known = {"group_name": engine.group(1)["display_name"], "object_id": engine.group(1)["id"]}
    for wanted in ({"group_name": known["group_name"]}, {"object_id": known["object_id"], "group_name": "another"}):
        engine.role(azure_groups=[wanted])
        assert engine.shown_role()["azure_groups"] == [known]


@pytest.mark.parametrize(
    "entry",
    [
        {"role_name": "Nobody"},
        {"role_name": "Reader' or '1' eq '1"},
        {"role_id": "reader"},
        {"role_id": f"/providers/Microsoft.Authorization/roleDefinitions/{NO_ID}"},
        {"role_id": f"/subscriptions/{NO_ID}/../providers/Microsoft.Authorization/roleDefinitions/{NO_ID}"},
    ],
)
def test_roles_that_are_not_there_are_refused(engine: SecretsEngine, entry: dict[str, str]) -> None:
    wanted = [*engine.grants(), {**entry, "scope": engine.scope}]
    reply = engine.ask("POST", ROLE, {"azure_roles": wanted})
    assert (reply.status, reply.body["codes"]) == (400, ["reference_not_found"])
    assert "element 1" in reply.body["errors"][0]


@pytest.mark.parametrize(
    "entry", [{"group_name": "nobody"}, {"group_name": "o'brien"}, {"object_id": NO_ID}, {"object_id": "../x"}]
)
def test_groups_that_are_not_there_are_refused(engine: SecretsEngine, entry: dict[str, str]) -> None:
    fields = {"azure_roles": engine.grants(), "azure_groups": [entry]}
    assert engine.refused("POST", ROLE, fields) == (400, "reference_not_found")


def test_a_name_that_several_objects_have_is_refused(engine: SecretsEngine) -> None:
    """Of role definitions, only those count that can be assigned at the scope."""
    assert engine.refused("POST", ROLE, {"azure_roles": engine.grants(AMBIGUOUS)}) == (400, "reference_ambiguous")
    engine.role(azure_roles=engine.grants(AMBIGUOUS, scope=engine.other_scope))
    directory = engine.simulator.world.directory
    twin = directory.group("twin").id
    directory.groups.put(NO_ID, evolve(directory.group("twin"), id=NO_ID))
    fields = {"azure_roles": engine.grants(), "azure_groups": [{"group_name": "twin"}]}
    assert engine.refused("POST", ROLE, fields) == (400, "reference_ambiguous")
    engine.role(azure_groups=[{"object_id": twin}])


def test_the_same_grant_or_group_twice_is_refused(engine: SecretsEngine) -> None:
    """Also in two spellings. One role at two scopes is not the same."""
    (by_name,) = engine.grants()
    engine.role()
    (resolved,) = engine.shown_role()["azure_roles"]
    for twice in ([by_name, by_name], [by_name, resolved]):
        assert engine.refused("POST", ROLE, {"azure_roles": twice}) == (400, "field_invalid")
    engine.role(azure_roles=[*engine.grants(), *engine.grants(scope=f"{engine.scope}/resourceGroups/prod")])
    group = engine.group(0)
    twice = [{"object_id": group["id"]}, {"group_name": group["display_name"]}]
    assert engine.refused("POST", ROLE, {"azure_roles": engine.grants(), "azure_groups": twice}) == (
        400,
        "field_invalid",
    )


@pytest.mark.parametrize("field", ["azure_roles", "azure_groups"])
def test_a_refusal_does_not_repeat_what_was_written(engine: SecretsEngine, field: str) -> None:
    for raw in ('{"hunter2": 1}', '[{"hunter2": 1}]', '[{"role_name": "hunter2", "scope": "hunter2"}]', "hunter2"):
        reply = engine.ask("POST", ROLE, {field: raw})
        assert reply.status == 400
        assert "hunter2" not in str(reply.body)
