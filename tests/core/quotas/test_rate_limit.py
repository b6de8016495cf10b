"""Requests beyond a quota are refused, for each source by itself."""

from __future__ import annotations

from typing import Any

import jwt as pyjwt
import pytest

from cloudid_core.effects import Effect, Record
from cloudid_core.messages.response import Request
from cloudid_core.quotas.rate_limit import OPERATORS, READ_AGAIN
from cloudid_core.quotas.record import MOST_EXEMPT
from cloudid_core.store import keys
from cloudid_core.testing import FaultKind
from tests.installation import HOME, Installation, Reply
from tests.logins import LOGIN, configure_logins, login_form

ELSEWHERE = "198.51.100.7"
REFUSED = (429, "rate_limit_exceeded")


class FullDisk(Installation):
    """Nothing can be recorded while its disk is full."""

    is_full = False

    def fault_for(self, effect: Effect[Any]) -> FaultKind | None:
        return FaultKind.FAIL if self.is_full and isinstance(effect, Record) else super().fault_for(effect)


def limited(**fields: object) -> Installation:
    world = Installation()
    world.must("POST", "sys/quotas/rate-limit/login", {"path": "auth/cloud", "rate": 2, "interval": "1m", **fields})
    return world


def left(reply: Reply) -> dict[str, int]:
    """What the headers of a reply tell of the quota."""
    prefix = "x-ratelimit-"
    headers = reply.response.headers.items()
    return {name.removeprefix(prefix): int(value) for name, value in headers if name.startswith(prefix)}


def showing(**fields: object) -> Installation:
    """With headers that tell what is left."""
    world = limited(**fields)
    world.must("POST", "sys/quotas/config", {"enable_rate_limit_response_headers": True})
    return world


def status(world: Installation, address: str = HOME, path: str = "auth/cloud/login") -> int:
    return world.ask("POST", path, {}, token="", address=address).status


def test_a_source_makes_so_many_requests_in_an_interval() -> None:
    world = limited()
    assert [status(world) for _ in range(3)] == [400, 400, 429]
    reply = world.ask("POST", "auth/cloud/login", {}, token="")
    assert (reply.status, reply.code) == REFUSED
    assert 1 <= int(reply.response.headers["retry-after"]) <= 30
    world.advance(30)
    assert [status(world) for _ in range(2)] == [400, 429]


def test_every_answer_tells_what_is_left_where_that_is_switched_on() -> None:
    """Refusals too. `Reset` is in seconds from now."""
    world = showing(path="sys/mounts", rate=3)
    replies = [world.ask("GET", "sys/mounts", token=token) for token in ("root", "guess", "root", "root")]
    assert [reply.status for reply in replies] == [200, 403, 200, 429]
    assert [left(reply) for reply in replies] == [
        {"limit": 3, "remaining": 2, "reset": 20},
        {"limit": 3, "remaining": 1, "reset": 40},
        {"limit": 3, "remaining": 0, "reset": 60},
        {"limit": 3, "remaining": 0, "reset": 60},
    ]
    assert replies[3].response.headers["retry-after"] == "20"
    assert replies[0].response.headers["content-type"] == "application/json"


def test_an_answer_without_a_body_tells_what_is_left() -> None:
    world = showing(path="sys/policies", rate=3)
    reply = world.ask("PUT", "sys/policies/acl/app", {"policy": ""})
    assert (reply.status, left(reply)) == (204, {"limit": 3, "remaining": 2, "reset": 20})


def test_help_and_wrapped_answers_tell_what_is_left() -> None:
    world = showing(path="sys/mounts", rate=3)
    replies = [world.ask("GET", "sys/mounts?help=1"), world.ask("GET", "sys/mounts", x_service_wrap_ttl="60")]
    assert [left(reply)["remaining"] for reply in replies] == [2, 1]


def test_a_source_that_is_blocked_is_told_until_when() -> None:
    world = showing(block_interval="10m")
    replies = [world.ask("POST", "auth/cloud/login", {}, token="") for _ in range(3)]
    assert left(replies[2]) == {"limit": 2, "remaining": 0, "reset": 600}
    world.advance(590)
    assert left(world.ask("POST", "auth/cloud/login", {}, token=""))["reset"] == 10


@pytest.mark.parametrize("path", ["sys/policies/acl", "sys/health"])
def test_an_answer_that_no_quota_covers_tells_nothing(path: str) -> None:
    assert left(showing().ask("GET", path)) == {}


def test_nothing_is_told_unless_it_is_switched_on() -> None:
    world = limited()
    assert [left(world.ask("POST", "auth/cloud/login", {}, token="")) for _ in range(3)] == [{}, {}, {}]


