"""Help about paths comes from the tables; no program runs."""

from __future__ import annotations

import pytest

from ..service_world import ServiceWorld


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "LIST", "DELETE", "HELP"])
def test_help_is_answered_on_any_method_and_no_program_runs(method: str) -> None:
    world = ServiceWorld()
    before = world.store.revision
    reply = world.must(method, "auth/token/roles/r?help=1", {"orphan": True} if method == "POST" else None)
    assert (set(reply), reply["see_also"]) == ({"help", "see_also"}, [])
    assert "POST roles/:name: Registers" in reply["help"]
    assert "    token_period (duration): " in reply["help"]
    assert world.store.revision == before


def test_help_on_credentials_makes_none() -> None:
    world = ServiceWorld()
    assert "GET creds/:name" in world.must("GET", "cloud/creds/web?help=true")["help"]
    assert not any("/intent/" in key for key in world.keys("due/"))


def test_help_is_for_callers_who_may_do_anything_at_the_path() -> None:
    world = ServiceWorld()
    token = world.child(policies=[world.policy("some", ("cloud/roles/", ["list"]), ("sys/seal", ["deny"]))])
    assert world.ask("GET", "cloud/roles?help=1", token=token)[0] == 200
    for path in ("cloud/config", "sys/seal", "nowhere/x", "cloud/nothing"):
        assert world.code("GET", f"{path}?help=1", token=token) == (403, "permission_denied")
        assert world.code("GET", f"{path}?help=1", token="") == (403, "permission_denied")


def test_public_paths_explain_themselves_to_everybody() -> None:
    world = ServiceWorld()
    assert "jwt (string)" in world.must("GET", "auth/cloud/login?help=1", token="")["help"]
    assert "activecode" in world.must("GET", "sys/health?help=1", token="")["help"]


def test_there_is_no_help_about_what_is_not_there() -> None:
    assert ServiceWorld().code("GET", "cloud/nothing?help=1") == (404, "unsupported_path")
    assert ServiceWorld().code("GET", "nowhere/x?help=1") == (404, "no_handler")


@pytest.mark.parametrize("method", ["GET", "POST", "LIST", "DELETE"])
def test_a_scan_is_not_offered_and_runs_nothing(method: str) -> None:
    world = ServiceWorld()
    assert world.code(method, "cloud/creds/web?scan=true") == (405, "unsupported_operation")
    assert world.code("SCAN", "cloud/roles") == (405, "unsupported_operation")
    assert world.ask("GET", "sys/policies/acl/default?scan=false&help=0")[0] == 200


def test_a_flag_must_be_a_boolean() -> None:
    assert ServiceWorld().code("GET", "cloud/roles?help=perhaps") == (400, "field_invalid")
