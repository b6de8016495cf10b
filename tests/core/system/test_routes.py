"""The routes below `sys`, all together."""

from __future__ import annotations

import pytest

from cloudid_core.messages.operations import Operation
from cloudid_core.system.routes import COMPONENT, ROUTES


def test_the_component_is_the_system() -> None:
    assert (COMPONENT.kind, COMPONENT.type, COMPONENT.routes) == ("secret", "system", ROUTES)


@pytest.mark.parametrize(
    "path, operation, is_public",
    [
        ("health", Operation.READ, True),
        ("seal-status", Operation.READ, True),
        ("leader", Operation.READ, True),
        ("policies/acl/app", Operation.READ, False),
        ("leases/renew", Operation.WRITE, False),
        ("mounts", Operation.READ, False),
    ],
)
def test_only_the_state_of_the_service_is_public(path: str, operation: Operation, is_public: bool) -> None:
    found = ROUTES.find(path, operation)
    assert isinstance(found, tuple)
    assert found[0].public is is_public
