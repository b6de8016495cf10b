"""Operations and responses: a route in OpenAPI, with its parameters, its body, and all its responses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from attrs import NOTHING, Factory

from ..errors import Code
from ..forms import Field, Json, Schema, fields_of, schemas
from ..messages import AuthBlock, Operation, WrapInfo
from ..routing import CHOSEN, COPIED, PLAIN, Answers, Component, PageForm, Route, RouteTable
from ..values import Secret

METHODS: Final = {Operation.READ: "get", Operation.LIST: "get", Operation.WRITE: "post", Operation.DELETE: "delete"}
LIST: Final[Json] = {
    "name": "list",
    "in": "query",
    "required": True,
    "description": "Returns the list.",
    "schema": {"type": "string", "enum": ["true"]},
}
SEGMENT: Final = "^[!-.0-~]+$"
"""Printable ASCII without a slash, which is enough for all names."""

_CAPTURE: Final = re.compile(r"[:*]([a-z_]+)")


def shown_path(route: Route, table: RouteTable) -> str:
    """Return the path of a route with its parameters.

    The path of a list ends with a slash if the same path can also be read.
    """
    path = _CAPTURE.sub(r"{\1}", route.path)
    is_second = route.operation is Operation.LIST and any(
        other.path == route.path and other.operation is Operation.READ for other in table.routes
    )
    return f"{path}/" if is_second else path


def parameters_in(path: str) -> list[Json]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {**schemas.TEXT, "pattern": SEGMENT}}
        for name in re.findall(r"{([a-z_]+)}", path)
    ]


def operation_of(component: Component, route: Route, *, has_mount: bool) -> tuple[str, dict[str, Json]]:
    """Return the method of a route and its operation. `has_mount`: the path is that of an existing mount."""
    operation: dict[str, Json] = {"summary": route.doc, "tags": [component.type]}
    if route.public:
        operation["security"] = [{}, {"token": []}, {"bearer": []}]
    if parameters := list(_parameters(route)):
        operation["parameters"] = parameters
    if route.operation is Operation.WRITE:
        body = schemas.each(schemas.ANY) if route.takes_anything else body_schema(route)
        operation["requestBody"] = {"content": {"application/json": {"schema": body}}}
        if route.requires_all:
            operation["requestBody"]["required"] = True
    operation["responses"] = dict(_responses(route, has_mount))
    return METHODS[route.operation], operation


def _parameters(route: Route) -> Iterator[Json]:
    if route.operation is Operation.LIST:
        yield LIST
    if route.operation is not Operation.WRITE:
        forms = {PageForm, route.form} if route.operation is Operation.LIST else {route.form}
        for field in (field for form in forms for field in fields_of(form)):
            yield {"name": field.name, "in": "query", "schema": _written(field), "description": field.doc}
    if route.answers.shape not in (PLAIN, CHOSEN):
        yield {"$ref": "#/components/parameters/WrapTTL"}


def body_schema(route: Route) -> Schema:
    """Return the fields of a route's form. A deprecated spelling is marked as deprecated."""
    properties: dict[str, Any] = {}
    for field in fields_of(route.form):
        properties[field.name] = {**_written(field), "description": field.doc}
        if field.old_name:
            properties[field.old_name] = {**field.kind.written, "deprecated": True}
    required = [field.name for field in fields_of(route.form) if field.required and not field.old_name]
    return {"type": "object", "properties": properties} | ({"required": required} if route.requires_all else {})


def _written(field: Field) -> dict[str, Any]:
    """Return the values that a field accepts, with its default."""
    schema, default = dict(field.kind.written), field.default
    if not (field.required or default is NOTHING or isinstance(default, (Factory, Secret))):  # type: ignore[arg-type]
        schema["default"] = field.kind.show(default)
    return schema


def _responses(route: Route, has_mount: bool) -> Iterator[tuple[str, Json]]:
    """Return the responses of a route by status."""
    answers = route.answers
    if answers.shape == CHOSEN and answers.data is not None:
        yield "default", answer("The status that the request chose.", {"anyOf": [answers.data, REFUSED]})
        return
    if answers.data is not None and answers.shape == PLAIN:
        yield "200", answer("The requested data.", answers.data)
    elif answers.data is not None or answers.token or answers.lease or answers.nothing or answers.accepted is None:
        yield "200", answer("The requested data, or warnings.", envelope(answers, answers.data))
    if answers.nothing:
        yield "204", {"description": "Done. There is no body."}
    if answers.accepted is not None:
        about = "Accepted: the rest is done in the background. There is no body if the request did not wait."
        yield "202", answer(about, envelope(answers, answers.accepted))
    statuses = {*EVERYWHERE, *(code.status for code in answers.refusals)}
    if not route.public:
        statuses |= PRIVATE
    if route.operation is Operation.LIST:
        statuses.add(404)
    if not has_mount or re.search(r"[:*]", route.path):
        statuses |= {404, 405}
    for status in sorted(statuses):
        yield str(status), {"$ref": f"#/components/responses/Refused{status}"}


