"""The claims of a login JWT. The checks decide whether a mount accepts them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from sys import intern
from typing import Annotated, ClassVar, Final, TypeAlias

import msgspec

from .. import values
from ..caches import JwtCaches
from ..effects import Instant
from ..errors import Code, Refused
from ..values import ResourceId, fold, folds_to, resource_id

VIRTUAL_MACHINE: Final = fold(values.VIRTUAL_MACHINE)
SCALE_SET: Final = fold(values.SCALE_SET)
IDENTITY: Final = fold(values.USER_ASSIGNED_IDENTITY)
RESOURCE: Final = "resource"
"""A resource of any other type."""
MACHINES: Final = (VIRTUAL_MACHINE, SCALE_SET, IDENTITY, RESOURCE)

_Text: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]
_Time: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=253_402_300_799)]
"""A NumericDate (RFC 7519 section 2) before the year 10000."""

_NULL: Final = msgspec.Raw(b"null")
_NONE_OF_THEM: Final = (_NULL,) * 7


class _Payload(msgspec.Struct, frozen=True, gc=False):
    """The claims that are read, as they are written. Null means absent. If a name is repeated, the last one is used."""

    iss: _Text
    aud: _Text | tuple[_Text, ...]
    tid: _Text
    oid: _Text
    exp: _Time
    nbf: _Time | None = None
    iat: _Time | None = None
    appid: str | None = None
    azp: str | None = None
    groups: msgspec.Raw = _NULL
    """Not read yet."""
    claim_names: dict[str, msgspec.Raw] | None = msgspec.field(name="_claim_names", default=None)
    xms_az_rid: str | None = None
    xms_mirid: str | None = None
    idtyp: str | None = None
    sub: str | None = None
    scp: msgspec.Raw = _NULL
    """Of this claim and the following ones only their presence counts: an app's token for itself has none of them."""
    preferred_username: msgspec.Raw = _NULL
    upn: msgspec.Raw = _NULL
    unique_name: msgspec.Raw = _NULL
    nonce: msgspec.Raw = _NULL
    at_hash: msgspec.Raw = _NULL
    c_hash: msgspec.Raw = _NULL

    def token_type(self) -> str:
        """Return `USER` if `idtyp`, `sub` or a claim that only people's tokens have shows that it is a person's."""
        found = (self.scp, self.preferred_username, self.upn, self.unique_name, self.nonce, self.at_hash, self.c_hash)
        is_user = (
            (self.idtyp is not None and folds_to(self.idtyp, USER))
            or (self.sub is not None and self.sub != self.oid and fold(self.sub) != fold(self.oid))
            or found != _NONE_OF_THEM
        )
        return USER if is_user else APP


APP: Final = "app"
USER: Final = "user"
TOKEN_TYPES: Final = (APP, USER)
"""Types of tokens: of a workload that acts for itself, and of a person or an app that acts for one."""

_decode: Final = msgspec.json.Decoder(_Payload).decode
_decode_groups: Final = msgspec.json.Decoder(frozenset[_Text] | None).decode
_NAMED_CLAIM: Final = re.compile(r"(?:field `|at `\$\.)(\w+)")
"""How msgspec's messages name the member that is missing or of a wrong type; names come from `_Payload` alone."""


class Collection(msgspec.Struct, frozen=True, gc=False):
    """The resources of one kind in one resource group: the common part of their ids, up to the last slash."""

    written: str
    """As it was written."""
    folded: str
    """In lower case, as are subscription and resource group."""
    subscription: str
    resource_group: str
    metadata: Mapping[str, str]
    """Subscription and resource group as they were written, for the metadata of tokens."""
    kind: str
    """One of `MACHINES`."""
    is_virtual_machine: bool
    is_scale_set: bool


class NamedMachine(msgspec.Struct, frozen=True, gc=False):
    """The resource to which a token was issued, by its place and its name."""

    collection: Collection
    written_name: str
    """As it was written."""
    name: str
    """In lower case."""

    @property
    def written(self) -> str:
        """Its id as it was written."""
        return self.collection.written + self.written_name

    @property
    def folded(self) -> str:
        """Its id in lower case."""
        return self.collection.folded + self.name

    @property
    def resource_id(self) -> ResourceId:
        return resource_id.parse(self.written)


class OtherClaim(msgspec.Struct, frozen=True, gc=False):
    """A machine claim that is not the id of a resource in a resource group.

    It may be the id of an extension resource, a management group or a resource of a subscription, or any text. It is
    treated as a missing machine claim. The fields are in lower case, and empty if the claim does not have them.
    """

    claim: str
    subscription: str
    resource_group: str

    kind: ClassVar[str] = ""


NOWHERE: Final = OtherClaim("", "", "")
"""Of a token without a machine claim."""


