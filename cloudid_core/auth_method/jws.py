"""JWS: signed tokens in their compact form (RFC 7515), RS256 alone, read as strictly as the RFC allows.

One spelling for each value: canonical base64url without padding, no member twice in a header. Nothing of a payload is
read before its signature is verified.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any, Final

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed
from cryptography.hazmat.primitives.hashes import SHA256
from pybase64 import b64decode

from ..caches import Bounded
from ..errors import Code, Refused

ALGORITHM: Final = "RS256"
_PADDING: Final = PKCS1v15()
_HASHED: Final = Prehashed(SHA256())
"""The digest that names a token in the cache serves the verification too."""
_MOST_BRACKETS: Final = 16
"""In a header: bounds how deeply it nests."""

_PADDINGS: Final = tuple(
    dict.fromkeys(ends, b"=" * (-remainder % 4))
    for remainder, ends in enumerate(
        (b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", b"", b"AQgw", b"AEIMQUYcgkosw048")
    )
)
"""What base64url leaves out at the end of a text, by its length modulo 4 and its last character. Only characters whose
spare bits are zero are here (RFC 4648 section 3.5)."""
_PLUS, _SLASH = b"+/"


class Parts(msgspec.Struct, frozen=True, gc=False):
    """A token taken apart. Nothing of it is proven yet."""

    key_id: str
    _payload: bytes
    _signature: bytes
    _digest: bytes

    def __repr__(self) -> str:
        return "Parts(...)"


def split(token: str) -> tuple[bytes, bytes, bytes]:
    """Return the signed part, its signature and its SHA-256. Refuse non-ASCII texts with `JWT_MALFORMED`.

    The caller bounds the token's length. Digest and signature together tell a token from all others.
    """
    try:
        signed, _, signature = token.encode("ascii").rpartition(b".")
    except UnicodeEncodeError:
        raise Refused(Code.JWT_MALFORMED) from None
    return signed, signature, sha256(signed).digest()


def decode(signed: bytes, signature: bytes, digest: bytes, headers: Bounded[bytes, str]) -> Parts:
    """Take apart what `split` gave; `headers` remembers the key ids of headers that were read before.

    Refuses with `JWT_MALFORMED` what is not a signed token, with `LOGIN_REFUSED` what is signed in another way or
    names no key.
    """
    header, _, payload = signed.partition(b".")
    key_id = headers.peek(header)
    if key_id is None:
        key_id = _read_key_id(_decode(header))
        headers.put(header, key_id)
    return Parts(key_id, _decode(payload), _decode(signature), digest)


def verify(parts: Parts, key: RSAPublicKey) -> bytes:
    """Return the payload if `key` signed it. Otherwise refuse with `LOGIN_REFUSED`."""
    try:
        key.verify(parts._signature, parts._digest, _PADDING, _HASHED)
    except InvalidSignature:
        raise Refused(Code.LOGIN_REFUSED) from None
    return parts._payload


def verified_payload(signed: bytes) -> bytes:
    """Return the payload of a token that was verified before."""
    return _decode(signed.partition(b".")[2])


def _decode(segment: bytes) -> bytes:
    """Decode a segment, which must be the only canonical base64url text of its bytes."""
    if _PLUS in segment or _SLASH in segment:  # the library reads them too
        raise Refused(Code.JWT_MALFORMED)
    try:
        return b64decode(segment + _PADDINGS[len(segment) % 4][segment[-1]], b"-_", True)
    except (LookupError, ValueError):
        raise Refused(Code.JWT_MALFORMED) from None


def _read_key_id(raw: bytes) -> str:
    """Return the id of the key that a header names: `kid`, or the certificate's thumbprint `x5t`."""
    if raw.count(b"{") + raw.count(b"[") > _MOST_BRACKETS:
        raise Refused(Code.JWT_MALFORMED)
    try:
        header = json.loads(raw.decode(), object_pairs_hook=_members, parse_constant=_no_constant)
    except ValueError:
        raise Refused(Code.JWT_MALFORMED) from None
    if not isinstance(header, dict):
        raise Refused(Code.JWT_MALFORMED)
    key_id = header.get("kid", header.get("x5t"))
    if header.get("alg") != ALGORITHM or "crit" in header or not isinstance(key_id, str) or not key_id.isascii():
        raise Refused(Code.LOGIN_REFUSED)
    return key_id


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member is repeated")
    return members


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
