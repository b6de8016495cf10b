"""Sealing: AES-256-GCM for every value before it reaches a host, bound to the name of its entry.

A sealed value is: term (4 bytes, big endian) · nonce (12 random bytes) · ciphertext and tag. The entry's key is the
associated data, so that a value cannot be moved to another name. Term 0 is the master key, which seals only the key
ring. Data keys are rotated long before 2^32 seals, the limit for random nonces (NIST SP 800-38D, 8.3): seals are
*reserved* in the ring in blocks before they are used, so that a crash can only count too many. A new key is stored in
the ring before it seals, so that every node finds it there when it reads its term.

Sealing protects content. It does not protect against restoring an old state of the whole store.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from functools import cached_property
from hashlib import blake2b
from typing import Final

from attrs import evolve, frozen
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from ..effects import Instant
from ..errors import CloudidError
from ..values import Secret

NONCE_SIZE: Final = 12
KEY_SIZE: Final = 32
MASTER_TERM: Final = 0
RESERVE: Final = 2**24
TURN_OVER: Final = 2**30


class SealBroken(CloudidError):
    """A value was not sealed under this name by any of the ring's keys."""


@frozen
class DataKey:
    """The key of one term. `reserved` counts the seals for which it may have been used."""

    term: int
    key: Secret
    made_at: Instant
    reserved: int = 0


class KeyedHash:
    """BLAKE2b with a key (RFC 7693), prepared once."""

    def __init__(self, key: Secret) -> None:
        self._prepared = blake2b(key=bytes.fromhex(key.reveal()), digest_size=32)

    def hexadecimal(self, text: str) -> str:
        """Return the hash of a text: 64 hexadecimal digits."""
        running = self._prepared.copy()
        running.update(text.encode())
        return running.hexdigest()


class BlockCipher:
    """A permutation of blocks of sixteen bytes with its own key, for names, not for data."""

    def __init__(self, key: Secret) -> None:
        cipher = Cipher(algorithms.AES(bytes.fromhex(key.reveal())), modes.ECB())
        self.hide: Callable[[bytes], bytes] = cipher.encryptor().update
        self.show: Callable[[bytes], bytes] = cipher.decryptor().update


@frozen(kw_only=True, slots=False)  # slots and cached properties take a `__getattr__`, which slows all down
class TokenKeys:
    """The token keys of one term: for keyed hashes, for accessors, and for batch tokens.

    They are used from `serves_from` on, when every node has read them. They stay in the ring for tokens that are still
    valid.
    """

    term: int
    hash_key: Secret
    accessor_key: Secret
    batch_key: Secret
    serves_from: Instant = 0.0

    @cached_property
    def token_hash(self) -> KeyedHash:
        return KeyedHash(self.hash_key)

    @cached_property
    def accessor_cipher(self) -> BlockCipher:
        return BlockCipher(self.accessor_key)


@frozen(kw_only=True)
class Keyring:
    """All secrets that the installation generated for itself, sealed with the master key."""

    installation: str
    """Sixteen hexadecimal digits that mark this installation's objects in Azure."""

    data_keys: tuple[DataKey, ...]
    token_keys: tuple[TokenKeys, ...]
    """In the order of their first use."""

    retired: int = 0
    """Number of keys that were removed from the ring."""

    def token_keys_at(self, now: Instant) -> TokenKeys:
        """Return the keys with which tokens are created at a time."""
        for keys in reversed(self.token_keys):
            if keys.serves_from <= now:
                return keys
        return self.token_keys[0]

    def token_keys_of(self, term: int) -> TokenKeys | None:
        """Return the keys of a term. `None` if they are not in this ring."""
        return next((keys for keys in reversed(self.token_keys) if keys.term == term), None)

    @property
    def age(self) -> int:
        """Return the number of changes: a ring has all keys of rings with fewer changes, except retired keys."""
        return len(self.data_keys) + len(self.token_keys) + 2 * self.retired

    @property
    def current(self) -> DataKey:
        return self.data_keys[-1]

    def without(self, data_terms: Container[int], token_terms: Container[int]) -> Keyring:
        """Return the ring without the keys of some terms."""
        data_keys = tuple(key for key in self.data_keys if key.term not in data_terms)
        token_keys = tuple(keys for keys in self.token_keys if keys.term not in token_terms)
        dropped = len(self.data_keys) - len(data_keys) + len(self.token_keys) - len(token_keys)
        return evolve(self, data_keys=data_keys, token_keys=token_keys, retired=self.retired + dropped)

    def with_reserve(self, now: Instant, fresh_key: bytes) -> Keyring:
        """Return the ring with another reserved block of seals, under a new term if the current one was used enough."""
        *older, current = self.data_keys
        if current.reserved < TURN_OVER:
            return evolve(self, data_keys=(*older, evolve(current, reserved=current.reserved + RESERVE)))
        return self.with_new_term(now, fresh_key)

    def with_new_term(self, now: Instant, fresh_key: bytes) -> Keyring:
        """Return the ring with a new data key and a reserved block of seals for it."""
        fresh = DataKey(self.current.term + 1, Secret(fresh_key.hex()), now, RESERVE)
        return evolve(self, data_keys=(*self.data_keys, fresh))


