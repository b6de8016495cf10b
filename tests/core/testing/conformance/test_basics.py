"""The checks of time, chance and audit: the world passes, and each notices a host that is wrong."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cloudid_core.effects import Instant
from cloudid_core.errors import RecordFailed
from cloudid_core.events import Event, RequestReceived
from cloudid_core.testing import NotConforming, World
from cloudid_core.testing.conformance.basics import BASIC_CHECKS
from cloudid_core.testing.conformance.check import Check
from cloudid_core.testing.rsa_keys import private_key_pem
from cloudid_core.values.secret import Secret
from tests.hosts.test_wrong_hosts import NOTICED as NOTICED_ELSEWHERE


@pytest.mark.parametrize("check", BASIC_CHECKS, ids=lambda check: check.name)
def test_the_world_passes(check: Check) -> None:
    World().perform(check())


class Monotonic(World):
    """Counts from its start, in milliseconds."""

    async def now(self) -> Instant:
        return (await super().now() - 1_700_000_000) * 1000


class Backwards(World):
    """A clock that goes backwards."""

    async def now(self) -> Instant:
        return await super().now() - len(self.trace)


class Short(World):
    """At most 16 bytes at a time."""

    async def random_bytes(self, count: int) -> bytes:
        return await super().random_bytes(min(count, 16))


class Constant(World):
    """Random bytes that are always the same."""

    async def random_bytes(self, count: int) -> bytes:
        return bytes(count)


class SameKey(World):
    """Keys that are always the same."""

    async def generate_key(self) -> Secret:
        return Secret(private_key_pem("key 0 of a world"))


class AnyFile(World):
    """A token in every file."""

    async def read_federated_token(self, path: str) -> Secret:
        return Secret("token")


class Deaf(World):
    """An audit that takes requests only."""

    async def record(self, event: Event) -> None:
        if not isinstance(event, RequestReceived):
            raise RecordFailed("not a request")


class Careless(World):
    """Events without the entries that audit devices must have."""

    async def record(self, event: Event) -> None:
        await super().record(replace(event, audit=None))


class Sleepless(World):
    """A sleep that is over at once, and none at all for no time."""

    async def sleep(self, seconds: float) -> None:
        if not seconds:
            raise ValueError


NOTICED = [
    (Monotonic, "the_clock_counts_seconds_since_1970"),
    (Backwards, "the_clock_counts_seconds_since_1970"),
    (Short, "random_bytes_are_as_many_as_asked_and_never_the_same"),
    (Constant, "random_bytes_are_as_many_as_asked_and_never_the_same"),
    (SameKey, "keys_are_rsa_keys_and_never_the_same"),
    (AnyFile, "a_federated_token_file_that_is_not_there_is_a_failure"),
    (Deaf, "every_kind_of_event_is_recorded"),
    (Careless, "an_event_that_no_audit_device_takes_is_a_failure"),
    (Sleepless, "a_sleeper_wakes_when_the_time_has_come"),
    (Sleepless, "no_time_is_a_short_sleep"),
]


@pytest.mark.parametrize("wrong, name", NOTICED, ids=lambda value: getattr(value, "__name__", value))
def test_a_wrong_host_is_noticed(wrong: type[World], name: str) -> None:
    (check,) = (check for check in BASIC_CHECKS if check.name == name)
    with pytest.raises((NotConforming, RecordFailed, ValueError)):
        wrong().perform(check())


def test_every_check_notices_something() -> None:
    names = {check.name for check in BASIC_CHECKS}
    assert {name for _, name in NOTICED} | (NOTICED_ELSEWHERE & names) == names
