"""Dispatch: what a request meets, in which order, before and after its program."""

from __future__ import annotations

import pytest

from cloudid_core.dispatch.dispatch import authorise, read_form
from cloudid_core.errors import Code, Refused
from cloudid_core.messages.response import METHODS, Request
from cloudid_core.mounts import MountTable, default_mounts, mount_table
from cloudid_core.policies.document import parse
from cloudid_core.policies.matching import Acl
from cloudid_core.routing.exchange import Exchange
from cloudid_core.store.records import Found
from cloudid_core.tokens.record import Caller
from tests.exchanges import read, routed
from tests.installation import Installation
from tests.tokens import new_token, write_policy

from ..tokens.test_record import token

WORLD = Installation()
CONTEXT = WORLD.context
MOUNTS = WORLD.perform(mount_table(CONTEXT.records))


def ask(method: str, target: str, who: Caller | None) -> Exchange:
    exchange = read(Request(method, f"/v1/{target}"), CONTEXT.settings)
    exchange.caller = who
    return exchange


def place_of(method: str, target: str, mounts: Found[MountTable] = MOUNTS) -> Exchange:
    return routed(Request(method, f"/v1/{target}"), mounts.record)


def dead_end(place: Exchange) -> Code:
    """Why there is no route."""
    assert place.route is None
    assert place.dead_end is not None
    return place.dead_end.code


def caller(policy: str) -> Caller:
    return Caller(token=token(), text="t", acl=WORLD.perform(Acl.of([parse("p", policy)])))


# Where a path leads


@pytest.mark.parametrize(
    "method, target, mount, path, captures",
    [
        ("GET", "auth/cloud/role/web", "auth/cloud", "role/:name", {"name": "web"}),
        ("LIST", "auth/cloud/role", "auth/cloud", "role", {}),
        ("GET", "auth/cloud/role/?list=true", "auth/cloud", "role", {}),
        ("GET", "cloud/creds/web", "cloud", "creds/:name", {"name": "web"}),
        ("POST", "auth/token/create", "auth/token", "create", {}),
        ("HEAD", "auth/token/lookup-self", "auth/token", "lookup-self", {}),
        ("GET", "sys/health", "sys", "health", {}),
    ],
)
def test_a_path_leads_to_a_mount_and_a_route(
    method: str, target: str, mount: str, path: str, captures: dict[str, str]
) -> None:
    place = place_of(method, target)
    assert place.mount is not None
    assert place.route is not None
    assert (place.mount.path, place.route.path, dict(place.captures)) == (mount, path, captures)


@pytest.mark.parametrize(
    "method, target, code",
    [
        ("GET", "nowhere/x", Code.NO_HANDLER),
        ("GET", "auth/cloud/nothing", Code.UNSUPPORTED_PATH),
        ("DELETE", "auth/cloud/login", Code.UNSUPPORTED_OPERATION),
        ("HEAD", "cloud/creds/web", Code.UNSUPPORTED_OPERATION),
    ],
)
def test_a_request_without_a_route_has_a_code(method: str, target: str, code: Code) -> None:
    assert dead_end(place_of(method, target)) is code


def test_a_mount_of_another_table_is_not_found() -> None:
    others = default_mounts(bytes(24)).without(default_mounts(bytes(24)).mounts[0].id)
    assert dead_end(place_of("GET", "auth/cloud/config", MOUNTS.with_record(others))) is Code.NO_HANDLER


# Who may


@pytest.mark.parametrize(
    "policy, allowed",
    [
        ('path "cloud/roles/" { capabilities = ["list"] }', True),
        ('path "cloud/roles" { capabilities = ["list"] }', True),
        ('path "cloud/roles/*" { capabilities = ["list"] }', True),
        ('path "cloud/roles" { capabilities = ["list"] } path "cloud/roles/" { capabilities = ["deny"] }', False),
        ('path "cloud/roles" { capabilities = ["deny"] } path "cloud/roles/" { capabilities = ["list"] }', True),
        ('path "cloud/roles/" { capabilities = ["read"] }', False),
        ("", False),
    ],
)
@pytest.mark.parametrize("target", ["cloud/roles", "cloud/roles/"])
def test_the_path_of_a_list_is_asked_about_with_its_final_slash(policy: str, allowed: bool, target: str) -> None:
    asked = ask("LIST", target, caller(policy))
    if allowed:
        authorise(asked, asked.capability)
    else:
        with pytest.raises(Refused) as refusal:
            authorise(asked, asked.capability)
        assert refusal.value.code is Code.PERMISSION_DENIED