def master_cipher(master_key: Secret) -> AESGCM:
    """Return the cipher of a master key: 64 hexadecimal digits, otherwise raise `ValueError`."""
    try:
        key = bytes.fromhex(master_key.reveal())
    except ValueError:
        raise ValueError("the master key must be hexadecimal") from None
    if len(key) != KEY_SIZE:
        raise ValueError(f"the master key must have {KEY_SIZE} bytes")
    return AESGCM(key)


def header_of(term: int) -> bytes:
    return term.to_bytes(4, "big")


def seal_with(cipher: AESGCM, term: int, name: str, plain: bytes, nonce: bytes) -> bytes:
    return header_of(term) + nonce + cipher.encrypt(nonce, plain, name.encode())


def open_with(cipher: AESGCM, name: str, sealed: bytes) -> bytes:
    """Return the value that was sealed under this name. Raise `SealBroken` if it was not."""
    try:
        return cipher.decrypt(sealed[4 : 4 + NONCE_SIZE], sealed[4 + NONCE_SIZE :], name.encode())
    except (InvalidTag, ValueError):
        raise SealBroken(f"the value of {name!r} was altered, or belongs to another entry") from None


def term_of(sealed: bytes) -> int:
    return int.from_bytes(sealed[:4], "big")


class Sealer:
    """Seal and open values with a ring. It counts its seals: a new ring must be adopted before `reserve` is used up."""

    def __init__(self, keyring: Keyring) -> None:
        self.keyring = keyring
        self.adopt(keyring)

    def adopt(self, keyring: Keyring) -> None:
        """Continue with this ring, whose newest reserve belongs to this node."""
        self.left = RESERVE
        self.term = keyring.current.term
        """The term with which this node seals."""
        self._hold(keyring)
        self._cipher = self._ciphers[self.term]
        self._header = header_of(self.term)

    def learn(self, keyring: Keyring) -> None:
        """Also open values with the keys of this ring.

        Its seals belong to other nodes; a newer key is used after some were reserved.

        That is soon, because half of the remaining seals of the older key are given up.
        """
        self._hold(keyring)
        if keyring.current.term != self.term:
            self.left = min(self.left, RESERVE // 2)

    def knows(self, term: int) -> bool:
        """Return whether the ring has the key of a term."""
        return term in self._ciphers

    def _hold(self, keyring: Keyring) -> None:
        """Add keys. Programs that read the ring concurrently may finish in any order, so no key is ever dropped."""
        if keyring.age >= self.keyring.age:
            self.keyring = keyring
        self._ciphers = {key.term: AESGCM(bytes.fromhex(key.key.reveal())) for key in self.keyring.data_keys}

    def seal(self, name: str, plain: bytes, nonce: bytes) -> bytes:
        self.left -= 1
        return self._header + nonce + self._cipher.encrypt(nonce, plain, name.encode())

    def open(self, name: str, sealed: bytes) -> bytes:
        cipher = self._ciphers.get(term_of(sealed))
        if cipher is None:
            raise SealBroken(f"the value of {name!r} was sealed under a key that is not in the ring")
        return open_with(cipher, name, sealed)
