"""JWS: what is accepted, what is not, and agreement with other libraries."""

from __future__ import annotations

import binascii
import hmac
import json
import re
import string
from base64 import b64decode
from hashlib import sha256
from itertools import count
from typing import Any

import jwt
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, padding
from cryptography.hazmat.primitives.hashes import SHA256, SHA512
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import example, given
from hypothesis import strategies as st

from cloudid_core.auth_method import jws
from cloudid_core.caches import Bounded
from cloudid_core.errors import Code, Refused
from tests.sampling import examples

from ...minting import HEADER, KEY_ID, code_of, encode, mint, mint_raw, private_key, said, sign

BASE64URL = string.ascii_letters + string.digits + "-_"
HEADER_TEXT = json.dumps(HEADER).encode()


def read(token: str, headers: Bounded[bytes, str] | None = None) -> bytes:
    """The payload of a token that the tenant's key signed."""
    return jws.verify(parts_of(token, headers), private_key().public_key())


def parts_of(token: str, headers: Bounded[bytes, str] | None = None) -> jws.Parts:
    return jws.decode(*jws.split(token), Bounded(8) if headers is None else headers)


def with_header(**changes: Any) -> str:
    header = {name: value for name, value in {**HEADER, **changes}.items() if value is not ...}
    return mint(header=header)


def test_a_signed_token_gives_its_payload() -> None:
    assert json.loads(read(mint())) == said()


def test_a_header_may_hold_sixteen_objects_and_lists() -> None:
    assert read(with_header(more=[[]] * 14))
    assert code_of(read, with_header(more=[[]] * 15)) == Code.JWT_MALFORMED


def test_a_header_is_read_once() -> None:
    headers: Bounded[bytes, str] = Bounded(8)
    token = mint()
    assert read(token, headers) == read(token, headers)
    assert len(headers) == 1
    assert headers.get(token.encode().partition(b".")[0]) == KEY_ID


def test_only_headers_that_are_good_are_remembered() -> None:
    headers: Bounded[bytes, str] = Bounded(8)
    assert code_of(read, with_header(alg="none"), headers) is Code.LOGIN_REFUSED
    assert len(headers) == 0


def test_the_signature_is_checked_although_the_header_is_known() -> None:
    headers: Bounded[bytes, str] = Bounded(8)
    read(mint(), headers)
    assert code_of(read, mint(key="another"), headers) is Code.LOGIN_REFUSED


def test_a_key_may_be_named_by_its_certificate() -> None:
    assert read(with_header(kid=...))


@pytest.mark.parametrize(
    "header",
    [
        {"alg": "none"},
        {"alg": "None"},
        {"alg": "HS256"},
        {"alg": "RS384"},
        {"alg": "PS256"},
        {"alg": "rs256"},
        {"alg": ["RS256"]},
        {"alg": None},
        {"alg": ...},
        {"crit": ["exp"]},
        {"crit": []},
        {"crit": None},
        {"crit": ["b64"], "b64": False},
        {"kid": ..., "x5t": ...},
        {"kid": 1},
        {"kid": None},
        {"kid": ["key-1"]},
        {"kid": "schlüssel"},
    ],
    ids=str,
)
def test_a_header_that_is_not_ours_is_refused_although_the_signature_holds(header: dict[str, Any]) -> None:
    assert code_of(read, with_header(**header)) is Code.LOGIN_REFUSED


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"null",
        b'"RS256"',
        b"[]",
        b"{",
        b'{"alg":"RS256","kid":"key-1"',
        b'{"alg":"RS256","kid":"key-1"}}',
        b'{"alg":"RS256","kid":"key-1",}',
        b"{'alg':'RS256','kid':'key-1'}",
        b'{"alg":"none","alg":"RS256","kid":"key-1"}',
        b'{"alg":"RS256","kid":"key-2","kid":"key-1"}',
        b'{"alg":"RS256","al\\u0067":"RS256","kid":"key-1"}',
        b'{"alg":"RS256","kid":"key-1","jwk":{"e":1,"e":2}}',
        b'{"alg":"RS256","kid":"key-1","x":NaN}',
        b'{"alg":"RS256","kid":"key-1","x":' + b"9" * 5000 + b"}",
        b'{"alg":"RS256","kid":"key-1","x":' + b"[" * 20 + b"]" * 20 + b"}",
        b'{"alg":"RS256","kid":"key-1","x":"' + b"\xff" + b'"}',
        b"\xef\xbb\xbf" + HEADER_TEXT,
        HEADER_TEXT.decode().encode("utf-16"),
        HEADER_TEXT + b"\0",
    ],
)
def test_a_header_that_is_no_json_object_of_distinct_members_is_malformed(header: bytes) -> None:
    assert code_of(read, mint_raw(header, json.dumps(said()).encode())) is Code.JWT_MALFORMED


