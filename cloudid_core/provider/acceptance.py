"""Proof that new credentials work: the token endpoint accepts them."""

from __future__ import annotations

from msgspec.structs import replace

from ..errors import Code, ProviderProblem, Refused
from ..values import Secret
from .client import Client, Credentials
from .oauth import prove_secret
from .propagation import FreshObject, is_transient, pause


async def wait_until_accepted(client: Client, client_id: str, secret: Secret, *, needed: int = 1) -> bool:
    """Whether the token endpoint accepts a secret `needed` times in a row, before the client's deadline passes.

    It is asked again and again: its servers learn of a secret one after the other. Raises what it answers but that it
    does not know the secret or the application.
    """
    bearer = replace(client, credentials=Credentials(client_id=client_id))
    in_a_row = 0
    while True:
        try:
            await prove_secret(bearer, secret)
            in_a_row += 1
        except ProviderProblem as problem:
            if not is_transient(FreshObject.SECRET, problem):
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
