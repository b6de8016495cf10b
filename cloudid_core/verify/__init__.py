"""Verification alone: whether a workload's signed identity is admitted, as a pure function of data.

It needs no service: no store, master key, host or clock. `Verifier` decides on a token with the keys that it has;
`KeyRing` says when to fetch the tenant's keys, and from where. Signature, claims, bounds and decision are those of the
authentication method, where the bounds belong to a role; see `docs/how-to/verify-only.md`.

    key_ring.py   the keys of tenants: when they are fetched, and how long they are used
    verifier.py   the decision
    verdicts.py   its outcomes, the identity of a caller, and facts that no token holds
"""

from .key_ring import Fetch, KeyRing
from .verdicts import (
    NO_FACTS,
    Admitted,
    Facts,
    Identity,
    MachineFacts,
    NeedsFacts,
    NotGiven,
    RefusalCode,
    Refused,
    Verdict,
)
from .verifier import Verifier

__all__ = [
    "NO_FACTS",
    "Admitted",
    "Facts",
    "Fetch",
    "Identity",
    "KeyRing",
    "MachineFacts",
    "NeedsFacts",
    "NotGiven",
    "RefusalCode",
    "Refused",
    "Verdict",
    "Verifier",
]
