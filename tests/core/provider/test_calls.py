"""Calls with their retries."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.deadline import Deadline
from cloudid_core.effects import CallProvider, HttpRequest, HttpResponse
from cloudid_core.errors import Code, ProviderAmbiguous, ProviderUnreachable, Refused
from cloudid_core.events import Problem
from cloudid_core.provider.calls import CLIENT_REQUEST_IDS, RetryBudget, deliver
from cloudid_core.provider.responses import problem_of
from cloudid_core.provider.retry import RETRIED, RetryPolicy
from cloudid_core.testing import Answer, World
from cloudid_core.values import GUID

from .cloud import START, Reply, Setting, error, reply, unreachable

GET = HttpRequest("GET", "https://arm.test/x")


def call(
    setting: Setting, *replies: Reply, idempotent: bool = True, seconds: float = 300, retry: RetryPolicy | None = None
) -> HttpResponse:
    setting.cloud.script("GET /x", *replies)
    budget = RetryBudget(timeout=30, retry=retry or RetryPolicy(), deadline=Deadline(START + seconds))
    return setting.world.perform(deliver(GET, budget, idempotent=idempotent))


def tries(setting: Setting) -> int:
    return len(setting.cloud.requests)


@pytest.mark.parametrize("status", [200, 204, 302, 400, 401, 403, 404, 409, 501])
def test_a_final_answer_is_answered_at_once(status: int) -> None:
    setting = Setting()
    assert call(setting, reply(status)).status == status
    assert tries(setting) == 1


@pytest.mark.parametrize("status", sorted(RETRIED))
def test_a_passing_failure_is_tried_again(status: int) -> None:
    setting = Setting()
    assert call(setting, error(status), error(status), reply(200)).status == 200
    assert tries(setting) == 3
    first, second = setting.pauses
    assert 3.2 <= first <= 4.8
    assert 6.4 <= second <= 9.6


def test_no_answer_is_tried_again() -> None:
    setting = Setting()
    assert call(setting, unreachable(), unreachable(sent=False), reply(200)).status == 200


def test_all_tries_have_one_id_of_ours_which_the_answer_has_too() -> None:
    """Also where the provider answers with none, or with another one."""
    setting = Setting()
    answer = call(setting, unreachable(), error(503), error(400, client_request_id="another"))
    sent = [each.headers[name] for each in setting.cloud.requests for name in CLIENT_REQUEST_IDS]
    [own] = set(sent)
    assert (len(sent), GUID.fullmatch(own) is not None, answer.headers["client-request-id"]) == (6, True, own)
    assert str(problem_of(answer, START)).endswith(f"(request unknown, client request {own})")
    assert call(setting, reply(200)).headers["client-request-id"] != own


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_failure_without_an_answer_says_our_id_of_the_request(idempotent: bool) -> None:
    setting = Setting()
    with pytest.raises((ProviderUnreachable, ProviderAmbiguous)) as raised:
        call(setting, unreachable(), idempotent=idempotent)
    own = setting.cloud.requests[0].headers["client-request-id"]
    assert str(raised.value).endswith(f"(client request {own})")
    assert Problem.of(raised.value).reason.endswith(f"(client request {own})")


def test_a_lasting_failure_is_the_answer_after_all_retries() -> None:
    setting = Setting()
    assert call(setting, error(500), error(502)).status == 502
    assert tries(setting) == 4


def test_no_answer_at_all_is_raised_after_all_retries() -> None:
    setting = Setting()
    with pytest.raises(ProviderUnreachable):
        call(setting, unreachable())
    assert tries(setting) == 4


@pytest.mark.parametrize("delay", [0.5, 4.0, 60.0, 3600.0])
def test_where_no_connection_is_made_the_answer_comes_within_15_seconds(delay: float) -> None:
    """Clients repeat a 503 and give up after a minute: they shall see why. It is tried again at least once."""
    setting = Setting()
    policy = RetryPolicy(retry_delay=delay, max_retry_delay=3600.0, max_retries=20)
    with pytest.raises(ProviderUnreachable):
        call(setting, unreachable(sent=False), retry=policy)
    assert tries(setting) >= 2
    assert 10 <= setting.world.clock - START <= 15


def test_a_connection_that_breaks_is_waited_for_as_before() -> None:
    setting = Setting()
    with pytest.raises(ProviderUnreachable):
        call(setting, unreachable(sent=False), unreachable())
    assert tries(setting) == 4
    assert setting.world.clock - START > 20


def test_no_retries_means_one_try() -> None:
    setting = Setting()
    assert call(setting, error(500), retry=RetryPolicy(max_retries=0)).status == 500
    assert tries(setting) == 1
    assert setting.pauses == []


def test_what_the_provider_asks_for_wins_over_backoff() -> None:
    setting = Setting()
    call(
        setting,
        error(429, retry_after="11"),
        error(503, retry_after_ms="1500"),
        error(429, retry_after="0"),
        reply(200),
    )
    assert setting.pauses == [11, 1.5, 0]


def test_a_pause_beyond_the_longest_is_not_waited_for() -> None:
    setting = Setting()
    assert call(setting, error(429, retry_after="61"), reply(200)).status == 429
    assert call(setting, error(503, retry_after="86401"), reply(200)).status == 503
    assert setting.pauses == []


def test_no_retry_starts_that_cannot_finish() -> None:
    setting = Setting()
    assert call(setting, error(500), reply(200), seconds=3).status == 500
    assert (tries(setting), setting.pauses) == (1, [])


def test_a_try_gets_no_more_time_than_the_deadline_leaves() -> None:
    setting = Setting()
    call(setting, error(429, retry_after="10"), reply(200), seconds=35)
    timeouts = [effect.timeout for _, effect in setting.world.trace if isinstance(effect, CallProvider)]
    assert timeouts == [30, 25]


class Silence:
    """An answer that comes too late."""

    response = reply(200)
    delay = 1000.0
    drop = False


def silent(request: HttpRequest) -> Answer:
    return Silence()


def test_an_answer_that_does_not_come_before_the_deadline_is_the_deadline() -> None:
    world = World(provider=silent, start=START)
    budget = RetryBudget(timeout=30, retry=RetryPolicy(), deadline=Deadline(START + 20))
    with pytest.raises(Refused) as caught:
        world.perform(deliver(GET, budget))
    assert caught.value.code is Code.DEADLINE_PASSED
    assert world.clock == START + 20


def test_nothing_is_called_after_the_deadline() -> None:
    setting = Setting()
    with pytest.raises(Refused):
        call(setting, reply(200), seconds=0)
    assert tries(setting) == 0


@pytest.mark.parametrize("answer", [error(408), error(500), error(502), error(504), error(520), unreachable()])
def test_a_change_without_definite_answer_is_ambiguous_and_not_repeated(answer: Reply) -> None:
    setting = Setting()
    with pytest.raises(ProviderAmbiguous):
        call(setting, answer, reply(200), idempotent=False)
    assert tries(setting) == 1


@pytest.mark.parametrize("answer", [error(429), error(503), unreachable(sent=False)])
def test_a_change_that_was_definitely_not_made_is_tried_again(answer: Reply) -> None:
    setting = Setting()
    assert call(setting, answer, reply(201), idempotent=False).status == 201


@pytest.mark.parametrize("status", [400, 403, 409, 429, 503])
def test_a_definite_refusal_of_a_change_is_an_answer(status: int) -> None:
    assert call(Setting(), error(status), idempotent=False).status == status


REPLIES = st.lists(
    st.one_of(
        st.builds(error, st.sampled_from(sorted(RETRIED))),
        st.builds(lambda s: error(429, retry_after=str(s)), st.integers(0, 100)),
        st.booleans().map(unreachable),
    ),
    min_size=1,
    max_size=8,
)


@given(REPLIES, st.integers(0, 20), st.floats(0.1, 200), st.booleans(), st.integers(0, 5))
def test_tries_and_time_are_bounded_whatever_is_answered(
    replies: list[Reply], retries: int, seconds: float, idempotent: bool, seed: int
) -> None:
    """Never more tries than allowed, never a pause past the deadline or the policy."""
    setting = Setting(seed)
    with suppress(ProviderUnreachable, ProviderAmbiguous):
        call(setting, *replies, idempotent=idempotent, seconds=seconds, retry=RetryPolicy(max_retries=retries))
    assert 1 <= tries(setting) <= retries + 1
    assert all(pause <= 60 for pause in setting.pauses)
    assert setting.world.clock <= START + seconds
