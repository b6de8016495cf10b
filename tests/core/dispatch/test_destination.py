"""Where requests lead, and that it makes no difference whether their routes are direct."""

from __future__ import annotations

from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.catalog import CATALOG
from cloudid_core.dispatch.destination import DirectRoutes
from cloudid_core.errors import Code, Refused
from cloudid_core.messages.response import Request
from cloudid_core.mounts import MountTable, default_mounts
from cloudid_core.store.records import Found
from tests.exchanges import routed
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


def outcome(request: Request, mounts: Found[MountTable]) -> tuple[object, ...]:
    try:
        found = routed(request, mounts.record)
    except Refused as refused:
        return tuple(problem.text for problem in refused.problems)
    plain = not (found.captures or found.query or found.is_head or found.wants_help or found.ends_in_slash)
    return plain, found.operation, found.path, found.shown_path, found.mount, found.route


@given(requests, st.sampled_from([MOUNTS, WITHOUT_CLOUD]))
def test_a_direct_route_leads_where_its_target_does(request: Request, mounts: Found[MountTable]) -> None:
    direct = DirectRoutes.of(mounts, CATALOG).places.get((request.method, request.target))
    assert direct is None or (True, *direct) == outcome(request, mounts)


def test_the_direct_routes_are_those_of_logins_in_their_one_plain_spelling() -> None:
    direct = DirectRoutes.of(MOUNTS, CATALOG)
    assert set(direct.places) == {("POST", "/v1/auth/cloud/login"), ("PUT", "/v1/auth/cloud/login")}
    assert not DirectRoutes.of(WITHOUT_CLOUD, CATALOG).places


def test_direct_routes_are_listed_once_for_each_table_of_mounts() -> None:
    world = Installation()
    world.ask("GET", "sys/mounts")
    (first,) = world.context.caches.direct_routes.values()
    world.ask("GET", "cloud/creds/made-up")
    assert world.context.caches.direct_routes.values() == (first,)
    world.must("POST", "sys/auth/other", {"type": "cloud"})
    world.ask("GET", "sys/mounts")
    (second,) = world.context.caches.direct_routes.values()
    assert ("POST", "/v1/auth/other/login") in second.places


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
    place = routed(Request("HEAD", "/v1/cloud/creds/web"), MOUNTS.record)
    assert place.route is None
    assert place.dead_end is not None
    assert (place.dead_end.code, place.dead_end.allow) == (Code.UNSUPPORTED_OPERATION, "GET")
