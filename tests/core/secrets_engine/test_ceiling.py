"""Ceilings: no role hands out more than its mount's configuration allows, whatever changes when."""

from __future__ import annotations

from typing import Any

import pytest

from cloudid_core.errors import Code
from tests.engines import CONFIG, CREDS, EVERYTHING, NO_ID, ROLE, SecretsEngine, configured_engine

from .interleaving import raced

READER = "acdd72a7-3385-48ef-bd42-f606fba81ae7"
EXCEEDED = "ceiling_exceeded"


@pytest.fixture
def engine() -> SecretsEngine:
    return configured_engine()


def limit(engine: SecretsEngine, **fields: Any) -> Any:
    return engine.must("POST", CONFIG, fields)


def code_of(engine: SecretsEngine, **role: Any) -> str:
    """The code with which a role is refused; empty if it is not."""
    reply = engine.write_role(**role)
    return "" if reply.status == 204 else reply.codes[0]


def test_without_a_ceiling_nothing_is_limited_and_none_is_read_back(engine: SecretsEngine) -> None:
    engine.role(azure_groups=engine.groups(0))
    assert not [name for name in engine.must("GET", CONFIG).data if name.startswith(("allowed", "deny"))]


def test_what_is_read_back_is_what_was_written(engine: SecretsEngine) -> None:
    written = {
        "allowed_scopes": [f"{engine.scope}/resourceGroups/Web"],
        "allowed_role_definitions": ["Reader", READER.upper()],
        "allowed_application_ids": [NO_ID],
        "allowed_group_ids": None,
        "allowed_directory_roles": ["Directory Readers"],
        "allowed_app_roles": engine.app_roles(0, 1),
        "deny_privileged_roles": True,
    }
    limit(engine, **written)
    shown = engine.must("GET", CONFIG).data
    assert {name: shown[name] for name in written} == written
    engine.must("POST", CONFIG, shown)
    assert {name: engine.must("GET", CONFIG).data[name] for name in written} == written


def test_a_kind_that_was_never_written_allows_nothing_and_the_write_says_so(engine: SecretsEngine) -> None:
    reply = limit(engine, allowed_scopes=[engine.scope], allowed_group_ids=[])
    nothing, where = reply.body["warnings"]
    names = "allowed_role_definitions, allowed_application_ids, allowed_group_ids"
    assert nothing.endswith(f"{names}, allowed_directory_roles, allowed_app_roles")
    assert where.startswith("GET <mount>/ceiling")
    assert code_of(engine, azure_roles=engine.grants()) == EXCEEDED
    lists = {**EVERYTHING, "allowed_directory_roles": ["Directory Readers"], "allowed_app_roles": engine.app_roles(0)}
    assert limit(engine, **lists).body["warnings"] == [where]
    assert where.endswith(": 0")
    assert not code_of(engine, azure_roles=engine.grants(), azure_groups=engine.groups(0))


@pytest.mark.parametrize(
    "allowed, scope, is_allowed",
    [
        ("{s}", "{s}", True),
        ("{s}", "{s}/resourceGroups/machines", True),
        ("{S}", "{s}/resourcegroups/MACHINES", True),
        ("{s}/resourceGroups/machine", "{s}/resourceGroups/machines", False),
        ("{s}/resourceGroups/machines", "{s}", False),
        ("{o}", "{s}", False),
        ("/", "{s}", False),
        ("/", "/", True),
        ("{s}", "/", False),
        ("/providers/Microsoft.Management/managementGroups/all", "{s}", False),
        ("/providers/Microsoft.Capacity", "/providers/microsoft.capacity", True),
        ("/providers/Microsoft.Capacity", "/providers/Microsoft.Capacity/reservationOrders/{a}", False),
        ("/providers/Microsoft.Capacity/reservationOrders/{a}", "/providers/Microsoft.Capacity", False),
        (
            "/providers/Microsoft.Capacity/reservationOrders/{a}",
            "/providers/Microsoft.Capacity/reservationOrders/{a}",
            True,
        ),
        ("/", "/providers/Microsoft.Capacity", False),
    ],
)
def test_scopes_are_compared_by_segments(engine: SecretsEngine, allowed: str, scope: str, is_allowed: bool) -> None:
    folded = engine.scope.upper().replace("/SUBSCRIPTIONS", "/subscriptions")
    names = {"s": engine.scope, "S": folded, "o": engine.other_scope, "a": NO_ID}
    limit(engine, **{**EVERYTHING, "allowed_scopes": [allowed.format(**names)]})
    assert code_of(engine, azure_roles=engine.grants(scope=scope.format(**names))) == ("" if is_allowed else EXCEEDED)


