"""Bodies: how many bytes of requests all connections may hold together, and whose body is given up when there are more.

A connection holds what has come of a request, the body that is being answered, and what has come ahead of its turn.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Generic, TypeVar

from cloudid_core.errors import Code

from .connections import Connection
from .reader import no_room

UNCOUNTED: Final = 16 * 1024
"""Bytes. A connection that holds less is not counted: the limit of connections bounds what these hold together."""

C = TypeVar("C", bound=Connection)


class _Source(Generic[C]):
    """What the connections of one source hold."""

    def __init__(self) -> None:
        self.held = 0
        self.sizes: dict[C, int] = {}
        self.unfinished: dict[C, None] = {}
        """Those that wait for the rest of a request; the longest waiting first."""

    def offer(self) -> C | None:
        """The connection whose body is given up first, if there is one."""
        return next((each for held in (self.unfinished, self.sizes) for each in held if not each.is_exempt), None)


class Bodies(Generic[C]):
    """The bytes that connections hold: at most `limit`, and less than `UNCOUNTED` more for each connection.

    When there are more, the source that holds most gives up the body that has been under way for longest; where all are
    whole, the oldest one that is no longer needed, or whose caller is unknown. No source loses one to a source that
    holds more, nor a request that is worked on and has a verified token.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = 0
        self._sources: dict[Hashable, _Source[C]] = {}

    def hold(self, connection: C, size: int, *, is_whole: bool) -> None:
        """Note how many bytes a connection holds from now on, and whether its request is whole.

        Refuses the connection itself if no other one makes room for it.
        """
        if size < UNCOUNTED:
            if self._held:
                self.remove(connection)
            return
        source = self._sources.get(connection.source)
        if source is None:
            source = self._sources[connection.source] = _Source()
        growth = size - source.sizes.get(connection, 0)
        source.sizes[connection] = size
        source.held += growth
        self._held += growth
        if is_whole:
            source.unfinished.pop(connection, None)
        else:
            source.unfinished.setdefault(connection)
        while growth > 0 and self._held > self._limit:
            given_up = self._greediest_offer(source.held) or connection
            self.remove(given_up)
            if given_up is connection:
                connection.refuse(no_room(Code.TOO_MANY_BODIES))
                return
            given_up.give_up(no_room(Code.TOO_MANY_BODIES))

    def _greediest_offer(self, least: int) -> C | None:
        """What the source gives up that holds most, and at least so much."""
        sources = sorted(self._sources.values(), key=lambda each: each.held, reverse=True)
        offers = (each.offer() for each in sources if each.held >= least)
        return next(filter(None, offers), None)

    def remove(self, connection: C) -> None:
        """It holds nothing any more. Does nothing if it held nothing."""
        source = self._sources.get(connection.source)
        if source is None or connection not in source.sizes:
            return
        size = source.sizes.pop(connection)
        source.unfinished.pop(connection, None)
        source.held -= size
        self._held -= size
        if not source.sizes:
            del self._sources[connection.source]

    @property
    def held(self) -> int:
        """Bytes, all together."""
        return self._held
