"""The caches of a service: they hold facts and decoded records, never decisions and never the text of a token.

A key is the full identity of what it describes, including the generation of its configuration. A value that can become
outdated has its own time or version, which its readers check.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Final, Generic, TypeVar

from .settings import Settings

USUAL_ENTRY: Final = 4096
"""Usual size of an encrypted entry, in bytes. A cache may hold as many bytes as its maximum number of such entries."""
LONGEST_POLICIES: Final = 2**21
"""Maximum characters of all policies behind the cached access lists. Short rules take about 70 bytes per character."""
LARGEST_CASES: Final = 2**21
"""Maximum bytes of the role entries by which the remembered refusals were decided, and of the remembered admissions."""

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Bounded(Generic[K, V]):
    """A map of limited size that evicts the least recently used entries."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._items: OrderedDict[K, V] = OrderedDict()
        self.peek: Callable[[K], V | None] = self._items.get
        """Return a value like `get`, without counting it as a use.

        For values that are as cheap to compute as to keep in order.
        """

    def get(self, key: K) -> V | None:
        value = self._items.get(key)
        if value is not None:
            self._items.move_to_end(key)
        return value

    def put(self, key: K, value: V) -> None:
        self._items[key] = value
        self._items.move_to_end(key)
        while len(self._items) > self.size:
            self._items.popitem(last=False)

    def drop(self, key: K) -> None:
        self._items.pop(key, None)

    def clear(self) -> None:
        self._items.clear()

    def values(self) -> tuple[V, ...]:
        """Return the current values, least recently used first."""
        return tuple(self._items.values())

    def __iter__(self) -> Iterator[K]:
        """Iterate over the current keys, least recently used first."""
        return iter(list(self._items))

    def __len__(self) -> int:
        return len(self._items)


class Weighed(Bounded[K, V]):
    """A map that is also limited by the total size of its values, because clients choose the size of records.

    The value that was put last stays, however large it is.
    """

    def __init__(self, size: int, most: int) -> None:
        super().__init__(size)
        self.most = most
        self.weight = 0
        self._weights: dict[K, int] = {}

    def put(self, key: K, value: V, weight: int = 1) -> None:
        self.drop(key)
        self._items[key] = value
        self._weights[key] = weight
        self.weight += weight
        while len(self._items) > self.size or (self.weight > self.most and len(self._items) > 1):
            self.drop(next(iter(self._items)))

    def drop(self, key: K) -> None:
        super().drop(key)
        self.weight -= self._weights.pop(key, 0)

    def clear(self) -> None:
        super().clear()
        self._weights.clear()
        self.weight = 0


class AdmittedLogins(deque[tuple[Any, Any]]):
    """The last logins that were admitted, each with its case.

    A case holds the role that it was decided by. While that role is cached it takes no room here. So the sum is bounded
    where a role is read into the cache, which may push another one out, and not at each login.
    """

    heaviest: int = 0
    """The largest weight of a role that was read."""

    def make_room(self, weight: int, most: int) -> None:
        """Forget the oldest logins until the roles of the others weigh at most `most` bytes together.

        `weight` is that of a role that is read into the cache.
        """
        self.heaviest = max(self.heaviest, weight)
        if self.heaviest * len(self) <= most:  # usual roles are far too small
            return
        together, roles = 0, set[int]()
        for kept, (_, case) in enumerate(reversed(self)):
            if id(case.bounds) not in roles:
                roles.add(id(case.bounds))
                together += case.bounds.weight
            if together > most:
                for _ in range(len(self) - kept):
                    self.popleft()
                return


def of_records(settings: Settings) -> Weighed[Any, Any]:
    """Return a cache for values that are derived from stored records.

    Each value is counted with the size of its entry.
    """
    return Weighed(settings.record_cache_size, settings.record_cache_size * USUAL_ENTRY)


class JwtCaches:
    """The caches for the JWTs of logins."""

    def __init__(self, signatures: int) -> None:
        self.signatures: Bounded[Hashable, Any] = Bounded(signatures)
        """Claims of JWTs whose signature was verified."""
        self.jws_headers: Bounded[bytes, str] = Bounded(64)
        """Key ids by the encoded header that names them."""
        self.groups: Bounded[bytes, frozenset[str]] = Bounded(256)
        """Groups by the JSON of the claim that lists them."""
        self.collections: Bounded[str, Any] = Bounded(256)
        """Facts about a collection of resources, by the common part of their ids, exactly as spelled."""


