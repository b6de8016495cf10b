"""What the tests of the wire have in common."""

from __future__ import annotations

import pytest

from tests.installation import Installation


@pytest.fixture
def service() -> Installation:
    """A service that was just initialised; its root token is `root`."""
    return Installation()


@pytest.fixture
def furnished(service: Installation) -> Installation:
    """With a configured authentication method that has a role."""
    service.must("POST", "auth/cloud/config", {"tenant_id": "t", "resource": "r"})
    service.must("POST", "auth/cloud/role/web", {"bound_locations": "westus2"})
    return service
