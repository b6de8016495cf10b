"""Metrics: the state of this node and the store, together with what the host counted.

What is read from the store is cached, so frequent requests, or requests to all nodes, are cheap.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import frozen

from ..caches import Bounded
from ..context import Context, queue
from ..effects import Instant, ListKeys, Now, ShowMetrics, give_way, shared
from ..errors import CloudidError, Code, Refused
from ..forms import TEXT, schemas, setting
from ..health import HealthProblem
from ..leases import find_undamaged_leases
from ..messages import HEADERS, READ, Answer
from ..metrics import Numbers, put
from ..mounts import SYSTEM, Mount, mount_table
from ..quotas import read_quotas
from ..rotation import find_root, find_undamaged_plan, find_undamaged_rotation, refused_access
from ..routing import PLAIN, Call, route
from ..store import keys
from ..version import VERSION
from .provider_health import put_troubles

PROMETHEUS: Final = "prometheus"
JSON: Final = "json"
CONTENT_TYPES: Final[Mapping[str, str]] = {
    PROMETHEUS: "text/plain; version=0.0.4; charset=utf-8",
    JSON: "application/json",
}
TEXT_TYPES: Final = ("text/plain", "openmetrics", "prometheus/telemetry")
"""If `Accept` has one of these, the response is text."""

ANYBODY: Final = "anybody"

PAUSE: Final = 10.0
"""Minimum seconds for which the numbers from the store are cached."""
MOST_OF_THE_TIME: Final = 0.01
"""Maximum share of the time that is spent on counting entries of the store."""
MOST_COUNTED: Final = 100_000
"""Maximum number of entries of one kind that are counted."""
MOST_STUCK: Final = 1000
"""Maximum number of stuck leases that are read to find the oldest."""
PAGE: Final = 1000

CACHES: Final = tuple(
    "access_tokens acls facts failed_logins flights lent_tokens lists login_mounts records refused_logins requests "
    "signatures signing_keys tokens unaccepted_logins unverified_logins".split()
)


@frozen(kw_only=True)
class MetricsForm:
    format: str = setting(
        TEXT, "", "`prometheus`: Prometheus text format. Otherwise JSON, unless the `Accept` header requests text."
    )


@route(
    "metrics",
    READ,
    schemas.each(schemas.ANY),
    shape=PLAIN,
    refusals=(Code.PERMISSION_DENIED, Code.UNSUPPORTED_PATH, Code.STORE_UNAVAILABLE),
    form=MetricsForm,
    public=True,
    optional_token=True,
    audited=False,
)
async def read_metrics(call: Call) -> Answer:
    """Returns all metrics, as JSON or Prometheus text. Needs a token unless `metrics_access` allows anyone."""
    if call.context.settings.metrics_access != ANYBODY:
        caller = call.caller
        if caller is None and call.exchange.token and (call.exchange.is_late or call.context.node.last_read_failed):
            raise Refused(Code.STORE_UNAVAILABLE)  # the token cannot be checked
        if caller is None or not caller.acl.allows(READ.value, f"{SYSTEM.path}/metrics"):
            raise Refused(Code.PERMISSION_DENIED)
    wants_text = call.form(MetricsForm).format == PROMETHEUS or any(
        each in call.headers.get("accept", "") for each in TEXT_TYPES
    )
    return await metrics_answer(call.context, PROMETHEUS if wants_text else JSON)


async def metrics_answer(context: Context, output: str) -> Answer:
    """Return all metrics in a format. Metrics that cannot be read from the store are omitted."""
    now = await Now()
    text = await ShowMetrics({**node_numbers(context, now), **await _stored_numbers(context, now)}, output)
    if text is None:
        raise Refused(Code.UNSUPPORTED_PATH, "this host has no metrics")
    return Answer(rendered=text, headers={**HEADERS, "content-type": CONTENT_TYPES[output]})


def node_numbers(context: Context, now: Instant) -> Numbers:
    """Return the node's own metrics, without reading the store."""
    node, numbers = context.node, Numbers()
    put(numbers, "cloudid_info", 1, (VERSION, node.id))
    put(numbers, "cloudid_can_serve", node.can_serve)
    put(numbers, "cloudid_leads", node.leader == node.id)
    put(numbers, "cloudid_not_given_back", len(node.owed))
    put(numbers, "cloudid_nodes", len(node.others) + 1)
    put(numbers, "cloudid_start_timestamp_seconds", node.started_at)
    put(numbers, "cloudid_swept_timestamp_seconds", node.swept_at)
    put(numbers, "cloudid_store_read_seconds", node.latency)
    if node.clock is not None:
        put(numbers, "cloudid_clock_skew_seconds", abs(node.clock.offset))
    budgets = [context.caches.read_budgets.get(key) for key in context.caches.read_budgets]
    if budgets:
        left = min(budget.left(now) for budget in budgets if budget is not None)
        put(numbers, "cloudid_provider_reads_left", left)
    problems = node.problems
    for problem in HealthProblem:
        put(numbers, "cloudid_problems", len(problems.get(problem, ())), (problem.code,))
    put_troubles(numbers, context.caches)
    for name in CACHES:
        cache: Bounded[object, object] = getattr(context.caches, name)
        put(numbers, "cloudid_cache_entries", len(cache), (name,))
        put(numbers, "cloudid_cache_size", cache.size, (name,))
    return numbers


