"""The routes of policies: `sys/policies/acl`, and the older `sys/policy`."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from ..errors import Code, Refused
from ..forms import TEXT, schemas, setting
from ..messages import NOTHING, Answer, Operation
from ..policies import DEFAULT, ROOT, UNCHANGEABLE, UNDELETABLE, Policy, load_policy, parse
from ..routing import COPIED, Answers, Call, Route, captured
from ..store import keys
from ..values import policy_name


@frozen(kw_only=True)
class PolicyForm:
    """A write of a policy."""

    policy: str = setting(TEXT, "", "The document, HCL or JSON.")


@frozen(kw_only=True)
class OldPolicyForm:
    """A write of a policy, as the older routes take it."""

    policy: str = setting(TEXT, "", "The document, HCL or JSON.", old_name="rules")


async def list_policies(call: Call) -> Answer:
    return Answer(data={"keys": await _names(call)})


async def list_policies_as_before(call: Call) -> Answer:
    names = await _names(call)
    return Answer(data={"keys": names, "policies": names}, copy_up=True)


async def read_policy(call: Call) -> Answer:
    policy = await _policy(call)
    return Answer(data={"name": policy.name, "policy": policy.text})


async def read_policy_as_before(call: Call) -> Answer:
    policy = await _policy(call)
    return Answer(data={"name": policy.name, "rules": policy.text}, copy_up=True)


async def write_policy(call: Call) -> Answer:
    """Store a policy, which takes effect at once. An empty document grants nothing, but it must be given."""
    if "policy" not in call.given:
        raise Refused(Code.FIELD_REQUIRED, '"policy"')
    name = _name(call)
    if name in UNCHANGEABLE:
        raise Refused(Code.POLICY_PROTECTED)
    policy = parse(name, call.given["policy"])
    await call.context.records.update(keys.policy(name), Policy, lambda _: policy)
    if name == call.captures["name"]:
        return NOTHING
    return Answer(warnings=("policy names are stored in lower case",))


async def delete_policy(call: Call) -> Answer:
    """Delete a policy. Does nothing if there is none."""
    name = _name(call)
    if name in UNDELETABLE:
        raise Refused(Code.POLICY_PROTECTED, "cannot delete a built-in policy")
    await call.context.records.update(keys.policy(name), Policy, lambda _: None)
    return NOTHING


async def _names(call: Call) -> list[str]:
    """The names of all policies in order, `root` and `default` included."""
    return sorted({ROOT, DEFAULT, *await call.context.records.names(keys.POLICIES)})


async def _policy(call: Call) -> Policy:
    found = await load_policy(call.context, _name(call))
    if found is None:
        raise Refused(Code.NOT_FOUND)
    return found[0]


def _name(call: Call) -> str:
    """The captured name in lower case, before it is compared with a reserved one.

    Nothing else of it is changed: the policies of the caller were asked about the path as it is.
    """
    return captured(call, "name", policy_name)


ROUTES: Final = (
    Route("policies/acl", Operation.LIST, list_policies, "Lists the names of all policies."),
    Route(
        "policies/acl/*name",
        Operation.READ,
        read_policy,
        "Reads a policy.",
        answers=Answers(data=schemas.members(TEXT="name policy")),
    ),
    Route(
        "policies/acl/*name",
        Operation.WRITE,
        write_policy,
        "Writes a policy; it takes effect at once.",
        form=PolicyForm,
    ),
    Route("policies/acl/*name", Operation.DELETE, delete_policy, "Removes a policy."),
    *(
        Route(
            "policy",
            operation,
            list_policies_as_before,
            "Lists the names of all policies.",
            answers=Answers(data=schemas.members(LIST="keys policies"), shape=COPIED),
        )
        for operation in (Operation.READ, Operation.LIST)
    ),
    Route(
        "policy/*name",
        Operation.READ,
        read_policy_as_before,
        "Reads a policy; its document is called `rules` here.",
        answers=Answers(data=schemas.members(TEXT="name rules"), shape=COPIED),
    ),
    Route(
        "policy/*name", Operation.WRITE, write_policy, "Writes a policy; it takes effect at once.", form=OldPolicyForm
    ),
    Route("policy/*name", Operation.DELETE, delete_policy, "Removes a policy."),
)
