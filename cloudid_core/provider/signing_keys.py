"""Signing keys: a tenant's issuers and public keys, cached so that a flood of logins causes few requests.

There is at most one refresh cycle in 30 s for each tenant of a cloud, whatever its reason and outcome. If a refresh
fails, the previous keys are used for up to 24 h.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Any, Final

from attrs import evolve, frozen
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from ..caches import Caches
from ..clouds import Cloud
from ..deadline import Deadline
from ..effects import Instant, Now, Program, gather, record_if_possible
from ..errors import CloudidError, Code, ProviderProblem, ProviderUnreachable, Refused
from ..events import JobFailed, Problem
from ..settings import Settings
from .calls import RetryBudget
from .client import Client, refusal_of
from .discovery import Published, discover
from .retry import RetryPolicy
from .single_flight import once
from .troubles import Calls, Family

REST: Final = 30.0
"""Minimum seconds between the starts of two refresh cycles."""

REFRESH_AGE: Final = 3600.0
"""Age in seconds at which a set is refreshed in advance."""

LONGEST_USE: Final = 24 * 3600.0
"""Age in seconds at which a set is no longer used, and at which an unused set is dropped."""

NEWER_KEYS_SECONDS: Final = 5.0
"""Maximum wait of a login for a missing key. Its `kid` is not verified, and anyone can make one up."""

NOTE_USE: Final = 600.0


@frozen(kw_only=True)
class KeySet:
    """The keys that verify a tenant's tokens. `generation` changes whenever the contents change."""

    tenant_id: str
    issuers: frozenset[str]
    keys: Mapping[str, RSAPublicKey]
    generation: str
    fetched_at: Instant


@frozen(kw_only=True)
class _State:
    """The cache's state for a tenant. `under_way`: a cycle is running."""

    cloud: Cloud
    tenant: str
    retry: RetryPolicy
    used_at: Instant
    tried_at: Instant | None = None
    under_way: bool = False
    keys: KeySet | None = None
    failure: Code = Code.PROVIDER_UNREACHABLE

    @property
    def key(self) -> tuple[Cloud, str]:
        return self.cloud, self.tenant

    def usable(self, now: Instant) -> KeySet | None:
        return self.keys if self.keys is not None and now - self.keys.fetched_at < LONGEST_USE else None

    def is_cooling_down(self, now: Instant) -> bool:
        return self.tried_at is not None and 0 <= now - self.tried_at < REST

    def cached_or_refuse(self, now: Instant) -> KeySet:
        """Return the cached keys, without a refresh, or refuse."""
        keys = self.usable(now)
        if keys is None:
            raise Refused(self.failure, retry_after=REST)
        return keys


def known_keys(client: Client, now: Instant) -> KeySet | None:
    """Return the cached `signing_keys`. `None` if Azure would have to be called."""
    return _note_use(client, now).usable(now)


async def signing_keys(client: Client) -> KeySet:
    """Return the key set of the client's tenant (an id or a domain), from the cache if possible.

    Raise what `discover` raises, and `Refused` while a failed attempt is less than 30 s old.
    """
    now = await Now()
    state = _note_use(client, now)
    return state.usable(now) or await _refresh(client.settings, client.caches, state, client.deadline)


async def refreshed_for(client: Client, kid: str) -> KeySet:
    """Return `signing_keys`, after a refresh if the cached set lacks `kid` and no refresh was tried in the last 30 s.

    If the refresh takes longer than `NEWER_KEYS_SECONDS`, return the cached set; the refresh continues for later
    logins.
    """
    now = await Now()
    state = _note_use(client, now)
    keys = state.usable(now)
    if keys is None:
        return await _refresh(client.settings, client.caches, state, client.deadline)
    if kid in keys.keys:
        return keys
    patience = Deadline(min(client.deadline.at, now + NEWER_KEYS_SECONDS))
    try:
        return await _refresh(client.settings, client.caches, state, patience)
    except Refused:
        if patience == client.deadline:
            raise
        return keys


