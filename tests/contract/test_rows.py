"""Every row of the contract has a test that names it, and the table in the documentation says which."""

from __future__ import annotations

from .rows import TESTS, names, page, proofs


def test_every_row_is_proven() -> None:
    assert [row for row in names() if row not in proofs()] == []


def test_no_test_names_a_row_that_is_not_there() -> None:
    assert sorted(set(proofs()) - set(names())) == []


def test_the_table_is_true() -> None:
    """`docs/contract.md` is what `python -m tests.contract.rows` prints."""
    assert (TESTS.parent / "docs" / "contract.md").read_text() == page()
