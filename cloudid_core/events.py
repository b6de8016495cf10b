"""Events of the service, as data for the host's log, audit devices and metrics.

All events leave the core through the effect `Record`. An event about a change of state is attached to the commit of
that change (`store.changes.Changes.events`), and is recorded after the commit has succeeded. No event contains a
secret: no token, client secret, field value or body.
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
    """A failure of the service or of Azure. `where` has the stack frames of a bug, innermost last."""

    error: str
    reason: str = ""
    where: tuple[str, ...] = ()

    @classmethod
    def of(cls, failure: BaseException) -> Problem:
        """Describe a failure.

        cloudid's own errors have type and text. All others have type and place, because their text may contain a
        secret.
        """
        if isinstance(failure, CloudidError):
            return cls(type(failure).__name__, str(failure)[:REASON_LIMIT])
        frames = [
            f"{frame.f_code.co_filename}:{line} {frame.f_code.co_name}"
            for frame, line in walk_tb(failure.__traceback__)
        ]
        return cls(type(failure).__name__, where=tuple(frames[-FRAMES:]))


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True):
    """The base of all events. Times are instants, paths have no query, and ids and accessors are not secret."""

    severity: ClassVar[Severity] = "info"

    audit: Entries | None = None
    """The entries for audit devices, if any are enabled."""

    @property
    def importance(self) -> Severity:
        """The severity of this event."""
        return self.severity


class RequestReceived(Event, frozen=True, kw_only=True, tag="request"):
    """A request that policies allow is about to be executed. Recorded only if an audit device must have it first."""

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
    """A request was answered. `codes` are the codes of a refusal.

    `role` is the role of a login or of credentials, and `accessor` is the accessor of an issued token. `principal_id`
    and `resource_id` come from the JWT of a login, refused or not, once the mount has accepted the JWT. Until then, a
    login has no `role` either.
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
    """The machine claim of a login is not the id of a resource in a resource group, and is ignored.

    `claim` is its name; its value is not recorded.
    """

    severity: ClassVar[Severity] = "warning"

    request_id: str
    mount_accessor: str
    role: str
    claim: str


class RenewalUnchecked(Event, frozen=True, kw_only=True, tag="renewal_unchecked"):
    """A token was renewed although it could not be checked whether its role still admits the machine.

    `reason` is the code of the obstacle.
    """

    severity: ClassVar[Severity] = "warning"

    request_id: str
    mount_accessor: str
    role: str
    reason: str


class Progress(Event, frozen=True, kw_only=True):
    """Progress of a change, or a failure with a `reason`."""

    reason: str = ""

    @property
    def importance(self) -> Severity:
        return "warning" if self.reason else self.severity


class LeaseChanged(Progress, frozen=True, kw_only=True, tag="lease"):
    """A lease was issued, renewed, revoked or dropped, or its revocation has started or failed."""

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
    """The rotation of a client secret of a mount or of a static role reached a new phase, or failed."""

    mount_id: str
    role: str = ""
    phase: str


class RootSecretAtRisk(Event, frozen=True, kw_only=True, tag="root secret"):
    """The client secret of a mount or of a static role is about to expire, or could not be rotated."""

    severity: ClassVar[Severity] = "warning"

    mount_id: str
    role: str = ""
    reason: str
    expires_at: float | None = None


class MountChanged(Event, frozen=True, kw_only=True, tag="mount"):
    """A mount was enabled, tuned, moved, disabled or wiped. A disabled mount retires before it is wiped."""

    mount_accessor: str
    path: str
    state: str


class DeviceChanged(Event, frozen=True, kw_only=True, tag="audit device"):
    """An audit device is about to be enabled, was enabled or was disabled."""

    device: str
    state: str


class KeysChanged(Event, frozen=True, kw_only=True, tag="keys"):
    """A key was rotated: `data`, `token` or `master`. `term` is the number of a data or token key."""

    kind: str
    term: int = 0


class PublishedDocumentChanged(Event, frozen=True, kw_only=True, tag="published document"):
    """A published document of an issuer was changed by someone else, who can write there. The service restores it."""

    severity: ClassVar[Severity] = "warning"

    document: str
    """Its path below the issuer's URL."""


class SettingsDiffer(Event, frozen=True, kw_only=True, tag="settings differ"):
    """Some settings of this node differ from those of another node. Without names, they are equal again."""

    severity: ClassVar[Severity] = "warning"

    node: str
    names: tuple[str, ...] = ()


class LeadershipTaken(Event, frozen=True, kw_only=True, tag="leadership"):
    """This node does the background work from now on."""


class JobFailed(Event, frozen=True, kw_only=True, tag="background"):
    """A background job failed without a record of its own to store the reason."""

    severity: ClassVar[Severity] = "error"

    job: str
    mount_id: str = ""
    ref: str = ""
    problem: Problem
