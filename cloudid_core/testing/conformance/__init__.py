"""Conformance: what every host must be able to do, as checks that run on any of them.

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
    def test_my_host_conforms(check):
        trio.run(run, check(), MyHost())

A host that never waits is held to those without `waits`, with `run_now`. Calls to a provider are checked against
`scripted_provider`, which the tests of a host serve over HTTP.

`CHECKS` need one host. A store that several nodes share is checked with two hosts in one event loop; one whose server
can be away, with a function that makes it so (lost connections, a restart, a fail-over):

    await check_host(host, shared_store_checks(another_host_over_the_same_store))
    await check_host(host, interruption_checks(restart_the_server))
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...effects import Host
from ...run import run
from .basics import BASIC_CHECKS
from .check import Check, NotConforming
from .interruption import Interrupt, interruption_checks
from .nodes import shared_store_checks
from .provider import Scripted, provider_checks, scripted_provider
from .store import STORE_CHECKS
from .tasks import TASK_CHECKS

__all__ = [
    "CHECKS",
    "Check",
    "Interrupt",
    "NotConforming",
    "Scripted",
    "check_host",
    "interruption_checks",
    "provider_checks",
    "scripted_provider",
    "shared_store_checks",
]

CHECKS: Final[tuple[Check, ...]] = (*BASIC_CHECKS, *STORE_CHECKS, *TASK_CHECKS)
"""All but those that need a provider, a second host, or a way to interrupt the store."""


async def check_host(host: Host, checks: Iterable[Check] = CHECKS) -> None:
    """Run checks on a host, one after the other; `NotConforming` names all that failed."""
    failures: list[str] = []
    for check in checks:
        try:
            await run(check(), host)
        except Exception as error:  # noqa: BLE001  # whatever a check raises, the host did not pass it
            failures.append(f"{check.name}: {type(error).__name__}: {error}")
    if failures:
        raise NotConforming("\n".join(failures))
