"""Objects of Microsoft Graph: how all types of them are named, found, upserted and deleted.

Sources: OData 4.01 Part 2 for keys and literals; Graph's own header for upserts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Annotated, Final, Generic, TypeAlias, TypeVar
from urllib.parse import quote

from attrs import frozen
from msgspec import Meta

from ..effects import HttpResponse, Instant, Now
from ..errors import ProviderProblem
from ..forms import Json
from .client import ApiCall, Client, get_json, page, pages
from .propagation import FreshObject, retry_while_propagating
from .responses import is_absent, read, unless
from .urls import url

T = TypeVar("T")
U = TypeVar("U")

VERSION: Final = "v1.0"
LARGEST_PAGE: Final = "999"
"""Maximum number of objects on a page of Microsoft Graph. The default is 100."""
MOST_SELECTED: Final = 100_000
"""Maximum number of objects of a list that are held at a time."""
_ID: Final = re.compile(r"[A-Za-z0-9-]{1,64}")
Id: TypeAlias = Annotated[str, Meta(pattern=rf"\A{_ID.pattern}\Z")]
"""An id from Azure that can be part of a URL."""

_NOT_OFFERED: Final = frozenset({(400, "BadRequest"), (400, "Request_BadRequest"), (400, "Request_UnsupportedQuery")})


def address(client: Client, *segments: str, **query: str) -> str:
    """Return a URL in the client's own tenant."""
    return url(client.cloud.directory, VERSION, *segments, **query)


def key_address(client: Client, collection: str, key: str, value: str) -> str:
    """Return the URL of the object with such an alternate key."""
    return f"{address(client, collection)}({key}={quote(literal(value), safe=chr(39))})"


def directory_call(client: Client, method: str, target: str, body: Json = None, *, idempotent: bool = True) -> ApiCall:
    """Return a call to Microsoft Graph in the client's own tenant."""
    return ApiCall(method=method, url=target, scope=client.cloud.directory_scope, body=body, idempotent=idempotent)


def literal(text: str) -> str:
    """Return a text for a filter or a key: quotes in it are doubled."""
    return "'" + text.replace("'", "''") + "'"


async def find(client: Client, target: str, form: type[T]) -> T | None:
    """Return the document at a URL. `None` if Azure answers that it does not exist."""
    return await unless(is_absent, get_json(client, target, client.cloud.directory_scope, form), None)


async def find_by_id(client: Client, collection: str, object_id: str, form: type[T]) -> T | None:
    """Return an object of a collection, which may be nested. `None` also for a text that cannot be an id.

    All ids in requests go through this function, because other texts, as a segment of a URL, could lead elsewhere.
    """
    if not _ID.fullmatch(object_id):
        return None
    return await find(client, address(client, *collection.split("/"), object_id), form)


async def find_by_key(client: Client, collection: str, key: str, value: str, form: type[T]) -> T | None:
    """Return the object with such an alternate key. `None` also if the environment does not support that key."""
    target = key_address(client, collection, key, value)
    return await unless(_is_not_offered, get_json(client, target, client.cloud.directory_scope, form), None)


async def select(client: Client, collection: str, condition: str, form: type[T]) -> list[T]:
    """Return all objects of a collection that match a filter. Graph's lists may be out of date."""
    listing = address(client, *collection.split("/"), **{"$filter": condition})
    return await pages(client, listing, client.cloud.directory_scope, form)


@frozen
class Selection(Generic[T]):
    """The objects that match a filter, as far as they were listed."""

    items: Sequence[T]
    is_complete: bool


async def select_until(
    client: Client, collection: str, condition: str, form: type[T], until: Instant, shown: Callable[[T], U]
) -> Selection[U]:
    """Return the objects of a collection that match a filter, page by page until an instant or a maximum."""
    link = address(client, *collection.split("/"), **{"$filter": condition, "$top": LARGEST_PAGE})
    items: list[U] = []
    while link:
        if items and (await Now() >= until or len(items) >= MOST_SELECTED):
            return Selection(items, is_complete=False)
        listed, link = await page(client, link, client.cloud.directory_scope, form)
        items += map(shown, listed)
    return Selection(items, is_complete=True)


async def upsert(client: Client, collection: str, key: str, value: str, body: Json, form: type[T]) -> T | None:
    """Create or return the object with such an alternate key. `None` if upserts are not supported."""
    target, scope = key_address(client, collection, key, value), client.cloud.directory_scope
    call = ApiCall(method="PATCH", url=target, scope=scope, body=body, headers={"prefer": "create-if-missing"})
    response = await unless(_is_not_offered, client.call(call), None)
    if response is None:
        return None
    if response.body:
        return read(response, form)
    return await retry_while_propagating(
        client, lambda: get_json(client, target, scope, form), family=FreshObject.APPLICATION, made_at=await Now()
    )


async def change(client: Client, method: str, target: str, body: Json = None) -> HttpResponse:
    """Change an object. Graph refuses concurrent changes of an object, so the change is retried."""
    call = directory_call(client, method, target, body)
    now = await Now()
    return await retry_while_propagating(client, lambda: client.call(call), family=FreshObject.SHARED, made_at=now)


async def delete(client: Client, target: str) -> bool:
    """Delete an object, or a link between two. Return `False` if it does not exist."""
    return await unless(is_absent, change(client, "DELETE", target), None) is not None


def _is_not_offered(problem: ProviderProblem) -> bool:
    """Return whether an environment may answer like this to an unsupported call. A look-up or a POST follows."""
    return problem.status in (404, 405, 501) or (problem.status, problem.code) in _NOT_OFFERED