EVERYWHERE: Final = frozenset({400, 408, 413, 414, 429, 431, 503, 504})
"""Statuses of refusals that every request may get."""

PRIVATE: Final = frozenset({403})
"""Statuses of refusals that every request with a token may get."""

REFUSALS: Final = tuple(sorted({code.status for code in Code} - {Code.INTERNAL_ERROR.status}))
"""All statuses of refusals except for bugs."""

ERROR_CODE: Final = "X-Service-Error-Code"
JSON_OF: Final[dict[str, Schema]] = {
    "str": schemas.TEXT,
    "int": schemas.INTEGER,
    "bool": schemas.BOOLEAN,
    "tuple[str, ...]": schemas.LIST,
    "Mapping[str, str] | None": schemas.nullable(schemas.TEXTS),
    "None": schemas.NULL,
}
"""The JSON type of a member of an answer, by its annotation."""


def _members_of(block: type) -> Schema:
    return schemas.members(**{name: JSON_OF[annotation] for name, annotation in block.__annotations__.items()})


WRAP_TTL: Final[Json] = {
    "name": "X-Vault-Wrap-TTL",
    "in": "header",
    "description": "Wrap the response for this long: return a single-use token for it instead.",
    "schema": {"type": "string", "pattern": "^[0-9]{1,5}[sm]?$"},
}
REFUSED: Final[Schema] = {"$ref": "#/components/schemas/Refusal"}
NOT_HERE: Final = schemas.members(LIST="errors")
"""The body of a 404, which has no codes."""

SCHEMAS: Final[dict[str, Schema]] = {
    "Auth": _members_of(AuthBlock),
    "WrapInfo": _members_of(WrapInfo),
    "Refusal": schemas.members(
        LIST="errors", codes={"type": "array", "minItems": 1, "items": {"enum": [code.wire for code in Code]}}
    ),
    "Warnings": schemas.nullable(schemas.LIST),
    "MaybeWrapInfo": {"anyOf": [{"$ref": "#/components/schemas/WrapInfo"}, schemas.NULL]},
    "MaybeAuth": {"anyOf": [{"$ref": "#/components/schemas/Auth"}, schemas.NULL]},
}


def answer(about: str, schema: Schema) -> Json:
    """Return a response with a body."""
    return {"description": about, "content": {"application/json": {"schema": schema}}}


def envelope(answers: Answers, data: Schema | None) -> Schema:
    """Return the envelope of an answer. `data` is null in an answer that only has warnings, and in a wrapped one."""
    maybe = schemas.NULL if data is None or data == schemas.NULL else {"anyOf": [data, schemas.NULL]}
    parts: dict[str, Any] = {
        "request_id": schemas.TEXT,
        "lease_id": schemas.TEXT,
        "renewable": schemas.BOOLEAN,
        "lease_duration": schemas.INTEGER,
        "data": maybe,
        "wrap_info": {"$ref": "#/components/schemas/MaybeWrapInfo"},
        "warnings": {"$ref": "#/components/schemas/Warnings"},
        "auth": {"$ref": "#/components/schemas/MaybeAuth"} if answers.token else schemas.NULL,
        "mount_type": schemas.TEXT,
    }
    members = schemas.members(**parts)
    if answers.shape != COPIED or data is None:
        return members
    others = data["additionalProperties"]
    return {**members, "properties": {**data.get("properties", {}), **parts}, "additionalProperties": others}


def refusal(status: int) -> Json:
    """Return a refusal, with its first code in a header and all codes in its body."""
    codes = [code.wire for code in Code if code.status == status]
    headers: Json = {ERROR_CODE: {"required": True, "schema": {"type": "string"}}}
    if status in (429, 503):
        headers["Retry-After"] = {
            "description": "Seconds until the request can be retried.",
            "schema": {"type": "integer"},
        }
    if status == 405:
        headers["Allow"] = {"required": True, "schema": {"type": "string"}}
    about = "Refused: " + ", ".join(codes) + "."
    return {**answer(about, NOT_HERE if status == 404 else REFUSED), "headers": headers}
