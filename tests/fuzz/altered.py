"""Altered tokens: whatever is done to signed login tokens, none that differs in meaning is ever admitted.

Tokens are altered in their bytes, segments, claims, headers and keys. Two oracles judge each one that is admitted: the
list of tokens that a key of the tenant did sign, character by character, and PyJWT with a comparison of claims that is
written once more here, plainly. Signatures and claims are remembered between them, as a server does.
"""

from __future__ import annotations

import json
import random
from base64 import b64decode
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import sha256
from hmac import digest
from typing import Any, Final

import jwt
from attrs import Factory, define
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from cloudid_core.auth_method.verification import UnknownKey, verify_login_jwt
from cloudid_core.errors import Refused
from cloudid_core.provider import KeySet
from tests.cases import check_claims, check_lifetime
from tests.minting import (
    AUDIENCE,
    HEADER,
    ISSUER,
    KEY_ID,
    NOW,
    PRINCIPAL,
    TENANT,
    VM,
    encode,
    key_set,
    mint_raw,
    new_caches,
    private_key,
    said,
)

NEXT: Final = "key-2"
"""The key after a roll-over."""

FOREIGN: Final = "foreign"
LIMIT: Final = 2**14
LEEWAY: Final = 60.0
LONGEST_LIFE: Final = 86_400.0
SOMEBODY: Final = "0b1ec700-0000-4000-8000-00000000000f"
SIGNED_IN: Final = 200
"""One of so many is signed anew: to sign takes forty times as long as to verify."""

KEY_SETS: Final = (key_set(), key_set(KEY_ID, NEXT, generation="2"), key_set(NEXT, generation="3"))
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_ODD: Final = "=+/. \n\r\t\0é\u0130" + _LETTERS

CHANGES: Final[tuple[Mapping[str, Any], ...]] = (
    {},
    {"oid": PRINCIPAL.upper(), "tid": TENANT.upper()},
    {"aud": [AUDIENCE, "https://graph.microsoft.com/"]},
    {"iss": f"https://login.microsoftonline.com/{TENANT}/v2.0"},
    {"aud": "https://graph.microsoft.com/"},
    {"aud": AUDIENCE.removesuffix("/")},
    {"aud": []},
    {"aud": None},
    {"iss": "https://evil.example/"},
    {"iss": ISSUER.removesuffix("/")},
    {"iss": [ISSUER]},
    {"tid": SOMEBODY},
    {"tid": None},
    {"oid": SOMEBODY},
    {"oid": PRINCIPAL + " "},
    {"oid": [PRINCIPAL]},
    {"exp": NOW},
    {"exp": NOW - 1},
    {"exp": str(NOW + 3600)},
    {"exp": True},
    {"exp": NOW + 10 * LONGEST_LIFE},
    {"exp": None},
    {"nbf": NOW + LEEWAY + 1},
    {"iat": NOW + LEEWAY + 1},
    {"nbf": NOW + LEEWAY},
    {"xms_mirid": VM.upper()},
    {"xms_az_rid": "nothing"},
    {"groups": []},
    {"groups": "all"},
)
"""What is changed in the claims of a good token."""


@define
class Tokens:
    """The tokens that were signed, and who signed them."""

    dice: random.Random
    signed: dict[str, str] = Factory(dict)
    texts: list[str] = Factory(list)

    def sign(self, claims: bytes, key: str, header: Mapping[str, Any] | None = None) -> str:
        head = header or {**HEADER, "kid": key, "x5t": key}
        token = mint_raw(json.dumps(head).encode(), claims, key)
        if key != FOREIGN:
            self.signed[token] = key
        if len(self.texts) < 2000:
            self.texts.append(token)
        return token

    def any(self) -> str:
        return self.dice.choice(self.texts)


@define
class Tally:
    """How many tokens there were, and how many of them were admitted."""

    tried: int = 0
    admitted: int = 0
    spelled_otherwise: int = 0
    """Tokens of another spelling that PyJWT takes, all refused."""

    def __str__(self) -> str:
        return (
            f"{self.tried} altered tokens: {self.admitted} admitted, all as they were signed; "
            f"{self.spelled_otherwise} refused that PyJWT reads"
        )


