"""What a request asks for, before anything is looked up."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudid_core import Secret, Settings
from cloudid_core.errors import Code, Refused
from cloudid_core.messages.operations import Operation
from cloudid_core.messages.request import (
    QUERY_LIMIT,
    TARGET_LIMIT,
    TOKEN_LIMIT,
    deadline_seconds,
    parse_body,
    token_in,
)
from cloudid_core.messages.response import Request
from cloudid_core.routing.exchange import Exchange
from tests.exchanges import asked, read

SETTINGS = Settings(master_key=Secret("00" * 32))


def ask(method: str, target: str, headers: dict[str, str] | None = None, body: bytes = b"") -> Exchange:
    return read(Request(method, target, headers or {}, body), SETTINGS)


def refusal(method: str, target: str, headers: dict[str, str] | None = None, body: bytes = b"") -> Code:
    with pytest.raises(Refused) as refused:
        ask(method, target, headers, body)
    return refused.value.code


@pytest.mark.parametrize(
    "method, target, operation, is_head",
    [
        ("GET", "/v1/a", Operation.READ, False),
        ("HEAD", "/v1/a", Operation.READ, True),
        ("LIST", "/v1/a", Operation.LIST, False),
        ("GET", "/v1/a?list=true", Operation.LIST, False),
        ("GET", "/v1/a/?list=1", Operation.LIST, False),
        ("HEAD", "/v1/a?list=T", Operation.LIST, True),
        ("GET", "/v1/a?list=false", Operation.READ, False),
        ("POST", "/v1/a", Operation.WRITE, False),
        ("PUT", "/v1/a", Operation.WRITE, False),
        ("POST", "/v1/a?list=true", Operation.WRITE, False),
        ("DELETE", "/v1/a", Operation.DELETE, False),
    ],
)
def test_verbs(method: str, target: str, operation: Operation, is_head: bool) -> None:
    exchange = asked(Request(method, target))
    assert (exchange.path, exchange.operation, exchange.is_head) == ("a", operation, is_head)


@pytest.mark.parametrize(
    "method, target, headers, code",
    [
        ("GET", "/v1/a?list=junk", {}, Code.FIELD_INVALID),
        ("GET", "/v1/a?list=1&list=1", {}, Code.FIELD_INVALID),
        ("TRACE", "/v1/a", {}, Code.UNSUPPORTED_OPERATION),
        ("get", "/v1/a", {}, Code.UNSUPPORTED_OPERATION),
        ("PATCH", "/v1/a", {}, Code.UNSUPPORTED_MEDIA_TYPE),
        ("PATCH", "/v1/a", {"content-type": "application/merge-patch+jsonx"}, Code.UNSUPPORTED_MEDIA_TYPE),
        ("PATCH", "/v1/a", {"content-type": "Application/Merge-Patch+JSON; charset=utf-8"}, Code.UNSUPPORTED_OPERATION),
        ("POST", "/v1/a/", {}, Code.MALFORMED_PATH),
        ("GET", "/v1/a/../b", {}, Code.MALFORMED_PATH),
        ("GET", "/v1/a/%2e%2E/b", {}, Code.MALFORMED_PATH),
        ("GET", "/v1/./a", {}, Code.MALFORMED_PATH),
        ("GET", "/v1/a//b", {}, Code.MALFORMED_PATH),
        ("GET", "/v1/a//", {}, Code.MALFORMED_PATH),
        ("GET", "/v1/a%2Fb", {}, Code.MALFORMED_PATH),
        ("GET", "/v1/a%2fb", {}, Code.MALFORMED_PATH),
        ("GET", "/v1/a%00", {}, Code.MALFORMED_PATH),
        ("GET", "/v1/a%0ab", {}, Code.MALFORMED_PATH),
        ("GET", "/v1/a%ff", {}, Code.MALFORMED_PATH),
        ("GET", "/v1/", {}, Code.MALFORMED_PATH),
        ("GET", "/v1", {}, Code.NOT_FOUND),
        ("GET", "/v2/a", {}, Code.NOT_FOUND),
        ("GET", "/", {}, Code.NOT_FOUND),
        ("GET", "/v1/" + "a" * TARGET_LIMIT, {}, Code.TARGET_TOO_LONG),
        ("GET", "/v1/a?" + "&".join(f"f{number}=" for number in range(101)), {}, Code.MALFORMED_REQUEST),
        ("GET", "/v1/a", {"x-vault-namespace": "team"}, Code.NAMESPACE_UNKNOWN),
        ("GET", "/v1/a", {"x-vault-wrap-ttl": "3000d"}, Code.TTL_EXCEEDS_MAX),
        ("GET", "/v1/a", {"x-service-wrap-ttl": "junk", "x-vault-wrap-ttl": "5m"}, Code.MALFORMED_REQUEST),
        ("GET", "/v1/a", {"x-vault-wrap-ttl": "0.5s"}, Code.MALFORMED_REQUEST),
        ("GET", "/v1/a", {"x-vault-wrap-ttl": "-1"}, Code.MALFORMED_REQUEST),
        ("GET", "/v1/a", {"x-vault-wrap-ttl": "soon"}, Code.MALFORMED_REQUEST),
    ],
)
def test_what_is_refused_before_anything_is_looked_up(
    method: str, target: str, headers: dict[str, str], code: Code
) -> None:
    assert refusal(method, target, headers) is code


@pytest.mark.parametrize(
    "method, target, reason",
    [
        ("POST", "/v1/a/", "the path is malformed: cannot write to a path that ends in a slash"),
        ("GET", "/v1/a//b", "the path is malformed: it has an empty or relative segment"),
        ("GET", "/v1/a%2fb", "the path is malformed: it has an encoded slash"),
        ("GET", "/v1/a?list=junk", '"list" must be true or false'),
        ("GET", "/v1/a?help=junk", '"help" must be true or false'),
    ],
)
def test_a_refusal_says_what_is_wrong_and_nothing_else(method: str, target: str, reason: str) -> None:
    with pytest.raises(Refused) as refused:
        ask(method, target)
    assert reason in str(refused.value)


def test_what_is_exactly_at_its_limit_is_taken() -> None:
    """And what is longer by one is not: target, fields of a query, body."""
    longest = "a" * (TARGET_LIMIT - len("/v1/"))
    assert ask("GET", f"/v1/{longest}").path == longest
    assert refusal("GET", f"/v1/{longest}a", {}) is Code.TARGET_TOO_LONG
    fields = [f"f{number}=" for number in range(QUERY_LIMIT)]
    assert len(ask("GET", f"/v1/a?{'&'.join(fields)}").body) == QUERY_LIMIT
    assert refusal("GET", f"/v1/a?{'&'.join([*fields, 'g='])}", {}) is Code.MALFORMED_REQUEST
    body = b'{"a": "' + b"x" * 100 + b'"}'
    assert parse_body(body, len(body)) == {"a": "x" * 100}
    with pytest.raises(Refused, match=r"too large"):
        parse_body(body, len(body) - 1)


@pytest.mark.parametrize(
    "headers",
    [
        {"x-vault-namespace": ""},
        {"x-vault-namespace": "root"},
        {"x-vault-namespace": "root/"},
        {"x-vault-wrap-ttl": ""},
        {"x-vault-wrap-ttl": "0"},
        {"x-vault-wrap-ttl": "0s"},
        {"x-vault-request": "true"},
    ],
)
def test_headers_that_ask_for_nothing_special(headers: dict[str, str]) -> None:
    assert ask("GET", "/v1/a", headers).path == "a"


@pytest.mark.parametrize(
    "target, path",
    [
        ("/v1/a%20b", "a b"),
        ("/v1/%61", "a"),
        ("/v1/a%252fb", "a%2fb"),
        ("/v1/%C3%A4", "ä"),
        ("/v1/a/b/", "a/b"),
        ("/v1/...", "..."),
    ],
)
def test_a_path_is_decoded_once(target: str, path: str) -> None:
    assert ask("GET", target).path == path


def test_the_query_is_the_body_of_what_has_none() -> None:
    """Repeated names make a list, `list` is no parameter; the query of a write is ignored."""
    assert ask("DELETE", "/v1/a?force=true&x=1&x=2&x=3&y=").body == {
        "force": "true",
        "x": ["1", "2", "3"],
        "y": "",
    }
    assert ask("GET", "/v1/a?list=false&a=b", body=b"{").body == {"a": "b"}
    assert ask("POST", "/v1/a?a=b", body=b'{"c":1}').body == {"c": 1}


def test_a_removal_takes_its_fields_from_query_and_body() -> None:
    """Of a field that both have, the body's counts."""
    assert ask("DELETE", "/v1/a?x=1&y=2", body=b'{"force": true, "y": 3}').body == {"x": "1", "force": True, "y": 3}
    assert ask("DELETE", "/v1/a?x=1", body=b" null ").body == {"x": "1"}
    assert refusal("DELETE", "/v1/a", {}, b"{") is Code.MALFORMED_JSON