def test_an_answer_that_cannot_be_recorded_tells_what_is_left() -> None:
    world = FullDisk()
    world.must("POST", "sys/quotas/rate-limit/all", {"rate": 3, "path": "sys/mounts"})
    world.must("POST", "sys/quotas/config", {"enable_rate_limit_response_headers": True})
    world.is_full = True
    replies = [world.ask("GET", "sys/mounts", token=token) for token in ("root", "guess")]
    assert [(reply.status, left(reply)["remaining"]) for reply in replies] == [(503, 2), (503, 1)]


def test_other_sources_and_paths_are_not_concerned() -> None:
    world = limited()
    assert [status(world) for _ in range(3)][-1] == 429
    assert status(world, "192.0.2.77") == 400
    assert world.ask("GET", "sys/mounts").status == 200


def test_the_addresses_of_a_subnet_are_one_source() -> None:
    world = limited()
    assert [status(world, f"2001:db8::{number}") for number in range(3)] == [400, 400, 429]
    assert status(world, "2001:db8:0:1::1") == 400


def test_a_source_that_made_too_many_is_blocked() -> None:
    world = limited(block_interval="10m")
    assert [status(world) for _ in range(3)] == [400, 400, 429]
    world.advance(599)
    assert status(world) == 429
    world.advance(1)
    assert status(world) == 400


def test_a_clock_that_was_set_back_blocks_no_source_for_longer() -> None:
    world = limited(block_interval="10m")
    assert [status(world) for _ in range(3)] == [400, 400, 429]
    world.clock -= 3600
    assert status(world) == 429
    world.advance(600)
    assert status(world) == 400


def test_the_lowest_rate_says_when_to_come_again() -> None:
    world = limited(rate=1e-6, interval="8760h")
    assert [status(world) for _ in range(2)] == [400, 429]
    assert int(world.ask("POST", "auth/cloud/login", {}, token="").response.headers["retry-after"]) > 31e12


def test_requests_without_a_good_token_count() -> None:
    """They are refused before anybody looks at the token."""
    world = limited(path="sys/mounts")
    assert [world.ask("GET", "sys/mounts", token="guess").status for _ in range(3)] == [403, 403, 429]


def test_a_quota_of_a_role_counts_its_logins() -> None:
    world = limited(path="auth/cloud/login", role="dev")
    form = login_form(world, configure_logins(world))
    dev = [world.ask("POST", LOGIN, form, token="").status for _ in range(3)]
    other = [world.ask("POST", LOGIN, {**form, "role": "prod"}, token="").status for _ in range(3)]
    assert (dev, other) == ([200, 200, 429], [400, 400, 400])


@pytest.mark.parametrize("jwt", ["x.y.z", "foreign", ""])
def test_a_login_whose_token_is_not_accepted_does_not_show_which_roles_have_a_quota(jwt: str) -> None:
    world = showing(path="auth/cloud", role="dev")
    world.must("POST", "sys/quotas/rate-limit/mount", {"path": "auth/cloud", "rate": 100, "interval": "1m"})
    valid = login_form(world, configure_logins(world))
    if jwt == "foreign":
        claims = pyjwt.decode(str(valid["jwt"]), options={"verify_signature": False})
        jwt = world.cloud("POST", "/simulator/tokens", {"claims": {**claims, "aud": "https://other.example"}})["token"]
    seen: dict[str, list[object]] = {}
    for role in ("dev", "nope"):
        replies = [world.ask("POST", LOGIN, {"role": role, "jwt": jwt}, "", f"192.0.2.{len(role)}") for _ in range(5)]
        seen[role] = [(reply.status, reply.code, left(reply)) for reply in replies]
        assert [left(reply)["limit"] for reply in replies] == [100] * 5
    assert seen["dev"] == seen["nope"]
    shown = [left(world.ask("POST", LOGIN, valid, "", "192.0.2.3"))["remaining"] for _ in range(2)]
    assert shown == [1, 0], "the refused logins did not count"


def test_a_login_that_starts_again_counts_once_for_its_role() -> None:
    world = limited(path="auth/cloud/login", role="dev", rate=2)
    form = login_form(world, configure_logins(world))
    world.must("POST", LOGIN, form, token="")
    other = world.open_node()
    with world.requests_to(other):
        world.must("POST", "auth/cloud/role/dev", {"token_ttl": "5m"})
    assert [world.ask("POST", LOGIN, form, token="").status for _ in range(2)] == [200, 429]