def tokens_of(dice: random.Random) -> Tokens:
    """Every change of claims under each key, and headers that name a key in other ways."""
    tokens = Tokens(dice)
    for changes in CHANGES:
        for key in (KEY_ID, NEXT):
            tokens.sign(json.dumps(said(**changes)).encode(), key)
    good = json.dumps(said()).encode()
    tokens.sign(good, FOREIGN, HEADER)
    for odd in ({"alg": "none"}, {"alg": "RS384"}, {"alg": "PS256"}, {"crit": ["exp"]}, {"kid": NEXT}, {"kid": None}):
        tokens.sign(good, KEY_ID, {**HEADER, **odd})
    for member in ("oid", "aud", "tid", "exp", "iss"):
        wrong = json.dumps({member: NOW if member == "exp" else SOMEBODY}).encode()[1:-1]
        tokens.sign(b"{%s,%s" % (wrong, good[1:]), KEY_ID)  # twice: the last one counts
        tokens.sign(b"%s,%s}" % (good[:-1], wrong), KEY_ID)
    return tokens


# How tokens are altered. Each takes a token and gives another.

Alteration = Callable[[str, Tokens], str]


def as_it_is(token: str, tokens: Tokens) -> str:
    return token


def changed_character(token: str, tokens: Tokens) -> str:
    place = tokens.dice.randrange(len(token))
    return token[:place] + tokens.dice.choice(_LETTERS) + token[place + 1 :]


def odd_character(token: str, tokens: Tokens) -> str:
    place = tokens.dice.randrange(len(token) + 1)
    return token[:place] + tokens.dice.choice(_ODD) + token[place + tokens.dice.randrange(2) :]


def cut(token: str, tokens: Tokens) -> str:
    start, end = sorted(tokens.dice.randrange(len(token) + 1) for _ in range(2))
    return token[:start] + token[end:] if tokens.dice.randrange(2) else token[start:end]


def last_bits(token: str, tokens: Tokens) -> str:
    """Another last character of a segment: perhaps the same bytes, spelled otherwise."""
    segments = token.split(".")
    place = tokens.dice.randrange(len(segments))
    segments[place] = segments[place][:-1] + tokens.dice.choice(_LETTERS)
    return ".".join(segments)


def padded(token: str, tokens: Tokens) -> str:
    segments = token.split(".")
    place = tokens.dice.randrange(len(segments))
    segments[place] += "=" * tokens.dice.randrange(1, 4)
    return ".".join(segments)


def crossed(token: str, tokens: Tokens) -> str:
    """Segments of two tokens."""
    pairs = zip(token.split("."), tokens.any().split("."), strict=False)
    return ".".join(tokens.dice.choice(pair) for pair in pairs)


def shuffled(token: str, tokens: Tokens) -> str:
    """Segments of one token in another order or number."""
    segments = token.split(".")
    return ".".join(tokens.dice.choices([*segments, ""], k=tokens.dice.randrange(1, 6)))


def other_claims(token: str, tokens: Tokens) -> str:
    """Claims that nobody signed."""
    header, _, signature = token.split(".")
    changes = tokens.dice.choice(CHANGES)
    return f"{header}.{encode(json.dumps(said(**changes)).encode())}.{signature}"


def other_header(token: str, tokens: Tokens) -> str:
    """Another algorithm or key, without a signature or with one by the public key as a shared secret."""
    _, payload, signature = token.split(".")
    algorithm = tokens.dice.choice(["none", "None", "HS256", "RS256", "rs256", "RS512", "ES256", ""])
    header = {**HEADER, "alg": algorithm, "kid": tokens.dice.choice([KEY_ID, NEXT, FOREIGN, "", None])}
    text = f"{encode(json.dumps(header).encode())}.{payload}"
    if algorithm == "HS256":
        signature = encode(digest(PUBLIC_PEM, text.encode(), sha256))
    return f"{text}.{tokens.dice.choice([signature, ''])}"


