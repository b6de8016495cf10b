"""The page of what a role of the secrets engine gives its principals: each key, and each mistake as it was refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from cloudid_core.secrets_engine.grants import MOST
from cloudid_servers.provider_simulator.world.roles import AMBIGUOUS
from tests.engines import ROLE, SecretsEngine, configured_engine
from tests.installation import Reply

from .examples import answer_of, request_of
from .tables import table

MEMBERS: Final = {
    "azure_roles": {
        "role_name": ("this or `role_id`", "name of a role definition that can be assigned at the scope"),
        "role_id": ("this or `role_name`", "full id of a role definition; takes precedence"),
        "scope": (
            "yes",
            "the scope: `/subscriptions/ID`, a resource group or resource below it, "
            "`/providers/Microsoft.Management/managementGroups/NAME`, or `/`; a final slash is ignored",
        ),
    },
    "azure_groups": {
        "group_name": ("this or `object_id`", "display name of a group"),
        "object_id": ("this or `group_name`", "id of a group; takes precedence"),
    },
    "directory_roles": {
        "role_name": ("this or `role_id`", "name of a directory role"),
        "role_id": ("this or `role_name`", "id of the role definition; takes precedence"),
    },
    "app_roles": {
        "resource_name": ("this or `resource_id`", "display name of the API's service principal"),
        "resource_id": ("this or `resource_name`", "object id of the API's service principal; takes precedence"),
        "app_role_name": ("this or `app_role_id`", "value of an enabled app role for applications"),
        "app_role_id": ("this or `app_role_name`", "id of the app role; takes precedence"),
    },
}
"""The keys of each field's elements: whether they are needed, and what they mean."""

INTRODUCTION: Final = (
    "These are fields of [`POST cloud/roles/:name`](secrets-engine.md#post-cloudrolesname). Each is an "
    f"array of objects, or a JSON string of one, with at most {MOST} elements. Every value is a string. By "
    "default, they are empty and grant nothing. A role without `application_object_id` needs at least one of "
    "`azure_roles`, `directory_roles` and `app_roles`. Names and ids are looked up when the role is written, "
    "and both are returned when it is read. How to use them: "
)
BOUNDS: Final = (
    "The configuration of the mount limits what roles may grant: "
    "[`allowed_…`](secrets-engine.md#post-cloudconfig). Directory roles and app roles must be listed there."
)
ERRORS: Final = "The real responses of the service, which stores nothing in these cases. Elements are counted from 0."


def mistakes(engine: SecretsEngine) -> dict[str, dict[str, Any]]:
    """What may be wrong, and fields of a role with which it is."""
    [right] = engine.grants()
    group = {"object_id": engine.group(0)["id"]}
    return {
        "grants nothing": {"azure_roles": []},
        "not an array of objects": {"azure_roles": "Reader"},
        f"more than {MOST} elements": {"azure_roles": [right] * (MOST + 1)},
        "an unknown key": {"azure_roles": [{**right, "colour": "red"}]},
        "a value that is not a string": {"azure_roles": [{**right, "scope": 7}]},
        "neither name nor id": {"azure_roles": [{"scope": engine.scope}]},
        "no scope": {"azure_roles": [{"role_name": "Reader"}]},
        "an invalid scope": {"azure_roles": [{**right, "scope": "/subscriptions"}]},
        "an unknown role": {"azure_roles": [{**right, "role_name": "Raeder"}]},
        "a name that several roles have": {"azure_roles": engine.grants(AMBIGUOUS)},
        "a role twice at the same scope": {"azure_roles": [right, right]},
        "an unknown group": {"azure_roles": [right], "azure_groups": [{"group_name": "nobody"}]},
        "a group twice": {"azure_roles": [right], "azure_groups": [group, group]},
        "a directory role that is not allowed": {"directory_roles": [{"role_name": "Directory Readers"}]},
        "an app role that is not allowed": {"app_roles": engine.app_roles(0)},
    }


def page() -> Iterator[str]:
    engine = configured_engine()
    yield INTRODUCTION
    for name, keys in MEMBERS.items():
        yield f"## `{name}`"
        yield table(("key", "needed", "meaning"), ((f"`{key}`", *told) for key, told in keys.items()))
    yield BOUNDS
    yield "## An example"
    given = {"azure_roles": engine.grants(), "azure_groups": [{"group_name": engine.group(0)["display_name"]}]}
    yield _shown(request_of("POST", ROLE, given), engine.must("POST", ROLE, given))
    read = engine.must("GET", ROLE)
    read.body["data"] = {name: read.data[name] for name in given}
    yield _shown(request_of("GET", ROLE, None), read)
    yield "## Mistakes"
    yield ERRORS
    refusals = {what: engine.ask("POST", ROLE, fields) for what, fields in mistakes(engine).items()}
    yield table(("mistake", "status", "code", "error"), (_row(what, reply) for what, reply in refusals.items()))


def _row(what: str, reply: Reply) -> tuple[str, ...]:
    [code], [text] = reply.body["codes"], reply.body["errors"]
    return what, str(reply.status), f"[`{code}`](codes.md)", text


def _shown(request: str, reply: Reply) -> str:
    return f"```http\n{request}\n\n{answer_of(reply)}\n```"
