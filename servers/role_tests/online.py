"""Cases against the roles of a server, by its `explain`."""

from __future__ import annotations

from typing import Final

from ..client import Service, ServiceRefused
from .cases import Case
from .verdict import Verdict

VERDICTS: Final = (400, 403)
"""Statuses of logins that cannot be explained, such as one of an unknown role."""


def decide(service: Service, mount: str, case: Case) -> Verdict:
    """Asks a server. The token needs `update` and `sudo` at `<mount>/explain`.

    Raises `ServiceRefused` and `Unreachable` if that is no verdict on the case.
    """
    try:
        return Verdict.of(service.write(f"{mount}/explain", case.body)["data"])
    except ServiceRefused as refusal:
        if refusal.status not in VERDICTS or "permission_denied" in refusal.codes:
            raise
        return Verdict.of_refusal(refusal.codes, str(refusal))
