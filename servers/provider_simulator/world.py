"""World: everything that the simulated cloud consists of, and its clock and chance."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from attrs import frozen

from .behaviour import Behaviour
from .definitions import RoleDefinition
from .directory import Directory
from .faults import Rule
from .grants import Grants
from .keys import SigningKey, signing_key
from .ledger import Ledger
from .objects import Value
from .replicas import Spread
from .routing import Call
from .throttle import throttle

if TYPE_CHECKING:
    from .machines import Machine, ScaleSet


@frozen
class Identity(Value):
    """A managed identity. Its id is that of its machine when the system assigned it."""

    name: str
    resource_id: str
    principal_id: str
    client_id: str
    location: str


Resource: TypeAlias = "Machine | ScaleSet | Identity"


class Dice:
    """All ids and secrets: made from the seed, a label, and how often that label was asked for."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._rolls: Counter[str] = Counter()

    def roll(self, label: str, size: int) -> bytes:
        self._rolls[label] += 1
        return hashlib.shake_256(f"{self._seed} {self._rolls[label]} {label}".encode()).digest(size)

    def guid(self, label: str) -> str:
        """A random UUID (RFC 9562, version 4)."""
        digits = self.roll(label, 16).hex()
        variant = "89ab"[int(digits[16], 16) & 3]
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"

    def text(self, label: str, length: int = 40) -> str:
        """Letters, digits, `-` and `_`."""
        return urlsafe_b64encode(self.roll(label, length)).decode()[:length]


class World:
    """The state of one cloud. Names and resource ids are looked up in any case."""

    def __init__(self, seed: int, base_url: str, clock: Callable[[], float]) -> None:
        self.seed = seed
        self.base_url = base_url
        self._clock = clock
        self.clear()

    def clear(self) -> None:
        """Forget everything but the seed and the address."""
        self.dice = Dice(self.seed)
        self.clock_offset = 0.0
        self.faults: list[Rule] = []
        self.key_count = 1
        self.first_published_key = 0
        self.tenant_id = self.dice.guid("tenant")
        self.tenant_domain = "contoso.example"
        self.subscriptions: list[str] = []
        self.resource_groups: dict[tuple[str, str], str] = {}
        self.spread = Spread(self.seed, self.now)
        self.buckets: dict[tuple[str, str, str], tuple[float, float]] = {}
        """How many requests each bucket had left, and when."""
        self.ledger = Ledger()
        self.directory = Directory(self)
        self.role_definitions: dict[str, RoleDefinition] = {}
        self.grants = Grants(self.spread)
        self.readers: set[str] = set()
        """Principals that may read everything in the resource manager and the directory."""
        self.writers: set[str] = set()
        """Principals that may also make, change and delete what is there."""
        self.machines: dict[str, Machine] = {}
        self.scale_sets: dict[str, ScaleSet] = {}
        self.instances_made: Counter[str] = Counter()
        self.identities: dict[str, Identity] = {}
        self.resources: dict[str, Resource] = {}
        self.machine_tokens: dict[tuple[str, str, str], tuple[str, int]] = {}
        """What the metadata services have cached: token and expiry by machine, client id and audience."""

    def copy(self, clock: Callable[[], float] | None = None) -> World:
        """A world that is the same now, and goes its own way; with another clock, if one is given."""
        return deepcopy(self, {id(self._clock): clock or self._clock})

    def now(self) -> float:
        return self._clock() + self.clock_offset

    @property
    def behaviour(self) -> Behaviour:
        return self.spread.behaviour

    def throttle(self, family: str, call: Call) -> None:
        throttle(self, family, call)

    # Signing keys: all up to `key_count` were made, those from `first_published_key` on are published.

    def signing_key(self) -> SigningKey:
        return signing_key(self.seed, self.key_count - 1)

    def published_keys(self) -> Iterator[SigningKey]:
        return (signing_key(self.seed, number) for number in range(self.first_published_key, self.key_count))

    def rotate_key(self, remove_old: bool) -> SigningKey:
        """Sign with a new key from now on. The machines' cached tokens are forgotten, so that this can be seen."""
        self.key_count += 1
        if remove_old:
            self.first_published_key = self.key_count - 1
        self.machine_tokens.clear()
        return self.signing_key()


@lru_cache(maxsize=4096)
def instant(seconds: float) -> str:
    """RFC 3339, as the directory writes it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