@pytest.mark.parametrize("has_sudo", [True, False])
def test_protected_paths_need_sudo_besides(has_sudo: bool) -> None:
    capabilities = '["list", "sudo"]' if has_sudo else '["list"]'
    who = caller(f'path "auth/token/accessors/" {{ capabilities = {capabilities} }}')
    if has_sudo:
        authorise(ask("LIST", "auth/token/accessors", who), "list")
    else:
        with pytest.raises(Refused):
            authorise(ask("LIST", "auth/token/accessors", who), "list")


def test_a_request_without_a_caller_is_denied() -> None:
    with pytest.raises(Refused):
        authorise(ask("GET", "cloud/config", None), "read")


def test_policies_check_the_parameters_of_a_request() -> None:
    world = Installation()
    text = 'path "auth/token/create" { capabilities = ["update"] denied_parameters = { "ttl" = [] } }'
    world.must("POST", "sys/policies/acl/p", {"policy": text})
    maker = new_token(world, policies=["p"])
    assert world.refused("POST", "auth/token/create", {"ttl": 5}, maker) == (403, "permission_denied")
    world.must("POST", "auth/token/create", {}, maker)


def test_creating_and_changing_need_different_capabilities() -> None:
    world = Installation()
    write_policy(world, "creator", ("auth/token/roles/*", ["create"]))
    write_policy(world, "changer", ("auth/token/roles/*", ["update"]))
    creator, changer = (new_token(world, policies=[name]) for name in ("creator", "changer"))
    assert world.ask("POST", "auth/token/roles/r", {}, changer).status == 403
    assert world.ask("POST", "auth/token/roles/r", {}, creator).status == 204
    assert world.ask("POST", "auth/token/roles/r", {}, creator).status == 403
    assert world.ask("POST", "auth/token/roles/r", {}, changer).status == 204


# The order that clients see


@pytest.mark.parametrize("path", ["cloud/config", "cloud/nothing", "nowhere/at/all"])
def test_without_a_good_token_every_path_answers_alike(path: str) -> None:
    world = Installation()
    for token_text in ("", "unknown"):
        reply = world.ask("GET", path, token=token_text)
        assert (reply.status, reply.code) == (403, "permission_denied")
        assert reply.response.body == b'{"errors":["permission denied"],"codes":["permission_denied"]}\n'


@pytest.mark.parametrize(
    "method, path, answer",
    [
        ("GET", "nowhere/at/all", (404, "no_handler")),
        ("GET", "cloud/nothing", (404, "unsupported_path")),
        ("DELETE", "cloud/roles", (405, "unsupported_operation")),
    ],
)
def test_with_permission_an_unknown_path_is_404(method: str, path: str, answer: tuple[int, str]) -> None:
    world = Installation()
    assert world.refused(method, path) == answer
    assert world.refused(method, path, None, new_token(world, policies=["default"])) == (403, "permission_denied")


def test_a_request_that_cannot_be_understood_is_refused_before_its_token_is_looked_at() -> None:
    assert Installation().refused("GET", "cloud/../sys", token="unknown") == (400, "malformed_path")


# Fields


def test_fields_are_read_by_the_form_of_the_route() -> None:
    place = place_of("POST", "auth/token/renew")
    assert place.route is not None
    given = read_form(place.route, {"token": "t", "increment": "1m", "other": 1})
    assert (dict(given.values), given.ignored) == ({"token": "t", "increment": 60}, ("other",))
    with pytest.raises(Refused) as refusal:
        read_form(place.route, {"increment": "1m"})
    assert refusal.value.code is Code.FIELD_REQUIRED


