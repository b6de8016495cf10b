"""What Azure grants to a mount's own credential: application permissions, and actions at a scope."""

from __future__ import annotations

import re

import msgspec

from .assignments import address_at
from .client import Client, pages
from .oauth import access_token
from .responses import unless, unverified_claims


class Actions(msgspec.Struct, rename="camel", frozen=True):
    """Actions that one role assignment grants: those of `actions` that are not in `not_actions`.

    `*` matches any text.
    """

    actions: tuple[str, ...] = ()
    not_actions: tuple[str, ...] = ()

    def grant(self, action: str) -> bool:
        return _is_among(action, self.actions) and not _is_among(action, self.not_actions)


class _Claims(msgspec.Struct):
    roles: tuple[str, ...] = ()


async def directory_permissions(client: Client) -> frozenset[str] | None:
    """Return the application permissions in an access token for Microsoft Graph. `None` if it cannot be read."""
    claims = unverified_claims(await access_token(client, client.cloud.directory_scope), _Claims)
    return None if claims is None else frozenset(claims.roles)


async def actions_at(client: Client, scope: str) -> tuple[Actions, ...]:
    """Return the granted actions at a scope. Nothing if the credential may not even query them.

    Raise like `Client.call`.
    """
    listed = pages(client, address_at(client, scope, "permissions"), client.cloud.resource_scope, Actions)
    return tuple(await unless(lambda problem: problem.status == 403, listed, ()))


def _is_among(action: str, patterns: tuple[str, ...]) -> bool:
    return any(
        re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), action, re.IGNORECASE) for pattern in patterns
    )