GOOD = mint()
GOOD_HEADER, GOOD_PAYLOAD, GOOD_SIGNATURE = GOOD.split(".")


@pytest.mark.parametrize(
    "form",
    [
        "",
        ".",
        "..",
        "a",
        "H.P",
        "H.P.",
        "H..S",
        ".P.S",
        "H.P.S.",
        ".H.P.S",
        "H.P.S.S",
        "H.H.P.S",
        "H.P.S=",
        "H.P.S==",
        "H.P.S\n",
        " H.P.S",
        "H .P.S",
        "H.P.\nS",
        "H.P.S\N{KELVIN SIGN}",
        "H.P.S\ud800",
        '{"protected":"H","payload":"P","signature":"S"}',
    ],
)
def test_what_is_no_signed_token_is_malformed(form: str) -> None:
    token = re.sub(
        r"\b[HPS]\b", lambda found: {"H": GOOD_HEADER, "P": GOOD_PAYLOAD, "S": GOOD_SIGNATURE}[found[0]], form
    )
    assert code_of(read, token) is Code.JWT_MALFORMED


def test_a_payload_with_padding_or_foreign_letters_is_malformed_although_signed() -> None:
    payload = encode(b'{"?":"\xfb\xef\xbe>>>???"}')
    assert "-" in payload
    assert "_" in payload
    assert read(sign(f"{GOOD_HEADER}.{payload}"))
    for spelling in (payload.replace("-", "+"), payload.replace("_", "/"), payload + "=", payload + "\n", payload[:-1]):
        assert code_of(read, sign(f"{GOOD_HEADER}.{spelling}")) is Code.JWT_MALFORMED, spelling


def test_spare_bits_must_be_zero() -> None:
    """Two texts for the same bytes would be two tokens for one signature."""
    for last in BASE64URL:
        token = GOOD[:-1] + last
        same_bytes = b64decode(f"{token.rpartition('.')[2]}==", b"-_") == b64decode(f"{GOOD_SIGNATURE}==", b"-_")
        accepted = code_of(read, token) is None
        assert accepted == (token == GOOD)
        assert same_bytes or not accepted


