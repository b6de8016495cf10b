"""The wrapped answer as it is stored, and what ends with it if it is never unwrapped."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from ..context import Due
from ..effects import Instant
from ..store import Changes, Found, keys
from ..tokens import Token


class Wrapped(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An answer that no client has seen yet.

    Its lease or its token hangs on the wrapping token: when that ends without having been unwrapped, they end too.
    `new_lease` and `new_token` are ids, empty where the answer gives none for the first time.
    """

    body: str
    path: str
    created_at: Instant
    ttl: int
    new_lease: str = ""
    new_token: str = ""
    accessor: str = ""
    """The accessor of the token in the answer."""

    def __repr__(self) -> str:
        return f"<Wrapped answer of {self.path}>"

    @property
    def has_dependants(self) -> bool:
        return bool(self.new_lease or self.new_token)

    def dependant_keys(self, token: Token) -> tuple[str, ...]:
        """What makes the background end the lease or token when the wrapping token ends."""
        return token.dependant_keys(self.new_lease, self.new_token)

    def tie(self, token: Token) -> Changes:
        """Writes this under its wrapping token, with what hangs on that."""
        index_keys = (*token.wrapped_keys, *self.dependant_keys(token))
        return Changes(puts={**dict.fromkeys(index_keys, Due()), keys.wrapped(token.id): self})

    def release(self, token: Found[Token], now: Instant) -> Changes:
        """Ends the wrapping token, but nothing that hangs on it.

        A put ends it, not a delete: if the store cannot tell the outcome, only what was put proves who unwrapped it.
        """
        spent = replace(token.record, expires_at=now, has_dependants=False)
        deletes = (*token.record.wrapped_keys, *self.dependant_keys(token.record))
        return Changes(token.expected, {token.key: spent}, deletes)
