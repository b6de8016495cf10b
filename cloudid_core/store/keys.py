"""The names of all entries, in one place.

Names are not encrypted, so they contain no secrets. Scheduled work is in a queue for each mount and kind of work,
sorted by its due time. Tokens sort by the time of their creation.
"""

from __future__ import annotations

from math import ceil
from typing import Final
from urllib.parse import quote

from ..effects import Instant

RING: Final = "ring"
MOUNTS: Final = "mounts"
SIGNING_KEYS: Final = "signing-keys"
LOGIN_SIGNING_KEYS: Final = "login-signing-keys"
QUOTAS: Final = "quotas"
IDENTITIES: Final = "identities"
UNSHOWN_ROOT_TOKEN: Final = "unshown-root-token"
TOKENS: Final = "token/"
POLICIES: Final = "policy/"
NODES: Final = "node/"
APPLIED: Final = "applied/"
FOLDERS: Final = "folder/"
TARGETS: Final = "target/"


def node(node_id: str) -> str:
    """A process that uses the store."""
    return f"{NODES}{node_id}"


def due_time(instant: Instant) -> str:
    """Return a time as text that sorts: milliseconds, thirteen digits. Rounded up, so that nothing is due early."""
    return f"{max(0, ceil(instant * 1000)):013d}"


def token(token_id: str) -> str:
    return f"{TOKENS}{token_id}"


def wrapped(token_id: str) -> str:
    """The response behind a wrapping token."""
    return f"wrapped/{token_id}"


def wrapped_by(token_id: str, ends_at: Instant, wrapping_id: str) -> str:
    """Index: a response that was wrapped for a token, and is kept until `ends_at`."""
    return f"{all_wrapped_by(token_id)}{due_time(ends_at)}/{wrapping_id}"


def all_wrapped_by(token_id: str) -> str:
    """All responses that were wrapped for a token, by their end."""
    return f"wrapped-by/{token_id}/"


def wrapped_until(token_id: str, ends_at: Instant) -> str:
    """Sorts after the responses that end by `ends_at`, and before all others."""
    return wrapped_by(token_id, ends_at, "~")


def wrapped_for(principal: str, ends_at: Instant, wrapping_id: str, kibibytes: int) -> str:
    """Index: a response that was wrapped for a principal, kept until `ends_at`, with its size."""
    return f"{all_wrapped_for(principal)}{due_time(ends_at)}/{wrapping_id}/{kibibytes}"


def all_wrapped_for(principal: str) -> str:
    """All responses that were wrapped for a principal, by their end."""
    return f"wrapped-for/{principal}/"


def wrapped_for_until(principal: str, ends_at: Instant) -> str:
    """Sorts after the responses for a principal that end by `ends_at`, and before all others."""
    return f"{all_wrapped_for(principal)}{due_time(ends_at)}/~"


def child(parent_id: str, child_id: str) -> str:
    """Index: a token that ends with its parent."""
    return f"child/{parent_id}/{child_id}"


def children(parent_id: str) -> str:
    return f"child/{parent_id}/"


def policy(name: str) -> str:
    return f"{POLICIES}{name}"


def certificates(object_id: str) -> str:
    """The state of an app registration's list of certificates."""
    return f"certificates/{object_id}"


def applied(name: str) -> str:
    """The objects that a folder with this name created, as reported by clients of earlier versions."""
    return f"{APPLIED}{name}"


def folder(folder_id: str) -> str:
    """A folder of files that is applied."""
    return f"{FOLDERS}{folder_id}"


def made(path: str) -> str:
    """The folder that created the object at a path."""
    return f"made/{path}"


def made_by(folder_id: str, path: str) -> str:
    """Index: an object that a folder created."""
    return f"{all_made_by(folder_id)}{path}"


def all_made_by(folder_id: str) -> str:
    return f"made-by/{folder_id}/"


def mount(mount_id: str) -> str:
    """The prefix of everything that belongs to a mount."""
    return f"mount/{mount_id}/"


def config(mount_id: str) -> str:
    return f"{mount(mount_id)}config"


def roles(mount_id: str) -> str:
    return f"{mount(mount_id)}role/"


def role(mount_id: str, name: str) -> str:
    return f"{roles(mount_id)}{name}"


def target(client_id: str, mount_id: str, role: str) -> str:
    """Index: a role that issues secrets of an app registration."""
    return f"{targets(client_id)}{mount_id}/{role}"


def targets(client_id: str) -> str:
    return f"{TARGETS}{quote(client_id.lower(), safe='')}/"


def lease(lease_id: str) -> str:
    """A lease, under the id by which clients know it: a path."""
    return f"lease/{lease_id}"


LEASES: Final = "lease/"


def mount_lease(mount_id: str, lease_id: str) -> str:
    """Index: a lease of a mount."""
    return f"{mount(mount_id)}lease/{lease_id}"


def mount_leases(mount_id: str) -> str:
    return f"{mount(mount_id)}lease/"


def batch_lease(mount_id: str, lease_id: str) -> str:
    """Index: a lease of a batch token that a mount issued."""
    return f"{batch_leases(mount_id)}{lease_id}"


def batch_leases(mount_id: str) -> str:
    return f"{mount(mount_id)}batch-lease/"


def lease_guard(mount_id: str, role: str) -> str:
    """Changed by every commit that admits a lease where leases are limited.

    No role: for the whole mount. No mount: for all mounts.
    """
    return f"{mount(mount_id)}lease-guard/{role}" if mount_id else "lease-guard"


def token_lease(token_id: str, lease_id: str) -> str:
    """Index: a lease that ends with a token."""
    return f"token-lease/{token_id}/{lease_id}"


def token_leases(token_id: str) -> str:
    return f"token-lease/{token_id}/"


def intent(mount_id: str, intent_id: str) -> str:
    return f"{intents(mount_id)}{intent_id}"


def intents(mount_id: str) -> str:
    return f"{mount(mount_id)}intent/"


def intent_guard(mount_id: str) -> str:
    """Changed by every commit that opens an intent."""
    return f"{mount(mount_id)}intent-guard"


def static_roles(mount_id: str) -> str:
    return f"{mount(mount_id)}static-role/"


def static_role(mount_id: str, name: str) -> str:
    return f"{static_roles(mount_id)}{name}"


def rotation(mount_id: str, role: str = "") -> str:
    """The rotation of a mount's or static role's client secret."""
    return f"{static_rotations(mount_id)}{role}" if role else f"{mount(mount_id)}rotation"


def static_rotations(mount_id: str) -> str:
    return f"{mount(mount_id)}static-rotation/"


def rotation_plan(mount_id: str, role: str = "") -> str:
    return f"{mount(mount_id)}static-plan/{role}" if role else f"{mount(mount_id)}plan"


STUCK: Final = "stuck/"


def stuck(mount_id: str, lease_id: str) -> str:
    """Index: a lease whose revocation has failed so far."""
    return f"{STUCK}{mount_id}/{lease_id}"


DUE: Final = "due/"
LEADER_TERM: Final = "duty/term"
LEADER_UNTIL: Final = "duty/until"


def due_queue(mount_id: str, kind: str) -> str:
    """All scheduled work of one kind for one mount, earliest first."""
    return f"{DUE}{mount_id}/{kind}/"


def due(instant: Instant, kind: str, mount_id: str, ref: str) -> str:
    """Work that is scheduled for a time: the kind names the work, mount and ref its subject."""
    return f"{due_queue(mount_id, kind)}{due_time(instant)}/{ref}"
