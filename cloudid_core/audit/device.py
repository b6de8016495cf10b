"""Audit devices as the store keeps them, and what the host has to write to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import Any, Final

import msgspec
from attrs import frozen
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from .hashing import Hasher

KEY_BYTES: Final = 32
NULL: Final = "/dev/null"
FILE: Final = "file"
SOCKET: Final = "socket"
STDOUT: Final = "stdout"
ADMITTED: Final = "admitted"


class Device(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One audit device. `name` is its path below `sys/audit`; the meaning of `options` depends on the type."""

    name: str
    type: str
    key: str
    """64 hexadecimal digits. The key of its hashes and that of its checkpoints are made of it."""
    description: str = ""
    options: Mapping[str, str] = {}
    given: Mapping[str, str] = {}
    """The options as the request spelled them, if one did: clients compare what is listed with what they gave."""
    declared: bool = False
    """It comes from the settings of a host: requests cannot disable it."""
    folder: str = ""
    """The folder that its file must not leave, by links neither. Empty where the settings of a host name the file, or
    earlier versions took any path from a request."""
    installation_key: str = ""
    """64 hexadecimal digits that all devices of the installation share: they mark the files that it began. Empty for
    a device of an earlier version, which goes on with whatever audit log it finds."""

    def __repr__(self) -> str:
        return f"<Device {self.name}>"

    @cached_property
    def hasher(self) -> Hasher:
        return Hasher(self._derived(b"audit hash"))

    @cached_property
    def signer(self) -> Ed25519PrivateKey:
        """Signs the checkpoints of the device's chains."""
        return Ed25519PrivateKey.from_private_bytes(self._derived(b"audit sign"))

    @cached_property
    def public_key(self) -> str:
        """What verifies its checkpoints: an Ed25519 key (RFC 8032) as 64 hexadecimal digits."""
        return self.signer.public_key().public_bytes_raw().hex()

    @property
    def is_in_any_folder(self) -> bool:
        """Whether a request of an earlier version chose its file anywhere on the machine."""
        path = self.options.get("file_path", STDOUT) if self.type == FILE else STDOUT
        return not (self.declared or self.folder or path in (STDOUT, NULL))

    @property
    def takes_entries(self) -> bool:
        """Whether it gets entries. The others only get the checkpoints of those that do."""
        return self.options.get("content", "all") == "all"

    @property
    def shows_accessors(self) -> bool:
        return self.options.get("hmac_accessor", "true") == "false"

    @property
    def elides_lists(self) -> bool:
        """Whether the entry of a list has the number of its members in their place."""
        return self.options.get("elide_list_responses") == "true"

    @property
    def skips_test(self) -> bool:
        """Whether it is enabled without a test entry."""
        return self.options.get("skip_test") == "true"

    def origin_of(self, chain_id: str, public_key: str) -> str:
        """What marks a chain as one of this installation; empty for a device of an earlier version."""
        if not self.installation_key:
            return ""
        key = bytes.fromhex(self.installation_key)
        return blake2b(f"{chain_id} {public_key}".encode(), key=key, person=b"audit origin", digest_size=32).hexdigest()

    def _derived(self, purpose: bytes) -> bytes:
        return blake2b(key=bytes.fromhex(self.key), person=purpose, digest_size=32).digest()


@frozen(kw_only=True)
class DeclaredDevice:
    """An audit device that a host's settings name, or a request."""

    name: str
    type: str
    description: str = ""
    options: Mapping[str, str] = {}
    folder: str = ""
    """As in `Device`."""


class Entries(msgspec.Struct, frozen=True):
    """An entry for each device: one JSON object, still without its time and its place in a chain.

    `devices` are all devices that are enabled, and `texts` has an entry for each of them that takes entries, in order.
    In a trial there is one device, and one text whether it takes entries or not.
    """

    devices: tuple[Device, ...]
    texts: tuple[bytes, ...]
    is_trial: bool = False
    """The device is tried out: whether it works decides whether it will be enabled, or what health says."""
    others: tuple[Device, ...] = ()
    """In a trial, the devices that are enabled besides: their files are not for this one."""

    def __repr__(self) -> str:
        return f"<Entries for {', '.join(device.name for device in self.devices)}>"


class Check(msgspec.Struct, frozen=True):
    """One check of a decision, as it goes on record."""

    name: str
    verdict: str
    """`passed`, `failed`, or `undecided` because a fact is missing."""
    expected: tuple[str, ...] = ()
    """The role's list, if the check is about one."""
    found: Any = None
    """What a check that failed found."""


class Decision(msgspec.Struct, frozen=True, cache_hash=True):
    """A decision, as it goes on record."""

    verdict: str
    """`ADMITTED`, `refused`, or `undecided` because a fact is missing."""
    jwt_type: str
    """Whose JWT it was: `app` or `user`."""
    checks: tuple[Check, ...]


class AuditContext(msgspec.Struct):
    """What becomes of an audited request, for the devices that were enabled when it came."""

    devices: tuple[Device, ...]
    entry_devices: tuple[Device, ...]
    """The devices that take entries."""
    headers: Mapping[str, bool]
    """Which headers go on record, and whether their values are hashed."""
    version: int
    """The version of the table of mounts that says so."""
    decision: Decision | None = None
    """What the request's program decided, if it tells."""
    is_received: bool = False
    """The entry of the request is written, before the one of its response."""
    common: Sequence[tuple[msgspec.Raw, msgspec.Raw]] = ()
    """For each device that takes entries, the members `auth` and `request`, which both entries of the request have."""

    def __repr__(self) -> str:
        return f"<AuditContext for {', '.join(device.name for device in self.entry_devices)}>"
