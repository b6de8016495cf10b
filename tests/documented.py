"""Whether what is answered stands in the document of the interface."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final
from urllib.parse import parse_qs

import msgspec
from jsonschema import Draft202012Validator

from cloudid_core import Request, Response
from tests.installation import Installation

METHODS: Final = {"GET": "get", "LIST": "get", "POST": "post", "PUT": "post", "DELETE": "delete"}
NOT_ASKED: Final = ("help", "scan")
"""Parameters that ask for something else than what the route is for."""


@cache
def document() -> Any:
    """The document of a new service, for a token that may do everything."""
    return Installation().must("GET", "sys/internal/specs/openapi").body


@cache
def patterns() -> list[tuple[re.Pattern[str], str]]:
    """The paths of the document, those with the fewest parameters first."""
    paths = sorted(document()["paths"], key=lambda path: (path.count("{"), -len(path)))
    return [(re.compile(re.sub(r"\\{\w+\\}", ".+", re.escape(path))), path) for path in paths]


def operation_of(request: Request) -> tuple[str, str] | None:
    """Path and method of a request in the document; `None` if it is not there."""
    path, _, query = request.target.removeprefix("/v1").partition("?")
    asked = parse_qs(query)
    method = METHODS.get(request.method)
    if method is None or asked.keys() & set(NOT_ASKED):
        return None
    lists = request.method == "LIST" or asked.get("list", [""])[0].lower() in ("true", "1")
    path = path.rstrip("/")
    for pattern, found in patterns():
        item = document()["paths"][found]
        if method not in item or lists != _is_list(item[method]):
            continue
        if pattern.fullmatch(f"{path}/" if found.endswith("/") else path):
            return found, method
    return None


def _is_list(operation: Any) -> bool:
    return any(parameter.get("name") == "list" for parameter in operation.get("parameters", ()))


def resolved(part: Any) -> Any:
    """What a reference refers to."""
    if "$ref" not in part:
        return part
    found = document()
    for name in part["$ref"].removeprefix("#/").split("/"):
        found = found[name]
    return found


@cache
def _validator(path: str, method: str, status: str) -> Draft202012Validator:
    content = resolved(document()["paths"][path][method]["responses"][status])["content"]
    return Draft202012Validator({**content["application/json"]["schema"], "components": document()["components"]})


def check(request: Request, response: Response) -> None:
    """Fails unless the document has the status of a response, its members and the code of a refusal."""
    operation = operation_of(request)
    if operation is None or response.status == 500:
        return
    path, method = operation
    documented = document()["paths"][path][method]["responses"]
    status = str(response.status) if str(response.status) in documented else "default"
    assert status in documented, f"{method} {path} answered {response.status}, which is not documented"
    if not response.body:
        assert response.status in (202, 204), f"{method} {path} answered {response.status} without a body"
        return
    if response.headers["content-type"] != "application/json":
        return
    wrong = next(_validator(path, method, status).iter_errors(msgspec.json.decode(response.body)), None)
    assert wrong is None, f"{method} {path} answered {response.status}: {wrong.message} at {wrong.json_path}"
    if response.status >= 400 and "default" not in documented:
        assert response.headers.get("x-service-error-code"), f"{method} {path}: {response.status} without its code"
