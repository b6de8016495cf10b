"""The content of one commit."""

from __future__ import annotations

from cloudid_core.store.changes import Changes


def test_both_sides_are_done_in_one_commit() -> None:
    both = Changes({"a": 1}, {"b": "x"}, ("c",)) | Changes({"d": 0}, {"e": "y"}, ("f", "c"))
    assert both == Changes({"a": 1, "d": 0}, {"b": "x", "e": "y"}, ("c", "f"))


def test_what_one_side_puts_is_not_deleted_by_the_other() -> None:
    """An entry that moves to the key that it has already stays there."""
    assert Changes(deletes=("a", "b")) | Changes(puts={"a": 1}) == Changes(puts={"a": 1}, deletes=("b",))
    assert Changes(puts={"a": 1}) | Changes(deletes=("a",)) == Changes(puts={"a": 1})


def test_expectations_alone_change_nothing() -> None:
    assert Changes({"a": 1}).is_empty
    assert not Changes(deletes=("a",)).is_empty
    assert not Changes(puts={"a": 1}).is_empty


def test_no_record_is_printed() -> None:
    assert "s3cret" not in repr(Changes({"a": 1}, {"a": "s3cret"}))
