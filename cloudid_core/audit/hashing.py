"""Keyed hashes instead of secrets in audit entries: `hmac-sha256:` and 64 hexadecimal digits (RFC 2104)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Hashable, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final, TypeVar

import msgspec

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
PREFIX: Final = "hmac-sha256:"
LEAF_LIMIT: Final = 256
"""A structure with more values is hashed as one text, its JSON, so that entries stay small and cheap."""

NAME_LENGTH: Final = 64
"""This many characters of names count as one additional value. A longer name in a response is hashed."""

SECRETS: Final = frozenset({"jwt", "client_secret", "client_token", "access_token", "token", "id", "input"})
"""Members that always hold a secret. No mount can log them unhashed."""

REPEATED: Final = frozenset({"role", "subscription_id", "resource_group_name", "vm_name", "vmss_name"})
"""Members of logins that hold no secret and are repeated in other logins, so that their hashes are cached."""

REPEATED_TEXTS: Final = 4096
"""How many of these hashes are cached."""

REPEATED_LENGTH: Final = 256
"""Maximum length of a text whose hash is cached."""

REMEMBERED: Final = 512
_BLOCK_SIZE: Final = 64
_encode: Final = msgspec.json.Encoder(enc_hook=lambda _: None).encode


class _PlainNames:
    """The names in the service's own responses, which mean nothing to programs that read an entry."""

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.isascii() and name.isidentifier() and len(name) <= NAME_LENGTH


PLAIN_NAMES: Final[Container[str]] = _PlainNames()
NO_NAMES: Final[Container[str]] = frozenset()


class Hasher:
    """HMAC-SHA256 with the key of one device, prepared once."""

    def __init__(self, key: bytes) -> None:
        padded = key.ljust(_BLOCK_SIZE, b"\0")
        self._new_inner = sha256(bytes(byte ^ 0x36 for byte in padded)).copy
        self._new_outer = sha256(bytes(byte ^ 0x5C for byte in padded)).copy
        self._remembered = lru_cache(REMEMBERED)(self._made)
        self._repeated = lru_cache(REPEATED_TEXTS)(self.text)

    def text(self, text: str) -> str:
        """Return the hash of a text."""
        return self._of(text.encode("utf-8", "surrogatepass"))

    def members(
        self, data: Mapping[str, Any], clear: Collection[str] = (), known: Container[str] = PLAIN_NAMES
    ) -> dict[str, Any]:
        """Return an object with its members hashed, except those named in `clear`.

        Names are hashed too unless they are `known`, because a client may choose them.
        """
        hashed: dict[str, Any] = {}
        left = LEAF_LIMIT - len(data) - _length_of_names(data)
        for name, value in data.items():
            if type(value) is not str:
                left -= _count(value, 0)
            if left < 0:
                return {"*": self._of(_encode(data))}
            if name not in known and name not in clear:
                hashed[self.text(name)] = self.value(value, known)
            elif name in clear and name not in SECRETS:
                hashed[name] = self._but_secrets(value)
            elif name in REPEATED and type(value) is str and len(value) <= REPEATED_LENGTH:
                hashed[name] = self._repeated(value)
            else:
                hashed[name] = self.value(value, known)
        return hashed

    def _but_secrets(self, value: Any) -> Any:
        """Return a JSON value unhashed, except for the secrets in it."""
        if isinstance(value, Mapping):
            return {
                name: self.value(item) if name in SECRETS else self._but_secrets(item) for name, item in value.items()
            }
        return [self._but_secrets(item) for item in value] if isinstance(value, list | tuple) else value

    def value(self, value: Any, known: Container[str] = PLAIN_NAMES) -> Any:
        """Return a JSON value with its texts and numbers hashed (numbers as JSON). Booleans and null are kept.

        Plain names in a response are kept too. Names within a field of a request are hashed.
        """
        if isinstance(value, str):
            return self.text(value)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, Mapping):
            inner = known if known is PLAIN_NAMES else NO_NAMES
            return {name if name in inner else self.text(name): self.value(item, inner) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item, known) for item in value]
        return self._of(_encode(value))

    def remembered(self, make: Callable[[Hasher, K], V], content: K) -> V:
        """Return the cached result of `make` for some content with this hasher.

        Only for what depends on configuration alone.
        """
        value: V = self._remembered(make, content)
        return value

    def texts(self, texts: tuple[str, ...]) -> tuple[str, ...]:
        """Return the hashes of texts. Many texts get a single hash."""
        return self.as_one(texts) if len(texts) > LEAF_LIMIT else tuple(map(self.text, texts))

    def as_one(self, values: object) -> tuple[str, ...]:
        """Return one hash for many values, as the only element of their list."""
        return (self._of(_encode(values)),)

    def _made(self, make: Callable[[Hasher, Any], Any], content: Any) -> Any:
        return make(self, content)

    def _of(self, content: bytes) -> str:
        inner, outer = self._new_inner(), self._new_outer()
        inner.update(content)
        outer.update(inner.digest())
        return PREFIX + outer.hexdigest()


def _count(value: Any, seen: int) -> int:
    """Count the values in a structure, up to the limit."""
    if isinstance(value, Mapping):
        seen += _length_of_names(value)
        value = value.values()
    elif not isinstance(value, list | tuple):
        return seen + 1
    for item in value:
        seen = _count(item, seen + 1)
        if seen > LEAF_LIMIT:
            break
    return seen


def _length_of_names(members: Mapping[str, Any]) -> int:
    """Return how many values the length of the names counts as."""
    return sum(map(len, members)) // NAME_LENGTH
