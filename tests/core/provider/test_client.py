"""The client."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from cloudid_core.errors import (
    Code,
    PlatformTokenUnavailable,
    ProviderAmbiguous,
    ProviderProblem,
    ProviderUnreachable,
    Refused,
    TimeIsUp,
)
from cloudid_core.provider.client import (
    MOST_PAGES,
    PROVIDER_FAILURES,
    ApiCall,
    ProviderFailure,
    ask,
    get_json,
    pages,
    refusal_of,
)
from cloudid_core.provider.responses import NONSENSE

from .cloud import ARM, SCOPE, TOKEN_PATH, Setting, error, form_of, reply, token, unreachable

URL = f"{ARM}/x"


class Item(msgspec.Struct):
    name: str


def test_a_call_carries_an_access_token_and_json() -> None:
    setting = Setting()
    setting.cloud.script("PUT /x", reply(201, {}))
    call = ApiCall(method="PUT", url=URL, scope=SCOPE, body={"a": [1]}, headers={"if-match": "*"})
    assert setting.world.perform(setting.client.call(call)).status == 201
    request = setting.cloud.requests[-1]
    assert request.headers["authorization"] == "Bearer token"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["if-match"] == "*"
    assert json.loads(request.body) == {"a": [1]}


def test_a_call_without_scope_carries_no_token() -> None:
    setting = Setting()
    setting.cloud.script("POST /x", reply(200))
    _ = setting.world.perform(setting.client.call(ApiCall(method="POST", url=URL, form={"a": "b c&"})))
    (request,) = setting.cloud.requests
    assert "authorization" not in request.headers
    assert form_of(request) == {"a": "b c&"}


def test_an_error_is_a_problem_with_status_code_and_request() -> None:
    setting = Setting()
    setting.cloud.script("GET /x", error(409, "Busy", x_ms_request_id="r-1", retry_after="9"))
    with pytest.raises(ProviderProblem) as caught:
        setting.world.perform(setting.client.call(ApiCall(url=URL, scope=SCOPE)))
    problem = caught.value
    assert (problem.status, problem.code, problem.request_id, problem.retry_after) == (409, "Busy", "r-1", 9)


@pytest.mark.parametrize("status", [302, 400, 404, 500])
def test_whatever_is_no_success_is_a_problem(status: int) -> None:
    setting = Setting()
    setting.cloud.script("GET /x", reply(status))
    with pytest.raises(ProviderProblem):
        setting.world.perform(setting.client.call(ApiCall(url=URL)))


def test_a_token_that_is_refused_is_replaced_once() -> None:
    setting = Setting()
    setting.cloud.script(f"POST {TOKEN_PATH}", token("old"), token("new"))
    setting.cloud.script("GET /x", reply(200), error(401), reply(200))
    for _ in range(2):
        assert setting.world.perform(setting.client.call(ApiCall(url=URL, scope=SCOPE))).status == 200
    used = [request.headers["authorization"] for request in setting.cloud.asked("/x")]
    assert used == ["Bearer old", "Bearer old", "Bearer new"]


def test_a_token_that_is_refused_again_is_given_up() -> None:
    setting = Setting()
    setting.cloud.script("GET /x", error(401, "InvalidAuthenticationToken"))
    with pytest.raises(ProviderProblem) as caught:
        setting.world.perform(setting.client.call(ApiCall(url=URL, scope=SCOPE)))
    assert caught.value.status == 401
    assert len(setting.cloud.asked("/x")) == len(setting.cloud.asked(TOKEN_PATH)) == 2


def test_json_is_checked_to_be_of_the_shape() -> None:
    setting = Setting()
    setting.cloud.script("GET /x", reply(200, {"name": "a"}), reply(200, {"name": []}))
    assert setting.world.perform(get_json(setting.client, URL, SCOPE, Item)) == Item("a")
    with pytest.raises(ProviderProblem) as caught:
        setting.world.perform(get_json(setting.client, URL, SCOPE, Item))
    assert caught.value.code == NONSENSE


def test_nonsense_in_answer_to_a_change_leaves_open_what_was_done() -> None:
    setting = Setting()
    setting.cloud.script("POST /x", reply(201, []))
    with pytest.raises(ProviderAmbiguous):
        setting.world.perform(ask(setting.client, ApiCall(method="POST", url=URL, idempotent=False), Item))


def test_a_change_without_definite_answer_is_ambiguous() -> None:
    setting = Setting()
    setting.cloud.script("POST /x", error(500))
    with pytest.raises(ProviderAmbiguous):
        setting.world.perform(setting.client.call(ApiCall(method="POST", url=URL, scope=SCOPE, idempotent=False)))


@pytest.mark.parametrize("member", ["nextLink", "@odata.nextLink"])
def test_all_pages_of_a_list_are_read(member: str) -> None:
    setting = Setting()
    setting.cloud.script("GET /x", reply(200, {"value": [{"name": "a"}, {"name": "b"}], member: f"{ARM}/y?z"}))
    setting.cloud.script("GET /y", reply(200, {"value": [{"name": "c"}], member: None}))
    assert setting.world.perform(pages(setting.client, URL, SCOPE, Item)) == [Item("a"), Item("b"), Item("c")]


@pytest.mark.parametrize(
    "link", ["https://evil.test/x", "http://arm.test/x", "https://arm.test:444/x", "//evil.test/x", "\n"]
)
def test_a_link_to_another_origin_is_not_followed(link: str) -> None:
    setting = Setting()
    setting.cloud.script("GET /x", reply(200, {"value": [], "nextLink": link}))
    with pytest.raises(ProviderProblem) as caught:
        setting.world.perform(pages(setting.client, URL, SCOPE, Item))
    assert caught.value.code == NONSENSE
    assert len(setting.cloud.asked("/x")) == 1


def test_a_link_with_a_blank_is_followed() -> None:
    """Source: Azure/azure-sdk-for-java issue 36506: the link to the second page repeats an unescaped filter."""
    setting = Setting()
    link = f"{ARM}:443/y?api-version=2023-03-01&$filter='virtualMachineScaleSet/id' eq '/subscriptions/s'&$skiptoken=2"
    setting.cloud.script("GET /x", reply(200, {"value": [{"name": "a"}], "nextLink": link}))
    setting.cloud.script("GET /y", reply(200, {"value": [{"name": "b"}]}))
    assert setting.world.perform(pages(setting.client, URL, SCOPE, Item)) == [Item("a"), Item("b")]
    assert setting.cloud.requests[-1].url == link.replace(" ", "%20")


def test_a_relative_link_is_followed_from_the_page_that_has_it() -> None:
    """Sources: Azure/typespec-azure issue 3921, on services that do not give an absolute link; pull request 6811 of
    Azure/azure-rest-api-specs, on one that gives an empty link at the end.
    """
    setting = Setting()
    setting.cloud.script("GET /x", reply(200, {"value": [{"name": "a"}], "nextLink": "/z/1"}))
    setting.cloud.script("GET /z/1", reply(200, {"value": [], "nextLink": "2?a=b"}))
    setting.cloud.script("GET /z/2", reply(200, {"value": [{"name": "b"}], "nextLink": ""}))
    assert setting.world.perform(pages(setting.client, URL, SCOPE, Item)) == [Item("a"), Item("b")]


def test_a_list_without_end_is_refused_and_the_refusal_names_the_bound() -> None:
    setting = Setting()
    setting.cloud.script("GET /x", reply(200, {"value": [], "nextLink": URL}))
    with pytest.raises(Refused, match=f"more than {MOST_PAGES} pages"):
        setting.world.perform(pages(setting.client, URL, None, Item))
    assert len(setting.cloud.requests) == MOST_PAGES


@pytest.mark.parametrize("page", [{}, {"value": {}}, {"value": [{}]}, {"value": [], "nextLink": 1}])
def test_a_page_of_another_shape_is_nonsense(page: Any) -> None:
    setting = Setting()
    setting.cloud.script("GET /x", reply(200, page))
    with pytest.raises(ProviderProblem):
        setting.world.perform(pages(setting.client, URL, None, Item))


@pytest.mark.parametrize(
    "failure, code, retry_after",
    [
        (ProviderProblem(429, "TooManyRequests", retry_after=17.0), Code.PROVIDER_THROTTLED, 17),
        (ProviderProblem(429, "TooManyRequests"), Code.PROVIDER_THROTTLED, 5),
        (ProviderProblem(500, "InternalServerError"), Code.PROVIDER_FAILED, 5),
        (ProviderProblem(503, "ServerBusy", retry_after=3.0), Code.PROVIDER_FAILED, 3),
        (ProviderProblem(408, ""), Code.PROVIDER_FAILED, 5),
        (unreachable(), Code.PROVIDER_UNREACHABLE, 5),
        (ProviderAmbiguous("what", answered=False), Code.PROVIDER_UNREACHABLE, 5),
        (ProviderAmbiguous("what", answered=True), Code.PROVIDER_FAILED, 5),
        (PlatformTokenUnavailable("none"), Code.PLATFORM_IDENTITY_UNAVAILABLE, 5),
        (ProviderProblem(401, "AADSTS7000215"), Code.PROVIDER_SECRET_REFUSED, None),
        (ProviderProblem(401, "AADSTS7000222"), Code.PROVIDER_SECRET_REFUSED, None),
        (ProviderProblem(400, "AADSTS90002"), Code.PROVIDER_TENANT_UNKNOWN, None),
        (ProviderProblem(401, "AADSTS70021"), Code.PROVIDER_ASSERTION_REFUSED, None),
        (ProviderProblem(400, "AADSTS700024"), Code.PROVIDER_ASSERTION_REFUSED, None),
        (ProviderProblem(400, "AADSTS700016"), Code.PROVIDER_APPLICATION_UNKNOWN, None),
        (ProviderProblem(401, "AADSTS7002137"), Code.PROVIDER_ASSERTION_REFUSED, None),
        (ProviderProblem(401, "AADSTS7002138"), Code.PROVIDER_ASSERTION_REFUSED, None),
        (ProviderProblem(401, "AADSTS7000229"), Code.PROVIDER_PRINCIPAL_DISABLED, None),
        (ProviderProblem(400, "AADSTS7000112"), Code.PROVIDER_PRINCIPAL_DISABLED, None),
        (ProviderProblem(400, "AADSTS53003"), Code.PROVIDER_ACCESS_BLOCKED, None),
        (ProviderProblem(400, "AADSTS500011"), Code.PROVIDER_RESOURCE_UNKNOWN, None),
        (ProviderProblem(404, "ResourceGroupNotFound"), Code.PROVIDER_SCOPE_MISSING, None),
        (ProviderProblem(409, "MissingSubscriptionRegistration"), Code.PROVIDER_NOT_REGISTERED, None),
        (ProviderProblem(400, "CredentialInvalidLifetimeAsPerAppPolicy"), Code.PROVIDER_POLICY_REFUSED, None),
        (ProviderProblem(401, "AADSTS700099"), Code.PROVIDER_REFUSED, None),
        (ProviderProblem(401, "InvalidAuthenticationToken"), Code.PROVIDER_PERMISSION_DENIED, None),
        (ProviderProblem(403, "Forbidden"), Code.PROVIDER_PERMISSION_DENIED, None),
        (ProviderProblem(403, "Authorization_RequestDenied"), Code.PROVIDER_PERMISSION_DENIED, None),
        (ProviderProblem(403, ""), Code.PROVIDER_PERMISSION_DENIED, None),
        (ProviderProblem(403, "RequestDisallowedByPolicy"), Code.PROVIDER_REFUSED, None),
        (ProviderProblem(403, "Directory_ResourceSizeExceeded"), Code.PROVIDER_QUOTA_EXCEEDED, None),
        (ProviderProblem(403, "AuthorizationFailed"), Code.PROVIDER_PERMISSION_DENIED, None),
        (ProviderProblem(403, "Directory_QuotaExceeded"), Code.PROVIDER_QUOTA_EXCEEDED, None),
        (ProviderProblem(400, "RoleAssignmentLimitExceeded"), Code.PROVIDER_QUOTA_EXCEEDED, None),
        (ProviderProblem(400, "InvalidApiVersionParameter"), Code.PROVIDER_REFUSED, None),
        (ProviderProblem(404, "ResourceNotFound"), Code.PROVIDER_REFUSED, None),
        (ProviderProblem(200, NONSENSE), Code.PROVIDER_REFUSED, None),
        (ProviderProblem(302, ""), Code.PROVIDER_REFUSED, None),
        (TimeIsUp("late"), Code.DEADLINE_PASSED, None),
    ],
)
def test_each_failure_of_the_provider_is_a_refusal(
    failure: ProviderFailure, code: Code, retry_after: float | None
) -> None:
    refusal = refusal_of(failure)
    assert (refusal.code, refusal.retry_after) == (code, retry_after)
    assert str(refusal) == code.text


def test_the_failures_for_an_except_are_those_of_the_type() -> None:
    assert set(PROVIDER_FAILURES) == set(ProviderFailure.__args__)
    assert ProviderUnreachable in PROVIDER_FAILURES


def test_nothing_secret_is_printed() -> None:
    setting = Setting()
    call = ApiCall(url=f"{URL}?s3cret", body={"p": "s3cret"}, form={"p": "s3cret"}, headers={"p": "s3cret"})
    assert "s3cret" not in repr(call)
    assert "s3cret" not in repr(setting.client.credentials)