def test_a_misspelt_field_of_a_write_causes_a_warning() -> None:
    """A write that would have had nothing to say then answers 200."""
    world = Installation()
    reply = world.ask("POST", "auth/token/roles/r", {"oprhan": True, "beta": 1})
    assert reply.body["warnings"] == ["Endpoint ignored these unrecognized parameters: [beta oprhan]"]
    assert reply.status == 200
    assert world.must("GET", "auth/token/roles/r?unknown=1").body["warnings"] is None


def test_a_field_that_asks_for_what_is_not_offered_is_refused_and_an_empty_one_is_no_unknown_field() -> None:
    """Terraform shows no warnings: its user would believe in what is not there."""
    world = Installation()
    assert world.ask("POST", "auth/token/roles/r", {"alias_metadata": {}}).status == 204
    assert world.refused("POST", "auth/token/roles/r", {"alias_metadata": {"a": "b"}}) == (400, "field_invalid")
    wrapped = world.must("POST", "sys/wrapping/wrap", {"alias_metadata": {"a": "b"}}, x_vault_wrap_ttl="60")
    assert wrapped.body["wrap_info"], "what is wrapped may have any members"


@pytest.mark.parametrize(
    "names, listed",
    [
        ([f"p{number:03}" for number in range(204)], " ".join(f"p{number:03}" for number in range(204))),
        (
            [f"p{number:03}" for number in range(900)],
            " ".join(f"p{number:03}" for number in range(204)) + " and 696 more",
        ),
        (["a", "n" * 100_000], "a and 1 more"),
    ],
)
def test_a_warning_names_as_many_unknown_fields_as_are_short_enough(names: list[str], listed: str) -> None:
    """It stands in the answer, and clear in the entries of audit devices."""
    reply = WORLD.must("POST", "auth/token/lookup-self", dict.fromkeys(names, 1))
    assert reply.body["warnings"] == [f"Endpoint ignored these unrecognized parameters: [{listed}]"]


@pytest.mark.parametrize("name, warnings", [("r", None), ("other", 1)])
def test_the_path_beats_a_field_of_the_same_name(name: str, warnings: int | None) -> None:
    world = Installation()
    body = world.ask("POST", "auth/token/roles/r", {"name": name}).body
    assert (body and len(body["warnings"])) == warnings
    assert world.must("GET", "auth/token/roles/r").data["name"] == "r"
    assert world.ask("GET", "auth/token/roles/other").status == 404


def test_the_last_use_of_a_token_asks_for_background_work() -> None:
    world = Installation()
    limited = new_token(world, num_uses=2, policies=["default"])
    replies = [world.must("GET", "auth/token/lookup-self", token=limited) for _ in range(2)]
    assert [reply.response.wake_at for reply in replies] == [None, world.clock]


# Lists in pages


@pytest.mark.parametrize(
    "query, keys",
    [
        ("", ["a", "b", "c", "d"]),
        ("limit=2", ["a", "b"]),
        ("after=b", ["c", "d"]),
        ("after=a&limit=2", ["b", "c"]),
        ("after=bb&limit=9", ["c", "d"]),
        ("limit=0", ["a", "b", "c", "d"]),
        ("limit=-1", ["a", "b", "c", "d"]),
    ],
)
def test_a_list_is_read_in_pages(query: str, keys: list[str]) -> None:
    world = Installation()
    for name in "abcd":
        world.must("POST", f"auth/token/roles/{name}", {})
    assert world.must("LIST", f"auth/token/roles?{query}").data["keys"] == keys


def test_a_client_that_pages_comes_to_an_end() -> None:
    world = Installation()
    world.must("POST", "auth/token/roles/a", {})
    assert world.refused("LIST", "auth/token/roles?after=a&limit=1") == (404, "not_found")
    assert world.refused("LIST", "auth/token/roles?limit=some") == (400, "field_invalid")
    assert world.refused("LIST", "auth/token/roles?limit=-2") == (400, "field_invalid")


# What a caller without permission learns


@pytest.mark.parametrize("path, body", [("roles/a+b", {}), ("roles/a", {"token_period": "soon"})])
def test_errors_in_a_request_are_shown_only_to_callers_who_may_make_it(path: str, body: object) -> None:
    world = Installation()
    assert world.ask("POST", f"auth/token/{path}", body).status == 400
    assert world.ask("POST", f"auth/token/{path}", body, new_token(world, policies=["default"])).status == 403