def test_role_definitions_are_named_by_name_or_id_and_compared_by_id(engine: SecretsEngine) -> None:
    for named in ("Reader", READER, f"/providers/Microsoft.Authorization/roleDefinitions/{READER}"):
        limit(engine, **{**EVERYTHING, "allowed_role_definitions": [named]})
        assert not code_of(engine, azure_roles=engine.grants("Reader"))
        assert code_of(engine, azure_roles=engine.grants("Contributor")) == EXCEEDED


@pytest.mark.parametrize("field", ["allowed_directory_roles", "allowed_app_roles"])
def test_not_everything_of_the_directory_can_be_allowed(engine: SecretsEngine, field: str) -> None:
    assert engine.refused("POST", CONFIG, {field: None}) == (400, "field_invalid")


def test_roles_of_the_directory_are_never_allowed_unless_listed(engine: SecretsEngine) -> None:
    wanted = {"azure_roles": [], "directory_roles": [{"role_name": "Directory Readers"}]}
    api = {"azure_roles": [], "app_roles": engine.app_roles(0)}
    ceilings: tuple[dict[str, Any], ...] = ({}, EVERYTHING, {"allowed_directory_roles": [], "allowed_app_roles": []})
    for lists in ceilings:
        limit(engine, **lists)
        assert [code_of(engine, **each) for each in (wanted, api)] == [EXCEEDED] * 2
    limit(engine, allowed_directory_roles=["Application Administrator"], allowed_app_roles=engine.app_roles(1))
    assert [code_of(engine, **each) for each in (wanted, api)] == [EXCEEDED] * 2
    limit(engine, allowed_directory_roles=["directory readers"], allowed_app_roles=engine.app_roles(0))
    assert [code_of(engine, **each) for each in (wanted, {**api, "directory_roles": []})] == ["", ""]


def test_a_write_that_the_provider_refuses_names_its_code(engine: SecretsEngine) -> None:
    reply = engine.ask("POST", CONFIG, {"client_secret": "wrong", "allowed_group_ids": ["web-machines"]})
    assert reply.body["errors"] == [f"{Code.PROVIDER_SECRET_REFUSED.text}: AADSTS7000215"]


@pytest.mark.parametrize("field", ["allowed_role_definitions", "allowed_group_ids", "allowed_directory_roles"])
def test_a_name_that_means_nothing_is_refused_at_the_write(engine: SecretsEngine, field: str) -> None:
    reply = engine.ask("POST", CONFIG, {field: ["no such name"]})
    assert (reply.status, reply.codes[0]) == (400, "reference_not_found")


def test_groups_and_existing_applications_are_limited_too(engine: SecretsEngine) -> None:
    application = engine.other_application
    limit(engine, **{**EVERYTHING, "allowed_group_ids": [engine.group(0)["id"]], "allowed_application_ids": [NO_ID]})
    assert not code_of(engine, azure_roles=engine.grants(), azure_groups=engine.groups(0))
    assert code_of(engine, azure_roles=engine.grants(), azure_groups=engine.groups(0, 1)) == EXCEEDED
    assert code_of(engine, application_object_id=application["object_id"], azure_roles=[], azure_groups=[]) == EXCEEDED
    for known in (application["object_id"], application["client_id"]):
        limit(engine, allowed_application_ids=[known])
        assert not code_of(engine, application_object_id=application["object_id"], azure_roles=[], azure_groups=[])


@pytest.mark.parametrize("name, is_refused", [("Reader", False), ("Owner", True), ("User Access Administrator", True)])
def test_privileged_definitions_can_be_denied(engine: SecretsEngine, name: str, is_refused: bool) -> None:
    limit(engine, deny_privileged_roles=True)
    assert code_of(engine, azure_roles=engine.grants(name)) == (EXCEEDED if is_refused else "")


