"""Access tokens: how a mount authenticates to Azure (RFC 6749, section 4.4).

It uses a client secret, a client assertion (RFC 7523, section 2.2), or the identity of the host's platform.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias
from urllib.parse import urlencode

from attrs import frozen
from msgspec import Meta, Struct
from msgspec.structs import replace

from ..effects import HttpRequest, Instant, Now
from ..errors import Code, HostFailure, PlatformTokenUnavailable, ProviderProblem, Refused
from ..forms import secret_flaw
from ..values import Secret
from .calls import deliver
from .platform_tokens import platform_token
from .responses import nonsense, problem_of, read
from .retry import NO_RETRY
from .single_flight import look_up_once
from .troubles import Calls, Family
from .urls import url

if TYPE_CHECKING:
    from .client import Client

LONGEST_LIFE: Final = 24 * 3600.0
"""Maximum seconds for which an access token is used, whatever Azure says."""

JWT_BEARER: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
WRONG_SECRET: Final = "AADSTS7000215"
REFRESH_AHEAD: Final = 300.0
_TOKEN: Final = re.compile(r"[!-~]{1,16384}")


@frozen
class AccessToken:
    """An access token, when to request the next one, and when it expires."""

    token: Secret
    refresh_at: Instant
    expires_at: Instant


async def access_token(client: Client, scope: str) -> Secret:
    """Return an access token for a scope, cached or new. A valid token stays in use if its refresh fails."""
    key, now = _key(client, scope), await Now()
    known: AccessToken | None = client.caches.access_tokens.get(key)
    if known is not None and now < known.refresh_at:
        return known.token
    usable = known if known is not None and now < known.expires_at else None
    asker = replace(client, returns_later=False, retry=NO_RETRY if usable else client.retry)
    try:
        fresh = await look_up_once(asker, f"access token {key!r}", lambda client: _renew(client, scope))
    except (ProviderProblem, HostFailure, Refused):
        if usable is None:
            raise
        return usable.token
    return fresh.token


async def prove_credential(client: Client, scope: str) -> None:
    """Request a new access token for a scope even if one is cached, so that a refusal is noticed."""
    key = _key(client, scope)
    await look_up_once(client, f"proof {key!r}", lambda client: _replace_token(client, scope))


def forget(client: Client, scope: str, refused: Secret) -> None:
    """Drop an access token that Azure refused, unless it was replaced already."""
    tokens = client.caches.access_tokens
    key = _key(client, scope)
    known: AccessToken | None = tokens.get(key)
    if known is not None and known.token == refused:
        tokens.drop(key)


def _key(client: Client, scope: str) -> Hashable:
    credentials = client.credentials
    digest = sha256(credentials.client_secret.reveal().encode()).hexdigest()
    asserted = credentials.assertions.identity if credentials.assertions else ""
    who = credentials.source.value, credentials.client_id, digest, asserted
    return client.owner, client.cloud.login, client.tenant.lower(), who, scope


async def _renew(client: Client, scope: str) -> AccessToken:
    key, now = _key(client, scope), await Now()
    known: AccessToken | None = client.caches.access_tokens.get(key)
    if known is None or now >= known.refresh_at:  # otherwise it came since the asker looked
        known = await _replace_token(client, scope)
    return known


async def _replace_token(client: Client, scope: str) -> AccessToken:
    """Request a token and cache it. The outcome is noted for the mount."""
    calls, started_at = Calls.of(client, Family.LOGIN), await Now()
    if calls.mount:
        client.caches.token_requests.put(client.owner, started_at)
    try:
        fresh = await ask_for_token(client, scope)
    except (ProviderProblem, HostFailure, Refused) as failure:
        await calls.note(failure, started_at)
        raise
    calls.note_success()
    client.caches.access_tokens.put(_key(client, scope), fresh)
    return fresh


async def ask_for_token(client: Client, scope: str) -> AccessToken:
    """Request a new access token from the configured source, and from no other. It is not cached."""
    credentials = client.credentials
    if credentials.assertions is not None:
        if not credentials.client_id:
            raise Refused(Code.CREDENTIAL_UNUSABLE, f"{credentials.source.value}: client_id is not set")
        assertion = await credentials.assertions.make()
        form = {"client_assertion_type": JWT_BEARER, "client_assertion": assertion.reveal()}
        return await _ask(client, form, scope)
    if credentials.client_secret:
        try:
            return await _ask(client, {"client_secret": credentials.client_secret.reveal()}, scope)
        except ProviderProblem as problem:
            if problem.code == WRONG_SECRET:
                problem.hint = secret_flaw(credentials.client_secret, client.settings.environment)
            raise
    return await _by_platform(client, scope)


def token_endpoint(client: Client) -> str:
    return url(client.cloud.login, client.tenant, "oauth2", "v2.0", "token")


Seconds: TypeAlias = Annotated[int, Meta(ge=1, le=10**9)] | Annotated[str, Meta(pattern=r"\A0*[1-9][0-9]{0,8}\Z")]
"""A number, or its digits: some of Azure's endpoints write numbers as text."""


class _TokenAnswer(Struct):
    access_token: str
    expires_in: Seconds
    token_type: str = "Bearer"

    def __repr__(self) -> str:
        return "<_TokenAnswer>"


async def _ask(client: Client, proof: Mapping[str, str], scope: str) -> AccessToken:
    """Call the token endpoint, with the form fields that authenticate the caller."""
    form = {"grant_type": "client_credentials", "client_id": client.credentials.client_id, **proof, "scope": scope}
    headers = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
    asked_at = await Now()
    request = HttpRequest("POST", token_endpoint(client), headers, urlencode(form).encode())
    response = await deliver(request, client.budget)
    if response.status != 200:
        raise problem_of(response, await Now())
    answer = read(response, _TokenAnswer)
    if not _TOKEN.fullmatch(answer.access_token) or answer.token_type.lower() != "bearer":
        raise nonsense(response)
    return _token(Secret(answer.access_token), asked_at, asked_at + int(answer.expires_in))


async def _by_platform(client: Client, scope: str) -> AccessToken:
    asked_at = await Now()
    answer = await platform_token(
        scope.removesuffix("/.default"),
        client.credentials.client_id,
        client.deadline,
        retries=client.retry.max_retries > 0,
    )
    if answer.expires_at <= asked_at or not _TOKEN.fullmatch(answer.token.reveal()):
        raise PlatformTokenUnavailable("the platform returned no usable token")
    if client.credentials.platform is not None:
        await client.credentials.platform.note(answer.token)
    return _token(answer.token, asked_at, answer.expires_at)


def _token(token: Secret, asked_at: Instant, expires_at: Instant) -> AccessToken:
    life = min(expires_at - asked_at, LONGEST_LIFE)
    return AccessToken(token, asked_at + life - min(REFRESH_AHEAD, life / 10), asked_at + life)