@pytest.mark.parametrize(
    "raw, body",
    [
        (b"", {}),
        (b" \n", {}),
        (b"null", {}),
        (b"{}", {}),
        (b' {"a": 1} \n', {"a": 1}),
        (b'{"a": 1, "a": 2}', {"a": 2}),
        (b'{"a": 12345678901234567890123}', {"a": 12345678901234567890123}),
    ],
)
def test_bodies(raw: bytes, body: dict[str, Any]) -> None:
    """Nothing and `null` are an empty object; of equal keys the last wins; numbers keep all their digits."""
    assert parse_body(raw, 1024) == body


@pytest.mark.parametrize(
    "raw, code",
    [
        (b"[]", Code.MALFORMED_JSON),
        (b'"text"', Code.MALFORMED_JSON),
        (b"1", Code.MALFORMED_JSON),
        (b"a=b&c=d", Code.MALFORMED_JSON),
        (b"{", Code.MALFORMED_JSON),
        (b"{} {}", Code.MALFORMED_JSON),
        (b'{"a": NaN}', Code.MALFORMED_JSON),
        (b'{"a": 1e}', Code.MALFORMED_JSON),
        (b'{"a": "\xff"}', Code.MALFORMED_JSON),
        (b'{"a": ' + b"9" * 5000 + b"}", Code.MALFORMED_JSON),
        (b'{"a": ' + b"[" * 500 + b"]" * 500 + b"}", Code.BODY_TOO_COMPLEX),
        (b" " * 8193, Code.BODY_TOO_LARGE),
    ],
)
def test_bodies_that_are_refused(raw: bytes, code: Code) -> None:
    with pytest.raises(Refused) as refused:
        parse_body(raw, 8192)
    assert refused.value.code is code


