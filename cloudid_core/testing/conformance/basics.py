"""Checks of time, chance and audit."""

from __future__ import annotations

from typing import Final

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from ...audit import FILE, KEY_BYTES, NULL, Device, Entries
from ...effects import GenerateKey, Instant, Now, RandomBytes, ReadFederatedToken, Record, Sleep
from ...errors import PlatformTokenUnavailable, RecordFailed
from ...events import (
    IntentChanged,
    JobFailed,
    LeaseChanged,
    MountChanged,
    Problem,
    RequestAnswered,
    RequestReceived,
    RootSecretAtRisk,
    RotationChanged,
)
from .check import Check, NotConforming, checks_of, expect

THIS_MILLENNIUM: Final[Instant] = 946_684_800.0
PAUSE: Final = 0.05
DRAWN: Final = 5000
CLOCK_SECONDS: Final = 3.2
FAR_AHEAD: Final = 60.0
"""Seconds that a busy machine may lose meanwhile."""
UNWRITABLE: Final = f"{NULL}/audit.log"
"""Below what is no folder, on any machine."""


async def the_clock_counts_seconds_since_1970() -> None:
    now = await Now()
    if not THIS_MILLENNIUM < now < 10 * THIS_MILLENNIUM:
        raise NotConforming(f"{now} is no number of seconds since 1970")
    expect("whether the clock goes backwards", await Now() < now, False)


async def random_bytes_are_as_many_as_asked_and_never_the_same() -> None:
    for count in (0, 1, 12, 32, 4096):
        expect(f"the length of {count} random bytes", len(await RandomBytes(count)), count)
    drawn = {await RandomBytes(16) for _ in range(100)}
    expect("how many of 100 random texts are different", len(drawn), 100)


async def random_bytes_do_not_come_again() -> None:
    """As they would from a pool that starts over."""
    drawn = [await RandomBytes(16) for _ in range(DRAWN)]
    expect(f"how many of {DRAWN} random texts are different", len(set(drawn)), DRAWN)


async def the_clock_never_goes_back() -> None:
    """Over some seconds, in which it advances as programs sleep."""
    first = last = await Now()
    slept = 0.0
    while slept < CLOCK_SECONDS:
        await Sleep(PAUSE)
        slept += PAUSE
        now = await Now()
        expect("whether the clock goes backwards", now < last, False)
        last = now
    if not 0.9 * slept < last - first < slept + FAR_AHEAD:
        raise NotConforming(f"the clock has advanced {last - first:.1f} seconds in a sleep of {slept:.1f}")


async def keys_are_rsa_keys_and_never_the_same() -> None:
    texts = [(await GenerateKey()).reveal() for _ in range(2)]
    expect("how many of 2 keys are different", len(set(texts)), 2)
    for text in texts:
        key = load_pem_private_key(text.encode(), None)
        expect("whether it is an RSA key", isinstance(key, RSAPrivateKey), True)
        if isinstance(key, RSAPrivateKey):
            numbers = key.public_key().public_numbers()
            expect("its bits and its exponent", (key.key_size, numbers.e), (2048, 65537))


async def a_federated_token_file_that_is_not_there_is_a_failure() -> None:
    for path in ("", "/", "no such file/token", "\0"):
        try:
            await ReadFederatedToken(path)
        except PlatformTokenUnavailable:
            continue
        raise NotConforming("a token where there is no file")


async def every_kind_of_event_is_recorded() -> None:
    """With texts of any script."""
    text = "\u00e9\U0001f511"
    problem = Problem("ZeroDivisionError", where=(text,))
    await Record(
        RequestReceived(request_id="1", time=1.5, operation="read", path=text, mount_accessor="", policies=(text,))
    )
    await Record(RequestAnswered(request_id="1", time=1.5, status=500, codes=("internal_error",), problem=problem))
    await Record(LeaseChanged(lease_id=text, mount_id="m", state="issued"))
    await Record(IntentChanged(intent_id="i", mount_id="m", state="undoing failed", attempts=3, reason=text))
    await Record(RotationChanged(mount_id="m", phase="idle", reason=text))
    await Record(RootSecretAtRisk(mount_id="m", reason=text, expires_at=1.5))
    await Record(MountChanged(mount_accessor="a", path=text, state="enabled"))
    await Record(JobFailed(job="lease", problem=problem))


async def an_event_that_no_audit_device_takes_is_a_failure() -> None:
    """A host that has no audit devices fails for every event that has entries for them."""
    nowhere = Device(name="conformance/", type=FILE, key="00" * KEY_BYTES, options={"file_path": UNWRITABLE})
    entries = Entries((nowhere,), (b"{}",), is_trial=True)
    try:
        await Record(
            RequestReceived(request_id="1", time=1.5, operation="read", path="", mount_accessor="", audit=entries)
        )
    except RecordFailed:
        return
    raise NotConforming("an event is lost: no audit device has its entry")


async def a_sleeper_wakes_when_the_time_has_come() -> None:
    before = await Now()
    await Sleep(PAUSE)
    slept = await Now() - before
    if slept < 0.9 * PAUSE:
        raise NotConforming(f"a sleep of {PAUSE} seconds took {slept}")


async def no_time_is_a_short_sleep() -> None:
    await Sleep(0)


BASIC_CHECKS: Final[tuple[Check, ...]] = (
    *checks_of(
        the_clock_counts_seconds_since_1970,
        random_bytes_are_as_many_as_asked_and_never_the_same,
        random_bytes_do_not_come_again,
        keys_are_rsa_keys_and_never_the_same,
        a_federated_token_file_that_is_not_there_is_a_failure,
        every_kind_of_event_is_recorded,
        an_event_that_no_audit_device_takes_is_a_failure,
        waits=False,
    ),
    *checks_of(a_sleeper_wakes_when_the_time_has_come, no_time_is_a_short_sleep, the_clock_never_goes_back, waits=True),
)
