"""The client: calls to Azure on behalf of one mount, with an access token, retries and a deadline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Generic, TypeAlias, TypeVar
from urllib.parse import urlencode

import msgspec
from attrs import evolve, field, frozen

from ..clouds import Cloud
from ..effects import HttpRequest, HttpResponse, Now
from ..errors import (
    Code,
    PlatformTokenUnavailable,
    ProviderAmbiguous,
    ProviderProblem,
    ProviderUnreachable,
    Refused,
    TimeIsUp,
)
from ..forms import Json
from ..store import Records
from ..values import Secret
from .assertions import Assertions, Source
from .calls import RetryBudget, deliver
from .codes import CODES_BY_NAME, PERMISSION_CODES
from .identities import PlatformIdentity
from .oauth import access_token, forget
from .read_budget import Line
from .responses import NONSENSE, nonsense, problem_of, read
from .retry import NO_RETRY
from .single_flight import BaseClient
from .troubles import Access, Calls, Family
from .urls import resolve, same_origin

T = TypeVar("T")

MOST_PAGES: Final = 200
COME_AGAIN: Final = 5.0
"""Seconds after which a refused caller may retry if Azure did not say."""

ProviderFailure: TypeAlias = (
    ProviderProblem | ProviderAmbiguous | ProviderUnreachable | PlatformTokenUnavailable | TimeIsUp
)
"""All failures of a call except `Refused`."""

PROVIDER_FAILURES: Final = (ProviderProblem, ProviderAmbiguous, ProviderUnreachable, PlatformTokenUnavailable, TimeIsUp)
"""The same, for an `except`."""


@frozen(kw_only=True)
class Credentials:
    """How a mount authenticates: with assertions if it has any, otherwise with its client secret if it has one.

    Without either, with the managed identity of the host's platform: the user-assigned one with the client id, or the
    system-assigned one if the client id is empty.
    """

    client_id: str = ""
    client_secret: Secret = Secret()
    assertions: Assertions | None = None
    platform: PlatformIdentity | None = None
    """Where the owner of the platform's tokens is noted."""

    @property
    def source(self) -> Source:
        if self.assertions is not None:
            return self.assertions.source
        return Source.CLIENT_SECRET if self.client_secret else Source.MANAGED_IDENTITY


@frozen(kw_only=True)
class ApiCall:
    """A call to Azure. `scope` is the scope of the access token, or `None` for a call without one.

    `body` is sent as JSON, `form` as a form. A call that is not idempotent is repeated only after a definite refusal.
    """

    method: str = "GET"
    url: str = field(repr=lambda url: repr(url.partition("?")[0]))
    scope: str | None = None
    body: Json = field(default=None, repr=False)
    form: Mapping[str, str] | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(factory=dict, repr=False)
    idempotent: bool = True


class Client(BaseClient, frozen=True, kw_only=True):
    """Call Azure for one mount. `owner`, for cache keys, is the mount and the generation of its configuration.

    `mount` is its path. It is empty for a candidate configuration, whose failures are not the mount's.
    """

    cloud: Cloud
    tenant: str
    credentials: Credentials
    owner: str
    records: Records
    returns_later: bool = False
    """Whether refused calls are not retried because the caller makes another attempt later.

    Requests for access tokens are always retried, because several requests share them.
    """
    mount: str = ""

    @property
    def budget(self) -> RetryBudget:
        return RetryBudget(
            timeout=self.settings.provider_timeout,
            retry=NO_RETRY if self.returns_later else self.retry,
            deadline=self.deadline,
            flight=self.flight,
        )

    async def call(self, call: ApiCall) -> HttpResponse:
        """Return Azure's successful response. An access token that Azure no longer accepts is replaced once.

        Raise `ProviderProblem` for a status outside 200 to 299, and what `deliver` and `access_token` raise.
        """
        if call.scope is None:
            response = await self._deliver(call)
        else:
            token = await access_token(self, call.scope)
            response = await self._deliver(call, token)
            if response.status == 401:
                forget(self, call.scope, token)
                response = await self._deliver(call, await access_token(self, call.scope))
        if not 200 <= response.status <= 299:
            raise problem_of(response, await Now())
        return response

    async def _deliver(self, call: ApiCall, token: Secret | None = None) -> HttpResponse:
        headers = {"accept": "application/json", **call.headers}
        content = b""
        if call.form is not None:
            headers["content-type"] = "application/x-www-form-urlencoded"
            content = urlencode(call.form).encode()
        elif call.body is not None:
            headers["content-type"] = "application/json"
            content = msgspec.json.encode(call.body)
        if token is not None:
            headers["authorization"] = f"Bearer {token.reveal()}"
        request = HttpRequest(call.method, call.url, headers, content, call.idempotent)
        is_directory = call.url.startswith(f"{self.cloud.directory}/")
        family = Family.DIRECTORY if is_directory else Family.RESOURCE_MANAGER
        budget = evolve(self.budget, calls=Calls.of(self, family, Access.of(call.method, call.url)))
        if call.method == "GET" and call.url.startswith(self.cloud.resource_manager):
            budget = evolve(budget, line=self.line(call.url.removeprefix(self.cloud.resource_manager)))
        return await deliver(request, budget, idempotent=call.idempotent)

    def line(self, path: str) -> Line:
        """Return where reads below a path of Azure Resource Manager wait for their turn."""
        return Line(self, self.cloud, path)


