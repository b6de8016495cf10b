"""RSA keys that follow from a text, for worlds in which everything follows from a seed. Never for anything else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from hashlib import shake_128
from itertools import count
from math import gcd, prod
from typing import Final

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

BITS: Final = 2048
EXPONENT: Final = 65537
SMALL_PRIMES: Final = tuple(n for n in range(3, 5000, 2) if all(n % d for d in range(3, int(n**0.5) + 1, 2)))
SMALL_PRODUCT: Final = prod(SMALL_PRIMES)

FIRST_PRIMES: Final[Mapping[str, tuple[int, int]]] = {
    "key 0 of a world": (1257, 1473),
    "key 1 of a world": (359, 644),
    "key 2 of a world": (363, 929),
    "key 3 of a world": (78, 1168),
    "key 4 of a world": (237, 450),
    "key 5 of a world": (29, 327),
    "key 6 of a world": (101, 222),
    "key 7 of a world": (733, 956),
    "signing key 0 of world 0": (41, 495),
    "signing key 1 of world 0": (244, 509),
    "signing key 2 of world 0": (645, 1105),
}
"""The numbers of the first two candidates that are prime, for texts that are often used: it saves the search."""


@lru_cache(maxsize=256)
def private_key(text: str) -> rsa.RSAPrivateKey:
    """The key of a text. Takes about half a second the first time, unless its primes are known; then it is cached."""
    first, second = FIRST_PRIMES.get(text) or first_primes(text)
    p, q = _candidate(text, first), _candidate(text, second)
    d = pow(EXPONENT, -1, (p - 1) * (q - 1))
    return rsa.RSAPrivateNumbers(
        p=p,
        q=q,
        d=d,
        dmp1=rsa.rsa_crt_dmp1(d, p),
        dmq1=rsa.rsa_crt_dmq1(d, q),
        iqmp=rsa.rsa_crt_iqmp(p, q),
        public_numbers=rsa.RSAPublicNumbers(EXPONENT, p * q),
    ).private_key()


@lru_cache(maxsize=256)
def private_key_pem(text: str) -> str:
    """The same key as PEM (PKCS #8)."""
    return private_key(text).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def first_primes(text: str) -> tuple[int, int]:
    """The numbers of the first two candidates of a text that are prime."""
    numbers = _numbers_of_primes(text)
    return next(numbers), next(numbers)


def _numbers_of_primes(text: str) -> Iterator[int]:
    for number in count():
        candidate = _candidate(text, number)
        if gcd(candidate, SMALL_PRODUCT) == 1 and candidate % EXPONENT != 1 and _is_probably_prime(candidate):
            yield number


def _candidate(text: str, number: int) -> int:
    """An odd number whose two highest bits are set, so that the product of two has exactly `BITS` bits."""
    drawn = shake_128(f"{number} {text}".encode()).digest(BITS // 16)
    return int.from_bytes(drawn) | 3 << BITS // 2 - 2 | 1


def _is_probably_prime(candidate: int) -> bool:
    """Miller-Rabin. Eight bases are enough, since the candidates are random and not chosen by an attacker."""
    shift = (candidate - 1 & 1 - candidate).bit_length() - 1
    for base in SMALL_PRIMES[:8]:
        x = pow(base, candidate - 1 >> shift, candidate)
        if x in (1, candidate - 1):
            continue
        for _ in range(shift - 1):
            x = x * x % candidate
            if x == candidate - 1:
                break
        else:
            return False
    return True
