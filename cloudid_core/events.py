"""Events: what happened in the service, as data for the host's log, its audit devices and its metrics.

All of them leave the core in one way, by the effect `Record`. A change of state travels with the commit that makes it
(`store.changes.Changes.events`) and is recorded when the commit has succeeded. No event holds a secret: no token, no
client secret, no field's value, no body.
"""

from __future__ import annotations

from traceback import walk_tb
from typing import ClassVar, Final

import msgspec

from .audit import Entries
from .errors import REASON_LIMIT, CloudidError

Severity = str
"""One of "debug", "info", "warning", "error"."""

FRAMES: Final = 12
"""How many of the innermost frames of a bug are recorded."""


class Problem(msgspec.Struct, frozen=True):
    """What went wrong on our side or at the provider. `where` has the frames of a bug, the innermost last."""

    error: str
    reason: str = ""
    where: tuple[str, ...] = ()

    @classmethod
    def of(cls, failure: BaseException) -> Problem:
        """Of our own errors kind and text; of others kind and place, since their text could hold a secret."""
        if isinstance(failure, CloudidError):
            return cls(type(failure).__name__, str(failure)[:REASON_LIMIT])
        frames = [
            f"{frame.f_code.co_filename}:{line} {frame.f_code.co_name}"
            for frame, line in walk_tb(failure.__traceback__)
        ]
        return cls(type(failure).__name__, where=tuple(frames[-FRAMES:]))


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True):
    """Something that happened. Times are instants, paths have no query, ids and accessors are not secret."""

    severity: ClassVar[Severity] = "info"

    audit: Entries | None = None
    """What audit devices must have of it, if any is enabled."""

    @property
    def importance(self) -> Severity:
        """How much an operator should care."""
        return self.severity


class RequestReceived(Event, frozen=True, kw_only=True, tag="request"):
    """A request that policies allow is about to be executed. Recorded only where audit devices must have it first."""

    severity: ClassVar[Severity] = "debug"

    request_id: str
    time: float
    operation: str
    path: str
    mount_accessor: str
    remote_address: str = ""
    token_id: str = ""
    display_name: str = ""
    policies: tuple[str, ...] = ()


class RequestAnswered(Event, frozen=True, kw_only=True, tag="response"):
    """A request got its answer, whatever it was. `codes` are those of a refusal.

    `role` is the role of a login or of credentials; `accessor` that of the token that a login or a creation gave.
    `principal_id` and `resource_id` are what the JWT of a login says, refused or not, once the mount has accepted it;
    until then a login has no `role` here either.
    """

    request_id: str
    time: float
    status: int
    operation: str = ""
    path: str = ""
    mount: str = ""
    mount_accessor: str = ""
    role: str = ""
    remote_address: str = ""
    principal_id: str = ""
    resource_id: str = ""
    token_id: str = ""
    display_name: str = ""
    codes: tuple[str, ...] = ()
    accessor: str = ""
    lease_id: str = ""
    problem: Problem | None = None

    @property
    def importance(self) -> Severity:
        return "warning" if self.problem else "info"


class MachineClaimIgnored(Event, frozen=True, kw_only=True, tag="machine_claim"):
    """A login's machine claim is not the id of a resource in a resource group, and counts as absent.

    `claim` is its name; its value is not recorded.
    """

    severity: ClassVar[Severity] = "warning"

    request_id: str
    mount_accessor: str
    role: str
    claim: str


class RenewalUnchecked(Event, frozen=True, kw_only=True, tag="renewal_unchecked"):
    """A token was renewed though nobody could tell whether its role would still admit the machine.

    `reason` is the code of what stood in the way.
    """

    severity: ClassVar[Severity] = "warning"

    request_id: str
    mount_accessor: str
    role: str
    reason: str


class Progress(Event, frozen=True, kw_only=True):
    """Something went on, or failed for a `reason`."""

    reason: str = ""

    @property
    def importance(self) -> Severity:
        return "warning" if self.reason else self.severity


class LeaseChanged(Progress, frozen=True, kw_only=True, tag="lease"):
    """A lease was issued, renewed, is revoking, was revoked or dropped, or an attempt to revoke it failed."""

    lease_id: str
    mount_id: str
    state: str
    attempts: int = 0


class IntentChanged(Progress, frozen=True, kw_only=True, tag="intent"):
    """An intent was opened, closed, abandoned or undone, or an attempt to undo it failed."""

    severity: ClassVar[Severity] = "debug"

    intent_id: str
    mount_id: str
    state: str
    attempts: int = 0


class RotationChanged(Progress, frozen=True, kw_only=True, tag="rotation"):
    """The rotation of a root secret, or of that of a static role, went on to a phase, or met an error."""

    mount_id: str
    role: str = ""
    phase: str


class RootSecretAtRisk(Event, frozen=True, kw_only=True, tag="root secret"):
    """The root secret of a mount, or the secret of a static role, is about to expire, or could not be rotated."""

    severity: ClassVar[Severity] = "warning"

    mount_id: str
    role: str = ""
    reason: str
    expires_at: float | None = None


class MountChanged(Event, frozen=True, kw_only=True, tag="mount"):
    """A mount was enabled, tuned, moved, disabled (it is retiring then) or wiped."""

    mount_accessor: str
    path: str
    state: str


class DeviceChanged(Event, frozen=True, kw_only=True, tag="audit device"):
    """An audit device is about to be enabled, was enabled or was disabled."""

    device: str
    state: str


class KeysChanged(Event, frozen=True, kw_only=True, tag="keys"):
    """A key was turned over: `data`, `token` or `master`. `term` counts the data or token keys."""

    kind: str
    term: int = 0


class PublishedDocumentChanged(Event, frozen=True, kw_only=True, tag="published document"):
    """A document of an issuer was not as it was published: somebody else can write there. It is put back."""

    severity: ClassVar[Severity] = "warning"

    document: str
    """Its path below the address of the service."""


class SettingsDiffer(Event, frozen=True, kw_only=True, tag="settings differ"):
    """Settings of this node that are not those of another node; without names: they are the same again."""

    severity: ClassVar[Severity] = "warning"

    node: str
    names: tuple[str, ...] = ()


class LeadershipTaken(Event, frozen=True, kw_only=True, tag="leadership"):
    """This node does the background work from now on."""


class JobFailed(Event, frozen=True, kw_only=True, tag="background"):
    """A background job failed in a way that its own record cannot tell."""

    severity: ClassVar[Severity] = "error"

    job: str
    mount_id: str = ""
    ref: str = ""
    problem: Problem
