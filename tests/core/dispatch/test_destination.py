"""Where requests lead, and that it makes no difference whether that is remembered."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.caches import Bounded
from cloudid_core.catalog import CATALOG
from cloudid_core.dispatch.destination import Destination, destination_of, find_destination
from cloudid_core.errors import Code, Refused
from cloudid_core.messages.request import parse_target
from cloudid_core.messages.response import Request
from cloudid_core.mounts import MountTable, default_mounts
from cloudid_core.store.records import Found
from tests.installation import Installation
from tests.logins import configure_logins

MOUNTS: Final = Found("mounts", default_mounts(bytes(range(24))), 1)
WITHOUT_CLOUD: Final = Found("mounts", MOUNTS.record.without(MOUNTS.record.mounts[0].id), 2)
METHODS: Final = ("GET", "HEAD", "LIST", "HELP", "POST", "PUT", "DELETE", "PATCH", "get", "TRACE")
PATHS: Final = (
    "auth/cloud/login",
    "auth/cloud/role",
    "auth/cloud/role/web",
    "auth/token/lookup-self",
    "cloud/creds/web",
    "cloud/nothing",
    "cloud/rotate-root",
    "nowhere",
    "sys/health",
    "sys/%68ealth",
    "sys//health",
    "sys/../health",
)
ENDS: Final = ("", "", "/", "?", "?list=true", "?list=junk", "?help=1", "?scan=1", "?a=b")

targets = st.builds("/v1/{}{}".format, st.sampled_from(PATHS), st.sampled_from(ENDS)) | st.sampled_from(["/", "/v1/"])
requests = st.builds(Request, st.sampled_from(METHODS), targets)


def memory() -> Bounded[Hashable, Any]:
    return Bounded(16)


def outcome(
    request: Request, mounts: Found[MountTable], remembered: Bounded[Hashable, Any]
) -> Destination | tuple[str, ...]:
    try:
        return destination_of(request, CATALOG, mounts, remembered)
    except Refused as refused:
        return tuple(problem.text for problem in refused.problems)


@given(st.lists(st.tuples(requests, st.sampled_from([MOUNTS, WITHOUT_CLOUD])), max_size=40))
def test_memory_changes_nothing(asked: list[tuple[Request, Found[MountTable]]]) -> None:
    remembered = memory()
    for request, mounts in asked:
        assert outcome(request, mounts, remembered) == outcome(request, mounts, memory())


def test_a_plain_target_is_parsed_and_routed_once() -> None:
    remembered = memory()
    first = destination_of(Request("POST", "/v1/auth/cloud/login"), CATALOG, MOUNTS, remembered)
    assert destination_of(Request("POST", "/v1/auth/cloud/login"), CATALOG, MOUNTS, remembered) is first


@pytest.mark.parametrize(
    "target",
    ["cloud/creds/web", "sys/%68ealth", "sys/health/", "sys/health?", "sys/health?a=b", "cloud/nothing", "nowhere/x"],
)
def test_what_clients_can_make_up_is_not_remembered(target: str) -> None:
    """Names of roles, other spellings, paths that lead nowhere."""
    remembered = memory()
    destination_of(Request("GET", f"/v1/{target}"), CATALOG, MOUNTS, remembered)
    assert not len(remembered)


def test_what_is_remembered_ends_with_its_table_of_mounts() -> None:
    remembered = memory()
    request = Request("POST", "/v1/auth/cloud/login")
    assert destination_of(request, CATALOG, MOUNTS, remembered).route is not None
    assert destination_of(request, CATALOG, WITHOUT_CLOUD, remembered).failure is Code.NO_HANDLER


def test_a_mount_that_is_disabled_answers_no_longer() -> None:
    """A mount that was disabled and made again at its path is another one, too."""
    world = Installation()
    assert world.ask("LIST", "auth/cloud/role").status == 404
    configure_logins(world)
    assert world.must("LIST", "auth/cloud/role").data["keys"] == ["dev"]
    world.must("DELETE", "sys/auth/cloud")
    assert world.refused("LIST", "auth/cloud/role") == (404, "no_handler")
    world.must("POST", "sys/auth/cloud", {"type": "cloud"})
    assert world.ask("LIST", "auth/cloud/role").status == 404


def test_a_head_of_a_route_with_a_side_effect_leads_nowhere() -> None:
    place = find_destination(parse_target(Request("HEAD", "/v1/cloud/creds/web")), CATALOG, MOUNTS)
    assert (place.route, place.failure, place.allow) == (None, Code.UNSUPPORTED_OPERATION, "GET")