@pytest.mark.parametrize(
    "fields",
    [
        {"allowed_scopes": ["/subscriptions/" + NO_ID]},
        {"allowed_role_definitions": ["Contributor"]},
        {"allowed_group_ids": []},
        {"deny_privileged_roles": True},
    ],
)
@pytest.mark.parametrize("persist_app", [False, True])
def test_a_ceiling_that_shrinks_stops_issues_and_is_reported(
    engine: SecretsEngine, fields: dict[str, Any], persist_app: bool
) -> None:
    engine.role(azure_roles=engine.grants("Owner"), azure_groups=engine.groups(0), persist_app=persist_app)
    limit(engine, **{**EVERYTHING, **fields})
    reply = engine.ask("GET", CREDS)
    assert (reply.status, reply.codes[0]) == (403, EXCEEDED)
    assert not engine.intents()
    stopped = engine.must("GET", "cloud/ceiling").data
    assert (list(stopped["stopped"]), stopped["count"]) == (["roles/web"], 1)


@pytest.mark.parametrize("path", [CREDS, "cloud/token/web"])
def test_a_kept_application_gives_nothing_while_it_has_more_than_a_smaller_ceiling_allows(
    engine: SecretsEngine, path: str
) -> None:
    """Its role asks for less already, but the provider has not removed the rest."""
    wide = {
        "azure_roles": engine.grants("Owner"),
        "azure_groups": engine.groups(0),
        "token_scopes": ["https://vault.azure.net/.default"],
    }
    engine.role(**wide, persist_app=True)
    lease = {"lease_id": engine.must("GET", CREDS).body["lease_id"]}
    engine.must("GET", path)
    limit(engine, allowed_scopes=[engine.scope], allowed_role_definitions=["Reader"])
    engine.fail(method="DELETE", status=403, code="Forbidden")
    engine.must("POST", ROLE, {"azure_roles": engine.grants("Reader"), "azure_groups": []})
    for _ in range(3):
        for reply in (engine.ask("GET", path), engine.ask("PUT", "sys/leases/renew", lease)):
            assert (reply.status, reply.codes) == (503, ["role_change_pending"])
        engine.pass_time(60)
    engine.heal()
    engine.pass_time(600)
    engine.must("GET", path)
    engine.must("PUT", "sys/leases/renew", lease)
    assert len(engine.alive("assignment")) == 1


def test_a_kept_application_waits_only_until_the_provider_has_removed_what_its_role_gave_up(
    engine: SecretsEngine,
) -> None:
    engine.role(azure_roles=engine.grants("Owner"), persist_app=True)
    limit(engine, **EVERYTHING)
    engine.must("POST", ROLE, {"azure_roles": engine.grants("Reader")})
    engine.pass_time(5)
    engine.must("GET", CREDS)


@pytest.mark.parametrize("field", ["allowed_scopes", "allowed_role_definitions", "allowed_group_ids"])
@pytest.mark.parametrize("narrowed", [False, True])
def test_leases_beyond_a_ceiling_run_out_without_renewal(engine: SecretsEngine, field: str, narrowed: bool) -> None:
    """Also when the role itself asks for less by now."""
    engine.role(azure_groups=engine.groups(0))
    lease_id = engine.must("GET", CREDS).body["lease_id"]
    engine.must("PUT", "sys/leases/renew", {"lease_id": lease_id})
    if narrowed:
        engine.must("POST", ROLE, {"azure_groups": []})
    limit(engine, **{**EVERYTHING, field: []})
    reply = engine.ask("PUT", "sys/leases/renew", {"lease_id": lease_id})
    assert (reply.status, reply.codes[0]) == (403, EXCEEDED)
    limit(engine, **EVERYTHING)
    engine.must("PUT", "sys/leases/renew", {"lease_id": lease_id})


@pytest.mark.parametrize("part", ["/intent/", "lease/"])
def test_a_ceiling_that_shrinks_amid_an_issue_takes_it_back(engine: SecretsEngine, part: str) -> None:
    engine.role()
    issue = engine.program(engine.request("GET", CREDS))
    response, conflicts = raced(engine, issue, part, lambda: limit(engine, allowed_scopes=[]))
    assert (response.status, set(response.codes), conflicts) == (403, {EXCEEDED}, 1)
    engine.converge()
    assert engine.is_clean()
