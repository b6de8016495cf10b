"""The service: what a host runs. `initialise` once, `open_service` at every start, then `handle` for each request.

    service = await run(open_service(settings), host)
    response = await run(service.handle(request), host)

`tick` and `upkeep` are background work; each answers the instant at which it wants to run again.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Final

from .api.dispatch import RequestFacts, respond
from .api.response import Request, Response, render_refusal
from .background.loop import Loop
from .effects import Instant, Now, RandomBytes, Record
from .errors import Code, EntryDamaged, HostFailure, RecordFailed, Refused
from .foundation.caches import Caches
from .foundation.context import Context
from .initialise import initialise
from .leases.revocation import end_lease
from .mounts.catalog import CATALOG, HANDLERS
from .provider.client import PROVIDER_FAILURES, refusal_of
from .provider.signing_keys import refresh_ahead
from .settings import Settings
from .store.keyring import open_keyring, read_keyring
from .store.records import Records
from .store.sealing import Sealer
from .tokens.sweep import Sweep
from .values.guid import uuid_text

UPKEEP_PAUSE: Final = 60.0

__all__ = ["Service", "initialise", "open_service"]


async def open_service(settings: Settings) -> Service:
    """The service over an initialised store; fails as `open_keyring` does."""
    caches = Caches(settings)
    records = Records(Sealer(await open_keyring(settings)), caches.records, partial(read_keyring, settings))
    node = (await RandomBytes(8)).hex()
    return Service(Context(settings, records, caches, CATALOG), node)


class Service:
    """One opened service: what it was opened with, and its caches. Everything else is in the store."""

    def __init__(self, context: Context, node: str) -> None:
        self.context = context
        self._background = Loop(context, node, HANDLERS, Sweep().run)

    async def handle(self, request: Request) -> Response:
        """Answer one request, whatever it is. Only a bug of ours is answered with 500."""
        request_id = uuid_text(await RandomBytes(16))
        facts = RequestFacts(request_id=request_id, time=await Now(), remote_address=request.remote_address)
        refusal: Refused
        failure: Exception | None = None
        try:
            response = await respond(self.context, CATALOG, request, facts)
            return await self._recorded(response, facts)
        except EntryDamaged as damaged:
            refusal, failure = damaged, damaged
        except Refused as refused:
            refusal = refused
        except PROVIDER_FAILURES as unanswered:
            refusal, failure = refusal_of(unanswered), unanswered
        except RecordFailed as unrecorded:
            refusal, failure = Refused(Code.AUDIT_UNAVAILABLE), unrecorded
        except HostFailure as unavailable:
            refusal, failure = Refused(Code.STORE_UNAVAILABLE), unavailable
        except Exception as bug:  # noqa: BLE001  # its text may hold a secret: no event has it
            refusal, failure = Refused(Code.INTERNAL_ERROR), bug
        refused_response = render_refusal(refusal, failure, request_id)
        with suppress(RecordFailed):  # the refusal tells nothing that an audit device would have to know
            await Record(facts.answered(refused_response))
        return refused_response

    async def _recorded(self, response: Response, facts: RequestFacts) -> Response:
        """The response, once its event is recorded; what it holds is given back otherwise."""
        try:
            await Record(facts.answered(response))
        except RecordFailed:
            await self.undelivered(response)
            raise
        return response

    async def undelivered(self, response: Response) -> None:
        """Give back what an answer held that could not be delivered."""
        if response.holds:
            await end_lease(self.context, response.holds, await Now())

    async def tick(self) -> Instant:
        """Do the background work that is due; when to come again."""
        return await self._background.run()

    async def upkeep(self) -> Instant:
        """Keep this node's caches and keys fresh; when to come again."""
        await refresh_ahead(self.context.settings, self.context.caches)
        await self.context.records.learn_keys()
        return await Now() + UPKEEP_PAUSE
