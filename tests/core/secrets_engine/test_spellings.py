"""No spelling of a field of a role makes the service fail, or the provider refuse what the service sends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from cloudid_core.forms.fields import Field, fields_of
from cloudid_core.secrets_engine.roles import Role
from tests.engines import SecretsEngine, configured_engine

SPELLINGS: Final = (
    *(".", "..", "/", "//", "../..", "a/../b", "%2e%2e", "%", "#", "?", "&", "$", "*", ":", "[::1", "http://[", "\\"),
    *("'", "''", " ", "a b", "a\nb", "\x00", "\x1f", "\x7f", "\x85", "\u0130", "\u2028", "\u202e", "\ufeff"),
    *("\U0001f600", "x" * 2000, "x/.default"),
)
BESIDE: Final = {"role_id": "role_name", "resource_id": "resource_name"}
"""The name that an object does not have beside an id, so that the id is looked up."""


def values(field: Field, engine: SecretsEngine) -> Iterator[Any]:
    """Each spelling as the field, or as each member of an object that the field lists."""
    usual = {
        "scope": engine.scope,
        "role_name": "Reader",
        "resource_name": "Microsoft Graph",
        "app_role_name": "User.Read.All",
    }
    members = field.kind.schema.get("items", {}).get("properties", {})
    for spelling in SPELLINGS:
        if not members:
            yield spelling
            yield [spelling]
        for member in members:
            rest = {name: text for name, text in usual.items() if name in members and name != BESIDE.get(member)}
            yield [{**rest, member: spelling}]


@pytest.mark.parametrize("field", fields_of(Role), ids=lambda field: field.name)
def test_no_spelling_of_a_field_fails_by_the_service_or_the_provider(field: Field) -> None:
    engine = configured_engine()
    for number, value in enumerate(values(field, engine)):
        body = {"azure_roles": engine.grants(), "persist_app": True, field.name: value}
        reply = engine.ask("POST", f"cloud/roles/r{number}", body)
        assert reply.status < 500, (value, reply.body)