@given(st.text(alphabet=BASE64URL + "+/= \n.~\0é", max_size=12))
@example("AA")
@example("AB")
@example("AAA")
@example("AAB")
@example("A")
@examples(10)
def test_base64url_is_read_in_its_canonical_form_only(text: str) -> None:
    """Accepted is exactly what encoding the bytes gives back."""
    try:
        raw = b64decode(text.encode() + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
        canonical = bool(raw) and encode(raw) == text
    except (binascii.Error, ValueError):
        canonical = False
    if canonical:
        assert jws._decode(text.encode()) == raw
    else:
        assert code_of(jws._decode, text.encode()) is Code.JWT_MALFORMED


@given(st.binary(min_size=1, max_size=200))
def test_every_text_of_bytes_is_read_back(raw: bytes) -> None:
    assert jws._decode(encode(raw).encode()) == raw


def test_hmac_keyed_with_the_public_key_is_refused() -> None:
    """The classic confusion of algorithms: the public key is no secret."""
    public = private_key().public_key()
    for secret in (
        public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        public.public_bytes(Encoding.DER, PublicFormat.PKCS1),
    ):
        for algorithm in ("HS256", "RS256"):
            text = f"{encode(json.dumps({**HEADER, 'alg': algorithm}).encode())}.{GOOD_PAYLOAD}"
            token = f"{text}.{encode(hmac.digest(secret, text.encode(), sha256))}"
            assert code_of(read, token) is Code.LOGIN_REFUSED


def test_signatures_of_other_schemes_are_refused() -> None:
    text = f"{GOOD_HEADER}.{GOOD_PAYLOAD}"
    pss = padding.PSS(padding.MGF1(SHA256()), 32)
    elliptic = ec.generate_private_key(ec.SECP256R1())
    for signature in (
        private_key().sign(text.encode(), pss, SHA256()),
        private_key().sign(text.encode(), padding.PKCS1v15(), SHA512()),
        elliptic.sign(text.encode(), ec.ECDSA(SHA256())),
        b"\0",
        b"\0" * 256,
        b"\xff" * 256,
        b"\0" * 257,
    ):
        assert code_of(read, f"{text}.{encode(signature)}") is Code.LOGIN_REFUSED


def block(content: bytes, *, head: bytes = b"\0\1", fill: bytes = b"\xff", tail: bytes = b"") -> bytes:
    """The block of 256 bytes that a signature hides (RFC 8017 section 9.2), well-formed or not."""
    filled = 256 - len(head) - 1 - len(content) - len(tail)
    return head + fill * filled + b"\0" + content + tail


def signature_of(hidden: bytes) -> bytes:
    """What only the key's owner can do, who may be mistaken."""
    numbers = private_key().private_numbers()
    number = pow(int.from_bytes(hidden), numbers.d, numbers.public_numbers.n)
    return number.to_bytes(256)


SHA256_INFO = bytes.fromhex("3031300d060960864801650304020105000420")
TEXT = f"{GOOD_HEADER}.{GOOD_PAYLOAD}"
DIGEST = sha256(TEXT.encode()).digest()
INFO = SHA256_INFO + DIGEST


@pytest.mark.parametrize(
    "hidden, is_valid",
    [
        (block(INFO), True),
        (block(DIGEST), False),
        (block(b""), False),
        (block(SHA256_INFO), False),
        (block(INFO[:-1]), False),
        (block(INFO + b"\0"), False),
        (block(INFO, tail=b"\0" * 100), False),
        (b"\0\1" + b"\xff" * 8 + b"\0" + INFO + bytes(range(194)), False),
        (block(bytes.fromhex("302f300b0609608648016503040201") + b"\x04\x20" + DIGEST), False),
        (block(bytes.fromhex("308131300d060960864801650304020105000420") + DIGEST), False),
        (block(bytes.fromhex("3041300d06096086480165030402010510") + b"a" * 16 + b"\x04\x20" + DIGEST), False),
        (block(bytes.fromhex("3031300d060960864801650304020205000420") + DIGEST), False),
        (block(INFO[:-1] + bytes([INFO[-1] ^ 1])), False),
        (block(INFO, head=b"\0\2"), False),
        (block(INFO, head=b"\0\0"), False),
        (block(INFO, fill=b"\xfe"), False),
        (block(INFO, fill=b"\0"), False),
    ],
    ids=[
        "well-formed",
        "digest alone",
        "nothing",
        "no digest",
        "digest too short",
        "digest too long",
        "bytes after it",
        "little filling and bytes after it",
        "no parameters",
        "length in two bytes",
        "bytes in the parameters",
        "name of another hash",
        "another digest",
        "encryption's type",
        "type of no filling",
        "other filling",
        "filling of zeros",
    ],
)
def test_a_signature_hides_exactly_what_the_standard_says(hidden: bytes, is_valid: bool) -> None:
    """The library's own `verify` agrees in each case."""
    assert len(hidden) == 256
    signature = signature_of(hidden)
    assert (code_of(read, f"{TEXT}.{encode(signature)}") is None) == is_valid == holds(signature)


@given(st.integers(0, 2047), st.integers(0, 2047))
def test_no_bit_of_what_a_signature_hides_may_differ(one: int, other: int) -> None:
    flipped = int.from_bytes(block(INFO)) ^ (1 << one) ^ (1 << other)
    modulus = private_key().public_key().public_numbers().n
    signature = signature_of((flipped % modulus).to_bytes(256))
    assert (code_of(read, f"{TEXT}.{encode(signature)}") is None) == (one == other) == holds(signature)


def test_a_signature_has_one_spelling() -> None:
    """As a number it could have leading zeros or lack them, or be larger by the modulus."""
    modulus = private_key().public_key().public_numbers().n
    attempts = (f"{GOOD_HEADER}.{encode(str(number).encode())}" for number in count())
    signed = ((text, private_key().sign(text.encode(), padding.PKCS1v15(), SHA256())) for text in attempts)
    text, signature = next((text, signature) for text, signature in signed if signature[0] == 0)
    assert code_of(read, f"{text}.{encode(signature)}") is None
    larger = int.from_bytes(signature) + modulus
    for other in (signature[1:], b"\0" + signature, larger.to_bytes(257), larger.to_bytes(257)[1:]):
        assert code_of(read, f"{text}.{encode(other)}") is Code.LOGIN_REFUSED


def holds(signature: bytes) -> bool:
    """Whether the library finds that a signature of `TEXT` holds."""
    try:
        private_key().public_key().verify(signature, TEXT.encode(), padding.PKCS1v15(), SHA256())
    except InvalidSignature:
        return False
    return True


@given(st.integers(0, len(GOOD) - 1), st.sampled_from("AZaz09-_.="), st.sampled_from(["replace", "insert", "delete"]))
@examples(10)
def test_no_single_change_of_a_token_is_accepted(place: int, letter: str, change: str) -> None:
    middle = {"replace": letter, "insert": letter + GOOD[place], "delete": ""}[change]
    token = GOOD[:place] + middle + GOOD[place + 1 :]
    assert token == GOOD or code_of(read, token) is not None


@given(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2))
def test_parts_of_different_tokens_do_not_go_together(header: int, payload: int, signature: int) -> None:
    tokens = [mint(said(uti=str(number)), header={**HEADER, "n": number}).split(".") for number in range(3)]
    token = f"{tokens[header][0]}.{tokens[payload][1]}.{tokens[signature][2]}"
    assert (code_of(read, token) is None) == (header == payload == signature)


