"""Looking tokens up."""

from __future__ import annotations

import pytest

from cloudid_core.context.keyring import PUBLISHED_AHEAD
from cloudid_core.effects import Sleep
from cloudid_core.token_store import existing
from tests.installation import ROOT, START, Installation
from tests.logins import configure_logins, log_in
from tests.tokens import create_token, look_up_self, new_token, write_policy

MEMBERS = {
    "id",
    "accessor",
    "policies",
    "path",
    "meta",
    "display_name",
    "num_uses",
    "orphan",
    "creation_time",
    "creation_ttl",
    "issue_time",
    "expire_time",
    "ttl",
    "explicit_max_ttl",
    "entity_id",
    "type",
    "renewable",
}


def test_a_look_up_returns_every_member() -> None:
    world = Installation()
    auth = create_token(
        world, policies=["dev"], meta={"who": "me"}, ttl="2m", display_name="Büro", explicit_max_ttl=600
    )
    world.advance(10.5)
    assert look_up_self(world, auth["client_token"]) == {
        "id": auth["client_token"],
        "accessor": auth["accessor"],
        "policies": ["default", "dev"],
        "path": "auth/token/create",
        "meta": {"who": "me"},
        "display_name": "token-B-ro",
        "num_uses": 0,
        "orphan": False,
        "creation_time": START,
        "creation_ttl": 120,
        "issue_time": "2027-01-15T08:00:00Z",
        "expire_time": "2027-01-15T08:02:00Z",
        "ttl": 109,
        "explicit_max_ttl": 600,
        "entity_id": "",
        "type": "service",
        "renewable": True,
    }


def test_the_root_token_never_expires() -> None:
    reply = look_up_self(Installation(), ROOT)
    assert set(reply) == MEMBERS
    assert (reply["ttl"], reply["expire_time"], reply["renewable"], reply["orphan"]) == (0, None, False, True)


def test_a_look_up_has_more_members_where_they_apply() -> None:
    world = Installation()
    world.must("POST", "auth/token/roles/r", {"token_period": 60, "token_bound_cidrs": "192.0.2.0/24"})
    token = create_token(world, at="create/r")["client_token"]
    world.must("POST", "auth/token/renew-self", None, token)
    reply = look_up_self(world, token)
    assert set(reply) == MEMBERS | {"role", "period", "bound_cidrs", "last_renewal", "last_renewal_time"}
    assert (reply["role"], reply["period"], reply["last_renewal_time"]) == ("r", 60, START)


@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
def test_a_token_can_look_itself_up_by_either_verb(method: str) -> None:
    world = Installation()
    token = new_token(world, policies=["default"])
    assert world.must(method, "auth/token/lookup-self", None, token).data["id"] == token


def test_a_token_is_looked_up_by_its_text() -> None:
    world = Installation()
    token = new_token(world)
    by_body = world.must("POST", "auth/token/lookup", {"token": token}).data
    assert by_body == world.must("GET", f"auth/token/lookup?token={token}").data == look_up_self(world, token)


def test_a_look_up_without_a_token_is_about_the_caller() -> None:
    world = Installation()
    assert world.must("POST", "auth/token/lookup", {}).data["display_name"] == "root"
    assert world.must("GET", "auth/token/lookup").data["display_name"] == "root"


def test_a_look_up_by_accessor_does_not_return_the_text() -> None:
    world = Installation()
    auth = create_token(world)
    reply = world.must("POST", "auth/token/lookup-accessor", {"accessor": auth["accessor"]}).data
    assert reply == {**look_up_self(world, auth["client_token"]), "id": ""}


@pytest.mark.parametrize("text", ["x", "cb.x"])
def test_the_look_up_of_an_unknown_token_is_denied(text: str) -> None:
    assert Installation().refused("POST", "auth/token/lookup", {"token": text}) == (403, "permission_denied")


def test_an_unknown_accessor_is_a_bad_request() -> None:
    """As at `renew-accessor`."""
    for path in ("lookup-accessor", "renew-accessor"):
        assert Installation().refused("POST", f"auth/token/{path}", {"accessor": "x"}) == (400, "token_not_found")


def test_dead_tokens_cannot_be_looked_up() -> None:
    """Neither those that have expired, nor those of a dead family, though their entries may still be there."""
    world = Installation()
    parent = create_token(world, ttl=60)
    child = create_token(world, parent["client_token"], ttl=600)
    world.advance(60)
    for auth in (parent, child):
        assert world.ask("POST", "auth/token/lookup", {"token": auth["client_token"]}).status == 403
        assert world.ask("POST", "auth/token/lookup-accessor", {"accessor": auth["accessor"]}).status == 400