def other_bytes(token: str, tokens: Tokens) -> str:
    """One bit of the claims or the signature, encoded as it should be."""
    header, *rest = token.split(".")
    place = tokens.dice.randrange(2)
    raw = bytearray(b64decode(rest[place] + "==", b"-_"))
    bit = tokens.dice.randrange(8 * len(raw))
    raw[bit // 8] ^= 1 << bit % 8
    rest[place] = encode(bytes(raw))
    return ".".join([header, *rest])


def long_signature(token: str, tokens: Tokens) -> str:
    """The signature's number plus zeros before or behind, or that of nothing."""
    signed, _, signature = token.rpartition(".")
    raw = b64decode(signature + "==", b"-_")
    return f"{signed}.{encode(tokens.dice.choice([bytes(1) + raw, raw + bytes(1), raw[1:], bytes(256), b'']))}"


def signed_anew(token: str, tokens: Tokens) -> str:
    """Other claims, signed by one of the keys, the foreign one among them, under the name of any."""
    key, name = (tokens.dice.choice([KEY_ID, NEXT, FOREIGN]) for _ in range(2))
    changes = {**tokens.dice.choice(CHANGES), **tokens.dice.choice(CHANGES), "jti": str(tokens.dice.random())}
    return tokens.sign(json.dumps(said(**changes)).encode(), key, {**HEADER, "kid": name})


PUBLIC_PEM: Final = private_key().public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
ALTERATIONS: Final[tuple[Alteration, ...]] = (
    as_it_is,
    changed_character,
    odd_character,
    cut,
    last_bits,
    padded,
    crossed,
    shuffled,
    other_claims,
    other_header,
    other_bytes,
    long_signature,
)


# The decision, and its oracles


def is_admitted(token: str, keys: KeySet, caches: Any) -> bool:
    """What the product decides, by all that it remembers of other tokens."""
    try:
        claims = verify_login_jwt(token, keys, caches, "mount", LIMIT)
        check_claims(
            claims,
            now=NOW,
            leeway=LEEWAY,
            audience=AUDIENCE,
            issuers=keys.issuers,
            tenant_id=TENANT,
        )
        check_lifetime(claims, NOW, LONGEST_LIFE)
    except (Refused, UnknownKey):
        return False
    return claims.principal_id == PRINCIPAL


def is_good(token: str, keys: KeySet) -> bool:
    """Whether PyJWT verifies the token and its claims say, plainly compared, who may come in."""
    try:
        header = jwt.get_unverified_header(token)
        options: Any = {"verify_exp": False, "verify_nbf": False, "verify_iat": False}
        said = jwt.decode(token, keys.keys[header["kid"]], ["RS256"], options, audience=AUDIENCE)
    except (jwt.PyJWTError, KeyError, TypeError, ValueError):
        return False
    texts = [said.get(name) for name in ("iss", "tid", "oid")]
    times = [said.get("exp"), said.get("nbf", 0), said.get("iat", 0)]
    if any(type(text) is not str for text in texts) or any(type(time) not in (int, float) for time in times):
        return False
    if type(said.get("groups", [])) is not list:
        return False
    return (
        said["iss"] in keys.issuers
        and said["tid"].lower() == TENANT
        and said["oid"].lower() == PRINCIPAL
        and NOW < said["exp"] <= NOW + LONGEST_LIFE
        and max(times[1:]) <= NOW + LEEWAY
    )


def alter(count: int, seed: int = 0) -> Tally:
    """Try so many altered tokens.

    Fails at the first that is admitted though it should not be, or refused though it is as it was signed and good.
    """
    dice = random.Random(seed)
    tokens, tally = tokens_of(dice), Tally()
    caches = new_caches()
    for number in range(count):
        how = signed_anew if number % SIGNED_IN == 0 else dice.choice(ALTERATIONS)
        token, keys = how(tokens.any(), tokens), dice.choice(KEY_SETS)
        if dice.randrange(4) == 0:
            with suppress(ValueError, LookupError):  # the first has left too little for the second
                token = dice.choice(ALTERATIONS)(token, tokens)
        judge(token, keys, is_admitted(token, keys, caches), tokens, tally)
    return tally


def judge(token: str, keys: KeySet, admitted: bool, tokens: Tokens, tally: Tally) -> None:
    """Hold the decision about one token against the oracles."""
    tally.tried += 1
    tally.admitted += admitted
    key = tokens.signed.get(token)
    if admitted:
        assert key in keys.keys, f"admitted, but nobody signed it: {token!r}"
        assert is_good(token, keys), f"admitted, but PyJWT or its claims say no: {token!r}"
    elif key is not None:
        assert not is_good(token, keys), f"refused, but signed and good: {token!r}"
    elif tally.tried % 100 == 0:
        tally.spelled_otherwise += is_good(token, keys)
