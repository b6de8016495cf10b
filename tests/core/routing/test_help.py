"""Help about paths comes from the tables; no program runs."""

from __future__ import annotations

import pytest

from cloudid_core.catalog import CATALOG
from tests.installation import Installation
from tests.tokens import new_token, write_policy


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "LIST", "DELETE", "HELP"])
def test_help_is_answered_on_any_method_and_no_program_runs(method: str) -> None:
    world = Installation()
    before = world.store.revision
    reply = world.must(method, "auth/token/roles/r?help=1", {"orphan": True} if method == "POST" else None).body
    assert (set(reply), reply["see_also"]) == ({"help", "see_also"}, [])
    assert "POST roles/:name: Creates" in reply["help"]
    assert "    token_period (duration from 0 to " in reply["help"]
    assert world.store.revision == before


def test_help_on_credentials_makes_none() -> None:
    world = Installation()
    assert "GET creds/:name" in world.must("GET", "cloud/creds/web?help=true").body["help"]
    assert not any("/intent/" in key for key in world.keys("due/"))


def test_help_is_for_callers_who_may_do_anything_at_the_path() -> None:
    world = Installation()
    token = new_token(world, policies=[write_policy(world, "some", ("cloud/roles/", ["list"]), ("sys/seal", ["deny"]))])
    assert world.ask("GET", "cloud/roles?help=1", token=token).status == 200
    for path in ("cloud/config", "sys/seal", "nowhere/x", "cloud/nothing"):
        assert world.refused("GET", f"{path}?help=1", token=token) == (403, "permission_denied")
        assert world.refused("GET", f"{path}?help=1", token="") == (403, "permission_denied")


def test_public_paths_explain_themselves_to_everybody() -> None:
    world = Installation()
    assert "jwt (string)" in world.must("GET", "auth/cloud/login?help=1", token="").body["help"]
    assert "activecode" in world.must("GET", "sys/health?help=1", token="").body["help"]


@pytest.mark.parametrize("path", ["cloud", "cloud/"])
def test_the_path_of_a_mount_lists_the_paths_in_it(path: str) -> None:
    """For callers with rights below it."""
    world = Installation()
    lines = world.must("GET", f"{path}?help=1").body["help"].split("\n")
    assert "GET creds/:name: " in "\n".join(lines)
    assert len(lines) == len(CATALOG.of(world.mount("cloud")).routes.routes)
    reader = new_token(world, policies=[write_policy(world, "reader", ("cloud/creds/web", ["read"]))])
    assert world.ask("GET", f"{path}?help=1", token=reader).status == 200
    stranger = new_token(world, policies=[write_policy(world, "stranger", ("clouds/*", ["read"]))])
    assert world.refused("GET", f"{path}?help=1", token=stranger) == (403, "permission_denied")
    assert world.refused("GET", f"{path}?help=1", token="") == (403, "permission_denied")


def test_there_is_no_help_about_what_is_not_there() -> None:
    assert Installation().refused("GET", "cloud/nothing?help=1") == (404, "unsupported_path")
    assert Installation().refused("GET", "nowhere/x?help=1") == (404, "no_handler")


@pytest.mark.parametrize("method", ["GET", "POST", "LIST", "DELETE"])
def test_a_scan_is_not_offered_and_runs_nothing(method: str) -> None:
    world = Installation()
    assert world.refused(method, "cloud/creds/web?scan=true") == (405, "unsupported_operation")
    assert world.refused("SCAN", "cloud/roles") == (405, "unsupported_operation")
    assert world.ask("GET", "sys/policies/acl/default?scan=false&help=0").status == 200


def test_a_flag_must_be_a_boolean() -> None:
    assert Installation().refused("GET", "cloud/roles?help=perhaps") == (400, "field_invalid")
