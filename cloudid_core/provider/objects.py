"""Directory objects: what all kinds of them have in common, which is how they are named, found, upserted and deleted.

Source: OData 4.01 Part 2, for keys and literals; the directory's own header for upserts.
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
"""The most objects that Microsoft Graph puts on a page. A page has 100 where no number is given."""
MOST_SELECTED: Final = 100_000
"""The most objects of one list that are held at a time."""
_ID: Final = re.compile(r"[A-Za-z0-9-]{1,64}")
Id: TypeAlias = Annotated[str, Meta(pattern=rf"\A{_ID.pattern}\Z")]
"""An id that the provider gave; it has a place in a URL."""

_NOT_OFFERED: Final = frozenset({(400, "BadRequest"), (400, "Request_BadRequest"), (400, "Request_UnsupportedQuery")})


def address(client: Client, *segments: str, **query: str) -> str:
    """The URL of something in the client's own directory."""
    return url(client.cloud.directory, VERSION, *segments, **query)


def key_address(client: Client, collection: str, key: str, value: str) -> str:
    """The URL of the object with such an alternate key."""
    return f"{address(client, collection)}({key}={quote(literal(value), safe=chr(39))})"


def directory_call(client: Client, method: str, target: str, body: Json = None, *, idempotent: bool = True) -> ApiCall:
    """A call to the client's own directory."""
    return ApiCall(method=method, url=target, scope=client.cloud.directory_scope, body=body, idempotent=idempotent)


def literal(text: str) -> str:
    """A text in a filter or a key: quotes in it are doubled."""
    return "'" + text.replace("'", "''") + "'"


async def find(client: Client, target: str, form: type[T]) -> T | None:
    """The document at a URL; `None` if the provider says that there is none."""
    return await unless(is_absent, get_json(client, target, client.cloud.directory_scope, form), None)


async def find_by_id(client: Client, collection: str, object_id: str, form: type[T]) -> T | None:
    """The object of a collection, which may be below others; `None` also for a text that cannot be an id.

    All ids that a request may name go this way: as a segment of a URL, another text could lead elsewhere.
    """
    if not _ID.fullmatch(object_id):
        return None
    return await find(client, address(client, *collection.split("/"), object_id), form)


async def find_by_key(client: Client, collection: str, key: str, value: str, form: type[T]) -> T | None:
    """The object with such an alternate key; `None` also where the environment offers no such key."""
    target = key_address(client, collection, key, value)
    return await unless(_is_not_offered, get_json(client, target, client.cloud.directory_scope, form), None)


async def select(client: Client, collection: str, condition: str, form: type[T]) -> list[T]:
    """All objects of a collection that pass a filter. The directory's lists lag behind."""
    listing = address(client, *collection.split("/"), **{"$filter": condition})
    return await pages(client, listing, client.cloud.directory_scope, form)


@frozen
class Selection(Generic[T]):
    """The objects that pass a filter, as far as they were listed."""

    items: Sequence[T]
    is_complete: bool


async def select_until(
    client: Client, collection: str, condition: str, form: type[T], until: Instant, shown: Callable[[T], U]
) -> Selection[U]:
    """The objects of a collection that pass a filter, page by page until an instant, or until there are too many."""
    link = address(client, *collection.split("/"), **{"$filter": condition, "$top": LARGEST_PAGE})
    items: list[U] = []
    while link:
        if items and (await Now() >= until or len(items) >= MOST_SELECTED):
            return Selection(items, is_complete=False)
        listed, link = await page(client, link, client.cloud.directory_scope, form)
        items += map(shown, listed)
    return Selection(items, is_complete=True)


async def upsert(client: Client, collection: str, key: str, value: str, body: Json, form: type[T]) -> T | None:
    """Make an object with such an alternate key, or take the one that is there; `None` where that is not offered."""
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
    """Change an object. The directory refuses one change while others of the object are under way: it is repeated."""
    call = directory_call(client, method, target, body)
    now = await Now()
    return await retry_while_propagating(client, lambda: client.call(call), family=FreshObject.SHARED, made_at=now)


async def delete(client: Client, target: str) -> bool:
    """Delete an object, or a link between two; `False` if there is none."""
    return await unless(is_absent, change(client, "DELETE", target), None) is not None


def _is_not_offered(problem: ProviderProblem) -> bool:
    """Whether this may be how an environment answers that does not know a call; a look-up or a POST follows."""
    return problem.status in (404, 405, 501) or (problem.status, problem.code) in _NOT_OFFERED