@pytest.mark.parametrize("value", [b"[" * 100_000, b"[" * 33 + b"]" * 33, b"[" + b"0," * 40_000 + b"0]"])
def test_a_body_that_is_too_deep_or_has_too_many_values_is_too_complex(value: bytes) -> None:
    with pytest.raises(Refused) as refused:
        parse_body(b'{"a":' + value + b"}", 2**20)
    assert refused.value.code is Code.BODY_TOO_COMPLEX


@pytest.mark.parametrize(
    "headers, token",
    [
        ({}, ""),
        ({"x-service-token": "a", "x-vault-token": "b", "authorization": "Bearer c"}, "a"),
        ({"x-vault-token": "b", "authorization": "Bearer c"}, "b"),
        ({"x-service-token": "", "x-vault-token": "b"}, "b"),
        ({"authorization": "Bearer c"}, "c"),
        ({"authorization": "bearer  c "}, "c"),
        ({"authorization": "Basic c"}, ""),
        ({"authorization": "Bearer"}, ""),
        ({"x-service-token": "t" * TOKEN_LIMIT}, "t" * TOKEN_LIMIT),
        ({"x-service-token": "t" * (TOKEN_LIMIT + 1)}, "t" * TOKEN_LIMIT),
        ({"authorization": "Bearer " + "t" * (TOKEN_LIMIT + 1)}, "t" * TOKEN_LIMIT),
    ],
)
def test_the_first_header_that_holds_a_token_counts(headers: dict[str, str], token: str) -> None:
    assert token_in(headers) == token


@pytest.mark.parametrize("header, seconds", [(None, 90.0), ("5", 5.0), ("0.5", 0.5), ("90", 90.0), ("1000", 90.0)])
def test_a_deadline_can_only_be_nearer(header: str | None, seconds: float) -> None:
    assert deadline_seconds({} if header is None else {"x-service-deadline": header}, 90.0) == seconds


@pytest.mark.parametrize("header", ["", "0", "-1", "soon", "nan", "inf", "1m"])
def test_a_deadline_is_a_positive_number(header: str) -> None:
    with pytest.raises(Refused) as refused:
        deadline_seconds({"x-service-deadline": header}, 90.0)
    assert refused.value.code is Code.MALFORMED_REQUEST


@given(st.binary(max_size=200))
def test_any_body_is_an_object_or_refused(raw: bytes) -> None:
    with suppress(Refused):
        assert isinstance(parse_body(raw, 1000), dict)


@given(st.text(max_size=60))
def test_any_target_has_a_clean_path_or_is_refused(target: str) -> None:
    try:
        path = ask("GET", f"/v1/{target}").path
    except Refused:
        return
    assert path.isprintable()
    assert not {"", ".", ".."} & set(path.split("/"))


@pytest.mark.parametrize(
    "headers, ttl",
    [
        ({}, 0),
        ({"x-vault-wrap-ttl": "5m"}, 300),
        ({"x-service-wrap-ttl": "60"}, 60),
        ({"x-service-wrap-ttl": "60", "x-vault-wrap-ttl": "5m"}, 60),
        ({"x-service-wrap-ttl": "", "x-vault-wrap-ttl": "5m"}, 300),
    ],
)
def test_a_header_says_for_how_long_the_answer_is_wrapped(headers: dict[str, str], ttl: int) -> None:
    assert ask("GET", "/v1/a", headers).wrap_ttl == ttl


@pytest.mark.parametrize(
    ("ttl", "text"),
    [
        ("99999999999", "must be a duration of less than 292 years"),
        ("-1", "must not be a negative duration"),
        ("soon", "must be a duration such as 30s, 5m or 1h30m"),
    ],
)
def test_a_wrap_ttl_that_cannot_be_used_is_told_why(ttl: str, text: str) -> None:
    with pytest.raises(Refused) as refusal:
        ask("GET", "/v1/a", {"x-vault-wrap-ttl": ttl})
    assert str(refusal.value).removesuffix(".").endswith(text)
