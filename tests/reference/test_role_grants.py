"""The page of what a role gives has every key that the fields take."""

from __future__ import annotations

from typing import Any

import pytest

from cloudid_core.forms import fields_of
from cloudid_core.secrets_engine.roles import Role

from .role_grants import MEMBERS

SCHEMAS: dict[str, Any] = {field.name: field.kind.schema for field in fields_of(Role)}


@pytest.mark.parametrize("field", MEMBERS)
def test_the_page_has_every_key(field: str) -> None:
    assert set(MEMBERS[field]) == set(SCHEMAS[field]["items"]["properties"])
