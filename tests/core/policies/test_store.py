"""The ACL of a token: from stored policies as they are now, compiled once for each set of versions."""

from __future__ import annotations

import pytest

from cloudid_core.caches import LONGEST_POLICIES
from cloudid_core.context.context import Context
from cloudid_core.errors import Code, Refused
from cloudid_core.policies.document import LONGEST, Policy, parse
from cloudid_core.policies.store import LONGEST_TOGETHER, load_acl
from cloudid_core.store import keys
from cloudid_core.testing.world import World

from ..contexts import new_context

READ_A = '{"path": {"a": {"capabilities": ["read"]}}}'
READ_B = '{"path": {"b": {"capabilities": ["read"]}}}'


async def write_policy(context: Context, name: str, text: str) -> None:
    await context.records.update(keys.policy(name), Policy, lambda _: parse(name, text))


def test_policies_of_a_token_come_together() -> None:
    world, context = World(), new_context()
    world.perform(write_policy(context, "one", READ_A))
    world.perform(write_policy(context, "two", READ_B))
    acl = world.perform(load_acl(context, ("two", " ONE ")))
    assert [path for path in "abc" if acl.allows("read", path)] == ["a", "b"]


def test_a_policy_that_does_not_exist_grants_nothing() -> None:
    acl = World().perform(load_acl(new_context(), ("gone", "a/b", "")))
    assert acl.capabilities("a") == {"deny"}


def test_the_default_policy_holds_until_it_is_written() -> None:
    world, context = World(), new_context()
    before = world.perform(load_acl(context, ("default",)))
    world.perform(write_policy(context, "default", READ_A))
    after = world.perform(load_acl(context, ("default",)))
    own = "auth/token/lookup-self"
    assert [path for path in ("a", own) if before.allows("read", path)] == [own]
    assert [path for path in ("a", own) if after.allows("read", path)] == ["a"]


@pytest.mark.parametrize("name", ["root", "Root", " ROOT\t"])
def test_root_in_any_spelling_is_root(name: str) -> None:
    """A name is normalised before it is compared: no spelling slips past a check and still means root."""
    world, context = World(), new_context()
    assert world.perform(load_acl(context, ("default", name))).is_root
    assert not world.perform(load_acl(context, ("roots", "root-"))).is_root


def test_the_same_versions_share_one_acl_and_a_change_makes_another() -> None:
    world, context = World(), new_context()
    world.perform(write_policy(context, "one", READ_A))
    first = world.perform(load_acl(context, ("one", "default")))
    assert world.perform(load_acl(context, ("one", "default"))) is first
    world.perform(write_policy(context, "one", READ_B))
    second = world.perform(load_acl(context, ("one", "default")))
    assert [path for path in "ab" if first.allows("read", path)] == ["a"]
    assert [path for path in "ab" if second.allows("read", path)] == ["b"]


def test_a_policy_that_is_written_later_counts_at_once() -> None:
    world, context = World(), new_context()
    before = world.perform(load_acl(context, ("late",)))
    world.perform(write_policy(context, "late", READ_A))
    after = world.perform(load_acl(context, ("late",)))
    assert (before.allows("read", "a"), after.allows("read", "a")) == (False, True)


def long_policy(path: str) -> str:
    """A policy of the longest text that reads one path."""
    text = READ_A.replace('"a"', f'"{path}"')
    return text + " " * (LONGEST - len(text))


def test_policies_that_are_too_long_together_grant_nothing_until_one_is_shorter() -> None:
    """A rule that is left out could be one that denies."""
    world, context = World(), new_context()
    names = tuple(f"p{number}" for number in range(LONGEST_TOGETHER // LONGEST + 1))
    for name in names:
        world.perform(write_policy(context, name, long_policy(name)))
    assert world.perform(load_acl(context, names[1:])).allows("read", "p1")
    for _ in range(2):
        with pytest.raises(Refused) as refusal:
            world.perform(load_acl(context, names))
        assert refusal.value.code is Code.PERMISSION_DENIED
    world.perform(write_policy(context, "p0", READ_A))
    world.perform(write_policy(context, "p1", READ_B))
    assert world.perform(load_acl(context, names)).allows("read", "b")


def test_access_lists_of_long_policies_are_forgotten_before_there_are_many() -> None:
    world, context = World(), new_context()
    for number in range(LONGEST_POLICIES // LONGEST + 3):
        world.perform(write_policy(context, f"p{number}", long_policy("a")))
        world.perform(load_acl(context, (f"p{number}",)))
    assert len(context.caches.acls) == LONGEST_POLICIES // LONGEST
