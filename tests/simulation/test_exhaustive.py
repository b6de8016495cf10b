"""Every operation × every effect × every fault; then resume and converge: nothing is leaked, lost or locked out."""

from __future__ import annotations

import pytest

from cloudid_core.errors import CloudidError
from cloudid_core.testing import Crashed, every_fault
from tests.sampling import Sample

from .invariants import check_recovery
from .operations import OPERATIONS, Operation, copy_of
from .recorded import RecordedInstallation


@pytest.mark.parametrize("name", OPERATIONS)
def test_one_fault_anywhere(name: str, sample: Sample) -> None:
    """One fault at one effect of one operation."""
    start, operation = OPERATIONS[name]
    for installation in every_fault(operation, lambda: copy_of(start()), sample=sample):
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
