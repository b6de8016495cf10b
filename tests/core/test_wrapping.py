"""Wrapping: what was wrapped and is never unwrapped ends by itself, whatever goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import pytest
from msgspec.structs import replace

from cloudid_core.errors import CloudidError
from cloudid_core.mounts import TOKEN
from cloudid_core.policies.builtin import RESPONSE_WRAPPING
from cloudid_core.store import keys
from cloudid_core.store.records import Found, encode
from cloudid_core.testing import Crashed, Fault, FaultKind, every_fault
from cloudid_core.tokens.record import Token
from cloudid_core.wrapping import ANSWER_LIMIT, MOST_KIBIBYTES, MOST_WAITING, Wrapped, spent_token
from tests.engines import SecretsEngine, engine_with_roles
from tests.installation import Installation, Reply
from tests.logins import LOGIN, configure_logins, log_in, login_form
from tests.tokens import is_valid, new_token

CREDS = "cloud/creds/existing"
TTL = 60


def wrapped(
    world: Installation, path: str = CREDS, method: str = "GET", body: object = None, token: str = "root"
) -> Any:
    """The `wrap_info` of an answer."""
    reply = world.ask(method, path, body, token, x_vault_wrap_ttl=str(TTL))
    assert reply.status == 200, reply.body
    return reply.body["wrap_info"]


def unwrapped(world: SecretsEngine, token: str) -> Reply:
    return world.ask("POST", "sys/wrapping/unwrap", token=token)


def test_the_caller_gets_a_token_in_place_of_the_answer() -> None:
    world = engine_with_roles()
    reply = world.ask("GET", CREDS, x_service_wrap_ttl="1m")
    info = reply.body.pop("wrap_info")
    assert reply.body == {
        "request_id": "",
        "lease_id": "",
        "renewable": False,
        "lease_duration": 0,
        "data": None,
        "warnings": None,
        "auth": None,
        "mount_type": "",
    }
    assert set(info) == {"token", "accessor", "ttl", "creation_time", "creation_path", "wrapped_accessor"}
    assert (info["ttl"], info["creation_path"], info["wrapped_accessor"]) == (60, CREDS, "")


def test_nothing_is_wrapped_for_head_whose_answer_nobody_sees() -> None:
    world = engine_with_roles()
    before = world.ask("LIST", "auth/token/accessors").body["data"]
    assert world.ask("HEAD", "sys/mounts", x_vault_wrap_ttl=str(TTL)).status == 200
    assert world.ask("LIST", "auth/token/accessors").body["data"] == before


def test_a_wrapped_lease_lives_on_when_it_was_unwrapped() -> None:
    world = engine_with_roles()
    answer = unwrapped(world, wrapped(world)["token"]).body
    world.pass_time(2 * TTL)
    assert world.leases() == [answer["lease_id"]]
    assert world.accepts(**answer["data"])


def test_a_wrapped_lease_that_is_never_unwrapped_ends_with_its_token() -> None:
    world = engine_with_roles()
    passwords = world.alive("password")
    wrapped(world)
    assert len(world.leases()) == 1
    world.pass_time(TTL - 1)
    assert len(world.leases()) == 1
    world.pass_time(10)
    assert (world.leases(), world.alive("password")) == ([], passwords)
    assert not world.keys("wrapped/")


def test_a_wrapped_token_ends_with_its_wrapping_token_also_where_children_are_to_live_on() -> None:
    """It is no child that could live on: nobody can have its text any more."""
    world = engine_with_roles()
    machine = configure_logins(world)
    for path, body in (("auth/cloud/login", login_form(world, machine)), ("auth/token/create", {})):
        info = wrapped(world, path, "POST", body)
        accessor = {"accessor": info["wrapped_accessor"]}
        assert world.ask("POST", "auth/token/lookup-accessor", accessor).status == 200
        world.must("POST", "auth/token/revoke-orphan", {"token": info["token"]})
        world.converge()
        assert world.refused("POST", "auth/token/lookup-accessor", accessor) == (400, "token_not_found")


def test_the_end_of_the_wrapping_token_is_asked_for_in_time() -> None:
    """The host runs the background by then, and does not wait for the end of the lease."""
    world = engine_with_roles()
    reply = world.ask("GET", CREDS, x_vault_wrap_ttl=str(TTL))
    assert reply.response.wake_at is not None
    assert reply.response.wake_at <= world.clock + TTL
    assert reply.response.holds == world.leases()[0]


def test_a_wrapping_token_that_is_revoked_takes_its_lease_along() -> None:
    world = engine_with_roles()
    token = wrapped(world)["token"]
    world.must("POST", "auth/token/revoke", {"token": token})
    world.tick()
    world.pass_time(5)
    assert not world.leases()
    assert unwrapped(world, token).codes == ["wrapping_token_invalid"]


def test_a_wrapped_token_that_is_never_unwrapped_ends() -> None:
    world = engine_with_roles()
    info = wrapped(world, "auth/token/create", "POST", {"policies": ["default"], "ttl": "1h"})
    by_accessor = {"accessor": info["wrapped_accessor"]}
    assert world.ask("POST", "auth/token/lookup-accessor", by_accessor).status == 200
    world.pass_time(TTL + 5)
    assert world.ask("POST", "auth/token/lookup-accessor", by_accessor).status >= 400
    assert not world.keys("child/")


def test_a_wrapped_renewal_ends_nothing() -> None:
    """Its answer repeats a token and a lease that others have already."""
    world = engine_with_roles()
    token = world.must("POST", "auth/token/create", {"policies": ["default"], "ttl": "1h"}).auth["client_token"]
    lease_id = world.issue()
    wrapped(world, "auth/token/renew-self", "POST", {}, token)
    wrapped(world, "sys/leases/renew", "POST", {"lease_id": lease_id})
    world.pass_time(TTL + 5)
    assert world.leases() == [lease_id]
    assert world.ask("GET", "auth/token/lookup-self", token=token).status == 200


def test_a_wrapped_login_gives_its_token_once() -> None:
    world = Installation()
    machine = configure_logins(world)
    body = login_form(world, machine)
    info = world.must("POST", "auth/cloud/login", body, "", x_service_wrap_ttl="60").body["wrap_info"]
    auth = world.must("POST", "sys/wrapping/unwrap", {"token": info["token"]}).auth
    assert auth["accessor"] == info["wrapped_accessor"]
    assert is_valid(world, auth["client_token"])
    world.advance(120)
    world.pass_time(3)
    assert is_valid(world, auth["client_token"])


def test_nothing_is_left_when_the_wrapping_fails() -> None:
    """The answer cannot be delivered then."""
    world = engine_with_roles()
    world.ask("GET", CREDS, x_vault_wrap_ttl=str(TTL))
    commits = [at for at, (_, effect) in enumerate(world.trace) if type(effect).__name__ == "Commit"]
    twin = engine_with_roles()
    twin.inject(Fault(commits[-1], FaultKind.FAIL))
    assert twin.refused("GET", CREDS, x_vault_wrap_ttl=str(TTL)) == (503, "store_unavailable")
    twin.pass_time(TTL)
    assert not twin.leases()


class Watched(SecretsEngine):
    """A world that remembers what its client has seen."""

    wrapping_token = ""
    credentials: Mapping[str, str] = {}


def watched() -> Watched:
    return Watched.copy_of(engine_with_roles())


def look_once(world: Watched) -> None:
    """Wrap credentials and unwrap them."""
    reply = world.ask("GET", CREDS, x_vault_wrap_ttl=str(TTL))
    if reply.status == 200:
        world.wrapping_token = reply.body["wrap_info"]["token"]
        shown = unwrapped(world, world.wrapping_token)
        if shown.status == 200:
            world.credentials = shown.data


def test_whatever_goes_wrong_a_lease_that_no_client_has_seen_ends() -> None:
    """A lease that its client has seen stays. No answer is shown twice."""
    before = engine_with_roles().alive("password")
    for world in every_fault(look_once, watched):
        with suppress(Crashed, CloudidError):
            look_once(world)
        world.restart()
        if world.credentials:
            assert unwrapped(world, world.wrapping_token).codes == ["wrapping_token_invalid"]
            world.pass_time(2 * TTL)
            assert world.accepts(**world.credentials)
        else:
            is_unwrapped = world.wrapping_token and not world.keys("wrapped/")
            world.pass_time(2 * 3600 if is_unwrapped else 600)  # an answer that was lost on its way lives its time
            assert world.alive("password") == before
        assert not world.keys("wrapped")


def test_an_answer_outlives_the_token_that_had_it_wrapped() -> None:
    world = Installation()
    creator = new_token(world, policies=["root"])
    info = world.must("GET", "sys/policies/acl/default", None, creator, x_service_wrap_ttl="60").body["wrap_info"]
    world.must("POST", "auth/token/revoke", {"token": creator})
    world.pass_time(TTL / 2)
    assert world.must("POST", "sys/wrapping/unwrap", {"token": info["token"]}, "").data["policy"]


def wrap_many(count: int, token: str) -> Installation:
    """An installation in which a token had so many answers wrapped."""
    world = Installation()
    for _ in range(count):
        world.must("POST", "sys/wrapping/wrap", {"a": 1}, token, x_vault_wrap_ttl=str(TTL))
    return world


def test_so_many_answers_of_a_token_wait_at_a_time() -> None:
    """Another one is refused before anything is done for it. Those of other tokens do not count."""
    world = wrap_many(MOST_WAITING - 1, "root")
    token = world.must("POST", "sys/wrapping/wrap", {"a": 1}, x_vault_wrap_ttl=str(TTL)).body["wrap_info"]["token"]
    before = world.keys(keys.TOKENS)
    reply = world.ask("POST", "auth/token/create", {}, x_vault_wrap_ttl=str(TTL))
    assert (reply.status, reply.code) == (429, "wrapped_count_exceeded")
    assert int(reply.response.headers["retry-after"]) > 0
    assert world.keys(keys.TOKENS) == before
    other = new_token(world, policies=["root"])
    world.must("POST", "sys/wrapping/wrap", {"a": 1}, other, x_vault_wrap_ttl=str(TTL))
    world.must("POST", "sys/wrapping/unwrap", {"token": token})
    wrapped(world, "sys/wrapping/wrap", "POST", {"a": 1})
    assert world.ask("GET", "sys/mounts", x_vault_wrap_ttl=str(TTL)).status == 429
    world.advance(TTL)
    wrapped(world, "sys/wrapping/wrap", "POST", {"a": 1})


def logged_in() -> tuple[Installation, Callable[[], str]]:
    """An installation, and what logs its machine in and returns the token."""
    world = Installation()
    machine = configure_logins(world, token_policies="maker")
    world.must(
        "POST", "sys/policies/acl/maker", {"policy": 'path "auth/token/*" { capabilities = ["update", "sudo"] }'}
    )
    return world, lambda: str(log_in(world, machine)["client_token"])


def wrap_content(world: Installation, token: str, content: str) -> Reply:
    return world.ask("POST", "sys/wrapping/wrap", {"a": content}, token, x_vault_wrap_ttl="2764800")


def test_the_answers_that_wait_for_a_principal_are_bounded_however_often_it_logs_in() -> None:
    world, log_in_again = logged_in()
    largest = "x" * 250 * 1024
    answers = [wrap_content(world, log_in_again(), largest).status for _ in range(80)]
    fit = MOST_KIBIBYTES // 251 + 1
    assert answers == [200] * fit + [429] * (80 - fit)
    child = world.must("POST", "auth/token/create", {}, log_in_again()).auth["client_token"]
    orphan = world.must("POST", "auth/token/create-orphan", {"type": "batch"}, log_in_again()).auth["client_token"]
    assert [wrap_content(world, token, "small").status for token in (child, orphan)] == [429, 429]
    assert wrap_content(world, new_token(world, policies=["default"]), "small").status == 200, "another principal"


def test_wrapped_logins_of_a_machine_are_bounded() -> None:
    """Nobody presents a token with a login, so the machine itself is what they have in common."""
    world, log_in_again = logged_in()
    log_in_again()
    form = login_form(world, world.scene["machines"][0])
    answers = [world.ask("POST", LOGIN, form, "", x_vault_wrap_ttl="2764800").status for _ in range(MOST_WAITING + 2)]
    assert answers == [200] * MOST_WAITING + [429, 429]
    assert len(world.keys(keys.TOKENS)) == 2 * MOST_WAITING + 2, "a refused login leaves no token"


def test_a_token_without_a_login_counts_with_its_oldest_ancestor() -> None:
    world = Installation()
    orphan = world.must("POST", "auth/token/create-orphan", {"policies": ["default"]}).auth["client_token"]
    first = world.must("POST", "auth/token/create", {"policies": ["maker"]}).auth["client_token"]
    world.must("POST", "sys/policies/acl/maker", {"policy": 'path "auth/token/create" { capabilities = ["update"] }'})
    children = [world.must("POST", "auth/token/create", {}, first).auth["client_token"] for _ in range(80)]
    answers = [wrap_content(world, child, "x" * 250 * 1024).status for child in children]
    assert 429 in answers
    assert wrap_content(world, first, "small").status == 429
    assert wrap_content(world, orphan, "small").status == 200


def test_tokens_that_a_root_token_created_do_not_count_together() -> None:
    """One of them could keep all others from wrapping anything for a month."""
    world = Installation()
    first, second = (new_token(world, policies=["default"]) for _ in range(2))
    assert 429 in [wrap_content(world, first, "x" * 250 * 1024).status for _ in range(80)]
    assert wrap_content(world, second, "small").status == 200


def test_orphans_count_with_the_principal_that_made_them() -> None:
    world = Installation()
    world.must("POST", "auth/token/roles/o", {"orphan": True, "allowed_policies": "default"})
    world.must("POST", "sys/policies/acl/maker", {"policy": 'path "auth/token/create/o" { capabilities = ["update"] }'})
    maker = new_token(world, policies=["maker"])
    orphans = [world.must("POST", "auth/token/create/o", {}, maker).auth["client_token"] for _ in range(3)]
    answers = [wrap_content(world, orphan, "x" * 250 * 1024).status for orphan in orphans for _ in range(40)]
    assert answers.count(200) == MOST_KIBIBYTES // 251 + 1


@pytest.mark.parametrize("end", ["unwrap", "rewrap", "revoke", "expire"])
@pytest.mark.parametrize("path, body", [("sys/wrapping/wrap", {"a": 1}), ("auth/token/create", {})])
def test_nothing_of_a_wrapped_answer_is_left_at_its_end(end: str, path: str, body: dict[str, Any]) -> None:
    world = Installation()
    token = {"token": wrapped(world, path, "POST", body)["token"]}
    assert len(world.keys("wrapped-by/")) == 1
    match end:
        case "unwrap":
            world.must("POST", "sys/wrapping/unwrap", token)
            assert not world.keys("wrapped")
        case "rewrap":
            world.must("POST", "sys/wrapping/rewrap", token)
            assert len(world.keys("wrapped-by/")) == len(world.keys("wrapped/")) == 1
        case "revoke":
            world.must("POST", "auth/token/revoke", token)
            assert not world.keys("wrapped")
    world.advance(TTL)
    world.pass_time(5)
    assert not world.keys("wrapped")


def test_an_answer_that_was_wrapped_without_an_index_goes_on() -> None:
    """As those of earlier versions, and those of logins."""
    world = Installation()
    machine = configure_logins(world)
    tokens = [
        world.must("POST", "auth/cloud/login", login_form(world, machine), "", x_vault_wrap_ttl=str(TTL))
        for _ in range(2)
    ]
    assert not world.keys("wrapped-by/")
    again = world.must("POST", "sys/wrapping/rewrap", {"token": tokens[0].body["wrap_info"]["token"]})
    assert world.must("POST", "sys/wrapping/unwrap", {"token": again.body["wrap_info"]["token"]}).auth
    world.advance(TTL)
    world.pass_time(5)
    assert not world.keys("wrapped")


def test_an_answer_that_is_too_large_is_not_wrapped() -> None:
    world = Installation()
    before = world.keys("")
    body = {"a": "x" * ANSWER_LIMIT}
    assert world.refused("POST", "sys/wrapping/wrap", body, x_vault_wrap_ttl="60") == (400, "wrapped_answer_too_large")
    assert world.keys("") == before
    fitting = "x" * (ANSWER_LIMIT - 500)
    token = wrapped(world, "sys/wrapping/wrap", "POST", {"a": fitting})["token"]
    assert world.must("POST", "sys/wrapping/unwrap", {"token": token}).data == {"a": fitting}


def test_a_lease_or_token_whose_answer_is_too_large_to_be_wrapped_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloudid_core.wrapping.ANSWER_LIMIT", 100)
    world = engine_with_roles()
    before, passwords = world.keys(keys.TOKENS), world.alive("password")
    for method, path in (("POST", "auth/token/create"), ("GET", CREDS)):
        assert world.refused(method, path, {}, x_vault_wrap_ttl="60") == (400, "wrapped_answer_too_large")
    world.pass_time(3 * TTL)
    assert (world.leases(), world.alive("password"), world.keys(keys.TOKENS)) == ([], passwords, before)


@pytest.mark.parametrize("seed", range(20))
def test_of_many_who_unwrap_at_the_same_time_one_gets_the_answer(seed: int) -> None:
    world = SecretsEngine.copy_of(engine_with_roles(), seed)
    token = world.ask("POST", "sys/wrapping/wrap", {"a": 1}, x_vault_wrap_ttl="60").body["wrap_info"]["token"]
    tasks = [world.spawn(world.asking("POST", "sys/wrapping/unwrap", token=token)) for _ in range(4)]
    world.settle()
    assert sorted(task.result().status for task in tasks) == [200, 400, 400, 400]


WRAPPED = Wrapped(body="c4n4ry", path="cloud/creds/web", created_at=100.0, ttl=60)
TOKEN_OF_IT = Token(
    id="1f" * 16,
    path="cloud/creds/web",
    mount_id=TOKEN.id,
    policies=(RESPONSE_WRAPPING,),
    display_name="",
    created_at=100.0,
    ttl=60,
    expires_at=160.0,
    num_uses=1,
)


def test_an_answer_that_gives_nothing_new_is_one_entry() -> None:
    assert set(WRAPPED.tie(TOKEN_OF_IT).puts) == {f"wrapped/{TOKEN_OF_IT.id}"}
    assert TOKEN_OF_IT.own_keys == (TOKEN_OF_IT.key, f"wrapped/{TOKEN_OF_IT.id}")


def test_what_an_answer_does_not_give_takes_no_room_in_the_store() -> None:
    assert encode(WRAPPED) == b'{"body":"c4n4ry","path":"cloud/creds/web","created_at":100.0,"ttl":60}'


def test_a_new_lease_or_token_hangs_on_the_wrapping_token() -> None:
    due = TOKEN_OF_IT.due_key(160.0)
    tied = replace(WRAPPED, new_lease="a/b").tie(TOKEN_OF_IT)
    assert set(tied.puts) == {f"wrapped/{TOKEN_OF_IT.id}", f"token-lease/{TOKEN_OF_IT.id}/a/b", due}
    tied = replace(WRAPPED, new_token="2e" * 16).tie(TOKEN_OF_IT)
    assert set(tied.puts) == {f"wrapped/{TOKEN_OF_IT.id}", f"child/{TOKEN_OF_IT.id}/{'2e' * 16}", due}


def test_a_release_unties_all_that_was_tied() -> None:
    """And ends the token by a put, which proves who unwrapped it."""
    wrapped = replace(WRAPPED, new_lease="a/b", new_token="2e" * 16)
    token = Found(TOKEN_OF_IT.key, replace(TOKEN_OF_IT, has_dependants=True), 7)
    spent = spent_token(token.record, 130.0, "the request")
    released = wrapped.release(token, spent)
    assert set(released.deletes) == set(wrapped.tie(token.record).puts)
    assert released.expects == {TOKEN_OF_IT.key: 7}
    assert released.puts == {TOKEN_OF_IT.key: spent}
    assert spent == replace(TOKEN_OF_IT, expires_at=130.0, display_name="the request")


def test_what_is_wrapped_is_never_printed() -> None:
    assert "c4n4ry" not in repr(WRAPPED)
