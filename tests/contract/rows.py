"""The rows of the interface's contract, and which tests prove each: `python -m tests.contract.rows` prints the table.

A test names the rows whose behaviour it executes: `@pytest.mark.contract("auth config: tenant_id")`. A test that only
writes a field and reads it back names its rows with `@pytest.mark.read_back(...)`: that proves no behaviour. A row
whose behaviour no test executes, and a test that names a row that is not here, fail the suite.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).parent.parent
EXECUTED: Final = "contract"
READ_BACK: Final = "read_back"

ROWS: Final[Mapping[str, tuple[str, ...]]] = {
    "convention": (
        "paths begin with /v1",
        "bodies are JSON",
        "payload in data, that of a login in auth",
        "durations",
    ),
    "auth config": (
        "tenant_id",
        "resource",
        "environment",
        "client_id",
        "client_secret",
        "identity_token_audience",
        "identity_token_ttl",
        "max_retries",
        "max_retry_delay",
        "retry_delay",
        "rotation_period",
        "rotation_schedule",
        "rotation_window",
        "disable_automated_rotation",
        "period or schedule, not both",
        "rotation_window without rotation_period",
        "read returns client_secret",
        "environment variables",
    ),
    "auth role": (
        "name",
        "bound_service_principal_ids",
        "bound_group_ids",
        "bound_locations",
        "bound_subscription_ids",
        "bound_resource_groups",
        "bound_scale_sets",
        "bound_identity_ids",
        "bound_vm_ids",
        "token_ttl",
        "token_max_ttl",
        "token_policies",
        "policies",
        "token_bound_cidrs",
        "token_explicit_max_ttl",
        "token_no_default_policy",
        "token_num_uses",
        "token_period",
        "token_type",
        "token_type of the mount",
        "token_type of roles of the token store",
        "max_ttl",
        "max_jwt_exp",
    ),
    "login": (
        "role",
        "jwt",
        "subscription_id",
        "resource_group_name",
        "vm_name",
        "vmss_name",
        "resource_id",
        "vm_name and resource_id are ignored beside vmss_name, resource_id beside vm_name",
        "response",
        "signature, then constraints",
    ),
    "engine config": (
        "subscription_id",
        "tenant_id",
        "client_id",
        "client_secret",
        "identity_token_audience",
        "identity_token_ttl",
        "environment",
        "root_password_ttl",
        "rotation fields",
        "environment variables override",
        "read",
    ),
    "engine role": (
        "azure_roles",
        "azure_roles by role_name or role_id",
        "azure_groups",
        "application_object_id",
        "persist_app",
        "ttl",
        "max_ttl",
        "explicit_max_ttl",
        "permanently_delete",
        "sign_in_audience",
        "tags",
        "application_object_id, azure_roles, directory_roles or app_roles",
        "references must exist",
    ),
    "endpoint": (
        "POST auth/cloud/config",
        "GET auth/cloud/config",
        "DELETE auth/cloud/config",
        "POST auth/cloud/rotate-root",
        "POST auth/cloud/role/:name",
        "GET auth/cloud/role/:name",
        "LIST auth/cloud/role",
        "DELETE auth/cloud/role/:name",
        "POST auth/cloud/login",
        "POST cloud/config",
        "GET cloud/config",
        "DELETE cloud/config",
        "POST cloud/rotate-root",
        "POST cloud/roles/:name",
        "LIST cloud/roles",
        "DELETE cloud/roles/:name",
        "GET cloud/creds/:name",
        "any other mount path",
    ),
    "authentication": (
        "token header",
        "login needs no token",
        "audience is the resource",
        "client secret or identity token",
        "policies decide",
        "logins need a credential that may read compute resources",
        "the engine needs a credential that may read roles and write service principals",
    ),
    "error": (
        "deleting an unknown role of the engine is 404",
        "provider operations are retried",
        "a new root secret may be refused for a while",
    ),
    "limit": (
        "rotation_period",
        "rotation_window",
        "rotation_window is unbounded by default",
        "identity_token_ttl",
        "max_retries",
        "retry_delay",
        "max_retry_delay",
        "root_password_ttl",
        "explicit_max_ttl",
        "token_num_uses",
    ),
}
"""Areas and rows, in the words of the interface."""


def names() -> list[str]:
    """Every row as tests name it."""
    return [f"{area}: {row}" for area, rows in ROWS.items() for row in rows]


@cache
def proofs(mark: str) -> Mapping[str, list[str]]:
    """For each row that a test names with a mark, the tests."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for row in _named(function, mark):
                    found[row].append(f"{path.relative_to(TESTS.parent)}::{function.name}")
    return found


def _named(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> Iterator[str]:
    for mark in function.decorator_list:
        if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Attribute) and mark.func.attr == name:
            yield from (argument.value for argument in mark.args if isinstance(argument, ast.Constant))  # type: ignore[misc]


def page() -> str:
    """The table, in Markdown."""
    lines = [
        "# The contract, row by row",
        "",
        "Printed by `python -m tests.contract.rows` from the tests that name each row; a test keeps it true. The tests",
        "in the second column execute what the row says; those in the third only write a field and read it back.",
    ]
    for area, rows in ROWS.items():
        lines += ["", f"## {area}", "", "| row | executed by | read back by |", "| --- | --- | --- |"]
        for row in rows:
            columns = [row, *(_cell(f"{area}: {row}", mark) for mark in (EXECUTED, READ_BACK))]
            lines.append("| " + " | ".join(columns) + " |")
    return "\n".join(lines) + "\n"


def _cell(name: str, mark: str) -> str:
    return "<br>".join(f"`{test}`" for test in proofs(mark).get(name, ()))


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201  # that is what it is for
