"""Signing keys in the cache."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cloudid_core.deadline import Deadline
from cloudid_core.errors import Code, ProviderProblem, ProviderUnreachable, Refused
from cloudid_core.events import JobFailed
from cloudid_core.provider.retry import RetryPolicy
from cloudid_core.provider.signing_keys import (
    NEWER_KEYS_SECONDS,
    REFRESH_AGE,
    KeySet,
    refresh_ahead,
    refreshed_for,
    signing_keys,
)

from .cloud import CLOUD, START, TENANT, Setting, error, reply, unreachable
from .keys import V1, V1_KEYS, V2, V2_KEYS, jwk, publish

DAY = 24 * 3600.0
CYCLE = 4
"""Requests of one refresh."""


def published(seed: int = 0) -> Setting:
    setting = Setting(seed)
    publish(setting, jwk("k1"))
    return setting


def get(setting: Setting) -> KeySet:
    return setting.world.perform(signing_keys(setting.client))


def get_for(setting: Setting, kid: str) -> KeySet:
    return setting.world.perform(refreshed_for(setting.client, kid))


def requests(setting: Setting) -> int:
    return len(setting.cloud.requests)


def break_down(setting: Setting) -> None:
    """From now on nothing answers."""
    for path in (f"/{TENANT}{V1}", f"/{TENANT}{V2}", V1_KEYS, V2_KEYS):
        setting.cloud.script(f"GET {path}", unreachable())
    setting.client = replace(setting.client, retry=RetryPolicy(max_retries=0))


def test_keys_are_fetched_once() -> None:
    setting = published()
    keys = get(setting)
    assert set(keys.keys) == {"k1"}
    assert keys.fetched_at == START
    setting.later(DAY - 1)
    assert get(setting) is keys
    assert requests(setting) == CYCLE


@pytest.mark.parametrize("seed", range(15))
def test_many_who_ask_at_once_fetch_once(seed: int) -> None:
    setting = published(seed)
    tasks = [setting.world.spawn(signing_keys(setting.client)) for _ in range(20)]
    tasks += [setting.world.spawn(refreshed_for(setting.client, "unknown")) for _ in range(20)]
    setting.world.settle()
    assert len({id(task.result()) for task in tasks}) == 1
    assert requests(setting) == CYCLE


def test_the_generation_is_that_of_the_content() -> None:
    setting = published()
    first = get(setting)
    setting.later(60)
    again = get_for(setting, "unknown")
    publish(setting, jwk("k1"), jwk("k2"))
    setting.later(60)
    more = get_for(setting, "unknown")
    assert again.fetched_at > first.fetched_at
    assert first.generation == again.generation != more.generation


def test_a_new_key_is_fetched_when_a_token_names_it() -> None:
    setting = published()
    _ = get(setting)
    publish(setting, jwk("k2"))
    setting.later(30)
    assert set(get_for(setting, "k2").keys) == {"k2"}


def test_a_known_key_causes_no_refresh() -> None:
    setting = published()
    keys = get(setting)
    setting.later(1000)
    assert get_for(setting, "k1") is keys
    assert requests(setting) == CYCLE


def test_a_storm_of_unknown_keys_makes_one_refresh_in_thirty_seconds() -> None:
    setting = published()
    _ = get(setting)
    for second in range(300):
        setting.later(1)
        assert "k1" in get_for(setting, f"unknown {second}").keys
    assert requests(setting) == CYCLE * (1 + 300 // 30)


def test_a_storm_makes_no_more_when_refreshes_fail() -> None:
    setting = published()
    _ = get(setting)
    break_down(setting)
    before = requests(setting)
    for second in range(300):
        setting.later(1)
        assert "k1" in get_for(setting, f"unknown {second}").keys
    assert requests(setting) - before <= 2 * 300 // 30


def refuse_connections(setting: Setting) -> None:
    """From now on calls fail, and are retried for half a minute."""
    for path in (f"/{TENANT}{V1}", f"/{TENANT}{V2}", V1_KEYS, V2_KEYS):
        setting.cloud.script(f"GET {path}", unreachable())


def test_an_unknown_key_is_waited_for_five_seconds_while_others_are_known() -> None:
    """The refresh goes on, and later logins join it."""
    setting = published()
    _ = get(setting)
    refuse_connections(setting)
    setting.later(60)
    for number in range(3):
        start = setting.world.clock
        assert "k1" in get_for(setting, f"unknown {number}").keys
        assert setting.world.clock - start == NEWER_KEYS_SECONDS


def test_an_unknown_key_is_waited_for_until_the_deadline_if_that_is_earlier() -> None:
    setting = published()
    _ = get(setting)
    refuse_connections(setting)
    setting.later(60)
    setting.client = replace(setting.client, deadline=Deadline(setting.world.clock + 3))
    with pytest.raises(Refused) as caught:
        get_for(setting, "unknown")
    assert caught.value.code is Code.DEADLINE_PASSED


def test_without_any_keys_all_retries_are_made() -> None:
    setting = Setting()
    refuse_connections(setting)
    start = setting.world.clock
    with pytest.raises(ProviderUnreachable):
        get_for(setting, "unknown")
    assert setting.world.clock - start > NEWER_KEYS_SECONDS


def test_a_storm_makes_no_more_when_there_never_were_keys() -> None:
    setting = Setting()
    break_down(setting)
    for second in range(90):
        with pytest.raises((ProviderUnreachable, Refused)):
            get_for(setting, f"unknown {second}")
        setting.later(1)
    assert requests(setting) <= 2 * 3


def test_a_refusal_soon_after_a_failed_attempt_says_when_to_ask_again() -> None:
    setting = Setting()
    setting.cloud.script(f"GET /{TENANT}{V1}", reply(400, {"error": "invalid_tenant"}))
    setting.cloud.script(f"GET /{TENANT}{V2}", reply(400, {"error": "invalid_tenant"}))
    with pytest.raises(ProviderProblem):
        get(setting)
    with pytest.raises(Refused) as caught:
        get(setting)
    assert caught.value.code is Code.PROVIDER_REFUSED
    assert caught.value.retry_after == 30
    publish(setting, jwk("k1"))
    setting.later(30)
    assert set(get(setting).keys) == {"k1"}


def test_keys_are_kept_for_a_day_when_the_refresh_fails() -> None:
    setting = published()
    keys = get(setting)
    break_down(setting)
    setting.later(DAY - 1)
    assert get_for(setting, "unknown") is keys
    setting.later(60)
    with pytest.raises(ProviderUnreachable):
        get(setting)


def test_other_tenants_and_clouds_have_keys_of_their_own() -> None:
    setting = published()
    publish(setting, jwk("k1"), tenant="contoso.test")
    _ = get(setting)
    _ = setting.world.perform(signing_keys(replace(setting.client, tenant="Contoso.test")))
    assert requests(setting) == 2 * CYCLE
    elsewhere = replace(CLOUD, directory="https://other.test")
    _ = setting.world.perform(signing_keys(replace(setting.client, cloud=elsewhere)))
    assert requests(setting) == 3 * CYCLE


def test_mounts_of_one_tenant_share_its_keys() -> None:
    setting = published()
    keys = get(setting)
    assert setting.world.perform(signing_keys(replace(setting.client, owner="other", tenant=TENANT.upper()))) is keys


def test_a_set_in_use_is_refreshed_ahead() -> None:
    setting = published()
    _ = get(setting)
    setting.later(REFRESH_AGE - 1)
    setting.world.perform(refresh_ahead(setting.context.settings, setting.context.caches))
    assert requests(setting) == CYCLE
    publish(setting, jwk("k2"))
    setting.later(1)
    setting.world.perform(refresh_ahead(setting.context.settings, setting.context.caches))
    assert set(get(setting).keys) == {"k2"}
    assert requests(setting) == 2 * CYCLE


def test_keys_that_were_fetched_while_the_clock_was_ahead_are_refreshed() -> None:
    setting = published()
    _ = get(setting)
    publish(setting, jwk("k2"))
    setting.later(-300 * DAY)
    setting.world.perform(refresh_ahead(setting.context.settings, setting.context.caches))
    assert set(get(setting).keys) == {"k2"}


def test_a_refresh_ahead_that_fails_changes_nothing() -> None:
    setting = published()
    keys = get(setting)
    break_down(setting)
    setting.later(REFRESH_AGE)
    setting.world.perform(refresh_ahead(setting.context.settings, setting.context.caches))
    assert requests(setting) > CYCLE
    assert get(setting) is keys


def test_a_refresh_that_fails_is_reported_although_logins_go_on() -> None:
    """Otherwise an operator learns of it when the kept keys are too old: no login is admitted any more."""
    setting = published()
    get(setting)
    break_down(setting)
    setting.later(REFRESH_AGE)
    setting.world.perform(refresh_ahead(setting.context.settings, setting.context.caches))
    (event,) = setting.world.events
    assert isinstance(event, JobFailed)
    assert (event.job, event.ref, event.problem.error) == ("signing keys", TENANT, "ProviderUnreachable")


def test_a_set_that_is_not_asked_for_is_forgotten() -> None:
    setting = published()
    _ = get(setting)
    setting.later(DAY)
    setting.world.perform(refresh_ahead(setting.context.settings, setting.context.caches))
    assert requests(setting) == CYCLE
    assert len(setting.context.caches.signing_keys) == 0


def test_a_refresh_that_was_cut_off_does_not_block_the_next() -> None:
    setting = published()
    task = setting.world.spawn(signing_keys(setting.client))
    setting.cloud.script(f"GET /{TENANT}{V1}", error(503, retry_after="20"))
    setting.world.advance(10)
    setting.world.crash()
    assert task.is_done
    publish(setting, jwk("k1"))
    setting.later(30)
    assert set(get(setting).keys) == {"k1"}
