"""Marked objects: everything in Azure that has the marker of this installation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Final, TypeVar

import msgspec
from attrs import evolve, frozen

from ..effects import Instant, Now, Program, gather
from ..provider import (
    CERTIFICATE,
    FEDERATED,
    SECRET,
    Application,
    Client,
    Id,
    Password,
    Provisioned,
    applications_by_client_id,
    federated_credentials,
    find_application,
    find_by_id,
    marked_applications,
    marked_by,
    select_until,
)
from ..tokens import is_id
from ..values import rfc3339

T = TypeVar("T")

LANES: Final = 8
"""Maximum number of concurrent look-ups."""
LIST_SHARE: Final = 0.15
"""The share of the time for each of the four lists. The rest is for look-ups."""
TIME_DIGITS: Final = 12
"""How many digits of an id are its creation time in milliseconds."""


class ObjectKind(Enum):
    """Types of objects that are found by a marker."""

    APPLICATION = "application"
    PRINCIPAL = "principal"
    PASSWORD = "password"
    CERTIFICATE = "certificate"
    FEDERATED = "federated_credential"


PROOFS: Final = {
    ObjectKind.PASSWORD: (SECRET, "passwords"),
    ObjectKind.CERTIFICATE: (CERTIFICATE, "certificates"),
    ObjectKind.FEDERATED: (FEDERATED, "federations"),
}
"""Types of credentials of an app registration: the kind of proof, and where the app registration lists them."""
KINDS: Final = {proof: kind for kind, (proof, _) in PROOFS.items()}


@frozen(kw_only=True)
class Object:
    """An object in Azure. `client_id` belongs to the app registration that it is, or to which it belongs.

    A type with a row in `PROOFS` belongs to `application_id`; `hint` is the start of a client secret's text.
    """

    kind: ObjectKind
    id: str
    name: str
    made_at: Instant = 0.0
    client_id: str = ""
    application_id: str = ""
    hint: str = ""


class Principal(msgspec.Struct, rename="camel", frozen=True):
    """A service principal as Azure shows it."""

    id: Id
    app_id: str | None = None
    display_name: str | None = None
    tags: tuple[str, ...] | None = None


@frozen
class Shown:
    """App registrations and service principals that Azure has shown, by object id."""

    applications: Mapping[str, Application]
    principals: Mapping[str, Principal]
    is_complete: bool = True
    """Whether the lists were completed within their share of the time and below the maximum of objects."""

    def has(self, one: Object) -> bool:
        match one.kind:
            case ObjectKind.APPLICATION:
                return one.id in self.applications
            case ObjectKind.PRINCIPAL:
                return one.id in self.principals
        holder = self.applications.get(one.application_id)
        return holder is not None and any(each.key_id == one.id for each in _standing(holder, one.kind))

    def marked(self, prefix: str, application_ids: Iterable[str]) -> Iterator[Object]:
        """Return the objects whose name is a marker.

        They are app registrations, credentials of these app registrations, and lone service principals. A service
        principal, and the credentials of an app registration that is not among them, are deleted with it.
        """
        for one in self._named(prefix, frozenset(application_ids)):
            made_at = marked_at(prefix, one.name)
            if made_at is not None:
                yield evolve(one, made_at=made_at)

    def _named(self, prefix: str, application_ids: frozenset[str]) -> Iterator[Object]:
        for one in self.applications.values():
            name = _marker_of(prefix, one.display_name, one.tags)
            place = Object(kind=ObjectKind.APPLICATION, id=one.object_id, name=name, client_id=one.client_id)
            yield place
            for kind in PROOFS if one.object_id in application_ids else ():
                for each in _standing(one, kind):
                    proof = evolve(place, kind=kind, id=each.key_id, name=each.display_name)
                    yield evolve(proof, application_id=one.object_id, hint=each.hint)
        clients = {application.client_id for application in self.applications.values()}
        for lone in self.principals.values():
            if lone.app_id not in clients:
                name = _marker_of(prefix, lone.display_name or "", lone.tags or ())
                client_id = lone.app_id or ""
                yield Object(kind=ObjectKind.PRINCIPAL, id=lone.id, name=name, client_id=client_id)


def _standing(holder: Application, kind: ObjectKind) -> tuple[Password, ...]:
    """Return the credentials of an app registration, for a type with a row in `PROOFS`."""
    standing: tuple[Password, ...] = getattr(holder, PROOFS[kind][1])
    return standing


def _marker_of(prefix: str, display_name: str, tags: tuple[str, ...]) -> str:
    """Return the name that marks an object: its display name, or a tag if it has its own prefix."""
    return next((tag for tag in tags if tag.startswith(prefix)), display_name)


def marked_at(prefix: str, name: str) -> Instant | None:
    """Return when an object was created whose name is a marker of this installation. `None` for any other name."""
    marked_id = name.removeprefix(prefix)
    if marked_id == name or not is_id(marked_id):
        return None
    return min(int(marked_id[:TIME_DIGITS], 16) / 1000, rfc3339.LATEST)


def objects_of(provisioned: Provisioned) -> Iterator[Object]:
    """Return the objects that can be looked up by their ids, parents first."""
    place = Object(
        kind=ObjectKind.APPLICATION,
        id=provisioned.application_id,
        name=provisioned.unique_name,
        made_at=provisioned.made_at,
        client_id=provisioned.client_id,
    )
    if provisioned.application_id:
        yield place
    if provisioned.principal_id:
        yield evolve(place, kind=ObjectKind.PRINCIPAL, id=provisioned.principal_id)
    if provisioned.password_on and provisioned.password_key_id:
        proof = evolve(place, kind=KINDS[provisioned.proof], id=provisioned.password_key_id)
        yield evolve(proof, name=provisioned.password_name, application_id=provisioned.password_on)


def provisioned_of(one: Object, tenant: str) -> Provisioned:
    """Return a record of a single object."""
    nothing = Provisioned(made_at=one.made_at, tenant=tenant)
    if one.kind is ObjectKind.APPLICATION:
        return evolve(nothing, application_id=one.id, client_id=one.client_id)
    if one.kind is ObjectKind.PRINCIPAL:
        return evolve(nothing, principal_id=one.id, member_id=one.id)
    proof = evolve(nothing, password_on=one.application_id, proof=PROOFS[one.kind][0])
    return evolve(proof, password_name=one.name, password_key_id=one.id)


async def list_marked_objects(
    client: Client, prefix: str, application_ids: Iterable[str]
) -> tuple[Shown, frozenset[str]]:
    """List everything under a marker, and the app registrations that may have marked credentials. Return their ids.

    These are `application_ids`, and the app registration with which the client authenticates. Lists may be out of date.
    """
    own = client.credentials.client_id
    roots = await applications_by_client_id(client, own) if own else []
    started, share = await Now(), await client.deadline.remaining() * LIST_SHARE
    marked: list[Application] = []
    principals: list[Principal] = []
    is_complete = True
    for number, condition in enumerate(marked_by(prefix)):
        until = started + (2 * number + 1) * share
        by_condition = await marked_applications(client, condition, until)
        lone = await select_until(client, "servicePrincipals", condition, Principal, until + share, lambda each: each)
        marked += by_condition.items
        principals += lone.items
        is_complete = is_complete and by_condition.is_complete and lone.is_complete
    listed = [*marked, *roots]
    known = {application.object_id: application for application in listed}
    known |= await _applications(client, {each for each in application_ids if each not in known})
    holder_ids = frozenset((*application_ids, *(root.object_id for root in roots)))
    known = await _with_federations(client, known, holder_ids)
    return Shown(known, {principal.id: principal for principal in principals}, is_complete), holder_ids


async def look_up(client: Client, objects: Iterable[Object]) -> Shown:
    """Look up each of these objects in Azure."""
    applications: set[str] = set()
    principals: set[str] = set()
    holders: set[str] = set()
    for one in objects:
        if one.kind is ObjectKind.PRINCIPAL:
            principals.add(one.id)
            continue
        applications.add(one.application_id or one.id)
        if one.kind is ObjectKind.FEDERATED:
            holders.add(one.application_id)
    known = await _with_federations(client, await _applications(client, applications), holders)
    found = await _all([find_by_id(client, "servicePrincipals", each, Principal) for each in sorted(principals)])
    return Shown(known, {principal.id: principal for principal in found})


async def _applications(client: Client, ids: Iterable[str]) -> dict[str, Application]:
    found = await _all([find_application(client, each) for each in sorted(ids)])
    return {application.object_id: application for application in found}


async def _with_federations(
    client: Client, known: Mapping[str, Application], ids: Iterable[str]
) -> dict[str, Application]:
    """Return the app registrations, those with these ids with their federated credentials, which need one call each."""

    async def with_its(application: Application) -> Application | None:
        return evolve(application, federations=await federated_credentials(client, application.object_id))

    found = await _all([with_its(known[each]) for each in sorted(ids) if each in known])
    return {**known, **{application.object_id: application for application in found}}


async def _all(look_ups: list[Program[T | None]]) -> list[T]:
    """Do look-ups, a few concurrently, and return what they found."""
    found: list[T] = []
    try:
        for first in range(0, len(look_ups), LANES):
            answers = await gather(look_ups[first : first + LANES])
            found.extend(answer for answer in answers if answer is not None)
    finally:
        for look_up in look_ups:
            look_up.close()
    return found
