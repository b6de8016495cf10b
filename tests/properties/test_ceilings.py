"""Nothing outside a ceiling is ever handed out, whatever is changed in which order: held against an oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.store import keys
from tests.engines import CONFIG, CREDS, EVERYTHING, SecretsEngine, configured_engine
from tests.sampling import examples

SCOPES = ("{s}", "{s}/resourceGroups/machines", "{o}", "/")
ROLES = ("Reader", "Contributor", "Owner")
GROUPS = (0, 1)
DIRECTORY_ROLES = ("Directory Readers", "Application Administrator")
APP_ROLES = (0, 1)
APPLICATIONS = (0, 1)

Lists = dict[str, list[Any] | None]


def few(values: tuple[Any, ...]) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.sampled_from(values), max_size=2, unique=True)


def some(values: tuple[Any, ...]) -> st.SearchStrategy[list[Any] | None]:
    return st.none() | few(values)


CEILINGS: st.SearchStrategy[Lists] = st.fixed_dictionaries(
    {
        "allowed_scopes": some(SCOPES),
        "allowed_role_definitions": some(ROLES),
        "allowed_group_ids": some(GROUPS),
        "allowed_application_ids": some((1,)),
        "allowed_directory_roles": few(DIRECTORY_ROLES),
        "allowed_app_roles": few(APP_ROLES),
    }
)
WISHES = st.fixed_dictionaries(
    {
        "role": st.sampled_from(ROLES),
        "scope": st.sampled_from(SCOPES),
        "groups": few(GROUPS),
        "directory_roles": few(DIRECTORY_ROLES),
        "app_roles": few(APP_ROLES),
        "is_existing": st.booleans(),
        "persist_app": st.booleans(),
    }
)
STEPS = st.lists(
    st.tuples(st.just("ceiling"), CEILINGS)
    | st.tuples(st.just("role"), WISHES)
    | st.tuples(st.just("issue"), st.none()),
    min_size=3,
    max_size=8,
)


def place(engine: SecretsEngine, scope: str) -> str:
    return scope.format(s=engine.scope, o=engine.other_scope)


def limits(engine: SecretsEngine, lists: Lists) -> dict[str, Any]:
    spelt: dict[str, Callable[[Any], object]] = {
        "allowed_scopes": lambda each: place(engine, each),
        "allowed_role_definitions": lambda each: each,
        "allowed_group_ids": lambda each: engine.group(each)["id"],
        "allowed_application_ids": lambda each: engine.scene["applications"][each]["object_id"],
        "allowed_directory_roles": lambda each: each,
        "allowed_app_roles": lambda each: engine.app_roles(each)[0],
    }
    return {name: None if each is None else [spelt[name](one) for one in each] for name, each in lists.items()}


def wish(engine: SecretsEngine, wished: dict[str, Any]) -> dict[str, Any]:
    if wished["is_existing"]:
        existing = engine.other_application["object_id"]
        return {"application_object_id": existing, "azure_roles": [], "azure_groups": [], "persist_app": False}
    return {
        "application_object_id": "",
        "azure_roles": engine.grants(wished["role"], scope=place(engine, wished["scope"])),
        "azure_groups": engine.groups(*wished["groups"]),
        "directory_roles": [{"role_name": name} for name in wished["directory_roles"]],
        "app_roles": engine.app_roles(*wished["app_roles"]),
        "persist_app": wished["persist_app"],
    }


def is_allowed(lists: Lists, wished: dict[str, Any]) -> bool:
    """An oracle without segments, ids or folding: it enumerates which of these few scopes lie in which."""
    below = {"{s}": {"{s}", "{s}/resourceGroups/machines"}}

    def among(name: str, value: object) -> bool:
        allowed = lists[name]
        return allowed is None or value in allowed

    if wished["is_existing"]:
        return among("allowed_application_ids", 1)
    scopes = lists["allowed_scopes"]
    return (
        (scopes is None or any(wished["scope"] in below.get(each, {each}) for each in scopes))
        and among("allowed_role_definitions", wished["role"])
        and all(among("allowed_group_ids", group) for group in wished["groups"])
        and all(among("allowed_directory_roles", one) for one in wished["directory_roles"])
        and all(among("allowed_app_roles", one) for one in wished["app_roles"])
    )


@given(STEPS)
@examples(4)
def test_nothing_outside_the_ceiling_is_ever_handed_out(steps: list[tuple[str, Any]]) -> None:
    engine = configured_engine()
    ceiling: Lists = {**EVERYTHING, "allowed_directory_roles": [], "allowed_app_roles": []}
    role: dict[str, Any] | None = None
    for step, given_ in steps:
        if step == "ceiling":
            ceiling = given_
            engine.must("POST", CONFIG, limits(engine, ceiling))
        elif step == "role":
            reply = engine.write_role(**wish(engine, given_))
            assert (reply.status == 403) == (not is_allowed(ceiling, given_)), reply.body
            if reply.status == 204:
                role = given_
        elif role is not None:
            reply = engine.ask("GET", CREDS)
            assert reply.status == (200 if is_allowed(ceiling, role) else 403), reply.body
    engine.must("PUT", "sys/leases/revoke-prefix/cloud", {"sync": False})
    engine.converge()
    assert not engine.keys(keys.LEASES)
