"""What the events of a request tell of it, and that they tell no secret."""

from __future__ import annotations

from cloudid_core.events import RequestAnswered, RequestReceived
from tests.installation import Installation
from tests.logins import configure_logins, log_in, login_form
from tests.tokens import new_token

CANARY = "c4n4ry-s3cret"


def test_a_request_and_its_answer_are_recorded_without_secrets() -> None:
    world = Installation()
    world.must("PUT", "sys/audit/file", {"type": "file", "options": {"file_path": "/var/log/audit.log"}})
    new_token(world, id="s3cret")
    before = len(world.events)
    world.must("POST", "auth/token/lookup", {"token": "s3cret"})
    request, response = world.events[before:]
    assert isinstance(request, RequestReceived)
    assert isinstance(response, RequestAnswered)
    assert (request.operation, request.path, request.display_name) == ("update", "auth/token/lookup", "root")
    assert (response.request_id, response.status) == (request.request_id, 200)
    assert "s3cret" not in repr(world.events)


def test_a_request_that_is_not_audited_is_recorded_by_its_answer_only() -> None:
    world = Installation()
    before = len(world.events)
    world.must("GET", "auth/token/lookup-self")
    assert [type(event) for event in world.events[before:]] == [RequestAnswered]


def test_a_refused_login_tells_its_codes_role_and_mount() -> None:
    world = Installation()
    machine = configure_logins(world, bound_subscription_ids="00000000-0000-0000-0000-000000000000")
    world.ask("POST", "auth/cloud/login", login_form(world, machine), token="")
    answered = world.events[-1]
    assert isinstance(answered, RequestAnswered)
    assert (answered.status, answered.codes) == (403, ("bound_subscription_mismatch",))
    assert (answered.mount, answered.role) == ("auth/cloud", "dev")


def test_a_request_whose_body_cannot_be_read_is_recorded_with_its_path() -> None:
    world = Installation()
    world.ask("POST", "auth/cloud/login", ["no", "object"], token="")
    answered = world.events[-1]
    assert isinstance(answered, RequestAnswered)
    assert (answered.operation, answered.path, answered.codes) == ("update", "auth/cloud/login", ("malformed_json",))


def test_a_role_that_is_not_a_valid_name_is_not_recorded() -> None:
    """A client may send a secret in the wrong field."""
    world = Installation()
    world.ask("POST", "auth/cloud/login", {"role": f"{CANARY} !"}, token="")
    assert CANARY not in repr(world.events)


def test_a_login_tells_its_accessor_and_no_token() -> None:
    world = Installation()
    auth = log_in(world, configure_logins(world))
    answered = world.events[-1]
    assert isinstance(answered, RequestAnswered)
    assert answered.accessor == auth["accessor"]
    assert auth["client_token"] not in repr(world.events)


def test_an_answer_that_is_wrapped_tells_the_accessor_of_the_token_in_it() -> None:
    world = Installation()
    info = world.must("POST", "auth/token/create", {}, x_vault_wrap_ttl="60").body["wrap_info"]
    answered = world.events[-1]
    assert isinstance(answered, RequestAnswered)
    assert answered.accessor == info["wrapped_accessor"] != ""
