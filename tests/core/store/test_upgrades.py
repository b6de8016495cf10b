"""Records that an earlier version wrote."""

from __future__ import annotations

import json

import pytest
from attrs import frozen

from cloudid_core.store.records import decode, encode


@frozen
class Thing:
    provisioned: str
    other: int = 1


@frozen
class Holder:
    persistent_app: Thing | None = None


@pytest.mark.parametrize(
    "raw",
    [
        b'{"persistent_app": {"provisioned": "x", "other": 2}}',
        b'{"persisted": {"holdings": "x", "other": 2}}',
        b'{"persisted": {"provisioned": "x", "other": 2}}',
    ],
)
def test_a_renamed_field_is_read_under_either_name(raw: bytes) -> None:
    assert decode(raw, Holder) == Holder(Thing("x", 2))


def test_only_the_new_name_is_written() -> None:
    assert json.loads(encode(Holder(Thing("x")))) == {"persistent_app": {"provisioned": "x", "other": 1}}


def test_a_field_that_is_absent_has_its_default() -> None:
    assert decode(b"{}", Holder) == Holder(None)