def test_a_login_of_a_role_is_counted_by_its_path_too() -> None:
    world = limited(rate=1)
    world.must("POST", "sys/quotas/rate-limit/dev", {"path": "auth/cloud/login", "role": "dev", "rate": 100})
    form = login_form(world, world.scene["machines"][0])
    assert [world.ask("POST", LOGIN, form, token="").status for _ in range(2)] == [400, 429]


MALFORMED: list[tuple[str, str, dict[str, str], bytes]] = [
    ("POST", "/v1/auth/cloud/login", {}, b"{"),
    ("POST", "/v1/auth/cloud/login", {}, bytes(40_000)),
    ("POST", "/v1/auth/cloud/login", {"x-vault-wrap-ttl": "soon"}, b"{}"),
    ("POST", "/v1/auth/cloud/login", {"x-service-deadline": "soon"}, b"{}"),
    ("POST", "/v1/auth/cloud/login", {"x-vault-namespace": "team"}, b"{}"),
    ("POST", "/v1/auth/cloud/login/", {}, b"{}"),
    ("POST", "/v1/auth//cloud/login", {}, b"{}"),
    ("POST", "/v1/auth/cloud/%2e%2e/login", {}, b"{}"),
    ("POST", "/v1/auth/cloud/%ff", {}, b"{}"),
    ("POST", "/nowhere", {}, b"{}"),
    ("PATCH", "/v1/auth/cloud/login", {}, b"{}"),
    ("GET", "/v1/auth/cloud/login?scan=true", {}, b""),
    ("GET", "/v1/auth/cloud/login?help=junk", {}, b""),
]


@pytest.mark.parametrize("method, target, headers, body", MALFORMED)
def test_what_is_malformed_counts_too(method: str, target: str, headers: dict[str, str], body: bytes) -> None:
    world = limited(path="")
    request = Request(method, target, headers, body, HOME)
    replies = [world.receive(world.perform(world.service.handle(request))).status for _ in range(3)]
    assert replies[2] == 429
    assert 429 not in replies[:2]


@pytest.mark.parametrize("target", ["/v1/auth/cloud/%ff", "/v1/%61uth/cloud/a//b", "/v1/auth/cloud/login?scan=1"])
def test_what_is_malformed_is_counted_by_its_path(target: str) -> None:
    world = limited()
    request = Request("GET", target, {}, b"", HOME)
    assert [world.perform(world.service.handle(request)).status for _ in range(3)][2] == 429


@pytest.mark.parametrize("role, spelling", [("5", 5), ("0", 0), ("1", True), ("0", False), ("2.5", 2.5)])
def test_a_role_that_is_spelt_as_a_number_is_the_same_role(role: str, spelling: object) -> None:
    """A login with the number is one of the role, so it has no quota of its own."""
    world = limited(path="auth/cloud/login", role=role)
    form = login_form(world, configure_logins(world))
    statuses = [world.ask("POST", LOGIN, {**form, "role": each}, "").status for each in (role, spelling, role)]
    assert statuses == [400, 400, 429]


def test_a_change_counts_at_once() -> None:
    world = limited()
    assert [status(world) for _ in range(3)][-1] == 429
    world.must("DELETE", "sys/quotas/rate-limit/login")
    assert status(world) == 400


def test_a_change_by_another_node_counts_soon() -> None:
    world = limited()
    assert [status(world) for _ in range(3)][-1] == 429
    world.store.commit({}, {}, (keys.QUOTAS,))
    assert status(world) == 429
    world.advance(READ_AGAIN)
    assert status(world) == 400


def test_a_damaged_record_stops_nobody_and_can_be_replaced() -> None:
    world = limited()
    world.store.commit({}, {keys.QUOTAS: b"junk"}, ())
    world.advance(READ_AGAIN)
    assert [status(world) for _ in range(3)] == [400, 400, 400]
    world.must("POST", "sys/quotas/rate-limit/login", {"path": "auth/cloud", "rate": 1})
    assert [status(world) for _ in range(2)] == [400, 429]


LOCK = "sys/quotas/rate-limit/lock"


def locked() -> Installation:
    """Every request to the quotas is refused: the bucket holds one, and a source that takes more is blocked."""
    world = Installation()
    world.must("POST", LOCK, {"path": "sys", "rate": 1e-6, "interval": "1h", "block_interval": "1h"})
    world.must("GET", "sys/mounts")
    assert world.refused("GET", "sys/mounts") == REFUSED
    return world


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_quota_can_be_changed_at_its_own_path_by_a_token_that_may(method: str) -> None:
    world = locked()
    world.must(method, LOCK)
    is_gone = method == "DELETE"
    assert world.ask("GET", "sys/mounts").status == (200 if is_gone else 429)


