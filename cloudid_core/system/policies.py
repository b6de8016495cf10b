"""The routes of policies, in their two generations."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from ..api.fields import TEXT, setting
from ..api.response import NOTHING, Answer
from ..api.routing import Call, Operation, Route
from ..errors import Code, Refused
from ..policies import manage
from ..policies.document import Policy


@frozen(kw_only=True)
class PolicyForm:
    """A write of a policy."""

    policy: str = setting(TEXT, "", "The document, HCL or JSON.")


@frozen(kw_only=True)
class OldPolicyForm:
    """A write of a policy, as the older routes take it."""

    policy: str = setting(TEXT, "", "The document, HCL or JSON.", old_name="rules")


async def list_policies(call: Call) -> Answer:
    return Answer(data={"keys": await manage.list_policies(call.context)})


async def list_policies_as_before(call: Call) -> Answer:
    names = await manage.list_policies(call.context)
    return Answer(data={"keys": names, "policies": names}, copy_up=True)


async def read_policy(call: Call) -> Answer:
    policy = await _policy(call)
    return Answer(data={"name": policy.name, "policy": policy.text})


async def read_policy_as_before(call: Call) -> Answer:
    policy = await _policy(call)
    return Answer(data={"name": policy.name, "rules": policy.text}, copy_up=True)


async def write_policy(call: Call) -> Answer:
    """Keep a policy; an empty document is one that grants nothing, but it must be given."""
    if "policy" not in call.given:
        raise Refused(Code.FIELD_REQUIRED, '"policy"')
    return Answer(warnings=await manage.write_policy(call.context, call.captures["name"], call.given["policy"]))


async def delete_policy(call: Call) -> Answer:
    await manage.delete_policy(call.context, call.captures["name"])
    return NOTHING


async def _policy(call: Call) -> Policy:
    policy = await manage.read_policy(call.context, call.captures["name"])
    if policy is None:
        raise Refused(Code.NOT_FOUND)
    return policy


ROUTES: Final = (
    Route(
        path="policies/acl",
        operation=Operation.LIST,
        program=list_policies,
        doc="Lists the names of all policies.",
    ),
    Route(path="policies/acl/:name", operation=Operation.READ, program=read_policy, doc="Reads a policy."),
    Route(
        path="policies/acl/:name",
        operation=Operation.WRITE,
        program=write_policy,
        form=PolicyForm,
        doc="Writes a policy; it takes effect at once.",
    ),
    Route(path="policies/acl/:name", operation=Operation.DELETE, program=delete_policy, doc="Removes a policy."),
    *(
        Route(
            path="policy", operation=operation, program=list_policies_as_before, doc="Lists the names of all policies."
        )
        for operation in (Operation.READ, Operation.LIST)
    ),
    Route(
        path="policy/:name",
        operation=Operation.READ,
        program=read_policy_as_before,
        doc="Reads a policy; its document is called `rules` here.",
    ),
    Route(
        path="policy/:name",
        operation=Operation.WRITE,
        program=write_policy,
        form=OldPolicyForm,
        doc="Writes a policy; it takes effect at once.",
    ),
    Route(path="policy/:name", operation=Operation.DELETE, program=delete_policy, doc="Removes a policy."),
)
