"""Cases against the roles of a server, by its `explain`."""

from __future__ import annotations

from typing import Final

from ..client import Service, ServiceRefused
from .cases import Case
from .verdict import Verdict

VERDICTS: Final = (400, 403)
"""Statuses of logins that cannot be explained, such as one of an unknown role."""


class Online:
    """Asks a server. The token needs `update` and `sudo` at `<mount>/explain`."""

    def __init__(self, service: Service, mount: str) -> None:
        self._service = service
        self._path = f"{mount}/explain"

    def decide(self, case: Case) -> Verdict:
        """Raises `ServiceRefused` and `Unreachable` if that is no verdict on the case."""
        try:
            return Verdict.of(self._service.write(self._path, case.body)["data"])
        except ServiceRefused as refusal:
            if refusal.status not in VERDICTS or "permission_denied" in refusal.codes:
                raise
            return Verdict.of_refusal(refusal.codes, str(refusal))
