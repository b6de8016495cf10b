"""Responses: the envelope of answers, and refusals with their codes, as schemas."""

from __future__ import annotations

from typing import Any, Final

from ..errors import Code
from ..forms import Json, Schema, schemas
from ..messages import AuthBlock, WrapInfo
from ..routing import COPIED, Answers

EVERYWHERE: Final = frozenset({400, 408, 413, 414, 429, 431, 503, 504})
"""Statuses of refusals that every request may meet."""

PRIVATE: Final = frozenset({403})
"""Statuses of refusals that every request may meet which needs a token."""

REFUSALS: Final = tuple(sorted({code.status for code in Code} - {Code.INTERNAL_ERROR.status}))
"""All statuses of refusals but that of a bug."""

ERROR_CODE: Final = "X-Service-Error-Code"
JSON_OF: Final[dict[str, Schema]] = {
    "str": schemas.TEXT,
    "int": schemas.INTEGER,
    "bool": schemas.BOOLEAN,
    "tuple[str, ...]": schemas.LIST,
    "Mapping[str, str] | None": schemas.nullable(schemas.TEXTS),
    "None": schemas.NULL,
}
"""By the annotation of a member of an answer what it is in JSON."""


def _members_of(block: type) -> Schema:
    return schemas.members(**{name: JSON_OF[annotation] for name, annotation in block.__annotations__.items()})


WRAP_TTL: Final[Json] = {
    "name": "X-Vault-Wrap-TTL",
    "in": "header",
    "description": "For how long the answer is kept under a token, which is answered in its place.",
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
    """A response with a body."""
    return {"description": about, "content": {"application/json": {"schema": schema}}}


def envelope(answers: Answers, data: Schema | None) -> Schema:
    """The envelope of an answer. `data` is null in an answer that only has warnings, and in one that is wrapped."""
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
    """A response that refuses: in its header the first code, in its body all."""
    codes = [code.wire for code in Code if code.status == status]
    headers: Json = {ERROR_CODE: {"required": True, "schema": {"type": "string"}}}
    if status in (429, 503):
        headers["Retry-After"] = {"description": "Seconds until the next try.", "schema": {"type": "integer"}}
    if status == 405:
        headers["Allow"] = {"required": True, "schema": {"type": "string"}}
    about = "Refused: " + ", ".join(codes) + "."
    return {**answer(about, NOT_HERE if status == 404 else REFUSED), "headers": headers}
