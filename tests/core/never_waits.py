"""A host that never waits, for `run_now`: memory, a clock that stands still, and programs one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cloudid_core.effects import Entry, Host, HttpRequest, HttpResponse, Instant, PlatformToken, Program
from cloudid_core.errors import PlatformTokenUnavailable, ProviderUnreachable, RecordFailed
from cloudid_core.events import Event
from cloudid_core.run import run
from cloudid_core.store.memory import MemoryStore
from cloudid_core.testing.rsa_keys import private_key_pem
from cloudid_core.testing.world import KEYS
from cloudid_core.values.secret import Secret


class NeverWaits(Host):
    """Time does not pass here: a sleep is over at once."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.events: list[Event] = []
        self.drawn = 0

    async def read_entry(self, key: str) -> Entry | None:
        return self.store.read(key)

    async def read_entries(self, keys: tuple[str, ...]) -> Mapping[str, Entry]:
        return self.store.read_all(keys)

    async def list_keys(self, prefix: str, after: str, limit: int) -> tuple[str, ...]:
        return self.store.list(prefix, after, limit)

    async def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: tuple[str, ...]) -> int:
        return self.store.commit(expects, puts, deletes)

    async def call_provider(self, request: HttpRequest, timeout: float) -> HttpResponse:
        raise ProviderUnreachable("there is no provider", sent=False)

    async def read_platform_token(self, resource: str, client_id: str) -> PlatformToken:
        raise PlatformTokenUnavailable("there is no platform")

    async def sleep(self, seconds: float) -> None:
        pass

    async def now(self) -> Instant:
        return 1_700_000_000.0

    async def compare_clocks(self) -> None:
        return None

    async def random_bytes(self, count: int) -> bytes:
        self.drawn += 1
        return self.drawn.to_bytes(16, "little")[:count].ljust(count, b"\0")

    async def generate_key(self) -> Secret:
        self.drawn += 1
        return Secret(private_key_pem(f"key {self.drawn % KEYS} of a world"))

    async def read_federated_token(self, path: str) -> Secret:
        raise PlatformTokenUnavailable("no container platform is there")

    async def record(self, event: Event) -> None:
        if event.audit is not None:
            raise RecordFailed("there are no audit devices")
        self.events.append(event)

    async def together(self, programs: tuple[Program[Any], ...]) -> tuple[Any, ...]:
        return tuple([await run(program, self) for program in programs])

    async def within(self, seconds: float, program: Program[Any]) -> Any:
        return await run(program, self)

    async def shared(self, key: str, program: Program[Any]) -> Any:
        return await run(program, self)
