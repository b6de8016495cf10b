"""Locations (regions) of the cloud: "West US 2" and "westus2" are one."""

from __future__ import annotations

from . import folding


def fold(raw: object) -> str:
    """A location for comparison: in lower case, without blanks."""
    if not isinstance(raw, str):
        raise ValueError("must be a location")
    return "".join(folding.fold(raw).split())
