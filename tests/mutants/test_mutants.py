"""Mutants are drawn by a seed, and each is a mistake."""

from __future__ import annotations

import ast

import pytest

from tests.mutants.__main__ import COUNT, MUTATIONS, ROOMS, SEED, draw, mutants_of


def test_the_same_seed_draws_the_same_of_every_room() -> None:
    drawn = draw(SEED, COUNT)
    assert drawn == draw(SEED, COUNT) != draw(SEED + 1, COUNT)
    assert len(drawn) == COUNT
    assert {mutant.room for mutant in drawn} == ROOMS.keys()


def test_every_mutation_is_met() -> None:
    assert {mutant.mutation for room in ROOMS for mutant in mutants_of(room)} == {*MUTATIONS}


@pytest.mark.parametrize("number", range(0, COUNT, 10))
def test_a_mutant_differs_in_one_place(number: int) -> None:
    mutant = draw(SEED, COUNT)[number]
    assert mutant.difference.count("\n@@") == 1
    compile(mutant.tree, "mutant", "exec")
    assert ast.unparse(mutant.tree) != ast.unparse(ast.parse(mutant.path.read_text()))
