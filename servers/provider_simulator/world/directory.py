"""The directory: its objects as they are and as each replica knows them, and what was deleted."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from attrs import evolve, frozen

from ..engine import Immutable
from ..engine.behaviour import Replica
from ..engine.ledger import Ledger
from ..engine.randomness import Randomness
from ..engine.replicas import Replication, Table
from .objects import Application, Grant, Group, Password, Principal

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

    def __init__(self, replication: Replication, randomness: Randomness, ledger: Ledger, tenant_id: str) -> None:
        self._replication = replication
        self._randomness = randomness
        self.ledger = ledger
        self._tenant_id = tenant_id
        self.applications: Table[Application] = Table(replication)
        self.principals: Table[Principal] = Table(replication)
        self.groups: Table[Group] = Table(replication)
        self.grants: Table[Grant] = Table(replication)
        self.deleted: dict[str, Deleted] = {}
        """In the order of their deletion."""
        self.changed_at: dict[str, float] = {}
        self._ids: dict[str, tuple[str, ...]] = {}
        """What was ever made with a client id, or with a unique name (behind `name `), newest first."""

    # Look-ups: as a replica knows the object; without a replica, as it is.

    def application_of(self, client_id: str, replica: Replica | None = None, front_end: int = 0) -> Application | None:
        return self._newest(self.applications, client_id, replica, front_end)

    def application_named(self, unique_name: str, replica: Replica | None = None) -> Application | None:
        return self._newest(self.applications, f"name {unique_name}", replica)

    def principal_of(self, client_id: str, replica: Replica | None = None, front_end: int = 0) -> Principal | None:
        return self._newest(self.principals, client_id, replica, front_end)

    def _newest(self, table: Table[T], key: str, replica: Replica | None, front_end: int = 0) -> T | None:
        found = (table.get(object_id, replica, front_end) for object_id in self._ids.get(key.lower(), ()))
        return next((each for each in found if each is not None), None)

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

    def add_application(self, display_name: str, by: str | None = None, **properties: Any) -> Application:
        """An application without password and principal."""
        own_id = self._randomness.guid(f"application {display_name}")
        client_id = self._randomness.guid(f"client of application {display_name}")
        application = Application(own_id, client_id, display_name, self._replication.now(), **properties)
        self.applications.put(own_id, application)
        self._index(client_id, own_id)
        if application.unique_name is not None:
            self._index(f"name {application.unique_name}", own_id)
        self.ledger.record(by, "application", own_id, (), display_name, application.unique_name)
        return application

    def add_principal(
        self,
        display_name: str,
        kind: str,
        application: Application | None = None,
        by: str | None = None,
        **properties: Any,
    ) -> Principal:
        """The principal of an application, or of a managed identity."""
        label = f"{kind} {display_name}"
        own_id = self._randomness.guid(f"principal of {label}")
        client_id = application.client_id if application else self._randomness.guid(f"client of {label}")
        if application is not None:
            of_application = {"tags": application.tags, "sign_in_audience": application.sign_in_audience}
            properties = {**of_application, "tenant_id": self._tenant_id, **properties}
        properties["created_at"] = self._replication.now()
        principal = Principal(own_id, client_id, display_name, kind, **properties)
        self.principals.put(own_id, principal)
        self._index(client_id, own_id)
        self.ledger.record(by, "principal", own_id, (application.id,) if application else (), display_name)
        return principal

    def _index(self, key: str, object_id: str) -> None:
        self._ids[key.lower()] = (object_id, *self._ids.get(key.lower(), ()))

    def replace(self, item: Application | Principal) -> None:
        self.changed_at[item.id] = self._replication.now()
        table: Table[Any] = self.applications if isinstance(item, Application) else self.principals
        table.put(item.id, item)

    def add_password(
        self, holder: Holder, display_name: str | None, starts_at: float, ends_at: float, by: str | None = None
    ) -> Password:
        key_id = self._randomness.guid(f"key of {holder.display_name}")
        secret = self._randomness.text(f"secret of {holder.display_name}")
        password = Password(key_id, display_name, secret, starts_at, ends_at)
        self.replace(evolve(holder, passwords=(*holder.passwords, password)))
        self.ledger.record(by, "password", key_id, (holder.id,), display_name)
        return password

    def remove_password(self, holder: Holder, key_id: str) -> None:
        self.replace(evolve(holder, passwords=tuple(p for p in holder.passwords if p.key_id != key_id)))
        self.ledger.note_deleted(key_id)

    def group(self, name: str) -> Group:
        """The group of that id or name; created if there is none."""
        for group in self.groups.all():
            if name in (group.id, group.display_name):
                return group
        return self.add_group(name)

    def add_group(self, name: str, by: str | None = None, **properties: Any) -> Group:
        """A group without members."""
        own_id, now = self._randomness.guid(f"group {name}"), self._replication.now()
        group = Group(own_id, name, created_at=now, **{"mail_nickname": name, **properties})
        self.groups.put(group.id, group)
        self.ledger.record(by, "group", group.id, (), name)
        return group

    def remove_group(self, group: Group) -> None:
        """Remove a group at once, with its memberships."""
        for member in group.members:
            self.ledger.note_deleted(f"{group.id}/{member}")
        self.groups.put(group.id, None)
        self.ledger.note_deleted(group.id)

    def join(self, group: Group, member: str, by: str | None = None) -> None:
        self.groups.put(group.id, evolve(group, members=group.members | {member}))
        self.ledger.record(by, "membership", f"{group.id}/{member}", (group.id, member))

    def leave(self, group: Group, member: str) -> None:
        self.groups.put(group.id, evolve(group, members=group.members - {member}))
        self.ledger.note_deleted(f"{group.id}/{member}")

    def add_grant(self, grant: Grant, by: str | None = None) -> Grant:
        """Make a grant, under an id of its own."""
        made = evolve(grant, id=self._randomness.text(f"grant {grant.label}", 36))
        self.grants.put(made.id, made)
        self.ledger.record(
            by, "app_role" if grant.resource_id else "directory_role", grant.label, (grant.principal_id,)
        )
        return made

    def end_grant(self, grant: Grant) -> None:
        self.grants.put(grant.id, None)
        self.ledger.note_deleted(grant.label)

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
        self.deleted[item.id] = Deleted(item, self._replication.now())
        self.changed_at.pop(item.id, None)
        self.ledger.note_deleted(item.id)

    def purge(self, object_id: str) -> None:
        del self.deleted[object_id]
        self.ledger.note_purged(object_id)

    def purge_expired(self) -> None:
        """Purge what was deleted 30 days ago."""
        before = self._replication.now() - DELETED_FOR
        while self.deleted and next(iter(self.deleted.values())).at <= before:
            self.purge(next(iter(self.deleted)))

    def keeps_name(self, client_id: str) -> bool:
        """Whether the name of the application is still in use by a principal that was deleted a moment ago."""
        since = self._replication.now() - self._replication.behaviour.name_reuse
        held = (self.deleted.get(object_id) for object_id in self._ids.get(client_id.lower(), ()))
        return any(deleted is not None and deleted.at > since for deleted in held)

    def is_full(self, quota: int) -> bool:
        """Whether there are as many applications as the quota allows; deleted ones count."""
        if self.applications.count + len(self.deleted) < quota:
            return False
        deleted = sum(isinstance(each.item, Application) for each in self.deleted.values())
        return self.applications.count + deleted >= quota
