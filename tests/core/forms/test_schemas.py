"""Schemas: what a value looks like."""

from __future__ import annotations

from typing import Any

from attrs import NOTHING, Factory
from jsonschema import Draft202012Validator

from cloudid_core.catalog import CATALOG
from cloudid_core.forms import fields_of, schemas


def is_valid(schema: Any, value: object) -> bool:
    return bool(Draft202012Validator(schema).is_valid(value))


def test_an_object_has_these_members_and_no_others() -> None:
    schema = dict(schemas.members({"b": schemas.INTEGER}, a=schemas.TEXT))
    assert is_valid(schema, {"a": ""})
    assert is_valid(schema, {"a": "", "b": 1})
    assert not any(is_valid(schema, value) for value in ({}, {"a": 1}, {"a": "", "c": 1}, None))
    written = schemas.members({"INTEGER": "c", "TIME": "d"}, TEXT="a b", e=schemas.NULL)
    assert written["required"] == ["a", "b", "e"]
    assert written["properties"] == {
        "a": schemas.TEXT,
        "b": schemas.TEXT,
        "c": schemas.INTEGER,
        "d": schemas.TIME,
        "e": schemas.NULL,
    }


def test_objects_are_joined_and_become_nullable() -> None:
    schema = schemas.joined(schemas.members(a=schemas.TEXT), optional={"b": schemas.BOOLEAN})
    assert is_valid(schemas.nullable(schema), None)
    assert is_valid(schema, {"a": "", "b": True})
    assert not is_valid(schema, {"b": True})


def test_the_default_of_each_field_looks_as_its_kind_says() -> None:
    for form in {route.form for component in CATALOG for route in component.routes.routes}:
        for field in fields_of(form):
            if not (field.default is NOTHING or isinstance(field.default, Factory)):  # type: ignore[arg-type]
                assert field.default is None or is_valid(dict(field.kind.schema), field.kind.show(field.default)), field
