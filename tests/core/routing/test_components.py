"""What others ask of a component, when it has nothing to say."""

from __future__ import annotations

from typing import Any

import pytest

from cloudid_core import run_now
from cloudid_core.errors import Refused
from cloudid_core.routing.components import Component
from cloudid_core.routing.routes import RouteTable

from ..never_waits import NeverWaits


def test_a_plain_component_limits_nothing_and_calls_nobody() -> None:
    """No role is known to it, and it has no credentials at the provider."""
    plain = Component(kind="secret", type="plain", routes=RouteTable(()), doc="")
    nothing: Any = None
    assert run_now(plain.token_terms(nothing, nothing, "role"), NeverWaits()) is None
    assert run_now(plain.lease_terms(nothing, nothing, nothing, nothing), NeverWaits()) is None
    with pytest.raises(Refused):
        run_now(plain.client(nothing, nothing, nothing), NeverWaits())