class Caches(JwtCaches):
    """All caches of one service."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings.signature_cache_size)
        self.records: Weighed[str, Any] = of_records(settings)
        """Decoded records by the key of their entry. Each has the version from which it was decoded."""
        self.tokens: Weighed[str, Any] = of_records(settings)
        """Like `records`, for tokens that were used.

        Each use reads the version, so a revocation takes effect immediately. A record contains no secret, only a keyed
        hash of the token.
        """
        self.login_mounts: Bounded[str, Any] = Bounded(256)
        """The data for logins by mount id, and within it by role. Each part has the versions from which it was built.
        """
        self.facts: Bounded[Hashable, Any] = Bounded(settings.fact_cache_size)
        """What Azure returned about machines, service principals and API versions."""
        self.read_budgets: Bounded[Hashable, Any] = Bounded(1024)
        """How often Azure may be read from, by its address and the subscription."""
        self.role_definitions: Bounded[Hashable, Any] = Bounded(1024)
        """Role definitions as last read. They are only used in reports, never for decisions."""
        self.lists: Bounded[str, Any] = Bounded(2**14)
        """Lists from Azure, and whether they are worth reading, by the full identity of the list."""
        self.nodes = 1
        """How many nodes share the limit for reads from Azure."""
        self.signing_keys: Bounded[Hashable, Any] = Bounded(64)
        """Key sets of tenants."""
        self.access_tokens: Bounded[Hashable, Any] = Bounded(256)
        """The service's own access tokens for Azure."""
        self.lent_tokens: Bounded[Hashable, Any] = Bounded(1024)
        """Access tokens of roles, by everything that they depend on, including the versions of role and configuration.
        """
        self.provider_troubles: Bounded[Hashable, Any] = Bounded(1024)
        """Failing calls to Azure, by mount (for keys: by tenant) and family of calls."""
        self.token_requests: Bounded[str, float] = Bounded(1024)
        """When each mount last received or was refused an access token, by mount and version of its configuration."""
        self.removed_certificates: Bounded[tuple[str, str], float] = Bounded(1024)
        """When this node removed certificates, by the app registration's object id and their names."""
        self.direct_routes: Bounded[str, Any] = Bounded(1)
        """The table of mounts as this node last read it, and the destinations that need no new read of it."""
        self.quotas: Bounded[str, Any] = Bounded(1)
        """All quotas, and when they were read."""
        self.requests: Bounded[Hashable, Any] = Bounded(settings.source_cache_size)
        """How many requests a quota still allows, by quota and source."""
        self.operators: Bounded[Hashable, Any] = Bounded(settings.source_cache_size)
        """How many tokens of a source may still be checked at the paths that manage the quotas which refuse it."""
        self.flights: Bounded[str, Any] = Bounded(2**16)
        """Running look-ups in Azure, by their keys."""
        self.failed_logins: Bounded[Hashable, Any] = Bounded(settings.source_cache_size)
        """How many logins of a source may still fail."""
        self.admitted_logins = AdmittedLogins(maxlen=16)
        """The last logins, for operators only. Nothing is decided by them.

        Kept small: with 128 logins, the evicted ones have left the CPU cache by the time they are freed, and every
        login takes 5 % longer.
        """
        self.refused_logins: Weighed[Hashable, Any] = Weighed(128, LARGEST_CASES)
        """The last refusals, by machine and codes. Each has the role by which it was decided."""
        self.unaccepted_logins: Bounded[Hashable, Any] = Bounded(64)
        """The last refusals of logins whose token was verified but not accepted, by mount, source address and codes."""
        self.unverified_logins: Bounded[Hashable, Any] = Bounded(64)
        """Like `unaccepted_logins`, for tokens whose signature was not verified.

        They are separate so that they cannot evict the others.
        """
        self.acls: Weighed[Hashable, Any] = Weighed(1024, LONGEST_POLICIES)
        """What sets of policies allow, by the names in a token. Each has the versions from which it was built."""
