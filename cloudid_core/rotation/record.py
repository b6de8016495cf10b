"""The state of a mount's rotation, as it is stored."""

from __future__ import annotations

from enum import Enum
from typing import Final

from attrs import evolve, frozen

from ..context import Context, Due, queue
from ..credentials import Key
from ..effects import Instant
from ..events import RotationChanged
from ..provider import SECRET, Provisioned
from ..store import Changes, Found, expected, keys
from ..values import Secret

_ROLE: Final = "role/"


class Phase(Enum):
    """Where a rotation stands."""

    IDLE = "idle"
    ADDING = "adding"
    """A new secret is being made at the provider; its name is known, its text is not."""
    PROVING = "proving"
    """It is stored here, and shown to work again and again; the configuration still has the old one."""
    OVERLAPPING = "overlapping"
    """The configuration has it; the old one is left alive for those that still use it, and removed then."""


@frozen
class Home:
    """The application that keys stand on."""

    tenant: str = ""
    client_id: str = ""
    object_id: str = ""


@frozen(kw_only=True)
class Rotation:
    """One for each mount whose root secret was ever rotated, and for each static role (`role`). Every key that it made
    and has not removed is in here.

    `new` is the key that is proven, `current` the one that the last switch gave the holder: a configuration with
    another secret was written by someone else. `replaced` is the one whose place they take: until it is removed
    the holder can go back to it. `outgoing` are older ones that could not be removed so far.
    """

    mount_id: str
    role: str = ""
    phase: Phase = Phase.IDLE
    home: Home = Home()
    name: str = ""
    """Display name of the key that is being added."""
    proof: str = SECRET
    """What that is."""
    new: Key | None = None
    current: Key | None = None
    replaced: Key | None = None
    outgoing: tuple[Key, ...] = ()
    due_at: Instant = 0.0
    until: Instant | None = None
    """When a new secret that is not in use by then is given up: the end of the window of a schedule."""
    overlap: float = 300.0
    """Seconds for which the last switch leaves both secrets alive."""
    attempts: int = 0
    started_at: Instant = 0.0
    rotated_at: Instant | None = None
    error: str = ""
    note: str = ""
    """What the operator should know about keys that were left at the provider."""

    @property
    def key(self) -> str:
        return keys.rotation(self.mount_id, self.role)

    @property
    def due_key(self) -> str:
        return keys.due(self.due_at, queue.ROTATION, self.mount_id, ref_of(self.role))

    @property
    def abandons(self) -> str:
        """How the ids start of the intents that remove its keys."""
        return f"static-rotation-{self.role}/" if self.role else "rotation-"

    @property
    def event(self) -> RotationChanged:
        """Says how it stands now."""
        return RotationChanged(mount_id=self.mount_id, role=self.role, phase=self.phase.value, reason=self.error)

    @property
    def is_idle(self) -> bool:
        return self.phase is Phase.IDLE

    @property
    def in_use(self) -> Key | None:
        """The key that the holder has: until the switch that is the one to be replaced."""
        return self.replaced if self.phase in (Phase.ADDING, Phase.PROVING) else self.current

    @property
    def replaced_secret(self) -> Secret:
        """The secret that the holder has until the switch; empty: the new one is its first."""
        return self.replaced.secret if self.replaced else Secret()

    @property
    def known_keys(self) -> tuple[Key, ...]:
        """All keys whose secrets are stored here."""
        return tuple(key for key in (self.new, self.current, self.replaced, *self.outgoing) if key is not None)

    def has_living_key(self, now: Instant) -> bool:
        """Return whether a key that this service created may still be valid."""
        ours = (key for key in self.known_keys if key.made_at is not None)
        return any(key.expires_at is None or now < key.expires_at for key in ours)

    def provisioned(self, key: Key | None, made_at: Instant) -> Provisioned:
        """Return the objects in Azure of a key. `None`: the key that is being added, whose name is known."""
        return Provisioned(
            made_at=made_at,
            tenant=self.home.tenant,
            client_id=self.home.client_id,
            password_on=self.home.object_id,
            password_name=key.name if key else self.name,
            password_key_id=key.id if key else "",
            proof=key.proof if key else self.proof,
        )

    def key_of(self, secret: Secret) -> Key | None:
        """Return the known key of a secret."""
        return next((key for key in self.known_keys if key.secret == secret), None)


def changed(found: Found[Rotation] | None, new: Rotation) -> Changes:
    """Takes a rotation from one state to the next, and its due entry with it. An idle rotation has none."""
    changes = Changes(expected(found, new.key))
    if found is not None and not found.record.is_idle:
        changes |= Changes(deletes=(found.record.due_key,))
    is_news = found is None or (found.record.phase, found.record.error) != (new.phase, new.error)
    puts: dict[str, object] = {new.key: new} if new.is_idle else {new.key: new, new.due_key: Due()}
    return changes | Changes(puts=puts, events=(new.event,) if is_news else ())


def given_up(rotation: Rotation, now: Instant, *, error: str) -> Rotation:
    """Return the rotation without its new secret. The configuration keeps the current one.

    If a rotation created that one, older keys that must still be removed are next.
    """
    current = rotation.replaced if rotation.replaced and rotation.replaced.made_at is not None else None
    return evolve(
        rotation,
        phase=Phase.OVERLAPPING if current and rotation.outgoing else Phase.IDLE,
        name="",
        new=None,
        current=current,
        replaced=None,
        due_at=now,
        attempts=0,
        error=error,
    )


def overruled(rotation: Rotation, note: str) -> Rotation:
    """Return the rotation after someone else has changed the configuration. Nothing is removed before the next one."""
    ours = tuple(key for key in (rotation.replaced,) if key is not None and key.made_at is not None)
    return evolve(
        rotation, phase=Phase.IDLE, replaced=None, outgoing=(*rotation.outgoing, *ours), attempts=0, note=note
    )


async def find_rotation(context: Context, mount_id: str, role: str = "") -> Found[Rotation] | None:
    return await context.records.find_fresh(keys.rotation(mount_id, role), Rotation)


async def find_undamaged_rotation(context: Context, mount_id: str, role: str = "") -> Found[Rotation] | None:
    """As `find_rotation`, for what can be said without it."""
    return next(iter(await context.records.find_undamaged([keys.rotation(mount_id, role)], Rotation)), None)


def ref_of(role: str) -> str:
    """Return the reference of a due entry: to the client secret of its mount, or to a static role."""
    return f"{_ROLE}{role}" if role else "root"


def role_of(ref: str) -> str:
    """Return the static role of a due entry. Empty: the entry is about the mount's client secret."""
    return ref.removeprefix(_ROLE) if ref.startswith(_ROLE) else ""