def test_a_look_up_names_the_text_or_the_accessor_as_invalid() -> None:
    """A text is a bad token, an accessor an invalid one; neither answers with the caller's own token."""
    world = Installation()
    for path, body, reason in (
        ("lookup", {"token": "cs." + "0" * 64}, "bad token"),
        ("lookup-accessor", {"accessor": "0" * 32}, "invalid accessor"),
    ):
        answer = world.ask("POST", f"auth/token/{path}", body).body
        assert answer["errors"][0].endswith(reason)
        assert "data" not in answer


def test_a_look_up_needs_the_mount_of_the_token() -> None:
    """A token whose mount is gone is not known, by its text or by its accessor."""
    world = Installation()
    auth = log_in(world, configure_logins(world))
    world.must("DELETE", "sys/auth/cloud")
    assert world.ask("POST", "auth/token/lookup", {"token": auth["client_token"]}).status == 403
    assert world.ask("POST", "auth/token/lookup-accessor", {"accessor": auth["accessor"]}).status == 400


def test_an_accessor_is_required() -> None:
    assert Installation().refused("POST", "auth/token/lookup-accessor", {}) == (400, "field_required")


@pytest.mark.parametrize("method, path", [("LIST", "auth/token/accessors"), ("GET", "auth/token/accessors?list=true")])
def test_accessors_are_listed(method: str, path: str) -> None:
    world = Installation()
    made = {create_token(world)["accessor"] for _ in range(3)}
    listed = world.must(method, path).data["keys"]
    assert made < set(listed)
    assert len(listed) == 4


def test_a_name_that_is_no_tokens_has_no_accessor() -> None:
    world = Installation()
    before = world.must("LIST", "auth/token/accessors").data["keys"]
    world.store.commit({}, {"token/x": b"x", "token/": b"x", f"token/{'g' * 32}": b"x"}, ())
    assert world.must("LIST", "auth/token/accessors").data["keys"] == before


def test_accessors_are_those_of_the_tokens_whichever_keys_made_them() -> None:
    """A token keeps the accessor of the keys that it was made with when newer keys are added."""
    world = Installation()
    made = {create_token(world)["accessor"]}
    for _ in range(2):
        world.must("POST", "sys/rotate/tokens")
        world.advance(PUBLISHED_AHEAD + 1)
        made.add(create_token(world)["accessor"])
        listed = world.must("LIST", "auth/token/accessors").data["keys"]
        assert made < set(listed)
        assert len(listed) == len(made) + 1
        for accessor in listed:
            world.must("POST", "auth/token/lookup-accessor", {"accessor": accessor})


def test_accessors_are_listed_in_pages_in_the_order_of_their_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every accessor is in exactly one page, for pages of any size. The token of `after` may be gone."""
    monkeypatch.setattr(existing, "PAGE", 2)
    world = Installation()
    made = []
    for _ in range(5):
        world.advance(1)
        made.append(create_token(world, no_parent=True))
    everything = world.must("LIST", "auth/token/accessors").data["keys"]
    accessors = [auth["accessor"] for auth in made]
    assert [accessor for accessor in everything if accessor in accessors] == accessors
    for limit in (1, 2, 3, 5):
        listed: list[str] = []
        while len(listed) < len(everything):
            after = listed[-1] if listed else ""
            page = world.must("GET", f"auth/token/accessors?list=true&limit={limit}&after={after}").data["keys"]
            assert 0 < len(page) <= limit
            listed += page
        assert listed == everything
    world.must("POST", "auth/token/revoke", {"token": made[2]["client_token"]})
    after = world.must("GET", f"auth/token/accessors?list=true&after={accessors[2]}").data["keys"]
    assert after == everything[everything.index(accessors[2]) + 1 :]
    assert world.ask("GET", f"auth/token/accessors?list=true&after={everything[-1]}").status == 404
    assert world.refused("GET", "auth/token/accessors?list=true&after=x") == (400, "field_invalid")


def test_other_requests_have_their_turn_while_accessors_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program yields between two pages."""
    monkeypatch.setattr(existing, "PAGE", 2)
    world = Installation()
    for _ in range(5):
        new_token(world, no_parent=True)
    before = len(world.trace)
    world.must("LIST", "auth/token/accessors")
    assert sum(isinstance(effect, Sleep) for _, effect in world.trace[before:]) >= 2


def test_accessors_are_listed_only_with_sudo() -> None:
    world = Installation()
    write_policy(world, "lister", ("auth/token/accessors/", ["list"]))
    write_policy(world, "sudoer", ("auth/token/accessors/", ["list", "sudo"]))
    answers = [
        world.ask("LIST", "auth/token/accessors", None, new_token(world, policies=[p])).status
        for p in ("lister", "sudoer")
    ]
    assert answers == [403, 200]
