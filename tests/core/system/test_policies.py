"""The routes of policies, new and old."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from tests.installation import Installation
from tests.tokens import new_token, write_policy

TEXT = 'path "cloud/creds/*" { capabilities = ["read"] }'


@pytest.fixture
def service() -> Installation:
    return Installation()


@pytest.mark.parametrize("method, path", [("LIST", "policies/acl"), ("GET", "policies/acl?list=true")])
def test_the_list_begins_with_the_built_in_ones(service: Installation, method: str, path: str) -> None:
    assert service.must(method, f"sys/{path}").data == {"keys": ["default", "root"]}


@pytest.mark.parametrize("method", ["GET", "LIST"])
def test_the_older_list_has_the_names_twice_and_beside_the_data(service: Installation, method: str) -> None:
    reply = service.must(method, "sys/policy")
    assert reply.data == {"keys": ["default", "root"], "policies": ["default", "root"]}
    assert reply.body["policies"] == reply.body["keys"] == ["default", "root"]


def test_a_policy_is_written_and_read_in_both_generations(service: Installation) -> None:
    assert service.ask("PUT", "sys/policies/acl/app", {"policy": TEXT}).status == 204
    assert service.must("GET", "sys/policies/acl/app").data == {"name": "app", "policy": TEXT}
    reply = service.must("GET", "sys/policy/app")
    assert reply.data == {"name": "app", "rules": TEXT}
    assert reply.body["rules"] == TEXT
    assert service.must("LIST", "sys/policies/acl").data["keys"] == ["app", "default", "root"]


@pytest.mark.parametrize("body", [{"policy": TEXT}, {"rules": TEXT}, {"rules": "junk", "policy": TEXT}])
def test_the_older_write_knows_both_spellings(service: Installation, body: dict[str, str]) -> None:
    """The newer one counts."""
    assert service.ask("POST", "sys/policy/app", body).status == 204
    assert service.must("GET", "sys/policies/acl/app").data["policy"] == TEXT


def test_names_are_stored_in_lower_case_with_a_warning(service: Installation) -> None:
    reply = service.ask("PUT", "sys/policies/acl/App", {"policy": TEXT})
    assert reply.status == 200
    assert "lowercase" in reply.body["warnings"][0]
    assert service.must("GET", "sys/policy/APP").data["name"] == "app"


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
@pytest.mark.parametrize("name", ["%20admin", "admin%20", " admin", "%20%20ADMIN"])
@pytest.mark.parametrize("base", ["policies/acl", "policy"])
def test_a_name_with_blanks_around_it_is_no_other_name_of_a_policy(
    service: Installation, base: str, name: str, method: str
) -> None:
    """The caller's policies are asked about the path as it is: a `deny` of the name itself would not count."""
    service.must("PUT", "sys/policies/acl/admin", {"policy": TEXT})
    rules = (f"sys/{base}/*", ["read", "update", "delete"]), (f"sys/{base}/admin", ["deny"])
    token = new_token(service, policies=[write_policy(service, "others", *rules)])
    assert service.refused(method, f"sys/{base}/admin", {"policy": ""}, token) == (403, "permission_denied")
    reply = service.ask(method, f"sys/{base}/{name}", {"policy": ""}, token)
    assert reply.status == {"GET": 404, "PUT": 400, "DELETE": 200}[method]
    assert service.must("GET", "sys/policies/acl/admin").data["policy"] == TEXT


def test_an_empty_document_must_be_given_to_be_kept(service: Installation) -> None:
    assert service.ask("PUT", "sys/policies/acl/app", {}).body["codes"] == ["field_required"]
    assert service.ask("PUT", "sys/policies/acl/app", {"policy": ""}).status == 204


@pytest.mark.parametrize(
    "name, text, code",
    [("app", "path {", "policy_invalid"), ("+app", TEXT, "name_invalid"), ("root", TEXT, "policy_protected")],
)
def test_what_cannot_be_a_policy_is_refused(service: Installation, name: str, text: str, code: str) -> None:
    reply = service.ask("PUT", f"sys/policies/acl/{name}", {"policy": text})
    assert (reply.status, reply.body["codes"]) == (400, [code])


