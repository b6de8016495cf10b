"""Verbs, paths, headers and bodies, as they reach a whole service."""

from __future__ import annotations

import json

import pytest

from cloudid_core import Request
from tests.installation import Installation
from tests.simulation.operations import copy_of, with_leases
from tests.wire.raw import codes, send, token_with, told

ROLE = b'{"bound_locations": "westus2"}'


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_post_and_put_are_one(service: Installation, method: str) -> None:
    assert send(service, method, "auth/cloud/role/web", ROLE).status == 204
    assert send(service, method, "auth/token/renew-self", token="wrong").status == 403
    assert send(service, method, "auth/cloud/login", b"{}", token=None).status == 400


@pytest.mark.parametrize("method, query", [("LIST", ""), ("LIST", "/"), ("GET", "?list=true"), ("GET", "/?list=True")])
def test_lists_can_be_asked_for_in_two_ways(furnished: Installation, method: str, query: str) -> None:
    assert told(send(furnished, method, f"auth/cloud/role{query}"))["data"] == {"keys": ["web"]}


def test_a_junk_flag_is_refused_before_policy(service: Installation) -> None:
    assert send(service, "GET", "auth/cloud/role?list=junk", token=None).status == 400


@pytest.mark.parametrize(
    "target", ["auth/cloud/role/web", "sys/health", "auth/token/lookup-self", "auth/cloud/role/no"]
)
def test_head_is_a_get_whose_body_the_host_leaves_out(furnished: Installation, target: str) -> None:
    head, get = (send(furnished, method, target) for method in ("HEAD", "GET"))
    assert (head.status, head.headers) == (get.status, get.headers)


def test_head_makes_no_credentials() -> None:
    service = copy_of(with_leases())
    known = set(service.answered)
    response = send(service, "HEAD", "cloud/creds/existing")
    assert (response.status, codes(response)) == (405, ["unsupported_operation"])
    assert set(told(send(service, "LIST", "sys/leases/lookup/cloud/creds/existing"))["data"]["keys"]) == {
        lease_id.rpartition("/")[2] for lease_id in known if "/existing/" in lease_id
    }


@pytest.mark.parametrize(
    "content_type, status", [("application/merge-patch+json", 405), ("application/json", 415), ("", 415)]
)
def test_patch_is_not_offered(furnished: Installation, content_type: str, status: int) -> None:
    response = send(furnished, "PATCH", "auth/cloud/role/web", ROLE, {"content-type": content_type})
    assert response.status == status


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE", "CONNECT", "SCAN", "post"])
def test_other_verbs_are_not_offered(service: Installation, method: str) -> None:
    assert send(service, method, "sys/health").status == 405


@pytest.mark.parametrize(
    "target",
    [
        "auth/cloud/../../sys/auth",
        "auth/cloud/./config",
        "auth/cloud/%2e%2e/config",
        "auth%2fcloud/config",
        "auth/cloud/role/a%2Fb",
        "auth/cloud/role/a%00b",
        "auth//cloud/config",
    ],
)
@pytest.mark.parametrize("token", ["root", None])
def test_paths_with_two_readings_are_refused_before_policy(
    service: Installation, target: str, token: str | None
) -> None:
    response = send(service, "GET", target, token=token)
    assert (response.status, codes(response)) == (400, ["malformed_path"])


def test_nothing_is_written_to_a_path_that_ends_in_a_slash(service: Installation) -> None:
    response = send(service, "POST", "auth/cloud/role/web/", ROLE)
    assert (response.status, codes(response)) == (400, ["malformed_path"])
    assert "slash" in told(response)["errors"][0]


@pytest.mark.parametrize("target", ["/", "/v1", "/v2/sys/health", "/ui/", "*", "http://other/v1/sys/health"])
def test_outside_of_the_interface_is_nothing(service: Installation, target: str) -> None:
    response = service.perform(service.service.handle(Request("GET", target)))
    assert response.status == 404


@pytest.mark.parametrize("name", ["Web", "WEB", "web"])
def test_names_know_no_case(furnished: Installation, name: str) -> None:
    assert send(furnished, "GET", f"auth/cloud/role/{name}").status == 200


