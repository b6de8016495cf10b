"""Every operation × every effect × every fault; then resume and converge: nothing is leaked, lost or locked out."""

from __future__ import annotations

from itertools import islice
from typing import Final

import pytest

from cloudid_core.effects import Record
from cloudid_core.errors import CloudidError
from cloudid_core.testing import Crashed, Fault, FaultKind, every_fault
from tests.sampling import Sample

from .invariants import check_recovery
from .operations import OPERATIONS, Operation, copy_of
from .recorded import RecordedInstallation

JUST_AFTER: Final = 20
"""So many ways in which the next few effects can go wrong too."""


@pytest.mark.parametrize("name", OPERATIONS)
def test_one_fault_anywhere(name: str, sample: Sample) -> None:
    """One fault at one effect of one operation."""
    start, operation = OPERATIONS[name]
    for installation in every_fault(operation, lambda: copy_of(start()), sample=sample):
        go_through(installation, operation)


@pytest.mark.parametrize("name", ["issue a password of an existing application", "wrap credentials for nobody"])
def test_an_answer_that_cannot_be_recorded_is_taken_back_though_the_store_fails_as_well(name: str) -> None:
    start, operation = OPERATIONS[name]
    plain = copy_of(start())
    operation(plain)
    asked = [at for at, (task, effect) in enumerate(plain.trace) if isinstance(effect, Record) and "asking" in task]
    unrecorded = Fault(asked[-1], FaultKind.FAIL)
    for installation in every_fault(
        operation, lambda: copy_of(start()), given=(unrecorded,), sample=lambda plans: islice(plans, JUST_AFTER)
    ):
        go_through(installation, operation)


def go_through(installation: RecordedInstallation, operation: Operation) -> None:
    """Do the operation while something goes wrong, check, restart if it was killed, converge, and check again."""
    try:
        operation(installation)
    except Crashed:
        installation.restart()
    except CloudidError:
        pass
    check_recovery(installation)
