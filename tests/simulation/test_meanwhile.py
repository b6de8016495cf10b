"""Another node takes something away right before a commit of an issue: nothing is answered, and nothing stays behind.

What a commit rests on, it expects: the last look before it is always too early.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, partial
from typing import Any, Final

import pytest

from cloudid_core import HttpRequest, open_service
from cloudid_core.effects import CallProvider, Commit, Effect
from cloudid_core.errors import CloudidError
from cloudid_core.rotation.plan import LONGEST_OVERLAP
from cloudid_core.secrets_engine.token_secret import LIFE
from cloudid_core.testing import Answer, Crashed, World
from tests.installation import SETTLE_TIME
from tests.logins import login_config

from .invariants import check_in_the_end, check_recovery
from .operations import (
    DUTY,
    ROLES,
    TAKEN_AWAY,
    TOKEN_ROLES,
    Operation,
    copy_of,
    follow_plans,
    furnished,
    giving_tokens,
    operator_credentials,
    planned,
    rotate,
    rotate_static_role,
    with_static_role,
    with_token_secrets,
)
from .recorded import RecordedInstallation

CREDS: Final = "cloud/creds/fresh"
ADDITION: Final = "/addPassword"
SIGN_IN: Final = "/oauth2/v2.0/token"
LEASE: Final = 1
"""The number of the commit that puts the lease in place of the intent, which is the commit before it."""


class Shared(RecordedInstallation):
    """An installation whose store another node shares; `meanwhile` happens there right before commit number `at`."""

    at: int | None = None
    before_sign_in: Callable[[], object] | None = None
    """Happens there right before the next request to the token endpoint."""
    meanwhile: Callable[[], object]

    async def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: tuple[str, ...]) -> int:
        if self.at == 0:
            self.meanwhile()
        if self.at is not None:
            self.at -= 1
        return await super().commit(expects, puts, deletes)

    def call_cloud(self, request: HttpRequest) -> Answer:
        if self.before_sign_in is not None and "/oauth2/" in request.url:
            happen, self.before_sign_in = self.before_sign_in, None
            happen()
        return super().call_cloud(request)

    def elsewhere(self, method: str, path: str, body: object = None) -> int:
        status = super().elsewhere(method, path, body)
        assert status < 300
        return status


@pytest.fixture
def installation() -> Shared:
    return shared(furnished())


def shared(original: RecordedInstallation) -> Shared:
    twin = Shared.copy_of(original)
    twin.advance(DUTY)
    twin.tick()
    return twin


def ask(installation: Shared, at: int, meanwhile: Callable[[], object], token: str = "root", path: str = CREDS) -> int:
    """The status of a request for credentials, with something that happens before commit number `at` of it."""
    installation.at, installation.meanwhile = at, meanwhile
    reply = installation.ask("GET", path, token=token)
    assert installation.at is not None
    assert installation.at < 0, "there are fewer commits"
    installation.at = None
    return reply.status


def assert_nothing_came_of_it(installation: Shared) -> None:
    assert installation.answered == {}
    installation.advance(2 * SETTLE_TIME)
    installation.converge()
    check_in_the_end(installation)
    before = furnished().simulator.ledger.alive()
    assert [made for made in installation.simulator.ledger.alive() if made not in before] == []


@pytest.mark.parametrize("at", [0, LEASE])
@pytest.mark.parametrize("path", ["cloud/roles/fresh", "sys/mounts/cloud"])
def test_a_role_or_mount_that_goes_right_before_a_commit_gives_nothing(
    installation: Shared, path: str, at: int
) -> None:
    assert ask(installation, at, lambda: installation.elsewhere("DELETE", path)) in (400, 404)
    assert_nothing_came_of_it(installation)


@pytest.mark.parametrize("at", [0, LEASE])
def test_a_token_that_ends_right_before_a_commit_gets_nothing(installation: Shared, at: int) -> None:
    created = installation.must("POST", "auth/token/create", {"policies": ["root"]})
    token: str = created.auth["client_token"]
    end = {"token": token}
    assert ask(installation, at, lambda: installation.elsewhere("POST", "auth/token/revoke", end), token) == 403
    assert_nothing_came_of_it(installation)


def test_a_configuration_that_goes_right_before_the_intent_makes_nothing(installation: Shared) -> None:
    made = len(installation.simulator.ledger.entries)
    status = ask(installation, 0, lambda: installation.elsewhere("DELETE", "cloud/config?force=true"))
    assert status >= 400
    assert len(installation.simulator.ledger.entries) == made


def test_a_role_that_goes_right_before_the_intent_makes_nothing(installation: Shared) -> None:
    made = len(installation.simulator.ledger.entries)
    assert ask(installation, 0, lambda: installation.elsewhere("DELETE", "cloud/roles/fresh")) == 400
    assert len(installation.simulator.ledger.entries) == made


@pytest.mark.parametrize("at", [0, 1], ids=["intent", "role"])
@pytest.mark.parametrize("role", TOKEN_ROLES)
@pytest.mark.parametrize("path", ["cloud/roles/{}", "sys/mounts/cloud"])
def test_a_role_or_mount_that_goes_right_before_a_commit_gives_no_token(path: str, role: str, at: int) -> None:
    """The secret that was made for it goes too."""
    installation = shared(giving_tokens())
    token = f"cloud/token/{role}"
    assert ask(installation, at, lambda: installation.elsewhere("DELETE", path.format(role)), path=token) in (400, 404)
    installation.converge()
    check_in_the_end(installation)
    assert not installation.alive("password")


@pytest.mark.parametrize("at", [0, 1], ids=["intent", "role"])
@pytest.mark.parametrize("role", TOKEN_ROLES)
@pytest.mark.parametrize("path", ["cloud/roles/{}", "cloud/config"])
def test_a_token_rests_on_the_present_role_and_configuration(path: str, role: str, at: int) -> None:
    """A secret that was made under another is taken back, and the request begins anew."""
    installation = shared(giving_tokens())
    fields = {"ttl": "2h"} if path != "cloud/config" else {"root_password_ttl": "60d"}
    written = path.format(role)
    assert (
        ask(installation, at, lambda: installation.elsewhere("POST", written, fields), path=f"cloud/token/{role}")
        == 200
    )
    installation.converge()
    check_in_the_end(installation)
    assert len(installation.alive("password")) == 1


@pytest.mark.parametrize("role", TOKEN_ROLES)
def test_a_secret_that_another_node_replaces_meanwhile_is_replaced_once(role: str) -> None:
    installation = shared(with_token_secrets())
    installation.advance(LIFE / 2 + 1)
    token = f"cloud/token/{role}"
    assert ask(installation, 0, lambda: installation.elsewhere("GET", token), path=token) == 200
    installation.give_back("")
    installation.converge()
    check_in_the_end(installation)


@pytest.mark.parametrize("at", [0, 1], ids=["intent", "role"])
def test_no_token_is_given_of_an_application_that_the_service_has_become_meanwhile(at: int) -> None:
    installation = shared(giving_tokens())
    own = {**login_config(installation), **operator_credentials(installation, 1)}

    def become() -> None:
        installation.elsewhere("POST", "auth/cloud/config", own)

    assert ask(installation, at, become, path="cloud/token/existing") == 403
    installation.converge()
    check_in_the_end(installation)
    assert not installation.alive("password")


@pytest.mark.parametrize(
    "method, path, fields, status",
    [
        ("DELETE", "cloud/roles/existing", None, 400),
        ("DELETE", "sys/mounts/cloud", None, 404),
        ("POST", "cloud/roles/existing", {"token_scopes": ""}, 400),
        ("POST", "cloud/config", {"allowed_application_ids": ""}, 403),
        ("POST", "cloud/roles/existing", {"ttl": "2h"}, 200),
    ],
)
def test_a_token_that_was_asked_for_is_answered_only_if_it_may_still_be(
    method: str, path: str, fields: dict[str, str] | None, status: int
) -> None:
    installation = shared(with_token_secrets())
    installation.before_sign_in = lambda: installation.elsewhere(method, path, fields)
    assert installation.ask("GET", "cloud/token/existing").status == status
    assert installation.before_sign_in is None


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("method, path, body, gone", TAKEN_AWAY)
def test_what_is_taken_away_before_any_commit_is_not_lent_any_more(
    method: str, path: str, body: object, gone: str, role: str
) -> None:
    """And nothing leaks, whichever commit of an issue it is."""
    path, gone = path.format(role), gone.format(role)
    plain = copy_of(furnished())
    begin = len(plain.trace)
    plain.ask("GET", f"cloud/creds/{role}")
    for at, (_, effect) in enumerate(plain.trace[begin:], begin):
        if isinstance(effect, Commit):
            installation = copy_of(furnished())
            installation.take_away_meanwhile(at, gone, method, path, body)
            installation.ask("GET", f"cloud/creds/{role}")
            assert installation.meanwhile_at is None
            installation.give_back("")
            check_recovery(installation)


@pytest.mark.parametrize(
    "start, path, operation",
    [
        pytest.param(furnished, "cloud/rotate-root", rotate, id="root"),
        pytest.param(planned, "cloud/rotate-root", follow_plans, id="root by plan"),
        pytest.param(with_static_role, "cloud/rotate-role/app", rotate_static_role, id="static role"),
        pytest.param(with_static_role, "cloud/rotate-role/app", follow_plans, id="static role by plan"),
    ],
)
def test_two_nodes_that_begin_a_rotation_leave_no_secret(
    start: Callable[[], RecordedInstallation], path: str, operation: Operation
) -> None:
    """Whenever the other one has its secret made, which is the last thing that it does."""
    plain = copy_of(start())
    begin = len(plain.trace)
    operation(plain)
    called = (at for at, (_, effect) in enumerate(plain.trace) if at >= begin and is_call(effect, ADDITION))
    for at in range(begin, next(called) + 2):
        installation = copy_of(start())
        installation.meanwhile_at, installation.meanwhile = at, partial(make_secret_and_die, installation, path)
        with suppress(CloudidError):
            operation(installation)
        check_recovery(installation)


@cache
def rotated() -> RecordedInstallation:
    installation = copy_of(furnished())
    installation.must("POST", "cloud/rotate-root")
    return installation


def overlapped() -> RecordedInstallation:
    """The former root secret is due to be removed."""
    installation = copy_of(rotated())
    installation.advance(LONGEST_OVERLAP)
    return installation


def while_it_is_proven() -> range:
    """The effects before the former secret is removed, until the new one is proven for the last time."""
    plain = overlapped()
    begin = len(plain.trace)
    plain.tick()
    proofs = [at for at, (name, effect) in enumerate(plain.trace) if "lane" in name and is_call(effect, SIGN_IN)]
    assert begin < proofs[-2] < proofs[-1], "the new one is proven several times"
    return range(begin, proofs[-1] + 1)


def write_and_retire(at: int, fields: object) -> RecordedInstallation:
    """Another node writes the configuration meanwhile."""
    installation = overlapped()
    installation.meanwhile_at = at
    installation.meanwhile = partial(installation.elsewhere, "POST", "cloud/config", fields)
    with suppress(CloudidError):
        installation.tick()
    return installation


def test_a_secret_that_is_written_again_at_the_end_of_the_overlap_stays() -> None:
    own = furnished().scene["applications"][0]["client_secret"]
    for at in while_it_is_proven():
        check_recovery(write_and_retire(at, {"client_secret": own}))


def test_a_configuration_that_keeps_its_secret_holds_no_removal_up() -> None:
    """However often it is written."""
    installation = write_and_retire(while_it_is_proven()[-1], {"root_password_ttl": "60d"})
    assert installation.must("GET", "cloud/rotation").data["phase"] == "idle"


def is_call(effect: Effect[Any], end: str) -> bool:
    return isinstance(effect, CallProvider) and effect.request.url.endswith(end)


def make_secret_and_die(installation: RecordedInstallation, path: str) -> None:
    """Another node is killed before it has stored the secret that it was given."""

    def make_and_die(request: HttpRequest) -> Answer:
        answer = installation.simulator.handle(request)
        if request.url.endswith(ADDITION):
            raise Crashed
        return answer

    node = World(1, make_and_die, installation.store, installation.clock)
    service = node.perform(open_service(installation.settings))
    with suppress(Crashed):
        node.perform(service.handle(installation.request("POST", path, {"force": True})))
