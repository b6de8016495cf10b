"""What holds at every endpoint: its path, the token, the bodies of requests and responses."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import pytest

from cloudid_core import Request
from cloudid_servers.provider_simulator.world.access import permit
from tests.engines import engine_config, grants
from tests.installation import ROOT, Installation, Reply
from tests.logins import LOGIN, configure_logins, login_config, login_form
from tests.wire.test_envelope import MEMBERS

from .logins import token_of
from .rows import ROWS

ENDPOINTS: Final = [row for row in ROWS["endpoint"] if row.startswith(("GET ", "LIST ", "POST ", "DELETE "))]
SPELLINGS: Final = {"x_service_token": "{}", "x_vault_token": "{}", "authorization": "Bearer {}"}
"""The headers that may have the token, and how."""


def service() -> Installation:
    """A service with both components configured, and a role `web` in each."""
    return _service().copy()


@cache
def _service() -> Installation:
    made = Installation()
    world = made.simulator.world
    for principal in world.directory.principals.all():
        permit(world, principal.id, reading=True, writing=True)
    machine = configure_logins(made)
    other = made.scene["applications"][1]  # a rotation refuses a secret that two mounts use
    made.must("POST", "auth/cloud/config", {name: other[name] for name in ("client_id", "client_secret")})
    made.must("POST", "auth/cloud/role/web", {"bound_subscription_ids": machine["subscription"]})
    made.must("POST", "cloud/config", engine_config(made))
    made.must("POST", "cloud/roles/web", {"azure_roles": grants(made)})
    return made


def ask(world: Installation, endpoint: str, token: str = "", **headers: str) -> Reply:
    """The reply of an endpoint to a request that it can fulfil if the token is good."""
    method, _, path = endpoint.partition(" ")
    body = login_form(world, world.scene["machines"][0]) if path == LOGIN else {} if method == "POST" else None
    return world.ask(method, path.replace(":name", "web"), body, token, **headers)


def ask_raw(world: Installation, method: str, target: str, content: bytes = b"", **headers: str) -> Reply:
    """The reply to a request with the root token and this target."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply.of(
        world.perform(world.service.handle(Request(method, target, {**named, "x-service-token": ROOT}, content)))
    )


@pytest.mark.contract("authentication: token header", "authentication: login needs no token")
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_every_endpoint_but_login_needs_a_token(endpoint: str) -> None:
    """In any of the three headers; neither without one nor with an unknown one does anything work."""
    is_login = endpoint == f"POST {LOGIN}"
    assert (ask(service(), endpoint).status == 200) is is_login
    for header, form in SPELLINGS.items():
        world = service()
        if not is_login:
            before = len(world.trace)
            for unknown in ("", "nonsense", ROOT + "x"):
                reply = ask(world, endpoint, **{header: form.format(unknown)})
                assert (reply.status, reply.codes) == (403, ["permission_denied"])
            assert world.calls(before) == []
        assert ask(world, endpoint, **{header: form.format(ROOT)}).status in (200, 204)


@pytest.mark.contract("authentication: token header")
def test_of_several_token_headers_the_first_one_counts() -> None:
    """In the order of the table; an empty one is as none."""
    world = service()
    headers = {name: form.format(ROOT) for name, form in SPELLINGS.items()}
    for name, form in SPELLINGS.items():
        assert world.ask("GET", "cloud/config", token="", **headers).status == 200
        assert world.ask("GET", "cloud/config", token="", **{**headers, name: form.format("nonsense")}).status == 403
        headers[name] = ""


@pytest.mark.contract("convention: payload in data, that of a login in auth")
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_the_payload_is_in_the_envelope(endpoint: str) -> None:
    """What is read is in `data`, a login's token in `auth`. A write or removal has nothing to say, and no body."""
    reply = ask(service(), endpoint, token=ROOT)
    if endpoint.startswith(("GET ", "LIST ")) or endpoint == f"POST {LOGIN}":
        assert reply.status == 200
        assert reply.response.headers["content-type"] == "application/json"
        assert set(reply.body) == set(MEMBERS)
        filled, empty = ("auth", "data") if endpoint.endswith("login") else ("data", "auth")
        assert isinstance(reply.body[filled], dict)
        assert reply.body[filled]
        assert reply.body[empty] is None
    else:
        assert (reply.status, reply.body) == (204, None)


@pytest.mark.contract("convention: paths begin with /v1")
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_nothing_is_outside_of_version_one(endpoint: str) -> None:
    """No other version, and no path without one."""
    method, _, path = endpoint.replace(":name", "web").partition(" ")
    world = service()
    for prefix in ("/v2/", "/V1/", "/", "/v1/v1/", "/v11/"):
        reply = ask_raw(world, method, f"{prefix}{path}", b"{}")
        assert reply.status == 404, prefix
        assert list(reply.body) == ["errors"]


@pytest.mark.contract("convention: bodies are JSON")
def test_bodies_are_json() -> None:
    """Whatever the header says that they are; the top level is an object, and no body is an empty one."""
    world = service()
    config = "/v1/auth/cloud/config"
    for content in (b"client_id=x", b"[]", b'"text"', b"{", b'{"a": 1}x', b"\xff"):
        reply = ask_raw(world, "POST", config, content, content_type="application/json")
        assert (reply.status, reply.codes) == (400, ["malformed_json"]), content
    for content in (b'{"client_id": "x"}', b"{}", b"null", b""):
        reply = ask_raw(world, "POST", config, content, content_type="application/x-www-form-urlencoded")
        assert reply.status == 204
    assert world.must("GET", "auth/cloud/config").data["client_id"] == "x"


@pytest.mark.contract("convention: durations")
@pytest.mark.parametrize(
    ("written", "seconds"),
    [(90, 90), ("90", 90), ("90s", 90), ("5m", 300), ("1h30m", 5400), ("2h", 7200), ("1d", 86_400)],
)
def test_a_duration_is_a_number_of_seconds_or_has_a_unit(written: Any, seconds: int) -> None:
    """A token lives so long. What is neither is refused."""
    world = service()
    bound = {"bound_subscription_ids": world.scene["subscriptions"]}
    assert token_of(world, token_ttl=written, **bound)["lease_duration"] == seconds
    for wrong in ("soon", "1 week", "-1s", [1]):
        assert world.refused("POST", "auth/cloud/role/web", {"token_ttl": wrong}) == (400, "field_invalid")


@pytest.mark.contract("endpoint: any other mount path")
def test_components_work_at_any_mount_path() -> None:
    """A login and credentials; what is mounted at the usual paths has no part in them."""
    world = Installation()
    world.must("POST", "sys/auth/deep/machines", {"type": "cloud"})
    world.must("POST", "sys/mounts/deep/engine", {"type": "cloud"})
    machine = world.scene["machines"][0]
    world.must("POST", "auth/deep/machines/config", login_config(world))
    world.must("POST", "auth/deep/machines/role/dev", {"bound_subscription_ids": machine["subscription"]})
    world.must("POST", "deep/engine/config", engine_config(world))
    world.must("POST", "deep/engine/roles/web", {"azure_roles": grants(world)})
    for path, status in (("auth/deep/machines/login", 200), (LOGIN, 400)):
        assert world.ask("POST", path, login_form(world, machine), token="").status == status
    for path, status in (("deep/engine/creds/web", 200), ("cloud/creds/web", 400)):
        assert world.ask("GET", path).status == status
