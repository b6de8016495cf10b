"""What all requests to the directory have in common: callers, bodies, look-ups, lists and errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, TypeVar

from ..engine.behaviour import Replica
from ..engine.filters import Filterable
from ..engine.replicas import Table
from ..engine.requests import Call, Caller, Json, Refusal, page
from ..engine.shapes import Shape, require_object, show
from ..identity.tokens import BadToken, graph_audiences, read_bearer
from ..world.world import World, instant

T = TypeVar("T")

ROOT: Final = "/graph/v1.0"
PAGE_SIZE: Final = 100
MAX_TOP: Final = 999
TYPE_ANNOTATION: Final = "@odata.type"

TOKEN_ERRORS: Final[dict[BadToken, str]] = {
    "missing": "Access token is empty.",
    "invalid": "Access token validation failure.",
    "expired": "Lifetime validation failed, the token is expired.",
    "audience": "Access token validation failure. Invalid audience.",
}

bad_request: Final = partial(Refusal, 400, "Request_BadRequest")
denied: Final = partial(Refusal, 403, "Authorization_RequestDenied")
over_quota: Final = partial(Refusal, 403, "Directory_QuotaExceeded")
in_use: Final = partial(Refusal, 409, "Request_MultipleObjectsWithSameKeyValue")


def missing(object_id: str) -> Refusal:
    message = f"Resource '{object_id}' does not exist or one of its queried reference-property objects are not present."
    return Refusal(404, "Request_ResourceNotFound", message)


BODY_HEADERS: Final = {
    "content-type": "application/json;odata.metadata=minimal;odata.streaming=true;IEEE754Compatible=false;"
    "charset=utf-8",
    "odata-version": "4.0",
}
ACTION_LOCATION: Final = "https://graph.microsoft.com"
"""What the answer to an action names as its place."""
PLACES: Final = {"applications": "Application", "servicePrincipals": "ServicePrincipal", "groups": "Group"}
"""How the place of an object that was made calls its type, by its collection."""


def headers(world: World, call: Call) -> dict[str, str]:
    """A client's own id of its request comes back; without one it is that of the answer."""
    request_id = world.randomness.guid("request")
    return {"request-id": request_id, "client-request-id": call.headers.get("client-request-id", request_id)}


def error(world: World, refusal: Refusal, headers: Mapping[str, str]) -> Json:
    inner = {"date": instant(world.now()).removesuffix("Z"), **headers}
    return {"error": {"code": refusal.code, "message": refusal.message, "innerError": inner}}


def dress(world: World, call: Call, status: int, shown: Json) -> tuple[Json, Mapping[str, str]]:
    """Name the type of an answer, and the place of what was made; leave out what the query does not select."""
    collection = call.path.removeprefix(f"{ROOT}/").split("/")[0].partition("(")[0]
    kind = "" if isinstance(shown.get("value"), list) else "/$entity"
    selected = _selected(call, shown)
    context = {"@odata.context": f"{world.base_url}{ROOT}/$metadata#{collection}{kind}"}
    place = {}
    if call.method == "POST" and status == 200:
        place = {"location": ACTION_LOCATION}
    elif status == 201 and "id" in shown:
        name = PLACES.get(collection, "")
        place = {"location": f"{world.base_url}/graph/v2/{world.tenant_id}/directoryObjects/{shown['id']}/{name}"}
    return {**context, **selected}, place


def _selected(call: Call, shown: Json) -> Json:
    """Of an object, or of each in a list, the members that `$select` names."""
    names = {name.strip().lower() for name in call.query.get("$select", "").split(",")} - {""}
    if not names or call.method != "GET":
        return shown
    if isinstance(shown.get("value"), list):
        return {**shown, "value": [_members(each, names) for each in shown["value"]]}
    return _members(shown, names)


def _members(shown: Json, names: set[str]) -> Json:
    return {name: value for name, value in shown.items() if name.lower() in names}


def authenticate(world: World, call: Call) -> Caller:
    caller = read_bearer(world, call, graph_audiences(world))
    if isinstance(caller, str):
        raise Refusal(401, "InvalidAuthenticationToken", TOKEN_ERRORS[caller])
    if caller.object_id not in (world.writers if call.writes else world.readers):
        raise denied("Insufficient privileges to complete the operation.")
    return caller


def read_body(call: Call, shape: Shape) -> Json:
    return read_fields(call.json("Request_BadRequest"), shape, "the body")


def read_fields(value: Any, shape: Shape, what: str) -> Json:
    """The object's fields. The type annotation that clients may add to any object is ignored (OData JSON, 4.6.3)."""
    if type(value) is dict:
        value = {name: given for name, given in value.items() if name.lower() != TYPE_ANNOTATION}
    try:
        return require_object(value, shape, what)
    except Refusal as refusal:
        raise bad_request(refusal.message) from None


def require(found: T | None, key: str) -> T:
    """What was found under a key; `Refusal` 404 if there is nothing."""
    if found is None:
        raise missing(key)
    return found


def read_object(table: Table[T], call: Call) -> T:
    """The object that the path names, as readers see it; `Refusal` 404."""
    return require(table.get(call.names["id"].lower(), Replica.READS), call.names["id"])


def find_for_write(table: Table[T], object_id: str) -> T:
    """The object as it is, if its creation has reached the replica that writes use; `Refusal` 404."""
    require(table.get(object_id.lower(), Replica.WRITES), object_id)
    return require(table.get(object_id.lower()), object_id)


def require_upsert(world: World) -> None:
    """Refuse the request if the cloud has no upserts and alternate keys."""
    status = world.behaviour.upsert
    if status == 400:
        raise bad_request("Resource not found for the segment.")
    if status is not None:
        raise Refusal(status, "NotImplemented", "The operation is not available in this cloud.")


def refuse_concurrent_change(world: World, object_id: str) -> None:
    """`Refusal` 409 if the object was changed a moment ago."""
    changed_at = world.directory.changed_at.get(object_id)
    if changed_at is not None and world.now() - changed_at < world.behaviour.write_conflict:
        message = "Concurrent requests are modifying the object. Try again."
        raise Refusal(409, "Directory_ConcurrencyViolation", message)


def list_objects(
    world: World, call: Call, objects: Iterable[T], filters: Filterable, shown: Callable[[T], Json] | None = None
) -> Json:
    """A page of the objects that match the query's filter."""
    top = call.query.get("$top", str(PAGE_SIZE))
    if not (top.isascii() and top.isdigit() and 1 <= int(top[:4]) <= MAX_TOP):
        raise bad_request(f"'$top' must be 1 to {MAX_TOP}.")
    found, following = page(filters.select(objects, call.query.get("$filter")), call, world.base_url, int(top[:4]))
    value: Json = {"value": [shown(item) if shown else show(item, filters.members) for item in found]}
    return value if following is None else {**value, "@odata.nextLink": following}
