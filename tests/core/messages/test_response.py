"""Messages: the envelope of answers and refusals, to the byte."""

from __future__ import annotations

import json

import pytest

from cloudid_core.errors import Code, Problem, Refused
from cloudid_core.messages.response import (
    NOTHING,
    Answer,
    AuthBlock,
    Request,
    Response,
    error_body,
    render,
    render_refusal,
)

AUTH = AuthBlock(
    client_token="s.secret",
    accessor="accessor",
    policies=("default", "dev"),
    token_policies=("default", "dev"),
    metadata={"role": "dev"},
    lease_duration=60,
    renewable=True,
)


def dressed(answer: Answer) -> Response:
    return render(answer, request_id="r-1", mount_type="cloud")


def test_an_empty_answer_has_no_body() -> None:
    response = dressed(NOTHING)
    assert (response.status, response.body) == (204, b"")


def test_an_envelope_has_all_members_in_order() -> None:
    response = dressed(Answer(data={"b": 1, "a": [2]}, lease_id="l", lease_duration=5, renewable=True))
    assert response.status == 200
    assert response.body == (
        b'{"request_id":"r-1","lease_id":"l","renewable":true,"lease_duration":5,"data":{"b":1,"a":[2]},'
        b'"wrap_info":null,"warnings":null,"auth":null,"mount_type":"cloud"}\n'
    )


def test_the_content_type_is_exact_and_nothing_is_stored() -> None:
    assert dressed(Answer(data={})).headers == {"content-type": "application/json", "cache-control": "no-store"}


@pytest.mark.parametrize("answer", [Answer(data={}), Answer(warnings=("w",)), Answer(lease_id="l"), Answer(auth=AUTH)])
def test_any_other_answer_is_an_envelope(answer: Answer) -> None:
    response = dressed(answer)
    assert response.status == 200
    assert json.loads(response.body)["request_id"] == "r-1"


def test_warnings_are_a_list_or_null() -> None:
    assert json.loads(dressed(Answer(warnings=("careful",))).body)["warnings"] == ["careful"]
    assert json.loads(dressed(Answer(data={})).body)["warnings"] is None


def test_a_token_is_in_the_member_auth() -> None:
    auth = json.loads(dressed(Answer(auth=AUTH)).body)["auth"]
    assert auth == {
        "client_token": "s.secret",
        "accessor": "accessor",
        "policies": ["default", "dev"],
        "token_policies": ["default", "dev"],
        "metadata": {"role": "dev"},
        "lease_duration": 60,
        "renewable": True,
        "entity_id": "",
        "token_type": "service",
        "orphan": True,
        "mfa_requirement": None,
        "num_uses": 0,
    }


def test_a_plain_answer_has_no_envelope() -> None:
    assert dressed(Answer(data={"sealed": False}, plain=True, status=503)).body == b'{"sealed":false}\n'


def test_members_that_are_copied_up_stand_beside_the_envelope_and_replace_none_of_it() -> None:
    header = json.loads(dressed(Answer(data={"keys": ["a"], "request_id": "x"}, copy_up=True)).body)
    assert header["keys"] == header["data"]["keys"] == ["a"]
    assert header["request_id"] == "r-1"


@pytest.mark.parametrize("answer", [Answer(status=202), Answer(data={}, status=202)])
def test_an_answer_can_have_a_status_of_its_own(answer: Answer) -> None:
    assert dressed(answer).status == 202


@pytest.mark.parametrize("data", [None, {"a": 1}])
def test_what_an_answer_holds_is_passed_on(data: dict[str, int] | None) -> None:
    response = dressed(Answer(data=data, holds="lease", wake_at=5.0))
    assert (response.holds, response.wake_at) == ("lease", 5.0)


def test_a_refusal_has_texts_and_codes() -> None:
    refusal = Refused(Code.FIELD_INVALID, '"ttl" must be a duration', Problem(Code.ROLE_UNBOUND))
    response = render_refusal(refusal)
    assert response.status == 400
    assert response.body.endswith(b"\n")
    assert json.loads(response.body) == {
        "errors": ['field validation failed: "ttl" must be a duration', Code.ROLE_UNBOUND.text],
        "codes": ["field_invalid", "role_unbound"],
    }
    assert response.headers["x-service-error-code"] == "field_invalid"


@pytest.mark.parametrize("code", Code)
def test_no_error_ends_with_a_full_stop(code: Code) -> None:
    """Clients join several with commas."""
    body = json.loads(error_body((Problem(code), Problem(code, "a detail."), Problem(Code.FIELD_INVALID))))
    assert not [text for text in (code.text, *body["errors"]) if text.endswith(".")]


def test_errors_are_the_only_member_of_a_404() -> None:
    """Go clients take a 404 for "nothing there" only then; the code is in a header."""
    assert error_body((Problem(Code.NOT_FOUND),)) == b'{"errors":[]}\n'
    response = render_refusal(Refused(Code.UNSUPPORTED_PATH))
    assert response.body == b'{"errors":["unsupported path"]}\n'
    assert response.headers["x-service-error-code"] == "unsupported_path"


@pytest.mark.parametrize("seconds, header", [(None, None), (0.2, "1"), (1.4, "1"), (7.6, "8")])
def test_retry_after_is_in_whole_seconds(seconds: float | None, header: str | None) -> None:
    response = render_refusal(Refused(Code.PROVIDER_THROTTLED, retry_after=seconds))
    assert response.headers.get("retry-after") == header
    assert response.headers["content-type"] == "application/json"


def test_the_failure_behind_a_refusal_is_for_the_log_only() -> None:
    failure = ValueError("secret reason")
    response = render_refusal(Refused(Code.INTERNAL_ERROR), failure)
    assert response.failure is failure
    assert b"secret reason" not in response.body


def test_nothing_prints_what_may_be_secret() -> None:
    request = Request("POST", "/v1/auth/cloud/login", {"x-vault-token": "s.secret"}, b"s.secret")
    for value in (request, AUTH, dressed(Answer(auth=AUTH)), Answer(auth=AUTH)):
        assert "s.secret" not in repr(value)


def test_an_answer_prints_the_names_of_its_members_alone() -> None:
    assert repr(Answer(data={"client_id": "id", "client_secret": "s3cret"})) == "<Answer client_id, client_secret>"
