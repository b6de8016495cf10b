"""Mutants are drawn by a seed, and each is a mistake."""

from __future__ import annotations

import ast
import gc
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.__main__ import (
    COUNT,
    MUTATIONS,
    PACKAGES,
    ROOT,
    SEED,
    Mutant,
    another_operator,
    draw,
    mutants_of,
    nodes,
)


def test_the_same_seed_draws_the_same_of_every_package() -> None:
    drawn = draw(SEED, COUNT)
    assert drawn == draw(SEED, COUNT) != draw(SEED + 1, COUNT)
    assert len(drawn) == COUNT
    assert {mutant.package for mutant in drawn} == PACKAGES.keys()


def test_every_mutation_is_met() -> None:
    assert {mutant.mutation for package in PACKAGES for mutant in mutants_of(package)} == {*MUTATIONS}


@pytest.mark.parametrize("number", range(0, COUNT, 30))
def test_a_mutant_differs_in_one_place(number: int) -> None:
    mutant = draw(SEED, COUNT)[number]
    assert mutant.difference.count("\n@@") == 1
    compile(mutant.tree, "mutant", "exec")
    assert ast.unparse(mutant.tree) != ast.unparse(ast.parse(mutant.path.read_text()))


def test_every_package_names_modules_and_tests_that_exist() -> None:
    for package in PACKAGES.values():
        assert all([*ROOT.glob(pattern)] for pattern in package.modules)
        assert all((ROOT / path).exists() for path in package.tests)


def test_a_mutant_takes_effect_on_what_the_collector_does_not_list(tmp_path: Path) -> None:
    mutant, module = late(tmp_path), dict[str, Any]()
    exec(compile(mutant.path.read_text(), str(mutant.path), "exec"), module)
    gc.freeze()
    mutant.take_effect()
    assert module["is_late"](5)


def test_a_mutant_of_what_is_not_loaded_is_not_tried(tmp_path: Path) -> None:
    with pytest.raises(LookupError):
        late(tmp_path).take_effect()


def late(folder: Path) -> Mutant:
    """The mutant `>=` of a function in a file of its own."""
    path = folder / "late.py"
    path.write_text("def is_late(seconds):\n    return seconds > 5\n")
    tree = ast.parse(path.read_text())
    number = next(number for number, (node, _) in enumerate(nodes(tree)) if another_operator(node))
    return Mutant("late", path, number, another_operator)
