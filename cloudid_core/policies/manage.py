"""Management of policies: read, write, delete and list them."""

from __future__ import annotations

from ..errors import Code, Refused
from ..foundation.context import Context
from ..store import keys
from ..values.names import name as valid_name
from .builtin import DEFAULT, ROOT, UNCHANGEABLE, UNDELETABLE
from .document import Policy, parse
from .store import load_policy


async def read_policy(context: Context, name: str) -> Policy | None:
    """The policy of a name; that of `root` has no text."""
    found = await load_policy(context, _named(name))
    return found[0] if found else None


async def write_policy(context: Context, name: str, text: str) -> tuple[str, ...]:
    """Keep a policy, which takes effect at once; warnings. Refused with `POLICY_INVALID` or `POLICY_PROTECTED`."""
    known_as = _named(name)
    if known_as in UNCHANGEABLE:
        raise Refused(Code.POLICY_PROTECTED)
    policy = parse(known_as, text)
    await context.records.update(keys.policy(known_as), Policy, lambda _: policy)
    return ("policy names are kept in lower case, without blanks around them",) if known_as != name else ()


async def delete_policy(context: Context, name: str) -> None:
    """Delete a policy; one that is not there needs nothing. `POLICY_PROTECTED` for those that always exist."""
    name = _named(name)
    if name in UNDELETABLE:
        raise Refused(Code.POLICY_PROTECTED, "cannot delete a built-in policy")
    await context.records.update(keys.policy(name), Policy, lambda _: None)


async def list_policies(context: Context) -> list[str]:
    """The names of all policies, `root` and `default` included, in order."""
    return sorted({ROOT, DEFAULT, *await context.records.names(keys.POLICIES)})


def _named(raw: str) -> str:
    """The name in lower case, before any comparison with a reserved one. Refused with `NAME_INVALID`."""
    try:
        return valid_name(raw.strip())
    except ValueError as error:
        raise Refused(Code.NAME_INVALID, str(error)) from None
