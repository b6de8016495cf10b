"""The directory: its objects as they are and as each place knows them, and what was deleted."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from attrs import evolve, frozen

from .behaviour import Place
from .ledger import Made
from .objects import Application, Group, Password, Principal, Value
from .replicas import Table

if TYPE_CHECKING:
    from .world import World

BIN_SECONDS: Final = 30 * 86_400.0
"""So long a deleted object is kept."""

Holder = TypeVar("Holder", Application, Principal)
T = TypeVar("T")


@frozen
class Deleted(Value):
    """An object in the bin."""

    item: Application | Principal
    at: float


class Directory:
    """The state. Ids and client ids are in lower case. `by` is the client that makes an object through the API."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.applications: Table[Application] = Table(world.spread)
        self.principals: Table[Principal] = Table(world.spread)
        self.groups: Table[Group] = Table(world.spread)
        self.bin: dict[str, Deleted] = {}
        """What was deleted, in that order."""
        self.changed_at: dict[str, float] = {}
        self._applications_of: dict[str, tuple[str, ...]] = {}
        self._applications_named: dict[str, tuple[str, ...]] = {}
        self._principals_of: dict[str, tuple[str, ...]] = {}

    # Finding: with a place as that place knows it, without one as it is.

    def application_of(self, client_id: str, place: Place | None = None, front_end: int = 0) -> Application | None:
        return _first(self._applications_of, client_id, lambda i: self.applications.get(i, place, front_end))

    def application_named(self, unique_name: str, place: Place | None = None) -> Application | None:
        return _first(self._applications_named, unique_name, lambda i: self.applications.get(i, place))

    def principal_of(self, client_id: str, place: Place | None = None, front_end: int = 0) -> Principal | None:
        return _first(self._principals_of, client_id, lambda i: self.principals.get(i, place, front_end))

    def groups_of(self, member: str) -> list[Group]:
        """All groups that the object is in, directly or through other groups."""
        found: dict[str, Group] = {}
        pending = [member]
        while pending:
            object_id = pending.pop()
            for group in self.groups.all():
                if object_id in group.members and group.id not in found:
                    found[group.id] = group
                    pending.append(group.id)
        return list(found.values())

    # Making and changing.

    def add_application(
        self,
        display_name: str,
        unique_name: str | None = None,
        tags: tuple[str, ...] = (),
        sign_in_audience: str = "AzureADMyOrg",
        by: str | None = None,
    ) -> Application:
        """An application without password and principal."""
        dice = self._world.dice
        application = Application(
            id=dice.guid(f"application {display_name}"),
            client_id=dice.guid(f"client of application {display_name}"),
            display_name=display_name,
            created_at=self._world.now(),
            unique_name=unique_name,
            tags=tags,
            sign_in_audience=sign_in_audience,
        )
        self.applications.put(application.id, application)
        _index(self._applications_of, application.client_id, application.id)
        if unique_name is not None:
            _index(self._applications_named, unique_name, application.id)
        self._enter("application", application.id, (), display_name, by, unique_name)
        return application

    def add_principal(
        self,
        display_name: str,
        kind: str,
        application: Application | None = None,
        tags: tuple[str, ...] = (),
        by: str | None = None,
    ) -> Principal:
        label = f"{kind} {display_name}"
        principal = Principal(
            id=self._world.dice.guid(f"principal of {label}"),
            client_id=application.client_id if application else self._world.dice.guid(f"client of {label}"),
            display_name=display_name,
            kind=kind,
            tags=tags,
        )
        self.principals.put(principal.id, principal)
        _index(self._principals_of, principal.client_id, principal.id)
        self._enter("principal", principal.id, (application.id,) if application else (), display_name, by)
        return principal

    def replace(self, item: Application | Principal) -> None:
        """Put another value in place of the object with this id."""
        self.changed_at[item.id] = self._world.now()
        if isinstance(item, Application):
            self.applications.put(item.id, item)
        else:
            self.principals.put(item.id, item)

    def add_password(
        self, holder: Holder, display_name: str | None, starts_at: float, ends_at: float, by: str | None = None
    ) -> Password:
        dice = self._world.dice
        password = Password(
            key_id=dice.guid(f"key of {holder.display_name}"),
            display_name=display_name,
            secret=dice.text(f"secret of {holder.display_name}"),
            starts_at=starts_at,
            ends_at=ends_at,
        )
        self.replace(evolve(holder, passwords=(*holder.passwords, password)))
        self._enter("password", password.key_id, (holder.id,), display_name, by)
        return password

    def remove_password(self, holder: Holder, key_id: str) -> None:
        self.replace(evolve(holder, passwords=tuple(p for p in holder.passwords if p.key_id != key_id)))
        self._world.ledger.note_deleted(key_id, self._world.now())

    def group(self, name: str) -> Group:
        """The group of that id or name, made if there is none."""
        for group in self.groups.all():
            if name in (group.id, group.display_name):
                return group
        group = Group(self._world.dice.guid(f"group {name}"), name)
        self.groups.put(group.id, group)
        return group

    def join(self, group: Group, member: str, by: str | None = None) -> None:
        self.groups.put(group.id, evolve(group, members=group.members | {member}))
        self._enter("membership", f"{group.id}/{member}", (group.id, member), None, by)

    def leave(self, group: Group, member: str) -> None:
        self.groups.put(group.id, evolve(group, members=group.members - {member}))
        self._world.ledger.note_deleted(f"{group.id}/{member}", self._world.now())

    # Deleting.

    def delete_application(self, application: Application) -> None:
        """Into the bin, and its principal too."""
        principal = self.principal_of(application.client_id)
        if principal is not None:
            self.delete_principal(principal)
        self.applications.put(application.id, None)
        self._bin(application)

    def delete_principal(self, principal: Principal) -> None:
        """Into the bin, and out of all groups. Its role assignments stay."""
        self.forget_principal(principal)
        self._bin(principal)

    def forget_principal(self, principal: Principal) -> None:
        """Gone at once, as the identity of a machine is with it."""
        self.principals.put(principal.id, None)
        for group in list(self.groups.all()):
            if principal.id in group.members:
                self.leave(group, principal.id)

    def _bin(self, item: Application | Principal) -> None:
        now = self._world.now()
        self.bin[item.id] = Deleted(item, now)
        self.changed_at.pop(item.id, None)
        self._world.ledger.note_deleted(item.id, now)

    def purge(self, object_id: str) -> None:
        del self.bin[object_id]
        self._world.ledger.note_purged(object_id, self._world.now())

    def empty_bin(self) -> None:
        """Purge what was kept for long enough."""
        before = self._world.now() - BIN_SECONDS
        while self.bin and next(iter(self.bin.values())).at <= before:
            self.purge(next(iter(self.bin)))

    def keeps_name(self, client_id: str) -> bool:
        """Whether a principal that was deleted a moment ago keeps the name of its application in use."""
        since = self._world.now() - self._world.behaviour.name_reuse
        held = (self.bin.get(object_id) for object_id in self._principals_of.get(client_id, ()))
        return any(deleted is not None and deleted.at > since for deleted in held)

    def is_full(self, quota: int) -> bool:
        """Whether there are so many applications, those in the bin included."""
        if self.applications.count + len(self.bin) < quota:
            return False
        binned = sum(isinstance(deleted.item, Application) for deleted in self.bin.values())
        return self.applications.count + binned >= quota

    def _enter(
        self,
        kind: str,
        object_id: str,
        of: tuple[str, ...],
        display_name: str | None,
        by: str | None,
        unique_name: str | None = None,
    ) -> None:
        if by is not None:
            now = self._world.now()
            self._world.ledger.enter(Made(kind, object_id, of, display_name, unique_name, now, by))


def _index(index: dict[str, tuple[str, ...]], key: str, object_id: str) -> None:
    index[key.lower()] = (object_id, *index.get(key.lower(), ()))


def _first(index: dict[str, tuple[str, ...]], key: str, find: Callable[[str], T | None]) -> T | None:
    """The newest of the objects with this key that is found."""
    return next((found for i in index.get(key.lower(), ()) if (found := find(i)) is not None), None)
