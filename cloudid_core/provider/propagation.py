"""New objects: the errors that they cause while they propagate through Azure, and retries until they have.

Errors are recognised by status and code, never by their message, whose wording changes.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from enum import Enum
from typing import Final, TypeVar

from msgspec.structs import replace

from ..backoff import Backoff
from ..effects import Instant, Now, Program, Sleep
from ..errors import Code, ProviderProblem, Refused
from .client import Client, Credentials
from .oauth import ask_for_token
from .retry import SHORTEST_TRY

T = TypeVar("T")

GRACE: Final = 120.0
"""Seconds after which an object is no longer new, unless the declared settle time is shorter."""

PAUSES: Final = Backoff(first=2.0, longest=10.0, growth=1.5)

_NOT_THERE: Final = (404, "Request_ResourceNotFound")
_NOT_OURS: Final = (403, "Authorization_RequestDenied")
_BUSY: Final = (409, "Directory_ConcurrencyViolation")

WRONG_SUBJECT: Final = ("AADSTS700213", "AADSTS7002137", "AADSTS7002138")
"""No federated credential has the subject, or it is a template, or differs in case."""


def _of_tokens(*codes: str) -> frozenset[tuple[int, str]]:
    """Return the errors of the token endpoint, including those for a missing app registration or service principal."""
    codes = (*codes, "AADSTS700016", "AADSTS7000229")
    return frozenset((status, code) for status in (400, 401) for code in codes)


class FreshObject(Enum):
    """A call for a new object, with the status and code of every error that may be temporary."""

    APPLICATION = "anything of an app registration that was just created", {_NOT_THERE, _NOT_OURS, _BUSY}
    PRINCIPAL = (
        "a service principal for an app registration that was just created",
        {
            _NOT_THERE,
            _NOT_OURS,
            _BUSY,
            (400, "Request_BadRequest"),  # the application that it refers to is not there
            (400, "Request_MultipleObjectsWithSameKeyValue"),  # it is there, but not found yet
            (409, "Request_MultipleObjectsWithSameKeyValue"),
        },
    )
    MEMBERSHIP = "a group membership for a service principal that was just created", {_NOT_THERE, _BUSY}
    DIRECTORY_ROLE = (
        "a directory role or an app role for a service principal that was just created",
        {_NOT_THERE, _BUSY, (400, "Request_BadRequest")},
    )
    ASSIGNMENT = "a role assignment for a service principal that was just created", {(400, "PrincipalNotFound")}
    SECRET = (
        "a token for a client secret that was just created",
        {(401, "AADSTS7000215"), *_of_tokens()},
    )  # wrong secret
    FEDERATION = (
        "a token for a federated credential that was just created",
        _of_tokens("AADSTS70021", "AADSTS700211", *WRONG_SUBJECT),  # none at all, of the issuer, of the subject
    )
    CERTIFICATE = "a token for a certificate that was just registered", _of_tokens("AADSTS700027")  # no such key
    SHARED = "a change of an app registration while others change it", {_BUSY}

    @property
    def errors(self) -> Set[tuple[int, str]]:
        errors: Set[tuple[int, str]] = self.value[1]
        return errors


def is_transient(family: FreshObject, problem: ProviderProblem) -> bool:
    """Return whether a new object can cause an error."""
    return (problem.status, problem.code) in family.errors


async def retry_while_propagating(
    client: Client, attempt: Callable[[], Program[T]], *, family: FreshObject, made_at: Instant
) -> T:
    """Repeat an attempt while it fails as expected for an object of this age, and return its result.

    Raise the last `ProviderProblem` if the object is no longer new, or no time is left for another attempt.
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


async def prove(client: Client) -> None:
    """Request an access token with a credential that may be too new to be accepted.

    The token is not cached, and a refusal is not noted for the mount. Raise what the token endpoint answers.
    """
    family = FreshObject.FEDERATION if client.credentials.assertions else FreshObject.SECRET
    scope = client.cloud.resource_scope
    await retry_while_propagating(client, lambda: ask_for_token(client, scope), family=family, made_at=await Now())


async def pause(client: Client, n: int = 1) -> bool:
    """Wait before the n-th retry. Return `False` immediately if the deadline leaves no time for it."""
    pause = await PAUSES.draw(n)
    if await Now() + pause + SHORTEST_TRY > client.deadline.at:
        return False
    await Sleep(pause)
    return True


async def wait_until_proven(client: Client, credentials: Credentials, family: FreshObject, *, needed: int = 1) -> bool:
    """Return whether the token endpoint accepts a credential `needed` times in a row before the client's deadline.

    Several calls are needed because the endpoint's servers learn of credentials one after the other. Raise its errors,
    except that the credential or the app registration is unknown. The tokens are not used.
    """
    bearer = replace(client, credentials=credentials)
    in_a_row = 0
    while True:
        try:
            await ask_for_token(bearer, client.cloud.resource_scope)
            in_a_row += 1
        except ProviderProblem as problem:
            if not is_transient(family, problem):
                raise
            in_a_row = 0
        except Refused as refusal:
            if refusal.code is not Code.DEADLINE_PASSED:
                raise
            return False
        if in_a_row >= needed:
            return True
        if not await pause(client):
            return False
