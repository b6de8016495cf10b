"""What an application proves itself with: a row for each kind says how it is removed and what is said of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from attrs import frozen

from ..effects import Program
from .applications import find_application, remove_named_passwords, remove_password
from .certificates import remove_certificate
from .client import Client
from .federated_credentials import federated_credentials, remove_federated_credential
from .propagation import WRONG_SUBJECT, FreshObject

SECRET: Final = "secret"
FEDERATED: Final = "federated_credential"
CERTIFICATE: Final = "certificate"

Look: TypeAlias = Callable[[Client, str, str], Program[bool]]
"""Whether an application of an object id has one of that name."""
Removal: TypeAlias = Callable[[Client, str, str, str], Program[bool]]
"""Removes what an application of an object id has under a name, and an id if that is known; `False` if none shows."""


@frozen(kw_only=True)
class Proof:
    """A row: how one is removed and read back, and which errors say that it is fresh, or gone."""

    remove: Removal
    stands: Look
    family: FreshObject
    dead: frozenset[str]


async def _remove_password(client: Client, object_id: str, name: str, key_id: str) -> bool:
    """By its key id first, then all other passwords that have its display name.

    A gateway that sends a request twice makes two passwords with one name, and only one key id is known.
    """
    removed = bool(key_id) and await remove_password(client, object_id, key_id)
    more = bool(name) and await remove_named_passwords(client, object_id, name, but=key_id)
    return removed or more


async def _stands_on(client: Client, object_id: str, name: str) -> bool:
    found = await find_application(client, object_id)
    return found is not None and any(each.display_name == name for each in (*found.passwords, *found.certificates))


async def _stands_federated(client: Client, object_id: str, name: str) -> bool:
    return any(each.display_name == name for each in await federated_credentials(client, object_id))


PROOFS: Final = {
    SECRET: Proof(
        remove=_remove_password,
        stands=_stands_on,
        family=FreshObject.SECRET,
        dead=frozenset({"AADSTS7000215", "AADSTS7000222"}),
    ),
    FEDERATED: Proof(
        remove=lambda client, object_id, name, _: remove_federated_credential(client, object_id, name),
        stands=_stands_federated,
        family=FreshObject.FEDERATION,
        dead=frozenset({"AADSTS70021", "AADSTS700211", *WRONG_SUBJECT}),
    ),
    CERTIFICATE: Proof(
        remove=lambda client, object_id, name, _: remove_certificate(client, object_id, name),
        stands=_stands_on,
        family=FreshObject.CERTIFICATE,
        dead=frozenset({"AADSTS700027"}),
    ),
}
