"""Routing: tables of routes, and how a path finds its row."""

from __future__ import annotations

from typing import Any

import pytest

from cloudid_core.errors import Code, Refused
from cloudid_core.forms import schemas
from cloudid_core.messages import response
from cloudid_core.messages.operations import METHODS, Operation
from cloudid_core.messages.response import NOTHING, Answer
from cloudid_core.routing.answers import KEYS
from cloudid_core.routing.routes import NOBODY, Call, Route, RouteTable, capture_name, name_as_written, route


async def _nothing(call: Call) -> Answer:
    return NOTHING


def _route(path: str, operation: Operation = Operation.READ) -> Route:
    return Route(path=path, operation=operation, program=_nothing, doc="")


TABLE = RouteTable(
    (
        _route("config"),
        _route("config", Operation.WRITE),
        _route("role", Operation.LIST),
        _route("role/special"),
        _route("role/:name"),
        _route("leases/lookup/*prefix", Operation.LIST),
        _route("mounts/:path/tune"),
        _route("auth/*path/tune"),
        _route("auth/*path"),
    )
)


@pytest.mark.parametrize(
    "path, operation, pattern, captures",
    [
        ("config", Operation.READ, "config", {}),
        ("config", Operation.WRITE, "config", {}),
        ("role", Operation.LIST, "role", {}),
        ("role/special", Operation.READ, "role/special", {}),
        ("role/web", Operation.READ, "role/:name", {"name": "web"}),
        ("leases/lookup/a/b/c", Operation.LIST, "leases/lookup/*prefix", {"prefix": "a/b/c"}),
        ("mounts/x/tune", Operation.READ, "mounts/:path/tune", {"path": "x"}),
        ("auth/a/b/tune", Operation.READ, "auth/*path/tune", {"path": "a/b"}),
        ("auth/a/b", Operation.READ, "auth/*path", {"path": "a/b"}),
        ("auth/tune", Operation.READ, "auth/*path", {"path": "tune"}),
    ],
)
def test_a_path_finds_its_row(path: str, operation: Operation, pattern: str, captures: dict[str, str]) -> None:
    """Fixed rows go before those that capture; a last capture takes all that is left."""
    found = TABLE.find(path, operation)
    assert not isinstance(found, Code)
    assert (found[0].path, dict(found[1])) == (pattern, captures)


@pytest.mark.parametrize(
    "path, operation, code",
    [
        ("nothing", Operation.READ, Code.UNSUPPORTED_PATH),
        ("", Operation.READ, Code.UNSUPPORTED_PATH),
        ("role/web/more", Operation.READ, Code.UNSUPPORTED_PATH),
        ("config", Operation.DELETE, Code.UNSUPPORTED_OPERATION),
        ("role/web", Operation.LIST, Code.UNSUPPORTED_OPERATION),
    ],
)
def test_a_path_that_is_not_found_has_a_code(path: str, operation: Operation, code: Code) -> None:
    """An unknown path has another code than an operation that a known path does not have."""
    assert TABLE.find(path, operation) is code


@pytest.mark.parametrize("operation", Operation)
def test_a_captured_name_is_checked_and_lowered(operation: Operation) -> None:
    """What cannot be a name is refused with a code of its own where it would be written; elsewhere it is nobody's."""

    def call_of(name: str) -> Any:
        return type("Captured", (), {"captures": {"name": name}, "operation": operation})()

    assert (capture_name(call_of("Web-1")), name_as_written(call_of("Web-1"))) == ("web-1", "Web-1")
    for captured in (capture_name, name_as_written):
        if operation is not Operation.WRITE:
            assert captured(call_of("-web")) == NOBODY
            continue
        with pytest.raises(Refused) as refused:
            captured(call_of("-web"))
        assert refused.value.code is Code.NAME_INVALID


def test_the_methods_of_all_operations_are_those_of_the_service() -> None:
    assert ", ".join(sorted({method for methods in METHODS.values() for method in methods})) == response.METHODS


def test_a_program_is_a_row_with_what_its_docstring_says_first() -> None:
    @route("look", Operation.WRITE, schemas.TEXTS, refusals=(Code.NOT_FOUND,), public=True)
    async def look(call: Call) -> Answer:
        """Looks
        around.

        For those who maintain it.
        """
        return NOTHING

    assert (look.path, look.operation, look.doc, look.public) == ("look", Operation.WRITE, "Looks around.", True)
    assert (look.answers.data, look.answers.refusals) == (schemas.TEXTS, (Code.NOT_FOUND,))
    assert route("look", Operation.WRITE, doc="Looks.")(look.program).doc == "Looks."
    assert route("look", Operation.LIST)(look.program).answers is KEYS
    assert route("look", Operation.WRITE, refusals=(Code.NOT_FOUND,))(look.program).answers.nothing
