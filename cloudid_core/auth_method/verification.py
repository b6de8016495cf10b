"""Verification of a login JWT: its signature, verified once for each token and set of keys.

The cache holds only the claims of tokens whose signature was verified. Time, audience, issuer, role and bounds are
checked again at each login. A token that its mount does not accept is forgotten: every tenant of Azure can have tokens
signed with these keys, and must not fill the caches with them.
"""

from __future__ import annotations

from ..caches import JwtCaches
from ..errors import CloudidError, Code, Refused
from ..provider import KeySet
from . import jws
from .claims import Claims, forget, read


class UnknownKey(CloudidError):
    """A token names a key that is not in the set. A newer set may have it."""

    def __init__(self, kid: str) -> None:
        self.kid = kid
        super().__init__("the JWT is signed with an unknown key")


def verify_login_jwt(token: str, key_set: KeySet, caches: JwtCaches, mount_id: str, limit: int) -> Claims:
    """Return the claims of a token of at most `limit` bytes that a key of the set signed.

    Raises `UnknownKey`, or `Refused` with `FIELD_INVALID` (the token is too long), `JWT_MALFORMED`, `LOGIN_REFUSED` or,
    after the signature is verified, `JWT_CLAIM_MISSING`.
    """
    if len(token) > limit:
        raise Refused(Code.FIELD_INVALID, f'"jwt" must be at most {limit} bytes long')
    signed, signature, digest = jws.split(token)
    held = (mount_id, key_set.generation, digest, signature)
    claims: Claims | None = caches.signatures.peek(held)
    if claims is None:
        parts = jws.decode(signed, signature, digest, caches.jws_headers)
        key = key_set.keys.get(parts.key_id)
        if key is None:
            raise UnknownKey(parts.key_id)
        claims = read(jws.verify(parts, key), caches)
        caches.signatures.put(held, claims)
    return claims


def forget_login_jwt(token: str, key_set: KeySet, caches: JwtCaches, mount_id: str) -> None:
    """Remove a token whose signature was verified from the caches.

    An entry that other tokens share is removed too: their next login only computes it again.
    """
    signed, signature, digest = jws.split(token)
    caches.signatures.drop((mount_id, key_set.generation, digest, signature))
    forget(jws.verified_payload(signed), caches)
