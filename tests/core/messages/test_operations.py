"""Every operation has methods that ask for it, and each method asks for few."""

from __future__ import annotations

import pytest

from cloudid_core.messages.operations import METHODS, Operation


@pytest.mark.parametrize("operation", Operation)
def test_each_operation_is_asked_for_by_methods_of_its_own(operation: Operation) -> None:
    """GET asks for a list only with a parameter: no other method stands for two operations."""
    others = {method for other, methods in METHODS.items() if other is not operation for method in methods}
    assert set(METHODS[operation]) - others or operation is Operation.READ
    assert set(METHODS[operation]) & others <= {"GET", "HEAD"}
