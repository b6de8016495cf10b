"""The objects of a record in Azure, and how they are removed.

A lease lists the objects that were created for it, and an intent those that may have been created. Both are removed in
the same way. The secret is removed first, so that it cannot be used while the rest is removed. Each step has its own
share of the time, so a step that fails or hangs does not block the others. Removal is idempotent. An object that Azure
does not find counts as deleted only if the settle time has passed since it may have been created.
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
"""Maximum number of objects of one step that are removed concurrently."""
UNSETTLED: Final = "not found yet: Azure may show it only after the settle time"
SECRET_STEP: Final = "secret"
IDS_FOUND: Final = "its ids were found and must be stored before it is removed"


@frozen(kw_only=True)
class Provisioned:
    """Objects in Azure.

    An app registration that cloudid created is known by its unique name from the start, and by its ids after the
    response. A client secret is known by its display name, and by its key id after the response.
    """

    made_at: Instant
    tenant: str = ""
    """Their tenant, if it is known."""
    unique_name: str = ""
    application_id: str = ""
    client_id: str = ""
    audience: str = ""
    """The sign-in audience of the app registration. Empty: none was sent, or it may not have been applied."""
    principal_id: str = ""
    member_id: str = ""
    """The service principal with the memberships. It is removed only if it is also `principal_id`."""
    assignments: tuple[str, ...] = ()
    definitions: tuple[str, ...] = ()
    """The ids of the role definitions of `assignments`, in the same order."""
    groups: tuple[str, ...] = ()
    directory_roles: tuple[str, ...] = ()
    app_roles: tuple[str, ...] = ()
    password_on: str = ""
    """The object id of the app registration with the client secret:

    `application_id`, or an existing one that is kept.
    """
    password_name: str = ""
    password_key_id: str = ""
    proof: str = SECRET
    """The kind of credential, from `PROOFS`. All kinds have a name and an id."""
    purge: bool = False
    to_purge: tuple[str, ...] = ()
    deleted_at: Instant = 0.0
    """When the latest of `to_purge` was deleted. It may not be visible in the deleted items yet."""

    @property
    def memberships(self) -> Mapping[str, tuple[str, ...]]:
        """Return its memberships by kind."""
        return {kind: ids for kind in MEMBERSHIPS if (ids := getattr(self, kind))}

    def with_memberships(self, memberships: Mapping[str, tuple[str, ...]]) -> Provisioned:
        """Return a copy with these memberships."""
        changes: dict[str, Any] = dict(memberships)
        return evolve(self, **changes)

    @property
    def may_sign_in(self) -> bool:
        """Return whether there may be a secret, or an app registration with one."""
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
    """What remains after an attempt, and why: failed calls, and objects that may not be visible yet."""

    left: Provisioned
    failures: tuple[tuple[str, CloudidError], ...] = ()
    waiting: tuple[str, ...] = ()

    @property
    def reasons(self) -> tuple[str, ...]:
        return (*(f"{what}: {reason_of(failure)}" for what, failure in self.failures), *self.waiting)

    @property
    def retry_after(self) -> float | None:
        """Return the longest pause that Azure requested, in seconds."""
        asked = [failure.retry_after for _, failure in self.failures if isinstance(failure, ProviderProblem | Refused)]
        return max((seconds for seconds in asked if seconds is not None), default=None)

    @property
    def is_accepted(self) -> bool:
        """Return whether the secret is invalid and Azure has accepted every deletion.

        A deletion may be included in that of a parent object. Objects may still wait for the settle time.
        """
        failed = {what for what, _ in self.failures}
        return self.left.is_empty or not (self.left.password_on or failed - {SECRET_STEP})


async def remove(client: Client, provisioned: Provisioned, *, settled: bool) -> Removal:
    """Remove secret, assignments, memberships, service principal and app registration, then purge deleted items.

    `settled`: objects that Azure does not find do not exist.
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
    """One attempt: what still remains, and the failures so far."""

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
        """Look up the ids of an app registration and its service principal whose responses were lost."""
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
        """Remove role assignments, including those that others created.

        Azure would keep them after the service principal is deleted.
        """
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
        """Delete the app registration.

        Its client secrets, and the memberships of its service principal, end with it.
        """
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
        """Return the client for the next step, with an equal share of the remaining time."""
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
        """Remove several objects, a few concurrently. Return those that may still exist."""
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
        """Return whether an object is definitely deleted. A failure is noted."""
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
        """Return what remains after an object was moved to the deleted items."""
        if not self.left.purge:
            return self.left
        return evolve(self.left, to_purge=(*self.left.to_purge, object_id), deleted_at=await Now())


def _without_password(provisioned: Provisioned) -> Provisioned:
    return evolve(provisioned, password_on="", password_name="", password_key_id="", proof=SECRET)


def _leave(membership: Membership, member_id: str, client: Client, one: str) -> Program[bool]:
    return membership.remove(client, one, member_id)
