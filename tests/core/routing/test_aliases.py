"""Paths that lead to the same program are one path for all that counts or records paths."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import partial

import pytest

from cloudid_core.applied import object_path
from cloudid_core.routing import ALIASES, without_alias
from cloudid_core.system.routes import ROUTES


def test_every_program_that_has_two_paths_has_one_without_aliases() -> None:
    """`sys/auth` and `sys/mounts` list and hold different mounts, so they are no aliases of each other."""
    paths = defaultdict(set)
    for row in ROUTES.routes:
        program = row.program.func if isinstance(row.program, partial) else row.program
        place = re.sub(r"/?[:*].*", "", row.path)
        paths[program, row.operation].add(without_alias(f"sys/{place}"))
    several = {frozenset(places) for places in paths.values() if len(places) > 1}
    assert several == {frozenset({"sys/auth", "sys/mounts"})}


@pytest.mark.parametrize("alias, usual", ALIASES)
def test_an_alias_stands_for_whole_segments(alias: str, usual: str) -> None:
    assert [without_alias(alias + rest) for rest in ("", "/a", "-a")] == [usual, f"{usual}/a", f"{alias}-a"]


@pytest.mark.parametrize("alias, usual", ALIASES)
def test_an_object_has_one_record_under_both_paths(alias: str, usual: str) -> None:
    assert object_path(f"{alias}/Web") == object_path(f"{usual}/web")
