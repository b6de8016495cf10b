"""The world: the whole state of one simulated cloud."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, TypeAlias

from cloudid_core.effects import HttpResponse

from ..engine.behaviour import Behaviour
from ..engine.faults import Rule
from ..engine.ledger import Ledger
from ..engine.randomness import Randomness
from ..engine.replicas import Replication
from ..engine.requests import Call, Json
from ..engine.throttling import Throttle
from .directory import Directory
from .machines import Identity, Machine, Resource, ScaleSet
from .objects import FederatedCredential
from .roles import RoleAssignments, RoleDefinition

DOMAIN: Final = "contoso.example"
"""Of every tenant."""
Fetch: TypeAlias = Callable[[str], HttpResponse]
"""GETs a URL outside of the cloud. Raises `OSError` when there is no answer."""


def fetch_nothing(url: str) -> HttpResponse:
    """The fetcher of a cloud that is connected to nothing."""
    raise OSError("this cloud reaches no other host")


class World:
    """The state of one cloud. Names and resource ids are looked up in lower case."""

    def __init__(self, seed: int, base_url: str, clock: Callable[[], float], fetch: Fetch = fetch_nothing) -> None:
        self.seed = seed
        self.base_url = base_url
        self.fetch = fetch
        self._clock = clock
        self.clear()

    def clear(self) -> None:
        """Forget everything but the seed and the address."""
        self.randomness = Randomness(self.seed)
        self.clock_offset = 0.0
        self.faults: list[Rule] = []
        self.key_count = 1
        """How many signing keys were made; the last one signs."""
        self.first_published_key = 0
        self.key_members: dict[str, dict[str, Any]] = {}
        """Members of published keys that the control API changed, by key id; `None` removes a member."""
        self.tenant_id = self.randomness.guid("tenant")
        self.tenant_domain = DOMAIN
        self.subscriptions: list[str] = []
        self.resource_groups: dict[tuple[str, str], str] = {}
        self.replication = Replication(self.seed, self.now)
        self.buckets = Throttle(self.now)
        self.requests_left = 0
        """How many the bucket of the last request would still admit."""
        self.ledger = Ledger(self.now)
        self.directory = Directory(self.replication, self.randomness, self.ledger, self.tenant_id)
        self.role_definitions: dict[str, RoleDefinition] = {}
        self.role_assignments = RoleAssignments(self.replication)
        self.readers: set[str] = set()
        """Principals that may read the directory. Role assignments say what is permitted in the resource manager."""
        self.writers: set[str] = set()
        """Principals that may create, change and delete in the directory."""
        self.consents: dict[str, tuple[str, ...]] = {}
        """The permissions in the directory that an administrator has consented to, by principal."""
        self.machines: dict[str, Machine] = {}
        self.power: dict[str, str] = {}
        """The power state of each virtual machine that was ever started or stopped, by its id."""
        self.scale_sets: dict[str, ScaleSet] = {}
        self.instances_made: Counter[str] = Counter()
        self.identities: dict[str, Identity] = {}
        self.resources: dict[str, Resource] = {}
        self.machine_tokens: dict[tuple[str, str, str], tuple[str, int]] = {}
        """What the metadata services have cached: token and expiry by machine, client id and audience."""
        self.metadata_calls: Counter[str] = Counter()
        """How often each machine's metadata service was called, by the machine's name."""
        self.federations: dict[str, FederatedCredential] = {}
        self.issuer_keys: dict[str, Any] = {}
        """The keys that were fetched from issuers, by issuer."""
        self.assertions: list[Json] = []
        """The last client assertions that were accepted."""

    def copy(self, clock: Callable[[], float] | None = None, fetch: Fetch | None = None) -> World:
        """An independent world in the same state; with another clock and fetcher, if they are given."""
        return deepcopy(self, {id(self._clock): clock or self._clock, id(self.fetch): fetch or self.fetch})

    def now(self) -> float:
        return self._clock() + self.clock_offset

    @property
    def behaviour(self) -> Behaviour:
        return self.replication.behaviour

    @behaviour.setter
    def behaviour(self, behaviour: Behaviour) -> None:
        self.replication.behaviour = behaviour
        self.buckets = Throttle(self.now)

    def throttle(self, service: str, call: Call) -> None:
        """Count the request; `Refusal` 429 if there are too many."""
        self.requests_left = 0
        self.requests_left = self.buckets.take(self.behaviour.throttle, service, call)


def fine_instant(seconds: float) -> str:
    """RFC 3339 with seven digits of a second, as the resource manager writes it."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S.%f}0Z"


@lru_cache(maxsize=4096)
def instant(seconds: float) -> str:
    """RFC 3339, as the directory writes it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
