"""Management of policies: what is kept, what is protected, what is told."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cloudid_core.effects import Program
from cloudid_core.errors import Code, Refused
from cloudid_core.foundation.context import Context
from cloudid_core.policies.builtin import BUILT_IN
from cloudid_core.policies.document import parse
from cloudid_core.policies.manage import delete_policy, list_policies, read_policy, write_policy
from cloudid_core.testing.world import World

from .service import new_context

TEXT = 'path "a" { capabilities = ["read"] }'


def test_a_policy_is_written_read_listed_and_deleted() -> None:
    world, context = World(), new_context()
    assert world.perform(write_policy(context, "web", TEXT)) == ()
    assert world.perform(read_policy(context, "web")) == parse("web", TEXT)
    assert world.perform(list_policies(context)) == ["default", "root", "web"]
    world.perform(delete_policy(context, "web"))
    assert world.perform(read_policy(context, "web")) is None
    assert world.perform(list_policies(context)) == ["default", "root"]


def test_the_last_of_two_writes_holds() -> None:
    world, context = World(), new_context()
    world.perform(write_policy(context, "web", TEXT))
    world.perform(write_policy(context, "web", ""))
    assert world.perform(read_policy(context, "web")) == parse("web", "")


def test_names_have_no_case_and_the_writer_is_told() -> None:
    world, context = World(), new_context()
    assert len(world.perform(write_policy(context, " Web", TEXT))) == 1
    assert world.perform(read_policy(context, "WEB")) == parse("web", TEXT)
    world.perform(delete_policy(context, "wEb "))
    assert world.perform(read_policy(context, "web")) is None


def test_deleting_what_is_not_there_is_no_mistake() -> None:
    World().perform(delete_policy(new_context(), "web"))


def test_default_can_be_changed_and_root_has_no_text() -> None:
    world, context = World(), new_context()
    assert world.perform(read_policy(context, "default")) == BUILT_IN["default"]
    world.perform(write_policy(context, "default", TEXT))
    assert world.perform(read_policy(context, "default")) == parse("default", TEXT)
    assert world.perform(list_policies(context)) == ["default", "root"]
    assert world.perform(read_policy(context, "root")) == parse("root", "")


def write(context: Context, name: str) -> Program[object]:
    return write_policy(context, name, TEXT)


@pytest.mark.parametrize(
    "change, name",
    [
        (write, "root"),
        (write, " ROOT"),
        (write, "Response-Wrapping"),
        (delete_policy, "root"),
        (delete_policy, "Default "),
        (delete_policy, "response-wrapping"),
    ],
)
def test_protected_policies(change: Callable[[Context, str], Program[object]], name: str) -> None:
    world, context = World(), new_context()
    with pytest.raises(Refused) as caught:
        world.perform(change(context, name))
    assert caught.value.code is Code.POLICY_PROTECTED


def test_the_policy_of_wrapping_tokens_is_not_shown() -> None:
    assert World().perform(read_policy(new_context(), "response-wrapping")) is None


@pytest.mark.parametrize("name", ["", "a/b", "-a", "a" * 129, "a\n b"])
def test_names_that_are_none(name: str) -> None:
    world, context = World(), new_context()
    for program in (write(context, name), read_policy(context, name), delete_policy(context, name)):
        with pytest.raises(Refused) as caught:
            world.perform(program)
        assert caught.value.code is Code.NAME_INVALID


def test_a_text_that_is_no_policy_changes_nothing() -> None:
    world, context = World(), new_context()
    world.perform(write_policy(context, "web", TEXT))
    with pytest.raises(Refused) as caught:
        world.perform(write_policy(context, "web", "path {"))
    assert caught.value.code is Code.POLICY_INVALID
    assert world.perform(read_policy(context, "web")) == parse("web", TEXT)
