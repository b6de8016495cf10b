"""Federated identity credentials of app registrations: they trust an issuer whose assertions replace a secret.

All of their properties are chosen by cloudid, so they can be found by name. An app registration has only a few.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import msgspec

from ..errors import CloudidError, Code, ProviderAmbiguous, Refused
from .applications import Password
from .client import Client, ask, get_json
from .objects import Id, address, delete, directory_call
from .responses import is_absent, unless

MOST: Final = 20
"""Maximum number for one app registration."""


class _Credential(msgspec.Struct):
    id: Id
    name: str = ""


class _Credentials(msgspec.Struct):
    value: list[_Credential]


async def add_federated_credential(
    client: Client, object_id: str, *, name: str, issuer: str, subject: str, audience: str
) -> str:
    """Make an app registration trust an issuer's assertions about a subject. Return the id of the credential.

    `PROVIDER_QUOTA_EXCEEDED`: the app registration has the maximum. `ProviderAmbiguous`: it may exist.
    """
    known = await _listed(client, object_id)
    if len(known) >= MOST:
        raise Refused(
            Code.PROVIDER_QUOTA_EXCEEDED,
            f"the app registration has the maximum of {MOST} federated identity credentials",
        )
    body = {"name": name, "issuer": issuer, "subject": subject, "audiences": [audience]}
    call = directory_call(client, "POST", _address(client, object_id), body, idempotent=False)
    try:
        return (await ask(client, call, _Credential)).id
    except ProviderAmbiguous:
        with suppress(CloudidError):  # a failed look-up proves nothing
            for one in await _listed(client, object_id):
                if one.name == name:
                    return one.id
        raise


async def remove_federated_credential(client: Client, object_id: str, name: str) -> bool:
    """Remove the credential with this name. Return `False` if it, or the app registration, does not exist."""
    shown = await federated_credentials(client, object_id)
    named = [one.key_id for one in shown if one.display_name == name]
    return any([await delete(client, _address(client, object_id, each)) for each in named])


async def federated_credentials(client: Client, object_id: str) -> tuple[Password, ...]:
    """Return the credentials of an app registration, or none if it does not exist."""
    listed = await unless(is_absent, _listed(client, object_id), None)
    return tuple(Password(one.id, one.name, "", None) for one in listed or ())


async def _listed(client: Client, object_id: str) -> list[_Credential]:
    return (await get_json(client, _address(client, object_id), client.cloud.directory_scope, _Credentials)).value


def _address(client: Client, object_id: str, *rest: str) -> str:
    return address(client, "applications", object_id, "federatedIdentityCredentials", *rest)
