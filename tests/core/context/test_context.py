"""The context of a service."""

from __future__ import annotations

from tests.installation import Installation


def test_the_marker_names_the_installation() -> None:
    """Two installations never take each other's objects at the provider for their own."""
    one, other = Installation(seed=1).service.context, Installation(seed=2).service.context
    assert one.marker_prefix == f"cloudid-{one.records.sealer.keyring.installation}-"
    assert one.marker_prefix != other.marker_prefix
