"""Audit devices as they are stored, and what the host has to write to them."""

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
    """64 hexadecimal digits. The key of its hashes and the key of its checkpoints are derived from it."""
    description: str = ""
    options: Mapping[str, str] = {}
    given: Mapping[str, str] = {}
    """The options as the request spelled them, if one did. Clients compare them with their own."""
    declared: bool = False
    """It comes from the settings of a host, so requests cannot disable it."""
    folder: str = ""
    """The folder that its file must not leave, not even through links.

    Empty if a host's settings name the file, or if an earlier version accepted any path from a request.
    """
    installation_key: str = ""
    """64 hexadecimal digits that all devices of the installation share, which mark its audit files.

    Empty for a device of an earlier version, which appends to any audit log.
    """

    def __repr__(self) -> str:
        return f"<Device {self.name}>"

    @cached_property
    def hasher(self) -> Hasher:
        return Hasher(self._derived(b"audit hash"))

    @cached_property
    def signer(self) -> Ed25519PrivateKey:
        """Return the key that signs the checkpoints of the device's chains."""
        return Ed25519PrivateKey.from_private_bytes(self._derived(b"audit sign"))

    @cached_property
    def public_key(self) -> str:
        """Return the key that verifies its checkpoints: an Ed25519 key (RFC 8032) as 64 hexadecimal digits."""
        return self.signer.public_key().public_bytes_raw().hex()

    @property
    def is_in_any_folder(self) -> bool:
        """Return whether a request to an earlier version chose its file anywhere on the machine."""
        path = self.options.get("file_path", STDOUT) if self.type == FILE else STDOUT
        return not (self.declared or self.folder or path in (STDOUT, NULL))

    @property
    def takes_entries(self) -> bool:
        """Return whether it receives entries. Other devices receive only the checkpoints of those that do."""
        return self.options.get("content", "all") == "all"

    @property
    def shows_accessors(self) -> bool:
        return self.options.get("hmac_accessor", "true") == "false"

    @property
    def elides_lists(self) -> bool:
        """Return whether the entry of a list has only the number of keys."""
        return self.options.get("elide_list_responses") == "true"

    @property
    def skips_test(self) -> bool:
        """Return whether it is enabled without a test entry."""
        return self.options.get("skip_test") == "true"

    def origin_of(self, chain_id: str, public_key: str) -> str:
        """Return the mark of this installation's chains. Empty for a device of an earlier version."""
        if not self.installation_key:
            return ""
        key = bytes.fromhex(self.installation_key)
        return blake2b(f"{chain_id} {public_key}".encode(), key=key, person=b"audit origin", digest_size=32).hexdigest()

    def _derived(self, purpose: bytes) -> bytes:
        return blake2b(key=bytes.fromhex(self.key), person=purpose, digest_size=32).digest()


@frozen(kw_only=True)
class DeclaredDevice:
    """An audit device that a host's settings or a request declare."""

    name: str
    type: str
    description: str = ""
    options: Mapping[str, str] = {}
    folder: str = ""
    """See `Device`."""


class Entries(msgspec.Struct, frozen=True):
    """An entry for each device: one JSON object, without its time and its place in a chain.

    `devices` are all enabled devices, and `texts` has one entry for each of them that receives entries, in the same
    order. In a trial, there is one device and one text, whether or not it receives entries.
    """

    devices: tuple[Device, ...]
    texts: tuple[bytes, ...]
    is_trial: bool = False
    """The device is being tested. The result decides whether it is enabled, or what health reports."""
    others: tuple[Device, ...] = ()
    """In a trial, the other enabled devices, whose files this device must not use."""

    def __repr__(self) -> str:
        return f"<Entries for {', '.join(device.name for device in self.devices)}>"


class Check(msgspec.Struct, frozen=True):
    """One check of a decision, as it is recorded."""

    name: str
    verdict: str
    """`passed`, `failed`, or `undecided` because a fact is missing."""
    expected: tuple[str, ...] = ()
    """The role's list, if the check compares with one."""
    found: Any = None
    """What a failed check found."""


class Decision(msgspec.Struct, frozen=True, cache_hash=True):
    """A decision, as it is recorded."""

    verdict: str
    """`ADMITTED`, `refused`, or `undecided` because a fact is missing."""
    jwt_type: str
    """Type of the JWT: `app` or `user`."""
    checks: tuple[Check, ...]


class AuditContext(msgspec.Struct):
    """The audit data of a request, for the devices that were enabled when it arrived."""

    devices: tuple[Device, ...]
    entry_devices: tuple[Device, ...]
    """The devices that receive entries."""
    headers: Mapping[str, bool]
    """Which headers are recorded, and whether their values are hashed."""
    version: int
    """The version of the table of mounts that defines this."""
    decision: Decision | None = None
    """The decision of the request's program, if it makes one."""
    is_received: bool = False
    """The entry of the request is written, which precedes the entry of its response."""
    common: Sequence[tuple[msgspec.Raw, msgspec.Raw]] = ()
    """The members `auth` and `request`, for each device that receives entries.

    Both entries of the request share them.
    """

    def __repr__(self) -> str:
        return f"<AuditContext for {', '.join(device.name for device in self.entry_devices)}>"
