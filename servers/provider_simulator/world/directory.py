"""The directory: its objects as they are and as each replica knows them, and what was deleted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from attrs import evolve, frozen

from ..engine.behaviour import Replica
from ..engine.immutable import Immutable
from ..engine.ledger import Ledger, LedgerEntry
from ..engine.randomness import Randomness
from ..engine.replicas import Replication, Table
from .objects import Application, FederatedCredential, Grant, Group, Password, Principal

DELETED_FOR: Final = 30 * 86_400.0
"""Seconds after which a deleted object is purged."""

Holder = TypeVar("Holder", Application, Principal)
T = TypeVar("T")


@frozen
class Deleted(Immutable):
    """A deleted object that is not purged."""

    item: Application | Principal
    at: float


class Directory:
    """The state. Ids and client ids are in lower case. `by` is the client that creates an object through the API."""

    def __init__(self, replication: Replication, randomness: Randomness, ledger: Ledger) -> None:
        self._replication = replication
        self._randomness = randomness
        self._ledger = ledger
        self.applications: Table[Application] = Table(replication)
        self.principals: Table[Principal] = Table(replication)
        self.groups: Table[Group] = Table(replication)
        self.grants: Table[Grant] = Table(replication)
        self.deleted: dict[str, Deleted] = {}
        """In the order of their deletion."""
        self.changed_at: dict[str, float] = {}
        self._applications_of: dict[str, tuple[str, ...]] = {}
        self._applications_named: dict[str, tuple[str, ...]] = {}
        self._principals_of: dict[str, tuple[str, ...]] = {}

    # Look-ups: as a replica knows the object; without a replica, as it is.

    def application_of(self, client_id: str, replica: Replica | None = None, front_end: int = 0) -> Application | None:
        return _first(self._applications_of, client_id, lambda i: self.applications.get(i, replica, front_end))

    def application_named(self, unique_name: str, replica: Replica | None = None) -> Application | None:
        return _first(self._applications_named, unique_name, lambda i: self.applications.get(i, replica))

    def principal_of(self, client_id: str, replica: Replica | None = None, front_end: int = 0) -> Principal | None:
        return _first(self._principals_of, client_id, lambda i: self.principals.get(i, replica, front_end))

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

    # Creation and change.

    def add_application(
        self,
        display_name: str,
        unique_name: str | None = None,
        tags: tuple[str, ...] = (),
        sign_in_audience: str = "AzureADMyOrg",
        by: str | None = None,
    ) -> Application:
        """An application without password and principal."""
        application = Application(
            id=self._randomness.guid(f"application {display_name}"),
            client_id=self._randomness.guid(f"client of application {display_name}"),
            display_name=display_name,
            created_at=self._replication.now(),
            unique_name=unique_name,
            tags=tags,
            sign_in_audience=sign_in_audience,
        )
        self.applications.put(application.id, application)
        _index(self._applications_of, application.client_id, application.id)
        if unique_name is not None:
            _index(self._applications_named, unique_name, application.id)
        self._record("application", application.id, (), display_name, by, unique_name)
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
            id=self._randomness.guid(f"principal of {label}"),
            client_id=application.client_id if application else self._randomness.guid(f"client of {label}"),
            display_name=display_name,
            kind=kind,
            tags=tags,
        )
        self.principals.put(principal.id, principal)
        _index(self._principals_of, principal.client_id, principal.id)
        self._record("principal", principal.id, (application.id,) if application else (), display_name, by)
        return principal

    def replace(self, item: Application | Principal) -> None:
        """Replace the object that has the same id."""
        self.changed_at[item.id] = self._replication.now()
        if isinstance(item, Application):
            self.applications.put(item.id, item)
        else:
            self.principals.put(item.id, item)

    def add_password(
        self, holder: Holder, display_name: str | None, starts_at: float, ends_at: float, by: str | None = None
    ) -> Password:
        password = Password(
            key_id=self._randomness.guid(f"key of {holder.display_name}"),
            display_name=display_name,
            secret=self._randomness.text(f"secret of {holder.display_name}"),
            starts_at=starts_at,
            ends_at=ends_at,
        )
        self.replace(evolve(holder, passwords=(*holder.passwords, password)))
        self._record("password", password.key_id, (holder.id,), display_name, by)
        return password

    def remove_password(self, holder: Holder, key_id: str) -> None:
        self.replace(evolve(holder, passwords=tuple(p for p in holder.passwords if p.key_id != key_id)))
        self._ledger.note_deleted(key_id, self._replication.now())

    def note_certificates(self, old: Application, new: Application, by: str) -> None:
        for one in new.certificates:
            if one not in old.certificates:
                self._record("certificate", one.key_id, (new.id,), one.display_name, by)
        for one in old.certificates:
            if one not in new.certificates:
                self._ledger.note_deleted(one.key_id, self._replication.now())

    def note_federation(self, application: Application, credential: FederatedCredential, by: str) -> None:
        self._record("federation", credential.id, (application.id,), credential.name, by)

    def note_federation_gone(self, credential_id: str) -> None:
        self._ledger.note_deleted(credential_id, self._replication.now())

    def group(self, name: str) -> Group:
        """The group of that id or name; created if there is none."""
        for group in self.groups.all():
            if name in (group.id, group.display_name):
                return group
        group = Group(self._randomness.guid(f"group {name}"), name)
        self.groups.put(group.id, group)
        return group

    def join(self, group: Group, member: str, by: str | None = None) -> None:
        self.groups.put(group.id, evolve(group, members=group.members | {member}))
        self._record("membership", f"{group.id}/{member}", (group.id, member), None, by)

    def leave(self, group: Group, member: str) -> None:
        self.groups.put(group.id, evolve(group, members=group.members - {member}))
        self._ledger.note_deleted(f"{group.id}/{member}", self._replication.now())

    def add_grant(self, grant: Grant, by: str | None = None) -> Grant:
        """Make a grant, under an id of its own."""
        made = evolve(grant, id=self._randomness.text(f"grant {grant.label}", 36))
        self.grants.put(made.id, made)
        kind = "app_role" if grant.resource_id else "directory_role"
        self._record(kind, grant.label, (grant.principal_id,), None, by)
        return made

    def end_grant(self, grant: Grant) -> None:
        self.grants.put(grant.id, None)
        self._ledger.note_deleted(grant.label, self._replication.now())

    # Deletion.

    def delete_application(self, application: Application) -> None:
        """Delete the application and its principal; both can be purged."""
        principal = self.principal_of(application.client_id)
        if principal is not None:
            self.delete_principal(principal)
        self.applications.put(application.id, None)
        self._mark_deleted(application)

    def delete_principal(self, principal: Principal) -> None:
        """Delete the principal, which can then be purged; it leaves all groups and loses all grants, but its role
        assignments stay."""
        self.remove_principal(principal)
        self._mark_deleted(principal)

    def remove_principal(self, principal: Principal) -> None:
        """Remove the principal at once, as happens to the identity of a deleted machine."""
        self.principals.put(principal.id, None)
        for group in list(self.groups.all()):
            if principal.id in group.members:
                self.leave(group, principal.id)
        for grant in list(self.grants.all()):
            if principal.id in (grant.principal_id, grant.resource_id):
                self.end_grant(grant)

    def _mark_deleted(self, item: Application | Principal) -> None:
        now = self._replication.now()
        self.deleted[item.id] = Deleted(item, now)
        self.changed_at.pop(item.id, None)
        self._ledger.note_deleted(item.id, now)

    def purge(self, object_id: str) -> None:
        del self.deleted[object_id]
        self._ledger.note_purged(object_id, self._replication.now())

    def purge_expired(self) -> None:
        """Purge what was deleted 30 days ago."""
        before = self._replication.now() - DELETED_FOR
        while self.deleted and next(iter(self.deleted.values())).at <= before:
            self.purge(next(iter(self.deleted)))

    def keeps_name(self, client_id: str) -> bool:
        """Whether the name of the application is still in use by a principal that was deleted a moment ago."""
        since = self._replication.now() - self._replication.behaviour.name_reuse
        held = (self.deleted.get(object_id) for object_id in self._principals_of.get(client_id, ()))
        return any(deleted is not None and deleted.at > since for deleted in held)

    def is_full(self, quota: int) -> bool:
        """Whether there are as many applications as the quota allows; deleted ones count."""
        if self.applications.count + len(self.deleted) < quota:
            return False
        deleted = sum(isinstance(each.item, Application) for each in self.deleted.values())
        return self.applications.count + deleted >= quota

    def _record(
        self,
        kind: str,
        object_id: str,
        of: tuple[str, ...],
        display_name: str | None,
        by: str | None,
        unique_name: str | None = None,
    ) -> None:
        if by is not None:
            now = self._replication.now()
            self._ledger.add(LedgerEntry(kind, object_id, of, display_name, unique_name, now, by))


def _index(index: dict[str, tuple[str, ...]], key: str, object_id: str) -> None:
    index[key.lower()] = (object_id, *index.get(key.lower(), ()))


def _first(index: dict[str, tuple[str, ...]], key: str, find: Callable[[str], T | None]) -> T | None:
    """The newest of the objects with this key that can be found."""
    return next((found for i in index.get(key.lower(), ()) if (found := find(i)) is not None), None)
