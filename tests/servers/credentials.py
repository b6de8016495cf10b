"""Credentials that are borrowed from a server: the requests for them, their leases, and what the provider holds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import httpx

from tests.waiting import PATIENT, wait_until

ROLES: Final = ("fresh", "existing")
"""The roles of a `Deployment`."""

SETTLED_SOON: Final = {"request_deadline": "6s", "request_grace": "500ms", "settle_time": 2}
"""Settings with which the service takes up what a kill has cut short after seconds."""


def borrowing(service: httpx.Client) -> list[httpx.Request]:
    """A request for credentials of each role."""
    return [service.build_request("GET", f"cloud/creds/{role}") for role in ROLES]


def leases(service: httpx.Client, *roles: str) -> set[str]:
    """The ids of all leases, or of those of some roles."""
    found: set[str] = set()
    for role in roles or ROLES:
        answer = service.request("LIST", f"sys/leases/lookup/cloud/creds/{role}")
        if answer.is_success:
            found |= {f"cloud/creds/{role}/{key}" for key in answer.json()["data"]["keys"]}
    return found


def alive(simulator: str) -> list[dict[str, Any]]:
    """What was made at the provider and lives."""
    made = httpx.get(f"{simulator}/simulator/ledger", **PATIENT).json()
    return [one for one in made if one["deleted_at"] is None]


def check(service: httpx.Client, simulator: str, answers: Iterable[dict[str, Any]]) -> None:
    """Each answer has its lease, each lease has its credentials, and nothing is left once all leases are revoked."""
    wait_until(lambda: _passwords(simulator) == len(leases(service)))
    assert {answer["lease_id"] for answer in answers} <= leases(service)
    service.put("sys/leases/revoke-prefix/cloud/creds").raise_for_status()
    wait_until(lambda: not alive(simulator))
    assert leases(service) == set()


def _passwords(simulator: str) -> int:
    """How many credentials live; -1 while there are applications without one."""
    kinds = [one["kind"] for one in alive(simulator)]
    applications, assignments = kinds.count("application"), kinds.count("assignment")
    return kinds.count("password") if applications == assignments else -1
