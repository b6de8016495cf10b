"""Fresh objects: errors that one may cause while it spreads through the provider, and patience with them.

They are recognised by status and code, never by their message: its wording changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, TypeVar

from ..backoff import Backoff
from ..effects import Instant, Now, Program, Sleep
from ..errors import ProviderProblem
from .client import Client
from .retry import SHORTEST_TRY

T = TypeVar("T")

GRACE: Final = 120.0
"""Seconds after which an object is no longer fresh, unless the declared settle time is shorter."""

PAUSES: Final = Backoff(first=2.0, longest=10.0, growth=1.5)


class FreshObject(Enum):
    """What a call wants, and of what."""

    APPLICATION = "anything of an application that was just made"
    PRINCIPAL = "a principal for an application that was just made"
    MEMBERSHIP = "a membership for a principal that was just made"
    DIRECTORY_ROLE = "a directory role or an app role for a principal that was just made"
    ASSIGNMENT = "a role assignment for a principal that was just made"
    SECRET = "a token for a secret that was just made"
    FEDERATION = "a token for a federated credential that was just made"
    CERTIFICATE = "a token for a certificate that was just registered"
    SHARED = "a change of an application that others change at the same time"


_NOT_THERE: Final = (404, "Request_ResourceNotFound")
_NOT_OURS: Final = (403, "Authorization_RequestDenied")
_BUSY: Final = (409, "Directory_ConcurrencyViolation")

FRESH: Final[Mapping[FreshObject, frozenset[tuple[int, str]]]] = {
    FreshObject.APPLICATION: frozenset({_NOT_THERE, _NOT_OURS, _BUSY}),
    FreshObject.PRINCIPAL: frozenset(
        {
            _NOT_THERE,
            _NOT_OURS,
            _BUSY,
            (400, "Request_BadRequest"),  # the application that it refers to is not there
            (400, "Request_MultipleObjectsWithSameKeyValue"),  # it is there, but not found yet
            (409, "Request_MultipleObjectsWithSameKeyValue"),
        }
    ),
    FreshObject.MEMBERSHIP: frozenset({_NOT_THERE, _BUSY}),
    FreshObject.DIRECTORY_ROLE: frozenset({_NOT_THERE, _BUSY, (400, "Request_BadRequest")}),
    FreshObject.ASSIGNMENT: frozenset({(400, "PrincipalNotFound")}),
    FreshObject.SECRET: frozenset(
        {
            (401, "AADSTS7000215"),  # wrong secret
            (400, "AADSTS700016"),  # no such application
            (401, "AADSTS700016"),
            (400, "AADSTS7000229"),  # no principal for it
            (401, "AADSTS7000229"),
        }
    ),
    FreshObject.SHARED: frozenset({_BUSY}),
    FreshObject.CERTIFICATE: frozenset(
        (status, code)
        for status in (400, 401)
        for code in ("AADSTS700027", "AADSTS700016", "AADSTS7000229")  # no such key, no application, no principal
    ),
    FreshObject.FEDERATION: frozenset(
        (status, code)
        for status in (400, 401)
        for code in (
            "AADSTS70021",  # no credential at all
            "AADSTS700211",  # none of the issuer
            "AADSTS700213",  # none of the subject
            "AADSTS700016",
            "AADSTS7000229",
        )
    ),
}
"""Status and code of every error that may pass by itself."""


def is_transient(family: FreshObject, problem: ProviderProblem) -> bool:
    """Whether an error is one that a fresh object may cause."""
    return (problem.status, problem.code) in FRESH[family]


async def retry_while_propagating(
    client: Client, attempt: Callable[[], Program[T]], *, family: FreshObject, made_at: Instant
) -> T:
    """The answer of an attempt, which is repeated while it fails as it may with an object made at that time.

    Raises the last `ProviderProblem` when the object is no longer fresh, or no time is left for another attempt.
    """
    grace = min(GRACE, client.settings.settle_time)
    retries = 0
    while True:
        try:
            return await attempt()
        except ProviderProblem as problem:
            retries += 1
            if not is_transient(family, problem) or await Now() >= made_at + grace or not await pause(client, retries):
                raise


async def pause(client: Client, n: int = 1) -> bool:
    """Wait before the n-th retry; `False`, at once, when the deadline leaves no time to try again after that."""
    pause = await PAUSES.draw(n)
    if await Now() + pause + SHORTEST_TRY > client.deadline.at:
        return False
    await Sleep(pause)
    return True
