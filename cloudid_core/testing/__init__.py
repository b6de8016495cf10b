"""Testing: a deterministic world to run programs in, faults at every effect, and what every host must be able to do."""

from __future__ import annotations

from .conformance import (
    CHECKS,
    Calls,
    Check,
    NotConforming,
    check_host,
    check_host_now,
    interruption_checks,
    provider_checks,
    scripted_provider,
    served_provider_checks,
    shared_store_checks,
)
from .exhaustive import count_effects, every_fault
from .faults import Crashed, Fault, FaultKind, Stall
from .turns import Task
from .world import Answer, Provider, World

__all__ = [
    "CHECKS",
    "Answer",
    "Calls",
    "Check",
    "Crashed",
    "Fault",
    "FaultKind",
    "NotConforming",
    "Provider",
    "Stall",
    "Task",
    "World",
    "check_host",
    "check_host_now",
    "count_effects",
    "every_fault",
    "interruption_checks",
    "provider_checks",
    "scripted_provider",
    "served_provider_checks",
    "shared_store_checks",
]
