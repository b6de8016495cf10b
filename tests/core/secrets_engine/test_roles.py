"""Roles of the secrets engine: fields, rules, and what they refer to."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cloudid_core import Secret
from cloudid_core.store import keys
from cloudid_servers.provider_simulator.world.access import permit
from tests.engines import CONFIG, CREDS, NO_ID, ROLE, SecretsEngine, configured_engine

DEFAULTS = {
    "azure_groups": [],
    "directory_roles": [],
    "app_roles": [],
    "application_object_id": "",
    "persist_app": False,
    "ttl": 0,
    "max_ttl": 0,
    "explicit_max_ttl": 0,
    "max_leases": 0,
    "permanently_delete": False,
    "sign_in_audience": "",
    "tags": [],
    "token_scopes": [],
    "proof": "secret",
}


@pytest.fixture
def engine() -> SecretsEngine:
    return configured_engine()


def test_every_field_is_read_back(engine: SecretsEngine) -> None:
    fields = {
        "azure_roles": json.dumps(engine.grants()),
        "azure_groups": json.dumps(engine.groups(0)),
        "ttl": "10m",
        "max_ttl": 1200,
        "explicit_max_ttl": "3600",
        "permanently_delete": True,
        "sign_in_audience": "CloudADMyOrg",
        "tags": "b,a",
    }
    assert engine.ask("PUT", ROLE, fields).status == 204
    shown = engine.shown_role()
    assert [(one["role_name"], one["scope"]) for one in shown["azure_roles"]] == [("Reader", engine.scope)]
    assert shown["azure_groups"] == [{"group_name": "all-machines", **engine.groups(0)[0]}]
    assert {**shown, "azure_roles": None, "azure_groups": None} == {
        **DEFAULTS,
        "azure_roles": None,
        "azure_groups": None,
        "ttl": 600,
        "max_ttl": 1200,
        "explicit_max_ttl": 3600,
        "permanently_delete": True,
        "sign_in_audience": "CloudADMyOrg",
        "tags": ["b", "a"],
    }


def test_what_was_read_can_be_written_back(engine: SecretsEngine) -> None:
    """Also for a role that keeps an application, whose id is shown."""
    for fields in ({"ttl": 60, "tags": ["a"]}, {"persist_app": True}):
        engine.role(**fields)
        shown = engine.shown_role()
        engine.must("POST", ROLE, shown)
        assert engine.shown_role() == shown


def test_a_write_keeps_what_it_does_not_name(engine: SecretsEngine) -> None:
    engine.role(ttl=60, max_ttl=120, permanently_delete=True, tags="a", sign_in_audience="AzureADMyOrg")
    before = engine.shown_role()
    engine.must("POST", ROLE, {"ttl": 90})
    assert engine.shown_role() == {**before, "ttl": 90}


def test_null_clears_a_field_or_says_nothing(engine: SecretsEngine) -> None:
    """A duration that is null was not given; the others are cleared."""
    others = {"permanently_delete": True, "tags": "a", "sign_in_audience": "AzureADMyOrg"}
    engine.role(ttl=60, azure_groups=engine.groups(0), **others)
    nothing = dict.fromkeys(("ttl", "azure_groups", *others))
    engine.must("POST", ROLE, nothing)
    assert {**engine.shown_role(), "azure_roles": None} == {**DEFAULTS, "azure_roles": None, "ttl": 60}


def test_a_role_needs_grants_or_an_application(engine: SecretsEngine) -> None:
    """Groups alone are not enough, and a write cannot remove the last grant."""
    assert engine.refused("POST", ROLE, {}) == (400, "field_required")
    assert engine.refused("POST", ROLE, {"azure_groups": engine.groups(0)}) == (400, "field_required")
    engine.role()
    assert engine.refused("POST", ROLE, {"azure_roles": "[]"}) == (400, "field_required")


def test_names_are_case_insensitive(engine: SecretsEngine) -> None:
    engine.must("POST", "cloud/roles/Web.Prod-1", {"azure_roles": engine.grants()})
    assert engine.must("LIST", "cloud/roles").data == {"keys": ["web.prod-1"]}
    assert engine.ask("GET", "cloud/roles/WEB.prod-1").status == 200
    assert engine.ask("GET", "cloud/creds/WEB.prod-1").status == 200
    assert engine.refused("POST", "cloud/roles/-web", {"azure_roles": engine.grants()}) == (400, "name_invalid")


def test_roles_are_listed_and_deleted(engine: SecretsEngine) -> None:
    assert engine.ask("LIST", "cloud/roles").status == 404
    for name in ("b", "a"):
        engine.must("POST", f"cloud/roles/{name}", {"azure_roles": engine.grants()})
    assert engine.must("LIST", "cloud/roles").data == engine.must("GET", "cloud/roles?list=true").data
    assert engine.must("LIST", "cloud/roles").data == {"keys": ["a", "b"]}
    assert engine.ask("DELETE", "cloud/roles/a").status == 204
    assert engine.ask("DELETE", "cloud/roles/a").status == 404
    assert engine.must("LIST", "cloud/roles").data == {"keys": ["b"]}
    assert engine.ask("GET", "cloud/roles/a").body == {"errors": []}


def test_a_damaged_role_can_be_deleted(engine: SecretsEngine) -> None:
    engine.must("POST", ROLE, {"azure_roles": engine.grants()})
    engine.store.commit({}, {keys.role(engine.mount("cloud").id, "web"): b"damaged"}, ())
    assert engine.refused("GET", ROLE) == (503, "entry_damaged")
    [warning] = engine.must("DELETE", ROLE).body["warnings"]
    assert warning.startswith("the role was damaged")
    assert engine.refused("GET", ROLE)[0] == 404


def test_a_role_is_deleted_and_its_answer_says_which_leases_live_on(engine: SecretsEngine) -> None:
    engine.role()
    engine.must("GET", CREDS)
    engine.must("GET", CREDS)
    reply = engine.must("DELETE", ROLE)
    assert reply.body["warnings"] == ["leases that stay valid until they expire: 2; revoke_leases=true revokes them"]
    engine.converge()
    assert len(engine.must("LIST", f"sys/leases/lookup/{CREDS}").data["keys"]) == 2


@pytest.mark.parametrize("persist_app", [False, True])
def test_a_role_can_be_deleted_with_its_leases(engine: SecretsEngine, persist_app: bool) -> None:
    engine.role(persist_app=persist_app)
    engine.must("POST", "cloud/roles/web-2", {"azure_roles": engine.grants()})
    engine.must("GET", "cloud/creds/web-2")
    data = engine.must("GET", CREDS).data
    assert engine.must("DELETE", f"{ROLE}?revoke_leases=true").status == 204
    assert not engine.signs_in(data["client_id"], data["client_secret"])
    engine.converge()
    assert len(engine.alive("application")) == 1
    assert engine.ask("DELETE", f"{ROLE}?revoke_leases=true").status == 404


def test_a_deletion_that_cannot_end_all_leases_says_where_they_are_and_can_be_repeated(engine: SecretsEngine) -> None:
    engine.role()
    engine.must("GET", CREDS)
    engine.fail(path="/graph/.*", status=503, code="ServiceUnavailable")
    assert engine.ask("DELETE", f"{ROLE}?revoke_leases=true").codes[0] == "revocation_pending"
    assert engine.ask("GET", ROLE).status == 404
    engine.heal()
    assert engine.must("DELETE", f"{ROLE}?revoke_leases=true").status == 204
    engine.converge()
    assert not engine.alive()


@pytest.mark.parametrize(
    "first, second, problems",
    [
        ({}, {"ttl": 3, "max_ttl": 2}, 1),
        ({}, {"ttl": 3, "explicit_max_ttl": 2}, 1),
        ({}, {"max_ttl": 3, "explicit_max_ttl": 2}, 1),
        ({}, {"ttl": 4, "max_ttl": 3, "explicit_max_ttl": 2}, 3),
        ({"max_ttl": 60}, {"ttl": "2m"}, 1),
        ({"ttl": "2m"}, {"max_ttl": 60}, 1),
        ({"max_ttl": 60}, {"explicit_max_ttl": 59}, 1),
    ],
)
def test_a_ttl_above_a_maximum_is_refused(engine: SecretsEngine, first: Any, second: Any, problems: int) -> None:
    """Equal values are accepted, and so is no maximum. Fields of earlier writes count too."""
    engine.role(**first)
    assert engine.refused("POST", ROLE, second) == (400, *["ttl_exceeds_max"] * problems)
    engine.role(ttl=60, max_ttl=60, explicit_max_ttl=60)
    engine.role(ttl=101, max_ttl=0, explicit_max_ttl=0)


@pytest.mark.parametrize("bad", [{"ttl": -1}, {"max_ttl": "soon"}, {"explicit_max_ttl": []}, {"ttl": "1 hour"}])
def test_a_value_that_is_no_duration_is_refused(engine: SecretsEngine, bad: dict[str, Any]) -> None:
    assert engine.refused("POST", ROLE, {"azure_roles": engine.grants(), **bad}) == (400, "field_invalid")


@pytest.mark.parametrize(
    "written, shown",
    [
        ("b, a ,b,,", ["b", "a", "b"]),
        (["b", " a", "b", ""], ["b", "a", "b"]),
        ("", []),
        ("x" * 256, ["x" * 256]),
        ("env:prod", ["env:prod"]),
    ],
)
def test_tags_are_split_and_shown_as_they_were_written(engine: SecretsEngine, written: Any, shown: list[str]) -> None:
    engine.role(tags=written)
    assert engine.shown_role()["tags"] == shown


@pytest.mark.parametrize(
    "tags",
    ["x" * 257, "two words", "two\twords", "two\u00a0words", "nul\0", "delete\x7f", {"a": "b"}, [["a"]], "t," * 101],
)
def test_a_text_that_is_no_tag_is_refused(engine: SecretsEngine, tags: Any) -> None:
    assert engine.refused("POST", ROLE, {"azure_roles": engine.grants(), "tags": tags}) == (400, "field_invalid")


@pytest.mark.parametrize("audience", ["CloudADMultipleOrgs", "AzureADMultipleOrgs"])
def test_audiences_are_read_back_as_written_and_can_be_cleared(engine: SecretsEngine, audience: str) -> None:
    for written in (audience, ""):
        engine.role(sign_in_audience=written)
        assert engine.shown_role()["sign_in_audience"] == written
    assert engine.refused("POST", ROLE, {"sign_in_audience": "cloudadmultipleorgs"}) == (400, "field_invalid")


def test_a_role_with_an_existing_application_ignores_grants_and_groups(engine: SecretsEngine) -> None:
    """Roles and groups are stored, and otherwise ignored: they need not exist."""
    other = engine.other_application
    ignored = [{"role_name": "Nobody", "scope": engine.scope}]
    groups = [{"object_id": NO_ID}]
    engine.role(application_object_id=other["object_id"], azure_roles=ignored, azure_groups=groups)
    shown = engine.shown_role()
    assert shown["application_object_id"] == other["object_id"]
    assert shown["azure_roles"] == [{"role_name": "Nobody", "role_id": "", "scope": engine.scope}]
    assert shown["azure_groups"] == [{"group_name": "", "object_id": NO_ID}]
    assert engine.must("GET", CREDS).data["client_id"] == other["client_id"]
    assert [made.kind for made in engine.alive()] == ["password"]
    assert engine.refused("POST", ROLE, {"application_object_id": ""}) == (400, "reference_not_found")


@pytest.mark.parametrize("missing", [NO_ID, "nonsense", "../groups", "."])
def test_an_application_that_does_not_exist_is_refused(engine: SecretsEngine, missing: str) -> None:
    assert engine.refused("POST", ROLE, {"application_object_id": missing}) == (400, "reference_not_found")


@pytest.mark.parametrize("flag", ["persist_app", "permanently_delete"])
def test_an_existing_application_is_neither_made_nor_deleted(engine: SecretsEngine, flag: str) -> None:
    """Whichever is written first."""
    fields = {"application_object_id": engine.other_application["object_id"]}
    assert engine.refused("POST", ROLE, {**fields, flag: True}) == (400, "fields_exclusive")
    engine.role(**fields)
    assert engine.refused("POST", ROLE, {flag: True}) == (400, "fields_exclusive")
    engine.must("POST", ROLE, {"application_object_id": "", "azure_roles": engine.grants(), flag: True})
    assert engine.refused("POST", ROLE, fields) == (400, "fields_exclusive")
    engine.must("POST", ROLE, {**fields, flag: False})


def test_a_role_does_not_point_at_the_root_application(engine: SecretsEngine) -> None:
    """Whether its id comes from the configuration or from the environment."""
    own = {"application_object_id": engine.root_application["object_id"]}
    assert engine.refused("POST", ROLE, own) == (403, "self_target")
    other = engine.other_application
    engine.restart(
        environment={
            "CLOUD_CLIENT_ID": Secret(other["client_id"].upper()),
            "CLOUD_CLIENT_SECRET": Secret(other["client_secret"]),
        }
    )
    for principal in engine.simulator.world.directory.principals.all():
        permit(engine.simulator.world, principal.id, reading=True, writing=True)
    assert engine.refused("POST", ROLE, {"application_object_id": other["object_id"]}) == (403, "self_target")


def test_writing_a_role_needs_a_configuration(engine: SecretsEngine) -> None:
    """Without one, roles can still be read, listed and deleted."""
    engine.role()
    engine.must("DELETE", CONFIG)
    assert engine.refused("POST", ROLE, {"ttl": 5}) == (400, "config_missing")
    assert engine.shown_role()["ttl"] == 0
    engine.must("LIST", "cloud/roles")
    engine.must("DELETE", ROLE)


def test_a_look_up_that_the_provider_denies_has_its_own_code(engine: SecretsEngine) -> None:
    engine.fail(method="GET", path="/graph/v1.0/applications", times=1, status=403, code="Authorization_RequestDenied")
    reply = engine.write_role(application_object_id=engine.other_application["object_id"])
    assert (reply.status, reply.codes) == (502, ["provider_permission_denied"])


def test_of_two_deletions_at_once_one_finds_nothing(engine: SecretsEngine) -> None:
    engine.role(persist_app=True)
    deleting = [engine.spawn(engine.asking("DELETE", ROLE)) for _ in range(2)]
    engine.advance(5)
    assert sorted(each.result().status for each in deleting) == [204, 404]
    engine.converge()
    assert engine.is_over()


def test_two_writes_at_once_both_count(engine: SecretsEngine) -> None:
    """The later one starts again from what the earlier one stored."""
    engine.role()
    first = engine.spawn(engine.asking("POST", ROLE, {"ttl": 60}))
    second = engine.spawn(engine.asking("POST", ROLE, {"max_ttl": 120}))
    engine.advance(5)
    assert (first.result().status, second.result().status) == (204, 204)
    assert (engine.shown_role()["ttl"], engine.shown_role()["max_ttl"]) == (60, 120)