async def ask(client: Client, call: ApiCall, form: type[T]) -> T:
    """Return the JSON response of a call, decoded as a given type."""
    response = await client.call(call)
    try:
        return read(response, form)
    except ProviderProblem as problem:
        if call.idempotent:
            raise
        raise ProviderAmbiguous("Azure sent an invalid response to a change", answered=True) from problem


async def get_json(client: Client, url: str, scope: str | None, form: type[T]) -> T:
    """Return the JSON document at a URL, decoded as a given type."""
    return await ask(client, ApiCall(url=url, scope=scope), form)


class _Page(msgspec.Struct, Generic[T]):
    value: list[T]
    next_link: str | None = msgspec.field(default=None, name="nextLink")
    odata_next_link: str | None = msgspec.field(default=None, name="@odata.nextLink")


async def pages(client: Client, url: str, scope: str | None, item: type[T]) -> list[T]:
    """Return all items of a paged list. Links are followed only within the same origin."""
    items: list[T] = []
    link = url
    for _ in range(MOST_PAGES):
        found, link = await page(client, link, scope, item)
        items += found
        if not link:
            return items
    raise Refused(Code.PROVIDER_REFUSED, f"a list of Azure has more than {MOST_PAGES} pages")


async def page(client: Client, url: str, scope: str | None, item: type[T]) -> tuple[list[T], str]:
    """Return one page of a list, and the URL of the next page within the same origin. Empty after the last page."""
    answer = await get_json(client, url, scope, _Page[item])  # type: ignore[valid-type]  # a type made at run time
    following = answer.next_link or answer.odata_next_link
    if not following:
        return answer.value, ""
    link = resolve(url, following)
    if not same_origin(url, link):
        raise nonsense()
    return answer.value, link


def refusal_of(failure: ProviderFailure | Refused, *, names_code: bool = False) -> Refused:
    """Return the refusal for a failed or refused call to Azure, without any text from Azure.

    `names_code`: include Azure's error code, or the host that could not be reached and why. For callers who may know
    how the mount authenticates.
    """
    detail = _detail(failure, names_code=names_code)
    match failure:
        case Refused():
            return failure
        case TimeIsUp():
            return Refused(Code.DEADLINE_PASSED)
        case PlatformTokenUnavailable():
            return Refused(Code.PLATFORM_IDENTITY_UNAVAILABLE, retry_after=COME_AGAIN)
        case ProviderProblem(status=429):
            return Refused(Code.PROVIDER_THROTTLED, detail, retry_after=failure.retry_after or COME_AGAIN)
        case ProviderProblem(status=status) if status == 408 or status >= 500:
            return Refused(Code.PROVIDER_FAILED, detail, retry_after=failure.retry_after or COME_AGAIN)
        case ProviderAmbiguous(answered=True):
            return Refused(Code.PROVIDER_FAILED, retry_after=COME_AGAIN)
        case ProviderProblem(code=name) if name in CODES_BY_NAME:
            return Refused(CODES_BY_NAME[name], detail)
        case ProviderProblem() if _is_permission_missing(failure):
            return Refused(Code.PROVIDER_PERMISSION_DENIED, detail)
        case ProviderProblem():
            return Refused(Code.PROVIDER_REFUSED, detail)
        case _:
            return Refused(Code.PROVIDER_UNREACHABLE, detail, retry_after=COME_AGAIN)


def _detail(failure: ProviderFailure | Refused, *, names_code: bool) -> str:
    """Return the addition to a refusal's text.

    Hints are for everyone, codes and hosts only for callers who may see them.
    """
    if isinstance(failure, ProviderUnreachable):
        return str(failure) if names_code else ""
    if not isinstance(failure, ProviderProblem):
        return ""
    code = failure.code if names_code and failure.code != NONSENSE else ""
    return ": ".join(filter(None, (failure.hint, code)))


def _is_permission_missing(problem: ProviderProblem) -> bool:
    """Return whether a role assignment or a permission would help.

    A 401 of the token endpoint rejects the credential itself.
    """
    if problem.status == 401:
        return not problem.code.startswith("AADSTS")
    return problem.status == 403 and problem.code in PERMISSION_CODES
