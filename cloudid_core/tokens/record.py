"""The token as it is stored, and who calls with it."""

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
"""How the principal of a token begins that goes back to no login: the id of its oldest living ancestor follows."""


class Token(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A token. Times are instants, lifetimes are seconds; `expires_at` is `None` for a token without end.

    A service token is an entry of the store; a batch token exists only in its own text. The commit that gives a token
    its first child or lease sets `has_dependants`. A commit that ends the token expects the version of its entry, so it
    cannot miss a dependant.
    """

    id: str = ""
    mac: str = ""
    key_term: int = 1
    """The term of the keys of its hash and its accessor."""
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
    """The token that it dies with, by its id; empty for an orphan."""
    parent_created_at: Instant | None = None
    """When the parent of a batch token was created."""
    explicit_max_ttl: int = 0
    period: int = 0
    num_uses: int = 0
    """How often it can still be used; 0: without limit."""
    bound_cidrs: tuple[str, ...] = ()
    last_renewal: Instant | None = None
    has_dependants: bool = False
    wrapped_by: str = ""
    """Of a wrapping token: the id of the token whose request had the answer wrapped. Empty: a login had none."""
    wrapped_for: str = ""
    """Of a wrapping token: the principal that had the answer wrapped, as `principal`."""
    wrapped_size: int = 0
    """Of a wrapping token: the size of the answer in KiB, rounded up."""
    principal: str = ""
    """Of a token that another one created: the principal of that one. `principal_of` reads it."""
    released: bool = False
    """Dead, but its children live on as orphans. The entry stays until the last of them names no parent."""

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
        """Whether the token that has its parent's id is its parent, and not a later one with the same chosen text.

        Clocks of nodes differ, so the times of both alone do not tell.
        """
        if self.parent_created_at is not None:
            return parent.created_at == self.parent_created_at
        return parent.created_at <= self.created_at

    @property
    def principal_id(self) -> str:
        """Of a login's token: who logged in, which its display name says after the mount's path of that time."""
        mount = self.path.removeprefix("auth/").removesuffix("/login").replace("/", "-")
        return self.display_name.removeprefix(f"{mount}-")

    @property
    def login_principal(self) -> str:
        """The principal behind a login, or the one that this token was created for; empty if neither is known.

        A digest, since the store shows names of entries: who logs in at one mount again is the same principal.
        """
        if self.principal:
            return self.principal
        if self.mount_id == TOKEN.id or not self.role:
            return ""
        return hashlib.sha256(f"{self.mount_id}/{self.principal_id}".encode()).hexdigest()[:32]

    @property
    def batch_holder(self) -> str:
        """Who holds the leases of a batch token without a parent: the principal of its login, otherwise itself."""
        principal = self.login_principal
        return self.id if principal.startswith(ANCESTOR) else principal or self.id

    @property
    def is_root(self) -> bool:
        return "root" in self.policies

    @property
    def is_wrapping(self) -> bool:
        """Whether it stands for one wrapped answer, and is good for nothing else."""
        return RESPONSE_WRAPPING in self.policies

    @property
    def key(self) -> str:
        return keys.token(self.id)

    @property
    def own_keys(self) -> tuple[str, ...]:
        """All entries of a service token."""
        if self.is_wrapping:
            return (self.key, *self.wrapped_keys)
        return (self.key, keys.child(self.parent, self.id)) if self.parent else (self.key,)

    @property
    def wrapped_keys(self) -> tuple[str, ...]:
        """The entries of the answer that a wrapping token stands for."""
        answer, ends_at = keys.wrapped(self.id), self.expires_at
        if ends_at is None:
            return (answer,)
        by_token = (keys.wrapped_by(self.wrapped_by, ends_at, self.id),) if self.wrapped_by else ()
        by_principal = (
            (keys.wrapped_for(self.wrapped_for, ends_at, self.id, self.wrapped_size),) if self.wrapped_for else ()
        )
        return (answer, *by_token, *by_principal)

    def dependant_keys(self, lease_id: str, child_id: str) -> tuple[str, ...]:
        """The entries that make a lease and a token end with this one, by their ids; empty: there is none."""
        leases = (keys.token_lease(self.id, lease_id),) if lease_id else ()
        children = (keys.child(self.id, child_id),) if child_id else ()
        due = (self.due_key(self.expires_at),) if (leases or children) and self.expires_at is not None else ()
        return (*leases, *children, *due)

    def due_key(self, at: Instant) -> str:
        """The due entry by which the background ends the dependants of this token."""
        return keys.due(at, queue.TOKEN, TOKEN.id, self.id)

    def ending(self, now: Instant) -> Changes:
        """Deletes this token, and makes its children and leases due."""
        return Changes(puts={self.due_key(now): Due()} if self.has_dependants else {}, deletes=self.own_keys)


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """A token that was presented and is good, with one of its uses spent, and what its policies allow."""

    token: Token
    text: str
    acl: Acl
    last_use: bool = False
    dies_with_parent: bool = False

    def __repr__(self) -> str:
        return f"<Caller with {self.token}>"
