"""Proof that new credentials work: the token endpoint accepts them."""

from __future__ import annotations

from msgspec.structs import replace

from ..errors import Code, ProviderProblem, Refused
from .client import Client, Credentials
from .oauth import ask_for_token
from .propagation import FreshObject, is_transient, pause


async def wait_until_proven(client: Client, credentials: Credentials, family: FreshObject, *, needed: int = 1) -> bool:
    """Whether the token endpoint accepts credentials `needed` times in a row, before the client's deadline passes.

    It is asked again and again: its servers learn of them one after the other. Raises what it answers but that it does
    not know them or the application; no token that it answers is used.
    """
    bearer = replace(client, credentials=credentials)
    in_a_row = 0
    while True:
        try:
            await ask_for_token(bearer, client.cloud.resource_scope)
            in_a_row += 1
        except ProviderProblem as problem:
            if not is_transient(family, problem):
                raise
            in_a_row = 0
        except Refused as refusal:
            if refusal.code is not Code.DEADLINE_PASSED:
                raise
            return False
        if in_a_row >= needed:
            return True
        if not await pause(client):
            return False
