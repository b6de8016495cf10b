"""What a token did is read out of audit logs whatever their order, and however they show it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from cloudid_servers.audit import Trace

HASH = "hmac-sha256:" + "5a" * 32


def entry(type_: str, number: int, **members: Any) -> bytes:
    request = {"id": f"r{number}", "operation": "read", "path": f"path/{number}", **members.pop("request", {})}
    time = f"2026-11-22T10:00:0{number}.000000Z"
    return json.dumps({"time": time, "type": type_, "request": request, **members}).encode() + b"\n"


def traced(*lines: bytes, sought: str = HASH) -> list[tuple[str, str, str]]:
    trace = Trace({sought})
    trace.read(lines)
    return [(step.path, step.part, step.outcome) for step in trace.steps]


@pytest.mark.parametrize(
    "members, part",
    [
        ({"auth": {"client_token": HASH}}, "caller"),
        ({"auth": {"accessor": HASH}}, "caller"),
        ({"request": {"client_token": HASH}}, "caller"),
        ({"request": {"client_token_accessor": HASH}}, "caller"),
        ({"response": {"auth": {"client_token": HASH}}}, "issued"),
        ({"response": {"auth": {"accessor": HASH}}}, "issued"),
        ({"request": {"data": {"token": HASH}}}, "named"),
    ],
)
def test_each_part_of_a_token_is_found(members: Mapping[str, Any], part: str) -> None:
    assert traced(entry("response", 1, **members), entry("response", 2, auth={"accessor": "other"})) == [
        ("path/1", part, "done")
    ]


def test_who_asked_for_the_hash_of_a_token_did_nothing_to_it() -> None:
    assert traced(entry("response", 1, request={"path": "sys/audit-hash/main", "data": {"input": HASH}})) == []


def test_steps_are_in_the_order_of_time_and_count_once() -> None:
    auth = {"auth": {"accessor": HASH}}
    lines = [
        entry("response", 2, **auth, error="no", error_codes=["permission_denied"]),
        entry("request", 3, **auth),
        entry("request", 1, **auth),
        entry("response", 1, **auth),
        entry("request", 1, **auth),
        entry("request", 2, **auth),
    ]
    assert traced(*lines) == [
        ("path/1", "caller", "done"),
        ("path/2", "caller", "permission_denied"),
        ("path/3", "caller", "no response recorded"),
    ]


def test_what_is_sought_is_not_printed() -> None:
    assert "canary" not in repr(Trace({"canary"}))


def test_lines_that_are_no_entries_are_counted() -> None:
    trace = Trace({"clear"})
    damaged = [b"\n", b"[" * 100_000, b"{}\n", b'{"request": 5}\n', b'{"time": "\xff"}\n']
    trace.read([*damaged, entry("response", 1, auth={"accessor": "clear"})])
    assert (trace.lines, trace.unread, len(trace.steps), trace.sees_hashes) == (6, 4, 1, False)
