"""Mutants are drawn by a seed, and each is a mistake."""

from __future__ import annotations

import ast
import gc
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.mutants import reach
from tests.mutants.__main__ import COUNT, SEED, TESTS, in_processes
from tests.mutants.mistakes import (
    MUTATIONS,
    PACKAGES,
    ROOT,
    Mutant,
    another_operator,
    draw,
    mutants_of,
    nodes,
    paths_of,
)
from tests.mutants.reach import Marks, Reach, ReachOfFile, all_blocks, marked_codes


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


def test_every_package_names_modules_and_every_folder_of_tests_exists() -> None:
    assert [package for package in PACKAGES if not paths_of(package)] == []
    assert [folder for folder in TESTS if not (ROOT / folder).is_dir()] == []


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
    return Mutant("late", path, number, 2, 2, another_operator)


TYPED = """
def typed(seconds: int | None) -> int | None:
    found: int | None = cast(int | None, seconds)
    return [*zip(found, found, strict=False)]
"""


def test_types_and_what_only_guards_us_are_not_changed() -> None:
    changed = [node for node, block in nodes(ast.parse(TYPED)) if block for each in MUTATIONS if each(node)]
    assert changed == []


BRANCHES = """
def choose(is_first):
    \"\"\"Answer by a branch.\"\"\"
    if is_first:
        return "first"
    return [each for each in ("second",)][0]
"""


@pytest.fixture
def branches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Marks, Any]]:
    """Marks of a module of their own."""
    path, module = tmp_path / "branches.py", dict[str, Any]()
    path.write_text(BRANCHES)
    (tmp_path / "marks").touch()
    exec(compile(BRANCHES, str(path), "exec"), module)
    monkeypatch.setattr(reach, "paths_of", lambda package: [path] if package == "journal" else [])
    for cached in (all_blocks, marked_codes):
        cached.cache_clear()
    marks = Marks(str(tmp_path / "marks"))
    marks.take_effect()
    yield marks, module["choose"]
    for cached in (all_blocks, marked_codes):
        cached.cache_clear()


def test_each_block_that_runs_is_marked_once_it_runs(branches: tuple[Marks, Any]) -> None:
    marks, choose = branches
    body, branch = (1 << number for number in all_blocks().values())
    assert (marks.read(), choose(False), marks.read()) == (0, "second", body)
    assert (choose(True), marks.read(), marks.read()) == ("first", body | branch, 0)
    assert choose.__doc__ == "Answer by a branch."


def test_a_mutant_is_tried_with_the_tests_that_run_its_block_its_own_first(branches: tuple[Marks, Any]) -> None:
    (path, line), number = [*all_blocks().items()][1]
    mutant = Mutant("journal", path, 0, line, line, another_operator)
    slow = ReachOfFile("", marks={"slow": 1 << number, "elsewhere": 0}, seconds={"slow": 9.0, "elsewhere": 0.1})
    quick = ReachOfFile("", marks={"a": 1 << number, "broken": 1 << number}, seconds={"a": 1.0, "broken": 1.0})
    quick.failed.append("broken")
    shared = ReachOfFile("", set_up=1 << number, marks={"b": 0, "c": 0}, seconds={"b": 1.0, "c": 2.0})
    own = ReachOfFile("", marks={"own": 1 << number}, seconds={"own": 20.0})
    files = {"slow": slow, "shared": shared, "quick": quick, "test_branches.py": own}
    found = Reach({Path(name): file for name, file in files.items()}).tests_of(mutant)
    assert [*found.items()] == [("own", 20.0), ("a", 1.0), ("b", 1.0), ("c", 2.0), ("slow", 9.0)]


def test_what_a_process_finds_comes_back_and_one_that_fails_or_is_killed_is_known() -> None:
    works: dict[str, Callable[[], object]] = {
        "works": lambda: 7,
        "fails": lambda: 1 // 0,
        "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    }
    ended = {each.work: (each.result, each.was_killed) for each in in_processes(works, 2)}
    assert ended == {"works": (7, False), "fails": (None, False), "killed": (None, True)}