class Claims(msgspec.Struct, frozen=True, gc=False):
    """The content of a signed token. Times are in seconds since the epoch, ids in lower case unless stated otherwise.

    Many are cached, so they are small, and share the texts that all tokens of a fleet have in common.
    """

    issuer: str
    """As it was written."""
    audiences: tuple[str, ...]
    """As they were written."""
    tenant_id: str
    principal_id: str
    expires_at: Instant
    valid_from: Instant
    """The later of `nbf` and `iat`. Zero: the token has neither."""
    app_id: str
    """As it was written. Empty: the token does not name one."""
    groups: frozenset[str]
    groups_overflow: bool
    """There are more groups than the token can list, so Microsoft Entra ID has to."""
    token_type: str = APP
    """One of `TOKEN_TYPES`."""
    machine: NamedMachine | None = None
    other: OtherClaim | None = None
    identity: str = ""
    """The user-assigned identity to which the token was issued, as `xms_mirid` names it.

    Empty: the machine's own identity, or the token does not name one.
    """

    @property
    def place(self) -> Collection | OtherClaim | None:
        """Return where the machine is, as far as the token says."""
        return self.machine.collection if self.machine else self.other


def read(payload: bytes, caches: JwtCaches) -> Claims:
    """Read the payload of a token whose signature was verified. `JWT_CLAIM_MISSING` names the claim that is invalid.

    The machines of a fleet are in the same groups, and their ids differ only in the name, so both are cached.
    """
    try:
        said = _decode(payload)
    except msgspec.ValidationError as error:
        named = _NAMED_CLAIM.search(str(error))
        raise Refused(Code.JWT_CLAIM_MISSING, named[1] if named else "") from None
    except (ValueError, RecursionError):
        raise Refused(Code.JWT_MALFORMED) from None
    groups = _groups(bytes(said.groups), caches)
    machine, other, identity = _machine(said, caches)
    return Claims(
        intern(said.iss),
        said.aud if isinstance(said.aud, tuple) else (intern(said.aud),),
        intern(fold(said.tid)),
        fold(said.oid),
        said.exp,
        max(said.nbf or 0.0, said.iat or 0.0),
        said.appid or said.azp or "",
        groups or frozenset(),
        not groups and "groups" in (said.claim_names or ()),
        said.token_type(),
        machine,
        other,
        identity,
    )


def forget(payload: bytes, caches: JwtCaches) -> None:
    """Remove from the caches what `read` put there for a payload."""
    said = _decode(payload)
    caches.groups.drop(bytes(said.groups))
    machine = said.xms_mirid if said.xms_az_rid is None else said.xms_az_rid
    caches.collections.drop((machine or "").rpartition("/")[0])


def _groups(raw: bytes, caches: JwtCaches) -> frozenset[str] | None:
    """Return the groups of a JSON text, in lower case. `None`: it is null."""
    groups = caches.groups.peek(raw)
    if groups is None:
        is_plain = raw.isascii() and b"\\" not in raw  # so that all of it can be folded at once
        try:
            groups = _decode_groups(raw.lower() if is_plain else raw)
        except (ValueError, RecursionError):
            raise Refused(Code.JWT_CLAIM_MISSING, "groups") from None
        if groups is None:
            return None
        if not is_plain:
            groups = frozenset(map(fold, groups))
        caches.groups.put(raw, groups)
    return groups


def _machine(said: _Payload, caches: JwtCaches) -> tuple[NamedMachine | None, OtherClaim | None, str]:
    """Return the machine that the token names, in one of two claims, and its user-assigned identity."""
    claim, text, identity = "xms_mirid", said.xms_mirid, ""
    if said.xms_az_rid is not None:
        claim, text, identity = "xms_az_rid", said.xms_az_rid, intern(said.xms_mirid or "")
    if text is None:
        return None, None, identity
    try:
        machine = named_machine(text, caches)
    except ValueError:
        return None, _other(claim, text), identity
    if machine.collection.kind == IDENTITY:
        return None, None, intern(text) if claim == "xms_mirid" else identity
    return machine, None, identity


def named_machine(text: str, caches: JwtCaches) -> NamedMachine:
    """Return the resource of an id. Raise `ValueError` if the text is not the id of a resource in a resource group."""
    head, _, name = text.rpartition("/")
    collection: Collection = caches.collections.peek(head) or _collection(head, caches)
    return NamedMachine(collection, name, resource_id.folded_name(name, collection.folded))


def _other(claim: str, text: str) -> OtherClaim:
    match fold(text).split("/"):
        case ["", "subscriptions", subscription, "resourcegroups", resource_group, *_]:
            return OtherClaim(claim, subscription, resource_group)
        case ["", "subscriptions", subscription, *_]:
            return OtherClaim(claim, subscription, "")
        case _:
            return OtherClaim(claim, "", "")


def _collection(head: str, caches: JwtCaches) -> Collection:
    named = resource_id.parse(f"{head}/x")
    kind = fold(named.type)
    collection = Collection(
        written=f"{head}/",
        folded=named.folded[:-1],
        subscription=fold(named.subscription),
        resource_group=fold(named.resource_group),
        metadata={"subscription_id": named.subscription, "resource_group_name": named.resource_group},
        kind=kind if kind in MACHINES else RESOURCE,
        is_virtual_machine=kind == VIRTUAL_MACHINE,
        is_scale_set=kind == SCALE_SET,
    )
    caches.collections.put(head, collection)
    return collection