def test_a_deprecated_name_does_not_evade_a_denied_parameter() -> None:
    world = Installation()
    text = 'path "auth/cloud/role/*" { capabilities = ["create"] denied_parameters = { "token_policies" = ["admin"] } }'
    world.must("POST", "sys/policies/acl/p", {"policy": text})
    maker = new_token(world, policies=["p"])
    for body in ({"policies": "admin"}, {"policies": ["app", "Admin"]}, {"token_policies": "app,admin"}):
        assert world.ask("POST", "auth/cloud/role/x", {"bound_locations": "a", **body}, maker).status == 403
    world.must("POST", "auth/cloud/role/x", {"bound_locations": "a", "policies": "app"}, maker)


@pytest.mark.parametrize(
    "method, path, allow",
    [
        ("DELETE", "auth/cloud/login", "POST, PUT"),
        ("HEAD", "cloud/creds/web", "GET"),
        ("POST", "cloud/roles", "GET, HEAD, LIST"),
        ("LIST", "cloud/config", "DELETE, GET, HEAD, POST, PUT"),
        ("get", "sys/health", METHODS),
        ("FROBNICATE", "sys/health", METHODS),
    ],
)
def test_a_405_names_the_methods_that_are_allowed(method: str, path: str, allow: str) -> None:
    """Those of the path; a method that the service does not know is answered with all that it knows."""
    world = Installation()
    reply = world.ask(method, path)
    assert (reply.status, reply.code, reply.response.headers["allow"]) == (405, "unsupported_operation", allow)


@pytest.mark.parametrize("method, status", [("DELETE", 403), ("FROBNICATE", 405)])
def test_without_a_token_no_answer_reveals_the_methods_of_a_path(method: str, status: int) -> None:
    world = Installation()
    reply = world.ask(method, "cloud/creds/web", token="")
    assert reply.status == status
    assert reply.response.headers.get("allow", METHODS) == METHODS


@pytest.mark.parametrize("path", ["Cloud/config", "CLOUD/roles/web", "auth/CLOUD/config", "Auth/cloud/config"])
def test_a_mount_is_found_by_its_path_in_the_case_in_which_it_was_enabled(path: str) -> None:
    assert Installation().ask("GET", path).status == 404


def test_the_case_of_a_mount_is_kept_and_two_do_not_differ_only_in_it() -> None:
    """Policies compare paths without regard to case, so they could not tell the two apart."""
    world = Installation()
    world.must("POST", "sys/mounts/Team/Cloud", {"type": "cloud"})
    assert "Team/Cloud/" in world.must("GET", "sys/mounts").data
    assert world.ask("GET", "Team/Cloud/config").status == 200
    assert world.ask("GET", "team/cloud/config").status == 404
    assert world.refused("POST", "sys/mounts/team/cloud", {"type": "cloud"}) == (409, "mount_path_in_use")
    token = new_token(world, policies=[write_policy(world, "reader", ("team/cloud/config", ["read"]))])
    assert world.ask("GET", "Team/Cloud/config", None, token).status == 200


@pytest.mark.parametrize("path", ["auth/cloud/role/w", "cloud/config", "sys/policies/acl/p"])
def test_a_deletion_names_fields_that_it_ignored(path: str) -> None:
    world = Installation()
    reply = world.ask("DELETE", path, {"revoke_lease": True})
    assert (reply.status, reply.body["warnings"]) == (
        200,
        ["Endpoint ignored these unrecognized parameters: [revoke_lease]"],
    )
    assert world.ask("DELETE", path).status == 204


def test_inline_authentication_is_refused_with_what_to_do_instead() -> None:
    world = Installation()
    reply = world.ask("GET", "sys/mounts", token="", x_vault_inline_auth_path="auth/cloud/login")
    assert (reply.status, reply.codes) == (403, ["permission_denied"])
    assert reply.body["errors"] == ["permission denied: inline authentication is not offered: log in first"]
    assert world.ask("GET", "sys/mounts", x_vault_inline_auth_path="auth/cloud/login").status == 200
    assert world.ask("GET", "sys/mounts", token="").body["errors"] == ["permission denied"]
