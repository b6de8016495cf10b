"""Failures of Azure by mount and family of calls: since when and why, as seen by this node.

Health, metrics, rotation and the warnings of configurations all read this record. A success removes an entry, so the
record has only failing families.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import TYPE_CHECKING, Final

from attrs import frozen

from ..caches import Caches
from ..effects import HttpResponse, Instant, Now
from ..errors import (
    CloudidError,
    Code,
    PlatformTokenUnavailable,
    ProviderProblem,
    ProviderUnreachable,
    Refused,
    reason_of,
)
from .responses import problem_of

if TYPE_CHECKING:
    from .client import Client

MINUTE: Final = 60.0
"""Seconds for which a family must have failed without a success to be reported. Shorter failures are retried."""

FORGOTTEN: Final = 900.0
"""Seconds after its last failure when a family no longer counts as failing, because nothing has called it since."""

REFUSED_ACCESS: Final = frozenset({401, 403})
"""Statuses that say what a caller may do: reads can be allowed where writes are not."""

FAILURES: Final = frozenset({401, 403, 408, 429})
"""Statuses below 500 that mean that a family does not work for a mount. Others are about the object of the call."""


class Family(Enum):
    """A family of calls, by its name in metrics."""

    LOGIN = "login"
    RESOURCE_MANAGER = "resource manager"
    DIRECTORY = "directory"
    KEYS = "keys"


QUESTION: Final = "/getMemberGroups"
"""The end of the address of a POST that changes nothing."""


class Access(Enum):
    """What a call does with the objects of a family, as people say it."""

    READ = "reading from"
    WRITE = "writing to"

    @classmethod
    def of(cls, method: str, url: str) -> Access:
        return cls.READ if method == "GET" or url.endswith(QUESTION) else cls.WRITE


@frozen(kw_only=True)
class Trouble:
    """A family that has failed for a mount, or the keys of a tenant, since an instant."""

    family: Family
    owner: str
    """The mount and the version of its configuration. For keys, the tenant."""
    mount: str
    """The path of the mount."""
    credential: str
    """The credential with which the mount authenticates."""
    since: Instant
    seen_at: Instant
    reason: str
    access: Access | None
    """What is refused, where the other may still be allowed."""
    is_refused: bool
    """Azure has refused the credential, so retries do not help."""

    @property
    def counts(self) -> bool:
        """Return whether an operator should know."""
        return self.is_refused or self.seen_at - self.since >= MINUTE


@frozen(kw_only=True)
class Calls:
    """Where the results of the calls of one family for one mount are noted.

    A refused read is reported separately from a refused write: only a successful call with the same `access` ends it.
    Any successful call ends the other failures of its family.
    """

    caches: Caches
    family: Family
    owner: str
    mount: str
    credential: str = ""
    access: Access | None = None

    @classmethod
    def of(cls, client: Client, family: Family, access: Access | None = None) -> Calls:
        return cls(
            caches=client.caches,
            family=family,
            owner=client.owner,
            mount=client.mount,
            credential=client.credentials.source.value,
            access=access,
        )

    async def note(self, answer: HttpResponse | CloudidError, since: Instant | None = None) -> None:
        """Note the result of a call or an attempt. `since`: when it started, if that is known."""
        if not self.mount:
            return
        if not isinstance(answer, HttpResponse):
            await self._note_failure(answer, since)
        elif answer.status in FAILURES or answer.status >= 500:
            access = self.access if answer.status in REFUSED_ACCESS else None
            await self._note_failure(problem_of(answer, await Now()), since, access)
        else:
            self.note_success()

    def note_success(self) -> None:
        self.caches.provider_troubles.drop(self._key())
        if self.access is not None:
            self.caches.provider_troubles.drop(self._key(self.access))

    async def _note_failure(self, failure: CloudidError, since: Instant | None, access: Access | None = None) -> None:
        if isinstance(failure, Refused) and failure.code is Code.DEADLINE_PASSED:
            if not isinstance(failure.__cause__, ProviderUnreachable):
                return  # it waited for its turn, not for the provider
            failure = failure.__cause__
        now = await Now()
        before: Trouble | None = self.caches.provider_troubles.get(self._key(access))
        is_continued = before is not None and before.owner == self.owner and now - before.seen_at < FORGOTTEN
        trouble = Trouble(
            family=self.family,
            owner=self.owner,
            mount=self.mount,
            credential=self.credential,
            since=before.since if before is not None and is_continued else now if since is None else since,
            seen_at=now,
            reason=reason_of(failure),
            access=access,
            is_refused=self.family is Family.LOGIN and _is_final(failure),
        )
        self.caches.provider_troubles.put(self._key(access), trouble)

    def _key(self, access: Access | None = None) -> tuple[str, Family, Access | None]:
        return self.owner.partition(":")[0], self.family, access


def _is_final(failure: CloudidError) -> bool:
    """Return whether the token endpoint, or the platform, has refused a credential permanently."""
    match failure:
        case ProviderProblem(status=status):
            return 400 <= status < 500 and status not in (408, 429)
        case PlatformTokenUnavailable(status=status):
            return status is None or (400 <= status < 500 and status not in (404, 408, 410, 429))
        case Refused(code=Code.CREDENTIAL_UNUSABLE):
            return True
    return False


def troubles(caches: Caches) -> Iterator[Trouble]:
    """Return the failures that an operator should know."""
    return (trouble for trouble in caches.provider_troubles.values() if trouble.counts)


def trouble_of(caches: Caches, owner: str, family: Family) -> Trouble | None:
    """Return the last failure of a family under one version of a mount's configuration.

    `None` if a call has succeeded since.
    """
    trouble: Trouble | None = caches.provider_troubles.peek((owner.partition(":")[0], family, None))
    return trouble if trouble is not None and trouble.owner == owner else None


def forget_mount(caches: Caches, mount_id: str) -> None:
    """Drop the failures of a mount that no longer answers.

    Its remaining objects in Azure are reported with its leases.
    """
    for family in Family:
        for access in (None, *Access):
            caches.provider_troubles.drop((mount_id, family, access))


def forget_troubles(caches: Caches, owners: frozenset[str], now: Instant) -> None:
    """Drop the failures of deleted or reconfigured mounts, and of families that nothing has called since."""
    for key in caches.provider_troubles:
        trouble: Trouble | None = caches.provider_troubles.peek(key)
        if trouble is not None and trouble.family is not Family.KEYS:
            is_old = trouble.family is not Family.LOGIN and now - trouble.seen_at >= FORGOTTEN
            if is_old or trouble.owner not in owners:
                caches.provider_troubles.drop(key)