@pytest.mark.parametrize("name", ["default", "root", "Default", "response-wrapping"])
@pytest.mark.parametrize("base", ["policies/acl", "policy"])
def test_built_in_policies_cannot_be_deleted(service: Installation, base: str, name: str) -> None:
    assert service.ask("DELETE", f"sys/{base}/{name}").body["codes"] == ["policy_protected"]


def test_the_default_policy_can_be_edited(service: Installation) -> None:
    service.must("PUT", "sys/policies/acl/default", {"policy": TEXT})
    assert service.must("GET", "sys/policies/acl/default").data["policy"] == TEXT


@pytest.mark.parametrize("base", ["policies/acl", "policy"])
def test_a_deleted_policy_is_gone(service: Installation, base: str) -> None:
    """Deleting it once more succeeds; reading it does not."""
    service.must("PUT", "sys/policies/acl/app", {"policy": TEXT})
    assert [service.ask("DELETE", f"sys/{base}/app").status for _ in range(2)] == [204, 204]
    reply = service.ask("GET", f"sys/{base}/app")
    assert (reply.status, reply.body) == (404, {"errors": []})


@pytest.mark.parametrize("name", ["team/app", "user@example.com", "a:b", "a-", ".a", "x" * 128])
@pytest.mark.parametrize("base", ["policies/acl", "policy"])
def test_a_policy_can_be_written_under_every_name_that_tokens_and_roles_take(
    service: Installation, base: str, name: str
) -> None:
    assert service.ask("PUT", f"sys/{base}/{name}", {"policy": TEXT}).status == 204
    assert service.must("GET", f"sys/{base}/{name}").data["name"] == name
    assert service.must("POST", "auth/token/create", {"policies": [name]}).body["warnings"] is None
    service.must("POST", "auth/cloud/role/web", {"bound_locations": "a", "token_policies": [name]})
    service.must("POST", "auth/token/roles/web", {"allowed_policies": [name], "disallowed_policies": [name]})
    assert service.ask("DELETE", f"sys/{base}/{name}").status == 204
    assert service.ask("GET", f"sys/{base}/{name}").status == 404


@pytest.mark.parametrize("name", ["team/*", "a b", "x" * 129, "/a", "a/", "a//b", "a/../b", ".", "é", "a+b", "a*"])
def test_tokens_and_roles_take_no_name_under_which_no_policy_can_be_written(service: Installation, name: str) -> None:
    encoded = quote(name, safe="/")
    assert service.ask("PUT", f"sys/policies/acl/{encoded}", {"policy": TEXT}).status == 400
    for path, field in (
        ("auth/token/create", "policies"),
        ("auth/cloud/role/web", "token_policies"),
        ("auth/token/roles/web", "allowed_policies"),
        ("auth/token/roles/web", "disallowed_policies"),
    ):
        reply = service.ask("POST", path, {"bound_locations": "a", field: [name]})
        assert (reply.status, reply.body["codes"]) == (400, ["field_invalid"]), path


def test_globs_of_a_token_role_are_names_with_stars(service: Installation) -> None:
    service.must("POST", "auth/token/roles/web", {"allowed_policies_glob": "team/*, *-app", "token_type": "service"})
    assert service.must("POST", "auth/token/create/web", {"policies": ["team/x"]}).auth["policies"]
    assert service.ask("POST", "auth/token/roles/web", {"disallowed_policies_glob": "a b*"}).status == 400


def test_the_policy_of_wrapping_tokens_is_not_shown(service: Installation) -> None:
    assert service.ask("GET", "sys/policies/acl/response-wrapping").status == 404


def test_a_text_that_is_no_policy_changes_nothing(service: Installation) -> None:
    service.must("PUT", "sys/policies/acl/app", {"policy": TEXT})
    assert service.ask("PUT", "sys/policies/acl/app", {"policy": "path {"}).status == 400
    assert service.must("GET", "sys/policies/acl/app").data["policy"] == TEXT


@pytest.mark.parametrize("name", ["root", "ROOT", "Response-Wrapping"])
def test_reserved_names_cannot_be_written_in_any_spelling(service: Installation, name: str) -> None:
    assert service.ask("PUT", f"sys/policies/acl/{name}", {"policy": TEXT}).body["codes"] == ["policy_protected"]
