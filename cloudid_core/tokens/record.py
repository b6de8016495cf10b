"""The stored token, and the caller of a request."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

import msgspec

from ..context import Due, queue
from ..effects import Instant
from ..mounts import TOKEN
from ..policies import RESPONSE_WRAPPING, Acl
from ..store import Changes, keys
from .settings import BATCH, SERVICE

ANCESTOR: Final = "token-"
"""The prefix of a principal without a login. The id of the oldest living ancestor follows."""


class Token(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A token. Times are instants, lifetimes are seconds; `expires_at` is `None` for a token that does not expire.

    A service token is an entry of the store; a batch token exists only in its own text. The commit that gives a token
    its first child or lease sets `has_dependants`. A commit that ends the token expects the version of its entry, so it
    cannot miss a dependant.
    """

    id: str = ""
    mac: str = ""
    key_term: int = 1
    """The term of the keys for its hash and its accessor."""
    path: str
    mount_id: str
    policies: tuple[str, ...]
    display_name: str
    created_at: Instant
    ttl: int
    expires_at: Instant | None
    role: str = ""
    metadata: Mapping[str, str] | None = None
    type: str = SERVICE
    renewable: bool = True
    parent: str = ""
    """The id of the parent with which it ends. Empty for an orphan."""
    parent_created_at: Instant | None = None
    """When the parent of a batch token was created."""
    explicit_max_ttl: int = 0
    period: int = 0
    num_uses: int = 0
    """How often it can still be used. 0: no limit."""
    bound_cidrs: tuple[str, ...] = ()
    last_renewal: Instant | None = None
    has_dependants: bool = False
    wrapped_by: str = ""
    """For a wrapping token: the id of the token whose request wrapped the response. Empty for a login."""
    wrapped_for: str = ""
    """For a wrapping token: the principal whose request wrapped the response, as in `principal`."""
    wrapped_size: int = 0
    """For a wrapping token: the size of the response in KiB, rounded up."""
    principal: str = ""
    """For a token that another token created: the principal of that token. `principal_of` reads it."""
    released: bool = False
    """Ended, but its children become orphans. The entry stays until the last of them no longer names it as parent."""

    def __repr__(self) -> str:
        return f"<Token {self.id}>"

    def is_alive(self, now: Instant) -> bool:
        return not self.released and (self.expires_at is None or now < self.expires_at)

    def seconds_left(self, now: Instant) -> int:
        return max(0, int(self.expires_at - now)) if self.expires_at is not None else 0

    @property
    def is_batch(self) -> bool:
        return self.type == BATCH

    @property
    def orphan(self) -> bool:
        return not self.parent

    def is_child_of(self, parent: Token) -> bool:
        """Return whether the token with its parent's id is its parent, and not a later one with the same chosen text.

        The times of both are not enough to decide this, because the clocks of nodes differ.
        """
        if self.parent_created_at is not None:
            return parent.created_at == self.parent_created_at
        return parent.created_at <= self.created_at

    @property
    def principal_id(self) -> str:
        """Return the principal of a login's token.

        It is in the display name, after the path of the mount at that time.
        """
        mount = self.path.removeprefix("auth/").removesuffix("/login").replace("/", "-")
        return self.display_name.removeprefix(f"{mount}-")

    @property
    def login_principal(self) -> str:
        """Return the principal of a login, or the principal for which this token was created.

        Empty if neither is known.

        It is a digest, because names of entries are visible in the store. Repeated logins at one mount have the same
        principal.
        """
        if self.principal:
            return self.principal
        if self.mount_id == TOKEN.id or not self.role:
            return ""
        return hashlib.sha256(f"{self.mount_id}/{self.principal_id}".encode()).hexdigest()[:32]

    @property
    def batch_holder(self) -> str:
        """Return the holder of leases of a batch token without a parent.

        It is the principal of its login, otherwise the token itself.
        """
        principal = self.login_principal
        return self.id if principal.startswith(ANCESTOR) else principal or self.id

    @property
    def is_root(self) -> bool:
        return "root" in self.policies

    @property
    def is_wrapping(self) -> bool:
        """Return whether it stands for one wrapped response, and has no other use."""
        return RESPONSE_WRAPPING in self.policies

    @property
    def key(self) -> str:
        return keys.token(self.id)

    @property
    def own_keys(self) -> tuple[str, ...]:
        """Return all entries of a service token."""
        if self.is_wrapping:
            return (self.key, *self.wrapped_keys)
        return (self.key, keys.child(self.parent, self.id)) if self.parent else (self.key,)

    @property
    def wrapped_keys(self) -> tuple[str, ...]:
        """Return the entries of the response behind a wrapping token."""
        answer, ends_at = keys.wrapped(self.id), self.expires_at
        if ends_at is None:
            return (answer,)
        by_token = (keys.wrapped_by(self.wrapped_by, ends_at, self.id),) if self.wrapped_by else ()
        by_principal = (
            (keys.wrapped_for(self.wrapped_for, ends_at, self.id, self.wrapped_size),) if self.wrapped_for else ()
        )
        return (answer, *by_token, *by_principal)

    def dependant_keys(self, lease_id: str, child_id: str) -> tuple[str, ...]:
        """Return the entries that make a lease and a token end with this one, by their ids. Empty id: there is none."""
        leases = (keys.token_lease(self.id, lease_id),) if lease_id else ()
        children = (keys.child(self.id, child_id),) if child_id else ()
        due = (self.due_key(self.expires_at),) if (leases or children) and self.expires_at is not None else ()
        return (*leases, *children, *due)

    def due_key(self, at: Instant) -> str:
        """Return the queue entry by which the background work ends the dependants of this token."""
        return keys.due(at, queue.TOKEN, TOKEN.id, self.id)

    def ending(self, now: Instant) -> Changes:
        """Return the change that deletes this token, and schedules the end of its children and leases."""
        return Changes(puts={self.due_key(now): Due()} if self.has_dependants else {}, deletes=self.own_keys)


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """A valid token of a request, after one of its uses was counted, and what its policies allow."""

    token: Token
    text: str
    acl: Acl
    last_use: bool = False
    dies_with_parent: bool = False

    def __repr__(self) -> str:
        return f"<Caller with {self.token}>"
