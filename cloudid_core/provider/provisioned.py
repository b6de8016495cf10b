"""What a record has provisioned at the provider, and how it is removed.

A lease lists the objects that were made for it, an intent those that may have been made. Both are removed in the same
way. The secret goes first, so that nobody can use what is still being removed. Each step has its own share of the time:
one that fails or hangs does not keep the others waiting. Removal is idempotent. An object that the provider does not
find counts as gone only when the directory's settle time has passed since it may have been made.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from attrs import define, evolve, field, frozen
from msgspec.structs import replace

from ..deadline import Deadline
from ..effects import Instant, Now, Program, gather
from ..errors import CloudidError, ProviderProblem, Refused, drop_tracebacks, reason_of
from .applications import application_by_unique_name, delete_application, purge
from .assignments import other_assignments, unassign
from .client import Client
from .memberships import MEMBERSHIPS, Membership
from .principals import delete_principal, principal_of
from .proofs import PROOFS, SECRET

LANES: Final = 8
"""How many objects of one step are removed at the same time."""
UNSETTLED: Final = "not found yet: the directory may not show it before its settle time has passed"
SECRET_STEP: Final = "secret"
IDS_FOUND: Final = "its ids were found and are written down before it is removed"


@frozen(kw_only=True)
class Provisioned:
    """Objects at the provider.

    An application of ours is known by its unique name from the start, and by its ids once an answer came. A password is
    known by its display name, and by its key id once an answer came.
    """

    made_at: Instant
    tenant: str = ""
    """The directory that they are in, where that is known."""
    unique_name: str = ""
    application_id: str = ""
    client_id: str = ""
    audience: str = ""
    """The sign-in audience that the application was given. Empty: none was sent, or it is not known to be there."""
    principal_id: str = ""
    member_id: str = ""
    """The principal that has the memberships. It is removed only if it is also `principal_id`."""
    assignments: tuple[str, ...] = ()
    definitions: tuple[str, ...] = ()
    """The ids of the role definitions that `assignments` were made with, in their order."""
    groups: tuple[str, ...] = ()
    directory_roles: tuple[str, ...] = ()
    app_roles: tuple[str, ...] = ()
    password_on: str = ""
    """The object id of the application that has the password: `application_id`, or one that is not removed."""
    password_name: str = ""
    password_key_id: str = ""
    proof: str = SECRET
    """Whether it is a password or another of `PROOFS`: all have a name and an id."""
    purge: bool = False
    to_purge: tuple[str, ...] = ()
    deleted_at: Instant = 0.0
    """When the latest of `to_purge` was deleted: it may not show among the deleted items yet."""

    @property
    def memberships(self) -> Mapping[str, tuple[str, ...]]:
        """Those that it has, by their kinds."""
        return {kind: ids for kind in MEMBERSHIPS if (ids := getattr(self, kind))}

    def with_memberships(self, memberships: Mapping[str, tuple[str, ...]]) -> Provisioned:
        """The same with these memberships of their kinds."""
        changes: dict[str, Any] = dict(memberships)
        return evolve(self, **changes)

    @property
    def may_sign_in(self) -> bool:
        """Whether there may be a secret, or an application that has one."""
        return bool(self.password_on or self.application_id or self.unique_name)

    @property
    def is_empty(self) -> bool:
        return not (
            self.unique_name
            or self.application_id
            or self.principal_id
            or self.assignments
            or self.memberships
            or self.password_on
            or self.to_purge
        )


@frozen
class Removal:
    """What is left after an attempt, and why: calls that failed, and objects that may not show yet."""

    left: Provisioned
    failures: tuple[tuple[str, CloudidError], ...] = ()
    waiting: tuple[str, ...] = ()

    @property
    def reasons(self) -> tuple[str, ...]:
        return (*(f"{what}: {reason_of(failure)}" for what, failure in self.failures), *self.waiting)

    @property
    def retry_after(self) -> float | None:
        """The longest time that Azure asked to wait, in seconds."""
        asked = [failure.retry_after for _, failure in self.failures if isinstance(failure, ProviderProblem | Refused)]
        return max((seconds for seconds in asked if seconds is not None), default=None)

    @property
    def is_accepted(self) -> bool:
        """Whether the secret is dead and every deletion was accepted, by itself or with what the object belonged to.

        Objects may wait for the settle time.
        """
        failed = {what for what, _ in self.failures}
        return self.left.is_empty or not (self.left.password_on or failed - {SECRET_STEP})


async def remove(client: Client, provisioned: Provisioned, *, settled: bool) -> Removal:
    """Remove secret, assignments, memberships, principal and application, then purge what is to be purged.

    `settled`: what the provider does not find is not there.
    """
    attempt = _Attempt(client, provisioned, settled=settled)
    await attempt.remove_secret()
    await attempt.find_ids()
    if provisioned.purge and attempt.found_ids:
        # A deleted object can no longer be found by its name: its ids must be written down before.
        attempt.waiting.append(f"application: {IDS_FOUND}")
        return attempt.removal
    await attempt.remove_assignments()
    await attempt.remove_memberships()
    await attempt.delete_principal()
    await attempt.delete_application()
    await attempt.purge()
    return attempt.removal


@define
class _Attempt:
    """One attempt: what is still left, and what went wrong so far."""

    client: Client
    left: Provisioned
    settled: bool = field(kw_only=True)
    failures: list[tuple[str, CloudidError]] = field(factory=list, init=False)
    waiting: list[str] = field(factory=list, init=False)
    steps_left: int = field(init=False)
    found_ids: bool = field(default=False, init=False)
    look_up_failed: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        left = self.left
        steps = (
            left.password_on,
            self._has_unknown_ids,
            left.assignments,
            left.principal_id and left.assignments,
            *left.memberships,
            left.principal_id or left.unique_name,
            left.application_id or left.unique_name,
            left.purge or left.to_purge,
        )
        self.steps_left = sum(map(bool, steps))

    @property
    def removal(self) -> Removal:
        return Removal(self.left, tuple(self.failures), tuple(self.waiting))

    async def remove_secret(self) -> None:
        left = self.left
        if left.password_on:
            # An application of its own is deleted with all its passwords: they need not be found by their name.
            is_own = left.password_on == left.application_id and bool(left.password_key_id)
            name = "" if is_own else left.password_name
            removal = PROOFS[left.proof].remove(await self._share(), left.password_on, name, left.password_key_id)
            if await self._try_remove(SECRET_STEP, removal):
                self.left = _without_password(left)

    async def find_ids(self) -> None:
        """Look up the ids of an application, and of its principal, whose answers were lost."""
        if not self._has_unknown_ids:
            return
        client, left = await self._share(), self.left
        try:
            if left.unique_name and not left.application_id:
                application = await application_by_unique_name(client, left.unique_name)
                if application is not None:
                    self._found(evolve(left, application_id=application.object_id, client_id=application.client_id))
            left = self.left
            if left.application_id and left.client_id and not left.principal_id:
                principal_id = await principal_of(client, left.client_id)
                if principal_id is not None:
                    self._found(evolve(left, principal_id=principal_id, member_id=left.member_id or principal_id))
        except CloudidError as failure:
            self.look_up_failed = True
            drop_tracebacks(failure)
            self.failures.append(("application", failure))

    async def remove_assignments(self) -> None:
        """Remove our assignments, and those that others made for a principal of ours: Azure would keep them."""
        left = self.left
        others: list[str] = []
        if left.principal_id and left.assignments:
            with suppress(CloudidError):  # what cannot be listed does not keep the rest waiting
                others = await other_assignments(await self._share(), left.principal_id, left.assignments)
        self.left = evolve(left, assignments=await self._kept("assignment", left.assignments, unassign))
        for path in others:
            with suppress(CloudidError):  # the mount may have no permission at that scope
                await unassign(self.client, path)

    async def remove_memberships(self) -> None:
        member_id = self.left.member_id
        for kind, ids in self.left.memberships.items() if member_id else ():
            membership = MEMBERSHIPS[kind]
            leave = partial(_leave, membership, member_id)
            self.left = self.left.with_memberships({kind: await self._kept(membership.what, ids, leave)})

    async def delete_principal(self) -> None:
        principal_id = self.left.principal_id
        if principal_id and await self._try_remove("principal", delete_principal(await self._share(), principal_id)):
            member_id = "" if self.left.member_id == principal_id else self.left.member_id
            self.left = evolve(await self._deleted(principal_id), principal_id="", member_id=member_id)

    async def delete_application(self) -> None:
        """Delete the application. Its password ends with it, and memberships end with their principal."""
        left = self.left
        if left.application_id:
            deletion = delete_application(await self._share(), left.application_id)
            if await self._try_remove("application", deletion):
                left = await self._deleted(left.application_id)
                if left.password_on == left.application_id:
                    left = _without_password(left)
                self.left = evolve(left, application_id="", unique_name="")
        elif left.unique_name and not self.look_up_failed:
            if self.settled:
                self.left = evolve(left, unique_name="")
            else:
                self.waiting.append(f"application: {UNSETTLED}")
        left = self.left
        if not (left.member_id or left.unique_name or left.application_id):
            self.left = left.with_memberships(dict.fromkeys(MEMBERSHIPS, ()))

    async def purge(self) -> None:
        settled = await Now() >= self.left.deleted_at + self.client.settings.settle_time
        kept = await self._kept("deleted object", self.left.to_purge, purge, settled=settled)
        self.left = evolve(self.left, to_purge=kept)

    @property
    def _has_unknown_ids(self) -> bool:
        left = self.left
        return bool(
            (left.unique_name and not left.application_id)
            or (left.application_id and left.client_id and not left.principal_id)
        )

    def _found(self, identified: Provisioned) -> None:
        self.left = identified
        self.found_ids = True

    async def _share(self) -> Client:
        """The client for the next step. It has an equal share of the time that is left."""
        now = await Now()
        share = max(0.0, self.client.deadline.at - now) / max(1, self.steps_left)
        self.steps_left -= 1
        return replace(self.client, deadline=Deadline(now + share))

    async def _kept(
        self,
        what: str,
        objects: Sequence[str],
        removal: Callable[[Client, str], Program[bool]],
        *,
        settled: bool | None = None,
    ) -> tuple[str, ...]:
        """Remove several objects, a few at a time; those that may still be there."""
        if not objects:
            return ()
        client = await self._share()
        waiting, gone = deque(objects), set()

        async def lane() -> None:
            while waiting:
                one = waiting.popleft()
                if await self._try_remove(what, removal(client, one), settled=settled):
                    gone.add(one)

        await gather([lane() for _ in objects[:LANES]])
        return tuple(one for one in objects if one not in gone)

    async def _try_remove(self, what: str, removal: Program[bool], *, settled: bool | None = None) -> bool:
        """Whether an object is certainly gone. A failure is noted."""
        try:
            removed = await removal
        except CloudidError as failure:
            drop_tracebacks(failure)
            self.failures.append((what, failure))
            return False
        if removed or (self.settled if settled is None else settled):
            return True
        self.waiting.append(f"{what}: {UNSETTLED}")
        return False

    async def _deleted(self, object_id: str) -> Provisioned:
        """What is left after an object was moved to the deleted items."""
        if not self.left.purge:
            return self.left
        return evolve(self.left, to_purge=(*self.left.to_purge, object_id), deleted_at=await Now())


def _without_password(provisioned: Provisioned) -> Provisioned:
    return evolve(provisioned, password_on="", password_name="", password_key_id="", proof=SECRET)


def _leave(membership: Membership, member_id: str, client: Client, one: str) -> Program[bool]:
    return membership.remove(client, one, member_id)