@pytest.mark.parametrize("name", [".web", "web.", "-web", "w%20b", "w%C3%A4b", "w" * 129])
@pytest.mark.parametrize(
    "path, found",
    [
        ("auth/cloud/role", {"GET": 404, "DELETE": 204}),
        ("auth/token/roles", {"GET": 404, "DELETE": 204}),
        ("cloud/roles", {"GET": 404, "DELETE": 404}),
        ("cloud/creds", {"GET": 400}),
        ("sys/policies/acl", {"GET": 404, "DELETE": 204}),
        ("sys/quotas/rate-limit", {"GET": 404, "DELETE": 204}),
        ("sys/quotas/lease-count", {"GET": 404, "DELETE": 204}),
    ],
)
def test_what_has_a_name_that_cannot_exist_is_not_there_and_cannot_be_written(
    furnished: Installation, path: str, found: dict[str, int], name: str
) -> None:
    """Existing clients ask whether something is there, or delete it, before they know whether its name can exist."""
    if path == "sys/policies/acl":
        name = f"+{name}"  # names of policies are wider
    for method, status in found.items():
        assert send(furnished, method, f"{path}/{name}").status == status
    if "creds" not in path:
        response = send(furnished, "POST", f"{path}/{name}", b'{"policy": ""}')
        assert (response.status, codes(response)) == (400, ["name_invalid"])


def test_audited_headers_and_devices_whose_names_cannot_exist_are_not_there(furnished: Installation) -> None:
    header = "sys/config/auditing/request-headers/a%20b"
    assert codes(send(furnished, "GET", header)) == ["audited_header_not_found"]
    assert send(furnished, "DELETE", header).status == 204
    assert codes(send(furnished, "POST", header)) == ["name_invalid"]
    for name in ("unknown", "a%20b"):
        assert send(furnished, "DELETE", f"sys/audit/{name}").status == 204


@pytest.mark.parametrize(
    "headers, is_let_in",
    [
        ({"x-service-token": "root"}, True),
        ({"x-vault-token": "root"}, True),
        ({"authorization": "Bearer root"}, True),
        ({"authorization": "bearer root"}, True),
        ({"authorization": "Basic root"}, False),
        ({"x-service-token": "root", "x-vault-token": "wrong", "authorization": "Bearer wrong"}, True),
        ({"x-service-token": "wrong", "x-vault-token": "root"}, False),
        ({"x-vault-token": "wrong", "authorization": "Bearer root"}, False),
        ({"x-vault-token": "root", "x-vault-request": "true", "x-vault-namespace": "root"}, True),
    ],
)
def test_the_first_header_with_a_token_counts(
    furnished: Installation, headers: dict[str, str], is_let_in: bool
) -> None:
    assert send(furnished, "GET", "auth/cloud/config", headers=headers, token=None).status == (
        200 if is_let_in else 403
    )


def test_a_login_needs_no_token_and_does_not_mind_a_wrong_one(service: Installation) -> None:
    for token in (None, "wrong"):
        assert send(service, "POST", "auth/cloud/login", b"{}", token=token).status == 400


@pytest.mark.parametrize(
    "headers, status",
    [
        ({"x-vault-namespace": "team"}, 400),
        ({"x-vault-namespace": "root/"}, 200),
        ({"x-vault-wrap-ttl": "60"}, 200),
        ({"x-vault-wrap-ttl": "0"}, 200),
        ({"x-vault-wrap-ttl": "soon"}, 400),
        ({"x-vault-wrap-ttl": "-1"}, 400),
        ({"x-vault-wrap-ttl": "0.5s"}, 400),
        ({"x-vault-wrap-ttl": "3000d"}, 400),
        ({"x-service-wrap-ttl": "1m"}, 200),
        ({"x-service-wrap-ttl": "0", "x-vault-wrap-ttl": "soon"}, 200),
        ({"x-service-deadline": "5"}, 200),
        ({"x-service-deadline": "1000"}, 200),
        ({"x-service-deadline": "0"}, 400),
        ({"x-service-deadline": "soon"}, 400),
        ({"x-service-deadline": "1_0"}, 400),
        ({"x-service-deadline": "1e1"}, 400),
        ({"x-service-deadline": " 5"}, 400),
        ({"x-service-deadline": "\u0665"}, 400),
    ],
)
def test_headers_that_ask_for_more(furnished: Installation, headers: dict[str, str], status: int) -> None:
    """A namespace that is not there must not be ignored in silence."""
    assert send(furnished, "GET", "auth/cloud/config", headers=headers).status == status


def test_an_unknown_namespace_is_named_as_what_is_missing(furnished: Installation) -> None:
    """Existing clients drop the text of a 404."""
    response = send(furnished, "GET", "auth/cloud/config", headers={"x-vault-namespace": "team"})
    assert json.loads(response.body)["errors"] == ["unknown namespace: there is only root"]
    assert codes(response) == ["namespace_unknown"]


def test_a_form_is_answered_with_what_to_send_instead(furnished: Installation) -> None:
    """As `curl -d` sends it."""
    headers = {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}
    for body in (b"token_ttl=1h", b"1"):
        response = send(furnished, "POST", "auth/cloud/role/web", body, headers)
        assert json.loads(response.body)["errors"] == [
            "failed to decode JSON input: the body is a form: send JSON instead"
        ]


