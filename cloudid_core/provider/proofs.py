"""The kinds of credentials of app registrations: a row for each says how it is removed, and which errors it causes."""

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
"""Returns whether the app registration with an object id has one with that name."""
Removal: TypeAlias = Callable[[Client, str, str, str], Program[bool]]
"""Removes the credential with a name, and an id if known, from the app registration with an object id.

Returns `False` if there is none.
"""


@frozen(kw_only=True)
class Proof:
    """A row: how a credential is removed and read, and which errors mean that it is too new, or deleted."""

    remove: Removal
    stands: Look
    family: FreshObject
    dead: frozenset[str]


async def _remove_password(client: Client, object_id: str, name: str, key_id: str) -> bool:
    """Remove a client secret by its key id, then all others with its display name.

    A gateway that sends a request twice creates two secrets with the same name, and only one key id is known.
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
