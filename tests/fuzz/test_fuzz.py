"""The targets of the fuzzer hold for their seeds and for some thousand inputs, and no altered token is admitted."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.waiting import PATIENCE

from .altered import ALTERATIONS, KEY_SETS, Tally, alter, judge, tokens_of
from .target import REFUSED, Target
from .targets import TARGETS

ROOT: Final = Path(__file__).parent.parent.parent
RUNS: Final = 200
"""Inputs for each target in the short run."""

TOKENS: Final = 4000


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_holds_for_its_seeds(name: str) -> None:
    """And reads one of them at least: a target that refuses all that it is given shows nothing."""
    target = TARGETS[name]
    found = [target.examine(seed if isinstance(seed, bytes) else seed.encode()) for seed in target.seeds]
    assert any(each is not REFUSED for each in found)


def _works_too_much(raw: bytes) -> int:
    return sum(abs(number) for number in range(10_000))


def _wrong(given: bytes, found: object) -> None:
    assert found is REFUSED


@pytest.mark.parametrize(
    "target, failure",
    [
        (Target(_works_too_much, (b"",)), AssertionError),
        (Target(lambda raw: {}[raw], (b"",)), KeyError),
        (Target(bytes.decode, (b"",), _wrong), AssertionError),
    ],
)
def test_a_target_breaks_by_work_by_another_exception_or_by_its_oracle(
    target: Target, failure: type[Exception]
) -> None:
    with pytest.raises(failure):
        target.examine(b"a")


def test_a_declared_refusal_is_no_failure() -> None:
    assert Target(bytes.decode, (b"",), _wrong).examine(b"\xff") is REFUSED


def test_no_altered_token_is_admitted() -> None:
    tally = alter(TOKENS)
    assert tally.tried == TOKENS
    assert 0 < tally.admitted < TOKENS / 10


@pytest.mark.parametrize("how", ALTERATIONS[1:])
def test_the_oracles_notice_when_an_altered_token_is_admitted(how: object) -> None:
    tokens = tokens_of(random.Random(0))
    for _ in range(100):
        token = how(tokens.any(), tokens)  # type: ignore[operator]
        if token not in tokens.signed:
            with pytest.raises(AssertionError, match="nobody signed it"):
                judge(token, KEY_SETS[1], True, tokens, Tally())


def test_the_oracles_notice_claims_that_are_admitted_and_not_good() -> None:
    tokens = tokens_of(random.Random(0))
    noticed = 0
    for token in tokens.signed:
        try:
            judge(token, KEY_SETS[1], True, tokens, Tally())
        except AssertionError:
            noticed += 1
    assert 0 < noticed < len(tokens.signed)


@pytest.mark.tools
def test_the_targets_hold_for_some_hundred_inputs_that_coverage_chose() -> None:
    pytest.importorskip("atheris", reason="the fuzzer is not installed: `make fuzz`, or pip install 'cloudid[fuzz]'")
    command = [sys.executable, "-m", "tests.fuzz", "--runs", str(RUNS)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace", timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(TARGETS)} targets hold" in done.stdout