def test_a_deadline_that_passes_while_the_provider_is_slow_is_504() -> None:
    service = copy_of(with_leases())
    service.fail(delay=30.0)
    response = send(service, "GET", "cloud/creds/fresh", headers={"x-service-deadline": "2"})
    assert (response.status, codes(response)) == (504, ["deadline_passed"])


@pytest.mark.parametrize(
    "body, status, code",
    [
        (b"", 204, ""),
        (b"null", 204, ""),
        (b"{}", 204, ""),
        (b'{"token_ttl": "junk", "token_ttl": "1h"}', 204, ""),
        (b"[]", 400, "malformed_json"),
        (b"token_ttl=1h", 400, "malformed_json"),
        (b'{"token_ttl":', 400, "malformed_json"),
        (b'{"a": ' + b"[" * 40 + b"]" * 40 + b"}", 400, "body_too_complex"),
        (b'{"a": "' + b"x" * 2**20 + b'"}', 413, "body_too_large"),
    ],
)
@pytest.mark.parametrize("content_type", ["", "application/json", "application/x-www-form-urlencoded", "text/plain"])
def test_bodies_are_json_whatever_they_say_they_are(
    furnished: Installation, content_type: str, body: bytes, status: int, code: str
) -> None:
    response = send(furnished, "POST", "auth/cloud/role/web", body, {"content-type": content_type})
    assert response.status == status
    assert not code or codes(response) == [code]


def test_a_read_takes_its_fields_from_the_query_and_a_write_does_not(furnished: Installation) -> None:
    assert send(furnished, "GET", "sys/health?activecode=299").status == 299
    assert send(furnished, "POST", "auth/cloud/role/web?token_ttl=junk").status == 204


@pytest.mark.parametrize(
    "body, warnings",
    [
        (b'{"token_ttl": 5}', None),
        (b'{"name": "web"}', None),
        (b'{"b": 1, "a": 2}', ["Endpoint ignored these unrecognized parameters: [a b]"]),
        (
            b'{"name": "other", "x": null}',
            [
                "Endpoint ignored these unrecognized parameters: [x]",
                "Endpoint replaced the value of these parameters with the values captured from the endpoint's path:"
                " [name]",
            ],
        ),
    ],
)
def test_fields_that_do_not_count_are_told(furnished: Installation, body: bytes, warnings: list[str] | None) -> None:
    """Unknown ones by name, never by value; those that the path overrules unless they say the same."""
    response = send(furnished, "POST", "auth/cloud/role/web", body)
    assert (told(response)["warnings"] if response.body else None) == warnings


def test_a_field_of_the_form_that_the_path_overrules_is_in_a_warning_too(furnished: Installation) -> None:
    response = send(furnished, "POST", "sys/leases/revoke/cloud/creds/web/1", b'{"lease_id": "another"}')
    (warning,) = told(response)["warnings"]
    assert warning.startswith("Endpoint replaced the value of these parameters")
    assert warning.endswith("[lease_id]")


def test_parameters_can_be_constrained_by_policy(furnished: Installation) -> None:
    policy = """
    path "auth/cloud/role/*" {
        capabilities = ["update"]
        allowed_parameters = { token_ttl = ["1h", "2h"] }
    }"""
    token = token_with(furnished, policy)
    assert send(furnished, "POST", "auth/cloud/role/web", b'{"token_ttl": "2h"}', token=token).status == 204
    assert send(furnished, "POST", "auth/cloud/role/web", b'{"token_ttl": "3h"}', token=token).status == 403
    assert send(furnished, "POST", "auth/cloud/role/web", b'{"token_max_ttl": "2h"}', token=token).status == 403


CREATE, WEB = "auth/token/create", "auth/cloud/role/web"


@pytest.mark.parametrize(
    "path, values, passing, refused",
    [
        (CREATE, 'allowed_parameters = { meta = [{ t = "a" }] }', b'{"meta": {"t": "a"}}', b'{"meta": {"t": "b"}}'),
        (WEB, 'allowed_parameters = { policies = ["", "a"] }', b'{"policies": "a"}', b'{"policies": ["b"]}'),
        (WEB, 'denied_parameters = { policies = ["A*Z"] }', b'{"policies": "a"}', b'{"policies": ["abz"]}'),
        (WEB, 'allowed_parameters { "policies" = [["a"]] },', b'{"policies": "a"}', b'{"policies": ["a", "b"]}'),
    ],
    ids=["an object", "an empty text", "a star inside", "a list as a whole"],
)
def test_a_policy_compares_whole_values(
    furnished: Installation, path: str, values: str, passing: bytes, refused: bytes
) -> None:
    token = token_with(furnished, f'path "{path}" {{ capabilities = ["update"], {values} }}')
    assert send(furnished, "POST", path, passing, token=token).status in (200, 204)
    assert send(furnished, "POST", path, refused, token=token).status == 403