def test_a_quota_refuses_tokens_that_may_not_change_it_at_its_own_path() -> None:
    world = locked()
    reader = 'path "sys/quotas/rate-limit/lock" { capabilities = ["read"] }'
    world.must("POST", "sys/policies/acl/reader", {"policy": reader}, address="198.51.100.1")
    token = world.must("POST", "auth/token/create", {"policies": ["reader"]}).auth["client_token"]
    assert world.refused("GET", "sys/mounts") == REFUSED
    world.must("GET", LOCK, None, token)
    assert [world.refused("DELETE", LOCK, None, text) for text in (token, "cs.invented", "")] == [REFUSED] * 3
    assert world.refused("GET", "sys/mounts", None, token) == REFUSED


def test_quotas_that_refuse_each_others_paths_can_be_taken_back() -> None:
    world = Installation()
    least = {"rate": 1e-6, "interval": "1h", "block_interval": "1h"}
    world.must("POST", "sys/quotas/rate-limit/y", {"path": "sys/quotas/rate-limit/x", **least})
    world.must("POST", "sys/quotas/rate-limit/x", least)
    for path in ("sys/quotas/rate-limit/x", "sys/quotas/rate-limit/y", "sys/mounts"):
        world.ask("GET", path)
    assert world.refused("GET", "sys/mounts") == REFUSED
    for name in ("x", "y"):
        world.must("DELETE", f"sys/quotas/rate-limit/{name}")
    world.must("GET", "sys/mounts")


def test_exempt_paths_are_few_and_count_under_each_of_their_names() -> None:
    world = Installation()
    world.must("POST", "sys/quotas/rate-limit/all", {"path": "sys", "rate": 1e-6, "interval": "1h"})
    world.must("POST", "sys/quotas/config", {"rate_limit_exempt_paths": ["sys/renew"]})
    assert {world.ask("POST", "sys/renew", {"lease_id": "x"}).status for _ in range(3)} == {400}
    many = [f"sys/{number}" for number in range(MOST_EXEMPT + 1)]
    assert world.refused("POST", "sys/quotas/config", {"rate_limit_exempt_paths": many}) == (400, "field_invalid")


def test_at_the_own_path_of_a_quota_ten_tokens_a_second_are_checked() -> None:
    """Invented tokens would otherwise be work that no quota limits."""
    world = locked()
    for number in range(10):
        assert world.refused("DELETE", LOCK, None, f"cs.invented{number}", f"198.51.100.{number}") in (
            REFUSED,
            (403, "permission_denied"),
        )
    for _ in range(10):
        world.refused("DELETE", LOCK, None, "cs.invented", HOME)
    assert world.refused("GET", LOCK) == REFUSED
    world.advance(1.0)
    world.must("GET", LOCK)


def test_the_tokens_that_are_checked_at_the_own_path_of_a_quota_are_so_many_in_every_second() -> None:
    world = locked()
    world.ask("GET", LOCK, address=ELSEWHERE)  # the one that the quota itself lets through
    seconds = []
    for _ in range(3):
        statuses = [world.ask("GET", LOCK, address=ELSEWHERE).status for _ in range(2 * int(OPERATORS))]
        seconds.append((statuses.count(200), statuses.count(429)))
        world.advance(1.0)
    assert seconds == [(OPERATORS, OPERATORS)] * 3


def test_a_quota_blocks_for_an_hour_at_most() -> None:
    world = Installation()
    assert world.refused("POST", LOCK, {"rate": 1, "block_interval": "3601s"}) == (400, "field_invalid")


def test_the_failed_logins_of_a_subnet_are_counted_together() -> None:
    """One source has a whole /64 of IPv6 addresses (RFC 4291 section 2.5.4)."""
    world = Installation()
    configure_logins(world)
    form = {"role": "dev", "jwt": "e30.e30.AAAA"}
    answers = [
        world.ask("POST", "auth/cloud/login", form, "", f"2001:db8::{number:x}").status for number in range(1, 22)
    ]
    assert (answers[:20].count(429), answers[20]) == (0, 429)
    assert world.ask("POST", "auth/cloud/login", form, "", "2001:db8:0:1::1").status != 429


def test_a_source_that_invents_tokens_does_not_keep_operators_from_quotas_that_refuse_everything() -> None:
    world = limited(path="", rate=0.001, interval=3600)
    path = "sys/quotas/rate-limit/login"
    for number in range(2 * int(OPERATORS)):
        refused = world.ask("GET", path, token=f"invented{number}", address=ELSEWHERE)
    assert refused.status == 429
    assert world.ask("GET", path, address=ELSEWHERE).status == 429
    assert [world.ask("GET", path, address=HOME).status for _ in range(3)] == [200] * 3