async def refresh_ahead(settings: Settings, caches: Caches) -> None:
    """Refresh every set in use that is due, so that no login has to wait for it.

    After a failure the set is unchanged.
    """
    now = await Now()
    cache = caches.signing_keys
    states: list[_State] = [state for key in cache if (state := cache.get(key))]
    deadline = Deadline(now + settings.request_deadline)
    programs: list[Program[None]] = []
    for state in states:
        if now - state.used_at >= LONGEST_USE:
            cache.drop(state.key)
            _calls(caches, state.tenant).note_success()  # what is not used is not in trouble
        elif state.keys is None or not 0 <= now - state.keys.fetched_at < REFRESH_AGE:
            programs.append(_try_refresh(settings, caches, state, deadline))
    await gather(programs)


async def _try_refresh(settings: Settings, caches: Caches, state: _State, deadline: Deadline) -> None:
    with suppress(CloudidError):  # the next login, or the next visit, tries again
        await _refresh(settings, caches, state, deadline)


def _note_use(client: Client, now: Instant) -> _State:
    """Return the state for the client's tenant, and note its use."""
    cache = client.caches.signing_keys
    tenant = client.tenant.lower()
    state: _State | None = cache.peek((client.cloud, tenant))
    if state is None:
        state = _State(cloud=client.cloud, tenant=tenant, retry=client.retry, used_at=now)
    elif (state.retry is client.retry or state.retry == client.retry) and now - state.used_at < NOTE_USE:
        return state
    state = evolve(state, retry=client.retry, used_at=now)
    cache.put(state.key, state)
    return state


async def _refresh(settings: Settings, caches: Caches, state: _State, deadline: Deadline) -> KeySet:
    """Return the set after a refresh cycle, or the previous set if it is too early. Join a running cycle."""
    now = await Now()
    if state.is_cooling_down(now) and not state.under_way:
        return state.cached_or_refuse(now)
    flight, limit = f"signing keys {state.key!r}", settings.request_deadline
    return await once(flight, limit, deadline, lambda deadline: _cycle(settings, caches, state, deadline))


async def _cycle(settings: Settings, caches: Caches, state: _State, deadline: Deadline) -> KeySet:
    now = await Now()
    state = _update(caches, state)
    if state.is_cooling_down(now):
        return state.cached_or_refuse(now)
    state = _update(caches, state, tried_at=now, under_way=True)
    calls = _calls(caches, state.tenant)
    budget = RetryBudget(timeout=settings.provider_timeout, retry=state.retry, deadline=deadline)
    try:
        keys = _key_set(await discover(state.cloud, state.tenant, budget), now)
    except (ProviderProblem, ProviderUnreachable, Refused) as failure:
        await calls.note(failure, now)
        code = Code.PROVIDER_UNREACHABLE if isinstance(failure, Refused) else refusal_of(failure).code
        state = _update(caches, state, under_way=False, failure=code)
        await record_if_possible(JobFailed(job="signing keys", ref=state.tenant, problem=Problem.of(failure)))
        kept = state.usable(await Now())
        if kept is None:
            raise
        return kept
    calls.note_success()
    _update(caches, state, under_way=False, keys=keys)
    return keys


def _update(caches: Caches, state: _State, **changes: Any) -> _State:
    """Return the cache's current state (or `state`, if it was dropped), with changes."""
    cache = caches.signing_keys
    state = evolve(cache.get(state.key) or state, **changes)
    cache.put(state.key, state)
    return state


def _calls(caches: Caches, tenant: str) -> Calls:
    return Calls(caches=caches, family=Family.KEYS, owner=tenant, mount=tenant)


def _key_set(published: Published, now: Instant) -> KeySet:
    numbers = sorted((kid, (key := each.public_numbers()).n, key.e) for kid, each in published.keys.items())
    content = (published.tenant_id, sorted(published.issuers), numbers)
    return KeySet(
        tenant_id=published.tenant_id,
        issuers=published.issuers,
        keys=published.keys,
        generation=sha256(repr(content).encode()).hexdigest(),
        fetched_at=now,
    )
