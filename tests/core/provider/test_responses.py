"""Answers of the provider."""

from __future__ import annotations

import gzip
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.effects import HttpResponse
from cloudid_core.errors import ProviderProblem
from cloudid_core.provider.responses import LARGEST, NONSENSE, nonsense, problem_of, read

from .cloud import START, error, reply


class Shape(msgspec.Struct):
    name: str
    inner: dict[str, int] = {}


def test_an_answer_of_the_shape_is_read_and_what_else_it_has_is_ignored() -> None:
    assert read(reply(200, {"name": "a", "inner": {"b": 1}, "more": [[]]}), Shape) == Shape("a", {"b": 1})


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"<html>",
        b"null",
        b"[]",
        b"{}",
        b'{"name": 1}',
        b'{"name": null}',
        b'{"name": "\xff"}',
        b'{"name": "a"} trailing',
        b'{"name": "a", "inner": {"b": "1"}}',
        b'{"more": ' + b"[" * 100_000,
        b'{"name": "' + b"a" * LARGEST + b'"}',
    ],
    ids=lambda body: repr(body[:20]),
)
def test_anything_else_is_nonsense(body: bytes) -> None:
    with pytest.raises(ProviderProblem) as caught:
        read(HttpResponse(200, {"x-ms-request-id": "r-1"}, body), Shape)
    assert (caught.value.status, caught.value.code, caught.value.request_id) == (200, NONSENSE, "r-1")


def test_a_gzipped_answer_is_understood_whatever_its_headers_say() -> None:
    """Source: RFC 9110 section 12.5.3: a server may compress although the request asks for no encoding. A client
    library that decompresses by itself may leave `content-encoding` in place, so the body decides.
    """
    body = json.dumps({"name": "a"}).encode()
    for headers in ({"content-encoding": "gzip"}, {}):
        assert read(HttpResponse(200, headers, gzip.compress(body)), Shape) == Shape("a")
    assert read(HttpResponse(200, {"content-encoding": "gzip"}, body), Shape) == Shape("a")
    denial = gzip.compress(json.dumps({"error": {"code": "AuthorizationFailed"}}).encode())
    assert problem_of(HttpResponse(403, {}, denial), START).code == "AuthorizationFailed"


GZIPPED = gzip.compress(b'{"name": "a"}')


@pytest.mark.parametrize(
    "body",
    [
        GZIPPED[:2],
        GZIPPED[:-1],
        GZIPPED + b"x",
        GZIPPED + GZIPPED,
        b"\x1f\x8b" + b"x" * 40,
        gzip.compress(gzip.compress(b'{"name": "a"}')),
        gzip.compress(b'{"name": "' + b"a" * LARGEST + b'"}'),
    ],
    ids=range(7),
)
def test_a_gzipped_answer_that_is_broken_or_too_large_is_nonsense(body: bytes) -> None:
    with pytest.raises(ProviderProblem) as caught:
        read(HttpResponse(200, {}, body), Shape)
    assert caught.value.code == NONSENSE


def test_nonsense_may_be_found_later() -> None:
    assert nonsense().code == NONSENSE


@pytest.mark.parametrize(
    "body, code",
    [
        ({"error": {"code": "ResourceNotFound", "message": "m", "details": []}}, "ResourceNotFound"),
        ({"error": "invalid_client", "error_codes": [7000215, 1]}, "AADSTS7000215"),
        ({"error": "invalid_tenant", "error_description": "AADSTS90002: ..."}, "invalid_tenant"),
        ({"error": "invalid_tenant", "error_codes": []}, "invalid_tenant"),
        ({"error": {"message": "no code"}}, ""),
        ({"error": {"code": 7}}, "7"),
        ({"error": {"code": True}}, ""),
        ({"error": {"code": None}}, ""),
        ({"error": None}, ""),
        ({"error": "invalid_client", "error_codes": None, "code": None}, "invalid_client"),
        ({"error": {"code": "BadRequest", "innerError": {"code": "x", "innerError": {}}}}, "BadRequest"),
        (
            {"error": {"code": "generalException", "message": "m", "innererror": {"request-id": "r"}}},
            "generalException",
        ),
        ({"code": "AuthorizationFailed", "message": "m"}, "AuthorizationFailed"),
        ({"Code": "NotFound", "Message": "m", "Target": None, "Details": [{"Message": "m"}]}, "NotFound"),
        ({"error": {"code": "with blank\n"}}, ""),
        ({"error": {"code": "x" * 129}}, ""),
        (None, ""),
        ([], ""),
    ],
)
def test_the_code_of_an_error(body: Any, code: str) -> None:
    """Sources: the error bodies of the resource manager, the directory and the token endpoint. Some services lack the
    `error` around the code, as Microsoft.Web does: hashicorp/terraform-provider-azurerm issue 10858 has such a body.
    """
    assert problem_of(HttpResponse(400, {}, json.dumps(body).encode()), START).code == code


def test_an_error_carries_status_request_and_pause_but_no_words() -> None:
    problem = problem_of(error(429, "TooManyRequests", request_id="r-2", retry_after="7"), START)
    assert (problem.status, problem.request_id, problem.retry_after) == (429, "r-2", 7)
    assert "repeat" not in str(problem)


def test_a_request_id_with_odd_letters_is_left_out() -> None:
    assert problem_of(error(500, request_id="a b\n"), START).request_id == ""


@given(st.binary(max_size=60))
def test_no_body_breaks_the_reading_of_errors(body: bytes) -> None:
    assert problem_of(HttpResponse(500, {}, body), START).status == 500
