"""Nodes: each announces itself to the others, and compares its settings with theirs.

Requests and background work are correct without this. It determines what health reports, how often the leader looks for
work from other nodes, and this node's share of the shared limit for reads from Azure.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

import attrs

from ..caches import Caches
from ..context import Context, read_keyring
from ..effects import CompareClocks, Instant, Now, record_if_possible, within
from ..errors import Conflict, HostFailure, Refused, StoreFailed, TimeIsUp
from ..events import SettingsDiffer
from ..health import NodeRecord
from ..settings import Settings
from ..store import Changes, Found, KeyedHash, Records, Sealer, keys
from ..values import Secret
from ..version import VERSION
from .leadership import Term

LOOK_PAUSE: Final = 10.0
"""Seconds between two reads of the store and the other nodes."""

ALONE_PAUSE: Final = 60.0
"""Seconds after which a node that is alone and writes nothing else writes its record again.

Other nodes do so on every round, so that health knows whether commits succeed.
"""

COMMIT_SECONDS: Final = 5.0
"""How long a commit may take before the node counts as unable to write."""

GONE: Final = 2 * ALONE_PAUSE
"""Seconds after which a silent node no longer counts."""

FORGOTTEN: Final = 600.0
"""Seconds after which the entry of a silent node is removed."""

OWN: Final = frozenset(
    {
        "master_key",
        "node_name",
        "audit_folders",
        "environment",
        "clouds",
        "body_limit",
        "metrics_access",
        "jwt_limit",
        "trusted_proxies",
        "signature_cache_size",
        "fact_cache_size",
        "source_cache_size",
        "record_cache_size",
    }
)
"""Settings that may differ between nodes, and two that are compared part by part."""


async def refresh_cluster_view(context: Context) -> Instant:
    """Read and write the records of the nodes. Return the instant of the next round. Raise the store's failures."""
    node = context.node
    try:
        await _look(context)
    except (HostFailure, Refused):  # refused: the master key does not open the key ring any more
        node.last_look_failed = True
        raise
    node.last_look_failed = node.last_read_failed = node.is_sealed_out = False
    return await Now() + LOOK_PAUSE


async def leave(context: Context) -> None:
    """Announce to the other nodes that this node is leaving."""
    context.node.has_left = True
    await context.records.commit(Changes({}, deletes=(keys.node(context.node.id),)))


async def _look(context: Context) -> None:
    node, started = context.node, await Now()
    if node.is_sealed_out:
        await context.records.learn_keys()
    term = await context.records.find_fresh(keys.LEADER_TERM, Term)
    now = await Now()
    node.latency, node.leader = now - started, term.record.holder if term else ""
    others = await _others(context, now)
    node.others = tuple(sorted((other.record for other in others), key=lambda other: other.started_at))
    context.caches.nodes = 1 + len(node.others)
    record = _record_of(context, now)
    await _report_differences(context, record)
    seals_left = context.records.sealer.left
    is_busy = node.others or seals_left != node.seals_left
    pause = LOOK_PAUSE / 2 if is_busy else ALONE_PAUSE
    if not node.has_left and not 0 <= now - node.written_at < pause:
        await _write(context, record)
        node.written_at, node.seals_left = now, context.records.sealer.left
    node.clock = await CompareClocks()


async def _write(context: Context, record: NodeRecord) -> None:
    """Write this node's record, and find out whether the store accepts commits.

    Raise `StoreFailed` if that takes too long, because reads may still succeed and nothing else would show it.
    """
    try:
        await within(COMMIT_SECONDS, context.records.commit(Changes({}, {keys.node(record.id): record})))
    except TimeIsUp:
        raise StoreFailed(f"a commit takes longer than {COMMIT_SECONDS:g} s") from None


async def _others(context: Context, now: Instant) -> list[Found[NodeRecord]]:
    """Return the other live nodes, except those of a later version whose records cannot be read.

    Remove much older entries.
    """
    names = [name for name in await context.records.names(keys.NODES) if name != context.node.id]
    found = await context.records.find_undamaged([keys.node(name) for name in names], NodeRecord)
    forgotten = [other for other in found if now - other.record.seen_at > FORGOTTEN]
    for other in forgotten:
        with suppress(Conflict):  # it is back, or another node was faster
            await context.records.commit(Changes(other.expected, deletes=(other.key,)))
    return [other for other in found if now - other.record.seen_at < GONE]


def _record_of(context: Context, now: Instant) -> NodeRecord:
    node, digest = context.node, context.records.sealer.keyring.token_keys[0].token_hash
    return NodeRecord(
        id=node.id,
        name=node.name,
        version=VERSION,
        started_at=node.started_at,
        seen_at=now,
        settings=digests(context.settings, digest),
        opened_with=_fingerprint(context.settings, digest),
    )


def _fingerprint(settings: Settings, digest: KeyedHash) -> str:
    return digest.hexadecimal(f"master key {settings.master_key.reveal()}")[:16]


async def nodes_with_other_master_keys(settings: Settings) -> tuple[str, ...]:
    """Return the names of the nodes that opened the key ring with a different or an unknown master key.

    Nodes that ended without leaving count for two minutes. Refuse like `read_keyring`.
    """
    keyring = await read_keyring(settings)
    records = Records(Sealer(keyring), Caches(settings).records, partial(read_keyring, settings))
    now, own = await Now(), _fingerprint(settings, keyring.token_keys[0].token_hash)
    names = [keys.node(name) for name in await records.names(keys.NODES)]
    found = [each.record for each in await records.find_undamaged(names, NodeRecord)]
    return tuple(
        sorted(node.name or node.id for node in found if now - node.seen_at < GONE and node.opened_with != own)
    )


def digests(settings: Settings, digest: KeyedHash) -> dict[str, str]:
    """Return a keyed digest of each setting that must be equal on all nodes. Values cannot be guessed from it."""
    values: dict[str, object] = {
        name: value for name, value in attrs.asdict(settings, recurse=False).items() if name not in OWN
    }
    values["issuer"] = _shared_issuer(settings.issuer)
    values |= {f"environment.{name}": value for name, value in settings.environment.items()}
    values |= {f"clouds.{name}": cloud for name, cloud in settings.clouds.items()}
    return {name: digest.hexadecimal(f"setting {name} {_text(value)}")[:16] for name, value in values.items()}


def _shared_issuer(issuer: str) -> str:
    """Return the issuer. Ignore a loopback address, because it is different on each node."""
    try:
        return "" if ip_address(urlsplit(issuer).hostname or "").is_loopback else issuer
    except ValueError:
        return issuer


def _text(value: object) -> str:
    return value.reveal() if isinstance(value, Secret) else repr(value)


async def _report_differences(context: Context, record: NodeRecord) -> None:
    """Record which settings differ from those of another node, whenever that changes."""
    names: set[str] = set()
    for other in context.node.others:
        mine, theirs = record.settings, other.settings
        if other.version == record.version:  # settings come and go between versions
            names |= {name for name in {*mine, *theirs} if mine.get(name) != theirs.get(name)}
    differences = tuple(sorted(names))
    if differences != context.node.differences:
        context.node.differences = differences
        await record_if_possible(SettingsDiffer(node=context.node.name or context.node.id, names=differences))
