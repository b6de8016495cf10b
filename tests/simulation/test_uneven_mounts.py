"""Mounts beside each other, of which one has an Azure that refuses calls, and one an Azure that hangs.

The background runs as on a host: a round ends, and the next one comes when it asked for that.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

from attrs import frozen

from cloudid_core.background.loop import RETRY_INTERVAL
from cloudid_core.context import queue
from cloudid_core.effects import HttpRequest, HttpResponse
from cloudid_core.store import keys
from cloudid_core.testing import Answer
from tests.engines import SecretsEngine, engine_config

HEALTHY, REFUSING, HANGING = "healthy", "refusing", "hanging"
LEASES: Final = 100
"""More than one round hands to the lanes of a queue."""

SHORT: Final = 5
LATENESS: Final = 5.0
"""Seconds that a lease may live past its end while nothing hinders its own mount."""

SOON: Final = 20
"""Seconds after which few leases are left of a mount whose calls are refused at times."""

REFUSED: Final = 0.3
MINUTES: Final = 3


@frozen
class Refusal:
    """Azure's answer to a call of a mount in trouble; it comes after `delay` seconds."""

    delay: float = 0.0
    response: HttpResponse = HttpResponse(503)
    drop: bool = False


NEVER: Final = 3600.0
"""Seconds after which no caller waits any more."""


class UnevenMounts(SecretsEngine):
    """Three mounts with a role each, whose credentials are apps of their own."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        self.made_for: dict[str, str] = {}
        """Ids of objects at Azure, and the mount that made each."""
        self.is_troubled = False
        self.chances = Random(7)
        super().__init__(*arguments, verify_credentials=False, **settings)
        for name in (HEALTHY, REFUSING, HANGING):
            self.must("POST", f"sys/mounts/{name}", {"type": "cloud"})
            self.must("POST", f"{name}/config", engine_config(self))
            self.must("POST", f"{name}/roles/r", {"azure_roles": self.grants(), "ttl": "1h", "max_ttl": "4h"})

    def issue_at(self, mount: str) -> str:
        before = {made.id for made in self.alive()}
        lease_id: str = self.must("GET", f"{mount}/creds/r").body["lease_id"]
        self.made_for.update({made.id: mount for made in self.alive() if made.id not in before})
        return lease_id

    def call_cloud(self, request: HttpRequest) -> Answer:
        mount = next((mount for made, mount in self.made_for.items() if made in request.url), HEALTHY)
        if self.is_troubled and mount == HANGING:
            return Refusal(NEVER)
        if self.is_troubled and mount == REFUSING and self.chances.random() < REFUSED:
            return Refusal()
        return super().call_cloud(request)

    def run_background(self, seconds: float) -> None:
        until = self.clock + seconds
        while self.clock < until:
            again = self.perform(self.service.tick())
            self.advance(max(0.0, min(again, until) - self.clock))

    def left(self, mount: str) -> int:
        """How many app registrations of a mount are alive. Its leases stay listed for the settle time after that."""
        return sum(self.made_for[made.id] == mount for made in self.alive("application"))

    def lateness(self, mount: str) -> float:
        """Return for how many seconds the lease of a mount that has waited longest has been due."""
        due = [queue.parse(key) for key in self.keys(keys.DUE) if queue.is_named(key)]
        return max((self.clock - at for at, _, _, lease_id in due if lease_id.startswith(f"{mount}/")), default=0.0)


def troubled() -> UnevenMounts:
    """Many leases of each mount are due while the trouble begins."""
    mounts = UnevenMounts()
    for name in (HEALTHY, REFUSING, HANGING):
        for _ in range(LEASES):
            mounts.issue_at(name)
    mounts.is_troubled = True
    for name in (HEALTHY, REFUSING, HANGING):
        mounts.must("PUT", f"sys/leases/revoke-prefix/{name}", {"sync": False})
    return mounts


def test_leases_of_a_healthy_mount_end_in_time_beside_mounts_in_trouble() -> None:
    mounts = troubled()
    mounts.run_background(LATENESS)
    assert mounts.left(HEALTHY) == 0
    assert mounts.left(HANGING) == LEASES
    mounts.must("POST", f"{HEALTHY}/roles/r", {"ttl": SHORT, "max_ttl": SHORT})
    for _ in range(MINUTES * 60 // (SHORT + 10)):
        lease_id = mounts.issue_at(HEALTHY)
        mounts.run_background(SHORT + LATENESS)
        assert mounts.lease(lease_id) is None


def test_a_mount_whose_calls_are_refused_at_times_ends_its_leases_soon() -> None:
    """Each refused call is retried after a pause of its own lease, and no lane waits for that.

    So no lease is due for as long as two rounds take, whichever calls the draws refuse.
    """
    mounts = troubled()
    for _ in range(SOON):
        mounts.run_background(1.0)
        assert mounts.lateness(REFUSING) < 2 * RETRY_INTERVAL
    assert mounts.left(REFUSING) <= LEASES / 20  # 0 to 2 with seven other draws: more than 5 are once in 5000 draws
    mounts.run_background(180.0)  # a call in three fails, so a few leases are refused several times in a row
    assert mounts.left(REFUSING) == 0


def test_a_mount_that_hung_ends_its_leases_when_azure_answers_again() -> None:
    mounts = troubled()
    mounts.run_background(60.0 * MINUTES)
    mounts.is_troubled = False
    mounts.run_background(3600.0)
    assert mounts.left(HANGING) == 0
    assert mounts.is_over()
