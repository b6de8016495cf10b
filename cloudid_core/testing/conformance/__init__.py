"""Conformance: what every host must be able to do, as checks that run on any of them.

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
    def test_my_host_conforms(check):
        trio.run(run, check(), MyHost())

A host that never waits is held to those without `waits`: `check_host_now(MyHost())`. Calls to a provider are checked
against `scripted_provider`, which the tests of a host serve over HTTP.

`CHECKS` need one host. A store that several nodes share is checked with two hosts in one event loop; one whose server
can be away, with a function that makes it so (lost connections, a restart, a fail-over):

    await check_host(host, shared_store_checks(another_host_over_the_same_store))
    await check_host(host, interruption_checks(restart_the_server))
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...effects import Host, within
from ...run import run, run_now
from .basics import BASIC_CHECKS
from .check import Check, NotConforming
from .interruption import Interrupt, interruption_checks
from .nodes import shared_store_checks
from .provider import Calls, Scripted, provider_checks, scripted_provider, served_provider_checks
from .store import STORE_CHECKS
from .tasks import TASK_CHECKS, flaw_in_time

__all__ = [
    "CHECKS",
    "Calls",
    "Check",
    "Interrupt",
    "NotConforming",
    "Scripted",
    "check_host",
    "check_host_now",
    "interruption_checks",
    "provider_checks",
    "scripted_provider",
    "served_provider_checks",
    "shared_store_checks",
]

CHECKS: Final[tuple[Check, ...]] = (*BASIC_CHECKS, *STORE_CHECKS, *TASK_CHECKS)
"""All but those that need a provider, a second host, or a way to interrupt the store."""


LIMIT: Final = 120.0
"""Seconds for one check. The slowest takes a few."""


async def check_host(host: Host, checks: Iterable[Check] = CHECKS, limit: float = LIMIT) -> None:
    """Run checks on a host, one after the other; `NotConforming` names all that failed.

    Each may take `limit` seconds. That is the host's own `within`, so it is tried first: nothing that needs time runs
    on a host that cannot end a program, or cannot run two side by side. One that never waits is for `check_host_now`.
    """
    failures: list[str] = []
    flaw = await run(flaw_in_time(), host)
    for check in checks:
        try:
            if not flaw:
                await run(within(limit, check()), host)
            elif check.waits:
                raise NotConforming(flaw)
            else:
                await run(check(), host)
        except Exception as error:  # noqa: BLE001  # whatever a check raises, the host did not pass it
            failures.append(f"{check.name}: {type(error).__name__}: {error}")
    if failures:
        raise NotConforming("\n".join(failures))


def check_host_now(host: Host, checks: Iterable[Check] = CHECKS) -> None:
    """Run those checks that need no time on a host that never waits; `NotConforming` names all that failed."""
    failures: list[str] = []
    for check in checks:
        try:
            if not check.waits:
                run_now(check(), host)
        except Exception as error:  # noqa: BLE001  # as above
            failures.append(f"{check.name}: {type(error).__name__}: {error}")
    if failures:
        raise NotConforming("\n".join(failures))
