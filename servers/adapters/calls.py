"""Calls of the service by the application that it is embedded in, without a connection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import field, frozen
from msgspec import json

from cloudid_core import Response


@frozen
class Caller:
    """Names the client for whom the application calls the service."""

    address: str = ""
    """The IP address of the peer."""
    forwarded_for: str = ""
    """Its header X-Forwarded-For, which counts if the peer is one of `trusted_proxies`."""


NO_CALLER: Final = Caller()
"""For calls that the application makes for itself."""


@frozen
class Called:
    """Has the answer to a call: its status, and its JSON document, or `None`."""

    status: int
    body: Any = field(default=None, repr=False)
    headers: Mapping[str, str] = field(factory=dict[str, str], repr=False)
    """By their names in lower case."""

    @property
    def is_done(self) -> bool:
        """Return whether the service did what it was called for."""
        return self.status < 400

    @property
    def data(self) -> dict[str, Any]:
        """Return the member `data` of the document; empty if it has none."""
        found = self.body.get("data") if isinstance(self.body, dict) else None
        return found if isinstance(found, dict) else {}

    @property
    def errors(self) -> list[str]:
        """Return why the service refused; empty if it did not."""
        return [] if self.is_done or not isinstance(self.body, dict) else list(self.body.get("errors", ()))

    @classmethod
    def of(cls, response: Response) -> Called:
        return cls(response.status, json.decode(response.body) if response.body else None, response.headers)
