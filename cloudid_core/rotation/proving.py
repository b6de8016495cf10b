"""Every mount proves its credential in the background: one that Azure refuses is noticed before it is needed."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from ..context import Context
from ..credentials import owner_of
from ..deadline import Deadline
from ..effects import ABSENT, Instant, Now, gather
from ..errors import CloudidError, Refused
from ..mounts import AUTH, Mount, mount_table
from ..provider import Client, Family, RetryPolicy, Source, forget_troubles, prove_credential, trouble_of
from .root import find_root

LOOK_PAUSE: Final = 60.0
"""Seconds between two rounds in which it is checked which mounts have to prove their credential."""
PROOF_INTERVAL: Final = 240.0
"""Seconds after an access token after which a mount proves its credential: with `LOOK_PAUSE`, every 5 minutes."""
RETRY_INTERVAL: Final = 30.0
"""The same, and the pause between two rounds, while the login service gives a mount no access token."""
PROOF_SECONDS: Final = 8.0
"""How long a round may take: the other upkeep of the node waits for it."""
MOST_PROOFS: Final = 64
"""How many mounts prove their credential in one round."""


async def prove_credentials(context: Context) -> Instant:
    """Have the mounts prove their credentials whose turn it is, and forget the troubles of those that are gone.

    Returns when to do so again. The outcomes are noted where those of all calls are.
    """
    started_at = await Now()
    deadline = Deadline(started_at + PROOF_SECONDS)
    owners: set[str] = set()
    due: list[tuple[Instant, Mount, Client]] = []
    for mount in (await mount_table(context.records)).record.mounts:
        if context.components.of(mount).config is None:
            continue
        with suppress(Refused):  # health reports what is damaged, and what is missing is not in use
            root = await find_root(context, mount)
            owners.add(owner_of(mount, root.version if root else ABSENT))
            client = await context.components.of(mount).client(context, mount, deadline)
            if mount.retired_at is None and _is_due(client, started_at):
                due.append((context.caches.token_requests.peek(client.owner) or 0.0, mount, client))
    forget_troubles(context.caches, frozenset(owners), started_at)
    chosen = sorted(due, key=lambda each: each[0])[:MOST_PROOFS]
    await gather([_prove(mount, client) for _, mount, client in chosen])
    failing = any(trouble_of(context.caches, owner, Family.LOGIN) for owner in owners)
    return await Now() + (RETRY_INTERVAL if failing or len(chosen) < len(due) else LOOK_PAUSE)


def _is_due(client: Client, now: Instant) -> bool:
    """Whether it is a mount's turn. A managed identity that was never used may not exist: not every mount needs one."""
    asked_at = client.caches.token_requests.peek(client.owner)
    if asked_at is None:
        return client.credentials.source is not Source.MANAGED_IDENTITY
    failed = trouble_of(client.caches, client.owner, Family.LOGIN) is not None
    return not 0 <= now - asked_at < (RETRY_INTERVAL if failed else PROOF_INTERVAL)


async def _prove(mount: Mount, client: Client) -> None:
    scope = client.cloud.resource_scope if mount.kind == AUTH else client.cloud.directory_scope
    with suppress(CloudidError):  # it is noted, and tried again
        await prove_credential(replace(client, retry=RetryPolicy(max_retries=0)), scope)