async def _stored_numbers(context: Context, now: Instant) -> Numbers:
    """Return the cached numbers of the store, or nothing while it cannot be read."""
    node = context.node
    if now >= node.count_again_at:
        try:
            await shared(f"metrics of {node.id}", _count(context))
        except CloudidError:
            return {}
    return node.stored_numbers


async def _count(context: Context) -> None:
    started = await Now()
    numbers = await stored_numbers(context, started)
    now = await Now()
    context.node.stored_numbers = numbers
    context.node.count_again_at = now + max(PAUSE, (now - started) / MOST_OF_THE_TIME)


async def stored_numbers(context: Context, now: Instant) -> Numbers:
    numbers, table = Numbers(), (await mount_table(context.records)).record
    types = [mount.shown_type for mount in table.live]
    for name in types:
        put(numbers, "cloudid_mounts", types.count(name), (name,))
    put(numbers, "cloudid_mounts_retiring", len(table.retired))
    quotas = await read_quotas(context, now)
    put(numbers, "cloudid_quotas", len(quotas.rate_limits), ("rate-limit",))
    put(numbers, "cloudid_quotas", len(quotas.lease_counts), ("lease-count",))
    await _due(numbers, context, now - context.node.seconds_ahead)
    for mount in table.live:
        await _credential(numbers, context, mount)
    put(numbers, "cloudid_intents", sum([await _count_keys(keys.intents(mount.id)) for mount in table.mounts]))
    return numbers


async def _due(numbers: Numbers, context: Context, now: Instant) -> None:
    """Return how late background work is, and the states of leases, by the clock of the background work."""
    late = dict.fromkeys(queue.KINDS, 0.0)
    ending, after = 0, ""
    while first := await ListKeys(keys.DUE, after, 1):
        if not queue.is_named(first[0]):
            after = first[0]
            continue
        at, kind, mount_id, _ = queue.parse(first[0])
        prefix = keys.due_queue(mount_id, kind)
        if kind in late:
            late[kind] = max(late[kind], now - at)
        if kind == queue.LEASE and at <= now:
            ending += await _count_keys(prefix, until=f"{prefix}{keys.due_time(now)}")
        after = f"{prefix}:"  # sorts after all digits
    for kind, seconds in late.items():
        put(numbers, "cloudid_background_late_seconds", seconds, (kind,))
    every, stuck = await _count_keys(keys.LEASES), await _count_keys(keys.STUCK)
    put(numbers, "cloudid_leases", max(0, every - ending - stuck), ("alive",))
    put(numbers, "cloudid_leases", ending, ("ending",))
    put(numbers, "cloudid_leases", stuck, ("stuck",))
    put(numbers, "cloudid_lease_stuck_oldest_seconds", await _oldest_stuck(context, now) if stuck else 0.0)


async def _count_keys(prefix: str, until: str = "") -> int:
    """Count the keys that start with a prefix, and sort before `until` if it is given, up to `MOST_COUNTED`."""
    count, after = 0, ""
    while count < MOST_COUNTED and (page := await ListKeys(prefix, after, PAGE)):
        listed = [key for key in page if key < until] if until else page
        count, after = count + len(listed), page[-1]
        if len(listed) < PAGE:
            break
        await give_way()
    return min(count, MOST_COUNTED)


async def _oldest_stuck(context: Context, now: Instant) -> float:
    listed = await ListKeys(keys.STUCK, "", MOST_STUCK)
    lease_ids = [key.removeprefix(keys.STUCK).partition("/")[2] for key in listed]
    leases = await find_undamaged_leases(context, lease_ids)
    return max((now - lease.record.expires_at for lease in leases if lease.record.expires_at < now), default=0.0)


async def _credential(numbers: Numbers, context: Context, mount: Mount) -> None:
    """Return the state of a mount's credential."""
    try:
        root = await find_root(context, mount)
    except Refused:  # damaged: health reports it
        return
    if root is None:
        return
    found, planned = await find_undamaged_rotation(context, mount.id), await find_undamaged_plan(context, mount.id)
    rotation, plan = found.record if found else None, planned.record if planned else None
    current = rotation.current if rotation else None
    told = {
        "credential_failing": bool(refused_access(context, mount, root.version)),
        "rotation_failing": bool(rotation and rotation.error) or bool(plan and plan.error),
        "root_secret_rotated_timestamp_seconds": rotation.rotated_at if rotation else None,
        "root_secret_ends_timestamp_seconds": current.expires_at if current else None,
        "root_secret_next_rotation_timestamp_seconds": plan.rotate_at if plan else None,
    }
    for name, value in told.items():
        if value is not None:
            put(numbers, f"cloudid_{name}", value, (mount.path,))


ROUTES: Final = (read_metrics,)
