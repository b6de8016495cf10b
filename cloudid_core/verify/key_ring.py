"""Key rings: the signing keys of tenants, fetched when they are needed. The caller does the fetching.

Anyone can send a token that names a key which does not exist, so tokens must not decide how often keys are fetched. For
each tenant there is at most one fetch in 30 seconds, whichever keys the tokens name and however a fetch ends.
"""

from __future__ import annotations

from contextlib import suppress
from math import inf, isfinite
from typing import Final

from attrs import define, frozen

from ..effects import Instant
from .verdicts import NO_FACTS, Facts, RefusalCode, Refused, Verdict
from .verifier import Verifier

REST: Final = 30.0
"""Seconds from the start of a fetch to the earliest start of the next."""

REFRESH_AGE: Final = 3600.0
"""Age in seconds at which keys are fetched again."""

LONGEST_USE: Final = 24 * 3600.0
"""Age in seconds up to which keys are used while fetches fail."""

_OTHER_TENANT: Final = (RefusalCode.JWT_ISSUER_MISMATCH, RefusalCode.JWT_TENANT_MISMATCH)
"""Refusals of a token that may belong to another tenant of the ring: Azure signs for all with the same keys."""


@frozen
class Fetch:
    """Get `url`, pass the body to `KeyRing.fetched`, and verify the token again.

    Only one caller gets it: until the fetch ends, other callers get verdicts by the keys that are there.
    """

    url: str
    tenant_id: str


class KeyRing:
    """Verifies tokens by one verifier for each tenant, and says when to fetch keys and from where.

    A verifier's own keys, if it has any, are used until the first fetch succeeds. Threads must not call methods at the
    same time: `cloudid_servers.verify` has rings for threads, asyncio and trio.

    Raises `ValueError` unless there is at least one verifier, and at most one for each tenant.
    """

    def __init__(self, *verifiers: Verifier) -> None:
        self._tenants = {verifier.tenant_id: _Tenant(verifier) for verifier in verifiers}
        if not verifiers or len(self._tenants) < len(verifiers):
            raise ValueError("pass only one verifier for each tenant")

    def verify(self, token: str, now: Instant, facts: Facts = NO_FACTS) -> Verdict | Fetch:
        """Return the verdict on a token at `now`, or the fetch that has to come first."""
        if not isfinite(now):
            raise ValueError("now must be seconds since the epoch")
        for tenant in self._tenants.values():
            if tenant.is_stale(now) and not tenant.rests(now):
                return tenant.start_fetch(now)
        refusals: list[Refused] = []
        for tenant in self._tenants.values():
            verdict = tenant.verify(token, now, facts)
            if not isinstance(verdict, Refused):
                return verdict
            if verdict.lacks_key and not tenant.rests(now):
                return tenant.start_fetch(now)
            refusals.append(verdict)
        return next((each for each in refusals if each.code not in _OTHER_TENANT), refusals[0])

    def fetched(self, fetch: Fetch, text: bytes | str | None, now: Instant) -> None:
        """Take the body that was fetched; `None` if the fetch failed. Without a usable key, the older keys stay."""
        self._tenants[fetch.tenant_id].fetched(text, now)

    def is_fetching(self, now: Instant) -> bool:
        """Return whether a caller has got a `Fetch` and its outcome has not come yet."""
        return any(tenant.is_fetching and tenant.rests(now) for tenant in self._tenants.values())


@define
class _Tenant:
    """The keys of one tenant."""

    verifier: Verifier
    fetched_at: Instant = -inf
    tried_at: Instant = -inf
    is_fetching: bool = False

    def verify(self, token: str, now: Instant, facts: Facts) -> Verdict:
        if self.fetched_at != -inf and now - self.fetched_at >= LONGEST_USE:
            return Refused(RefusalCode.KEYS_UNAVAILABLE)
        return self.verifier.verify(token, now=now, facts=facts)

    def is_stale(self, now: Instant) -> bool:
        return not 0 <= now - self.fetched_at < REFRESH_AGE

    def rests(self, now: Instant) -> bool:
        """Return whether the last fetch began less than 30 seconds ago. A clock that was set back ends the rest."""
        return 0 <= now - self.tried_at < REST

    def start_fetch(self, now: Instant) -> Fetch:
        self.tried_at, self.is_fetching = now, True
        return Fetch(self.verifier.keys_url, self.verifier.tenant_id)

    def fetched(self, text: bytes | str | None, now: Instant) -> None:
        self.is_fetching = False
        if text is None:
            return
        with suppress(ValueError):  # it is no key set, or has no key for this tenant
            self.verifier = self.verifier.with_keys(text)
            self.fetched_at = now
