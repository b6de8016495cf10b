"""Directory roles and app roles: given and taken as often as asked for, whatever the directory's replicas know."""

from __future__ import annotations

from typing import Any

import pytest

from cloudid_core.deadline import Deadline
from cloudid_core.provider.memberships import MEMBERSHIPS
from tests.engines import CREDS, EVERYTHING, ROLE, SecretsEngine, configured_engine

READERS = "Directory Readers"


def allowing() -> SecretsEngine:
    engine = configured_engine()
    lists = {"allowed_directory_roles": [READERS], "allowed_app_roles": engine.app_roles(0, 1)}
    engine.must("POST", "cloud/config", {**EVERYTHING, **lists})
    return engine


def wish(engine: SecretsEngine, *app_roles: int, **fields: Any) -> dict[str, Any]:
    return {"directory_roles": [{"role_name": READERS}], "app_roles": engine.app_roles(*app_roles), **fields}


def test_a_lease_has_them_notes_them_and_ends_with_them() -> None:
    engine = allowing()
    engine.must("POST", ROLE, wish(engine, 0, 1))
    lease_id = engine.must("GET", CREDS).body["lease_id"]
    lease = engine.lease(lease_id)
    assert lease is not None
    kinds = {kind: len(ids) for kind, ids in lease.provisioned.memberships.items()}
    assert kinds == {"directory_roles": 1, "app_roles": 2}
    assert [len(engine.alive(kind)) for kind in ("directory_role", "app_role")] == [1, 2]
    before = len(engine.trace)
    engine.must("PUT", "sys/leases/revoke", {"lease_id": lease_id})
    assert sum(call.startswith("DELETE") and "Assign" in call for call in engine.calls(before)) == 3
    assert engine.is_over()


def test_what_a_role_keeps_follows_it() -> None:
    engine = allowing()
    engine.must("POST", ROLE, wish(engine, 0, persist_app=True))
    (kept,) = engine.alive("app_role")
    engine.must("POST", ROLE, {"app_roles": engine.app_roles(1), "directory_roles": []})
    engine.converge()
    (changed,) = engine.alive("app_role")
    assert changed.id != kept.id
    assert not engine.alive("directory_role")
    engine.must("DELETE", ROLE)
    engine.converge()
    assert engine.is_over()


@pytest.mark.parametrize("kind", ["directory_roles", "app_roles"])
@pytest.mark.parametrize("is_slow", [False, True])
def test_given_and_taken_twice(kind: str, is_slow: bool) -> None:
    """A principal that has just been made is not known everywhere yet."""
    engine = allowing()
    if is_slow:
        engine.behave(delays={"writes": [3, 10], "lists": [5, 60]})
    engine.must("POST", ROLE, wish(engine, 0, persist_app=True))
    kept = engine.stored_role().persistent_app
    assert kept is not None
    one, member = getattr(kept.provisioned, kind)[0], kept.provisioned.member_id
    client = engine.perform(
        engine.context.components.of(engine.mount()).client(
            engine.context, engine.mount(), Deadline(engine.clock + 1000)
        )
    )
    engine.advance(100)
    membership = MEMBERSHIPS[kind]
    engine.perform(membership.add(client, one, member))
    assert len(engine.alive(kind.removesuffix("s"))) == 1
    assert engine.perform(membership.remove(client, one, member))
    engine.advance(100)
    assert not engine.perform(membership.remove(client, one, member))


@pytest.mark.parametrize(
    "fields, code",
    [
        ({"directory_roles": [{"role_name": "no such"}]}, "reference_not_found"),
        ({"directory_roles": [{"role_id": "../x"}]}, "reference_not_found"),
        ({"directory_roles": [{}]}, "field_invalid"),
        ({"directory_roles": [{"role_name": READERS}, {"role_name": READERS}]}, "field_invalid"),
        ({"app_roles": [{"resource_name": "reporting", "app_role_name": "no such"}]}, "reference_not_found"),
        ({"app_roles": [{"resource_name": "no such", "app_role_name": "Reports.Read.All"}]}, "reference_not_found"),
        ({"app_roles": [{"resource_name": "reporting"}]}, "field_invalid"),
    ],
)
def test_what_is_not_there_is_refused(fields: dict[str, Any], code: str) -> None:
    assert allowing().refused("POST", ROLE, fields) == (400, code)


def test_names_and_ids_are_read_back() -> None:
    engine = allowing()
    named = [{"resource_name": "reporting", "app_role_name": "Reports.Read.All"}]
    engine.must("POST", ROLE, {"directory_roles": [{"role_name": READERS}], "app_roles": named})
    shown = engine.shown_role()
    assert shown["app_roles"] == [{**named[0], **engine.app_roles(0)[0]}]
    assert [set(one) for one in shown["directory_roles"]] == [{"role_name", "role_id"}]
