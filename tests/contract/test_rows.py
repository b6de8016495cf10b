"""A test executes the behaviour of every row of the contract, and the table in the documentation says which."""

from __future__ import annotations

import pytest

from .rows import EXECUTED, READ_BACK, TESTS, names, page, proofs


def test_the_behaviour_of_every_row_is_executed() -> None:
    """A field that is only read back is not proven."""
    assert [row for row in names() if row not in proofs(EXECUTED)] == []


@pytest.mark.parametrize("mark", [EXECUTED, READ_BACK])
def test_no_test_names_a_row_that_does_not_exist(mark: str) -> None:
    assert sorted(set(proofs(mark)) - set(names())) == []


def test_a_test_that_reads_a_row_back_does_not_claim_to_execute_it() -> None:
    for row, tests in proofs(READ_BACK).items():
        assert not set(tests) & set(proofs(EXECUTED).get(row, ())), row


def test_the_table_is_true() -> None:
    """`tests/contract/rows.md` is what `python -m tests.contract.rows` prints."""
    assert (TESTS / "contract" / "rows.md").read_text() == page()
