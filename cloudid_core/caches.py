"""Caches: one bounded object that holds facts and decoded records, never decisions and never the text of our tokens.

A key is the full identity of what it describes, generation of its configuration included; what can become wrong carries
its own time or version, which its readers check.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Final, Generic, TypeVar

from .settings import Settings

USUAL_ENTRY: Final = 4096
"""Bytes of an entry, sealed. A cache may hold as many bytes as its number of entries has if all are so large."""
LONGEST_POLICIES: Final = 2**21
"""Characters of the policies behind all access lists that are remembered. Short rules take about 70 bytes for each.
"""
LARGEST_CASES: Final = 2**21
"""Bytes of the entries of the roles that remembered refusals were decided by, and of those of remembered admissions."""

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Bounded(Generic[K, V]):
    """A map of limited size that forgets what was not used for longest."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._items: OrderedDict[K, V] = OrderedDict()
        self.peek: Callable[[K], V | None] = self._items.get
        """As `get`, but it does not count as a use: for what is as cheap to make anew as to keep in order."""

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
        """The values at this moment, the longest unused first."""
        return tuple(self._items.values())

    def __iter__(self) -> Iterator[K]:
        """The keys at this moment, the longest unused first."""
        return iter(list(self._items))

    def __len__(self) -> int:
        return len(self._items)


class Weighed(Bounded[K, V]):
    """A map that is also bounded by what its values weigh together: writers of records choose how large these are.

    The value that was put last stays, however much it weighs.
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
    """A cache for what is made of stored records, which weigh as many bytes as their entries have."""
    return Weighed(settings.record_cache_size, settings.record_cache_size * USUAL_ENTRY)


class JwtCaches:
    """What is remembered of login JWTs."""

    def __init__(self, signatures: int) -> None:
        self.signatures: Bounded[Hashable, Any] = Bounded(signatures)
        """Claims of JWTs whose signature held."""
        self.jws_headers: Bounded[bytes, str] = Bounded(64)
        """Key ids by the header, still encoded, that names them."""
        self.groups: Bounded[bytes, frozenset[str]] = Bounded(256)
        """Groups by the JSON of the claim that lists them."""
        self.collections: Bounded[str, Any] = Bounded(256)
        """What is known of a collection of resources, by all that their ids have in common, as it was written."""


class Caches(JwtCaches):
    """All caches of one service."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings.signature_cache_size)
        self.records: Weighed[str, Any] = of_records(settings)
        """Decoded records by entry key; each knows the version that it was decoded from."""
        self.tokens: Weighed[str, Any] = of_records(settings)
        """As `records`, for tokens that were used. Each use reads the version, so what ends a token counts at once.
        A record has no secret: of its token's text it holds a keyed hash only, which is refused as a token."""
        self.login_mounts: Bounded[str, Any] = Bounded(256)
        """What logins rest on, by the id of their mount, and through it what they rest on by role; each knows the
        versions that it was made of."""
        self.facts: Bounded[Hashable, Any] = Bounded(settings.fact_cache_size)
        """What the provider said about machines, principals and api-versions."""
        self.read_budgets: Bounded[Hashable, Any] = Bounded(1024)
        """How often the provider may be read from, by its address and the subscription."""
        self.role_definitions: Bounded[Hashable, Any] = Bounded(1024)
        """Role definitions as they were last read, for reports: nothing is decided by them."""
        self.lists: Bounded[str, Any] = Bounded(2**14)
        """Lists at the provider, and whether they are worth reading, by all that says which list it is."""
        self.nodes = 1
        """How many nodes share what the provider lets all of them read."""
        self.signing_keys: Bounded[Hashable, Any] = Bounded(64)
        """Key sets of tenants."""
        self.access_tokens: Bounded[Hashable, Any] = Bounded(256)
        """Our own access tokens at the provider."""
        self.lent_tokens: Bounded[Hashable, Any] = Bounded(1024)
        """Access tokens of roles, by all that they depend on, the versions of role and configuration included."""
        self.provider_troubles: Bounded[Hashable, Any] = Bounded(1024)
        """What does not work at the provider, by mount (of keys: by tenant) and family of calls."""
        self.token_requests: Bounded[str, float] = Bounded(1024)
        """When each mount last got or was refused an access token, by mount and version of its configuration."""
        self.removed_certificates: Bounded[tuple[str, str], float] = Bounded(1024)
        """When this node removed certificates, by the application's object id and their names."""
        self.direct_routes: Bounded[str, Any] = Bounded(1)
        """The table of mounts that this node read last, and where requests lead in it that need not read it again."""
        self.quotas: Bounded[str, Any] = Bounded(1)
        """All quotas, and when they were read."""
        self.requests: Bounded[Hashable, Any] = Bounded(settings.source_cache_size)
        """What a quota still lets through, by quota and source."""
        self.operators: Bounded[Hashable, Any] = Bounded(settings.source_cache_size)
        """How many tokens of a source may still be checked at the own paths of quotas that refuse."""
        self.flights: Bounded[str, Any] = Bounded(2**16)
        """Look-ups at the provider that are under way, by their keys."""
        self.failed_logins: Bounded[Hashable, Any] = Bounded(settings.source_cache_size)
        """How many logins of a source may still fail."""
        self.admitted_logins = AdmittedLogins(maxlen=16)
        """The last logins, for people to look at: nothing is decided by them. Few are freed while the processor still
        has them in its caches: with 128 of them, every login takes 5 % longer.
        """
        self.refused_logins: Weighed[Hashable, Any] = Weighed(128, LARGEST_CASES)
        """The last refusals by machine and codes. Each holds the role that it was decided by."""
        self.unaccepted_logins: Bounded[Hashable, Any] = Bounded(64)
        """The last refusals of logins whose token was verified and not accepted, by mount, source address and codes."""
        self.unverified_logins: Bounded[Hashable, Any] = Bounded(64)
        """As `unaccepted_logins`, for tokens whose signature was not verified: they must not displace the others."""
        self.acls: Weighed[Hashable, Any] = Weighed(1024, LONGEST_POLICIES)
        """What sets of policies allow, by the names in a token; each knows the versions that it was made of."""
