"""The routes of policies: `sys/policies/acl`, and the older `sys/policy`."""

from __future__ import annotations

from typing import Final

from attrs import evolve, frozen

from ..errors import Code, Refused
from ..forms import TEXT, schemas, setting
from ..messages import DELETE, LIST, NOTHING, READ, WRITE, Answer
from ..policies import DEFAULT, ROOT, UNCHANGEABLE, UNDELETABLE, Policy, load_policy, parse
from ..routing import COPIED, Call, captured, route
from ..store import keys
from ..values import policy_name


@frozen(kw_only=True)
class PolicyForm:
    policy: str = setting(TEXT, "", "The policy, in HCL or JSON.")


@frozen(kw_only=True)
class OldPolicyForm:
    """A write of a policy through the older routes."""

    policy: str = setting(TEXT, "", "The policy, in HCL or JSON.", old_name="rules")


@route("policies/acl", LIST)
async def list_policies(call: Call) -> Answer:
    """Lists the names of all policies."""
    return Answer(data={"keys": await _names(call)})


@route("policy", READ, schemas.members(LIST="keys policies"), shape=COPIED)
async def list_policies_as_before(call: Call) -> Answer:
    """Lists the names of all policies."""
    names = await _names(call)
    return Answer(data={"keys": names, "policies": names}, copy_up=True)


@route("policies/acl/*name", READ, schemas.members(TEXT="name policy"))
async def read_policy(call: Call) -> Answer:
    """Reads a policy."""
    policy = await _policy(call)
    return Answer(data={"name": policy.name, "policy": policy.text})


@route("policy/*name", READ, schemas.members(TEXT="name rules"), shape=COPIED)
async def read_policy_as_before(call: Call) -> Answer:
    """Reads a policy. Its text is called `rules` here."""
    policy = await _policy(call)
    return Answer(data={"name": policy.name, "rules": policy.text}, copy_up=True)


@route("policies/acl/*name", WRITE, form=PolicyForm)
async def write_policy(call: Call) -> Answer:
    """Writes a policy, which takes effect immediately.

    An empty text grants nothing, but it must be given.
    """
    if "policy" not in call.given:
        raise Refused(Code.FIELD_REQUIRED, '"policy"')
    name = _name(call)
    if name in UNCHANGEABLE:
        raise Refused(Code.POLICY_PROTECTED)
    policy = parse(name, call.given["policy"])
    await call.context.records.update(keys.policy(name), Policy, lambda _: policy)
    if name == call.captures["name"]:
        return NOTHING
    return Answer(warnings=("policy names are converted to lowercase",))


@route("policies/acl/*name", DELETE)
async def delete_policy(call: Call) -> Answer:
    """Deletes a policy."""
    name = _name(call)
    if name in UNDELETABLE:
        raise Refused(Code.POLICY_PROTECTED, "cannot delete a built-in policy")
    await call.context.records.update(keys.policy(name), Policy, lambda _: None)
    return NOTHING


async def _names(call: Call) -> list[str]:
    """Return the sorted names of all policies, including `root` and `default`."""
    return sorted({ROOT, DEFAULT, *await call.context.records.names(keys.POLICIES)})


async def _policy(call: Call) -> Policy:
    found = await load_policy(call.context, _name(call))
    if found is None:
        raise Refused(Code.NOT_FOUND)
    return found[0]


def _name(call: Call) -> str:
    """Return the captured name in lower case, before it is compared with reserved names.

    Nothing else is changed, because the caller's policies were checked for the path as it is.
    """
    return captured(call, "name", policy_name)


ROUTES: Final = (
    list_policies,
    read_policy,
    write_policy,
    delete_policy,
    list_policies_as_before,
    evolve(list_policies_as_before, operation=LIST),
    read_policy_as_before,
    evolve(write_policy, path="policy/*name", form=OldPolicyForm),
    evolve(delete_policy, path="policy/*name"),
)