SOME_HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "alg": st.sampled_from(["RS256", "RS512", "HS256", "none", "", None, 5]),
        "kid": st.sampled_from([KEY_ID, "other", 5, None]),
        "typ": st.sampled_from(["JWT", "at+jwt", 5]),
        "crit": st.sampled_from([["exp"], [], "exp"]),
    },
)


@given(SOME_HEADERS, st.sampled_from([KEY_ID, "another"]), st.booleans())
def test_what_we_accept_another_library_accepts_and_reads_alike(header: Any, key: str, keep: bool) -> None:
    """PyJWT is more lenient about headers (it needs no `kid`, and knows one `crit`); never the other way round."""
    token = mint(header={**HEADER, **header} if keep else header or {"alg": "RS256"}, key=key)
    try:
        ours = read(token)
    except Refused:
        return
    theirs = jwt.PyJWS().decode_complete(token, private_key().public_key(), algorithms=["RS256"])
    assert theirs["payload"] == ours


def test_what_another_library_signs_we_accept() -> None:
    payload = {"text": "äöü", "number": 1.5}
    token = jwt.encode(payload, private_key(), "RS256", headers={"kid": KEY_ID})
    assert json.loads(read(token)) == payload


def test_nothing_of_a_token_is_printed() -> None:
    parts = parts_of(GOOD)
    assert repr(parts) == f"{parts}" == "Parts(...)"
    with pytest.raises(Refused) as refusal:
        read(GOOD[:-8] + "AAAAAAAA")
    assert GOOD[:20] not in str(refusal.value)
