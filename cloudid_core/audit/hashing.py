"""Keyed hashes that stand for secrets in audit entries: `hmac-sha256:` and 64 hexadecimal digits (RFC 2104)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final, TypeVar

import msgspec

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
PREFIX: Final = "hmac-sha256:"
LEAF_LIMIT: Final = 256
"""A structure with more values than this is hashed as one text, its JSON: an entry stays small and cheap."""

NAME_LENGTH: Final = 64
"""So many characters of names, which are clear in an entry, count as one value more."""

REPEATED: Final = frozenset({"role", "subscription_id", "resource_group_name", "vm_name", "vmss_name"})
"""Members of logins that hold no secret, and that come again with other logins: their hashes are remembered."""

REPEATED_TEXTS: Final = 4096
"""How many of their hashes are remembered."""

REPEATED_LENGTH: Final = 256
"""Longest text whose hash is remembered."""

REMEMBERED: Final = 512
_BLOCK_SIZE: Final = 64
_encode: Final = msgspec.json.Encoder(enc_hook=lambda _: None).encode


class Hasher:
    """HMAC-SHA256 under the key of one device, prepared once."""

    def __init__(self, key: bytes) -> None:
        padded = key.ljust(_BLOCK_SIZE, b"\0")
        self._new_inner = sha256(bytes(byte ^ 0x36 for byte in padded)).copy
        self._new_outer = sha256(bytes(byte ^ 0x5C for byte in padded)).copy
        self._remembered = lru_cache(REMEMBERED)(self._made)
        self._repeated = lru_cache(REPEATED_TEXTS)(self.text)

    def text(self, text: str) -> str:
        """The hash of a text."""
        return self._of(text.encode("utf-8", "surrogatepass"))

    def members(self, data: Mapping[str, Any], clear: Collection[str] = ()) -> dict[str, Any]:
        """An object whose members are hashed, but for those named in `clear`."""
        hashed: dict[str, Any] = {}
        left = LEAF_LIMIT - len(data) - _length_of_names(data)
        for name, value in data.items():
            if type(value) is not str:
                left -= _count(value, 0)
            if left < 0:
                return {"*": self._of(_encode(data))}
            if name in clear:
                hashed[name] = value
            elif name in REPEATED and type(value) is str and len(value) <= REPEATED_LENGTH:
                hashed[name] = self._repeated(value)
            else:
                hashed[name] = self.value(value)
        return hashed

    def value(self, value: Any) -> Any:
        """A JSON value whose texts and numbers are hashed, a number by its JSON. Names, booleans and null are kept."""
        if isinstance(value, str):
            return self.text(value)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, Mapping):
            return {name: self.value(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return self._of(_encode(value))

    def remembered(self, make: Callable[[Hasher, K], V], content: K) -> V:
        """What `make` makes of some content with this hasher. For what follows from configuration only."""
        value: V = self._remembered(make, content)
        return value

    def texts(self, texts: tuple[str, ...]) -> tuple[str, ...]:
        """The hashes of texts; of many there is one hash."""
        if len(texts) > LEAF_LIMIT:
            return (self._of(_encode(texts)),)
        return tuple(map(self.text, texts))

    def _made(self, make: Callable[[Hasher, Any], Any], content: Any) -> Any:
        return make(self, content)

    def _of(self, content: bytes) -> str:
        inner, outer = self._new_inner(), self._new_outer()
        inner.update(content)
        outer.update(inner.digest())
        return PREFIX + outer.hexdigest()


def _count(value: Any, seen: int) -> int:
    """How many values a structure holds; it stops counting above the limit."""
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
    """As how many values the length of the names counts."""
    return sum(map(len, members)) // NAME_LENGTH
