"""The state of the service, for load balancers and clients: plain JSON, without a token.

A token that may read `sys/health` also receives the names of hosts, mounts and roles, and the fix for each problem.
"""

from __future__ import annotations

from typing import Final

from attrs import frozen

from ..errors import Code, Refused, without_provider_code
from ..forms import BOOLEAN, FieldType, Json, schemas, setting
from ..health import Node, Occurrence
from ..messages import READ, WRITE, Answer
from ..mounts import SYSTEM
from ..routing import CHOSEN, PLAIN, Call, route
from ..tokens import Caller
from ..values import coercion, rfc3339
from ..version import VERSION

CANNOT_SERVE: Final = 503
MOST_DETAILS: Final = 100
"""Maximum number of occurrences of a problem that are returned in detail."""


def _status(raw: object) -> int:
    status = coercion.integer(raw)
    if not (200 <= status <= 299 or 400 <= status <= 599):
        raise ValueError("must be a status from 200 to 299 or from 400 to 599")
    return status


STATUS: Final = FieldType("status from 200 to 299 or from 400 to 599", _status, schema=schemas.INTEGER)


@frozen(kw_only=True)
class HealthForm:
    """Query parameters that set the status for each state, for load balancers that only support some."""

    activecode: int = setting(STATUS, 200, "Status of an active node.")
    problemcode: int = setting(
        STATUS, 0, "Status of a node that serves requests but has problems. 0: same as without problems."
    )
    standbyok: bool = setting(BOOLEAN, False, "Answer like an active node if on standby.")
    standbycode: int = setting(STATUS, 429, "Status of a standby node.")
    sealedcode: int = setting(STATUS, 503, "Status of a sealed node.")
    uninitcode: int = setting(STATUS, 501, "Status of a node that is not initialised.")
    perfstandbyok: bool = setting(BOOLEAN, False, "Accepted. There are no such nodes.")
    drsecondarycode: int = setting(STATUS, 472, "Accepted. There are no such nodes.")
    performancestandbycode: int = setting(STATUS, 473, "Accepted. There are no such nodes.")


def _common(call: Call) -> dict[str, Json]:
    """Return the members of all responses.

    `version` is the API level, by which clients choose what they send. cloudid's own version is a separate member.
    """
    version, cluster_id = call.context.settings.api_version, call.context.cluster_id
    return {
        "initialized": True,
        "sealed": False,
        "version": version,
        "cloudid_version": VERSION,
        "cluster_name": f"cloudid-{cluster_id.partition('-')[0]}",
        "cluster_id": cluster_id,
    }


COMMON: Final = schemas.members(BOOLEAN="initialized sealed", TEXT="version cloudid_version cluster_name cluster_id")
PROBLEM: Final = schemas.members({"TEXT": "mount"}, TEXT="code text consequence remedy")
HEALTH: Final = schemas.joined(
    COMMON,
    schemas.members(
        {
            "TEXT": "node_name",
            "LIST": "settings_that_differ",
            "INTEGER": "problem_count",
            "problem_details": schemas.list_of(PROBLEM),
        },
        BOOLEAN="standby performance_standby",
        TEXT="replication_performance_mode replication_dr_mode node_id",
        INTEGER="server_time_utc store_latency_ms",
        LIST="problems",
        clock_skew_ms=schemas.nullable(schemas.INTEGER),
    ),
)
SEAL_STATUS: Final = schemas.joined(
    COMMON,
    schemas.members(
        TEXT="type nonce build_date storage_type", INTEGER="t n progress", BOOLEAN="migration recovery_seal"
    ),
)
LEADER: Final = schemas.members(
    BOOLEAN="ha_enabled is_self performance_standby",
    TIME="active_time",
    TEXT="leader_address leader_cluster_address node_id background_node_id",
    INTEGER="performance_standby_last_remote_wal",
)
NODE: Final = schemas.members(
    TEXT="node_id hostname api_address cluster_address version",
    BOOLEAN="active_node background_node",
    TIME="started_at last_echo",
)


@route("health", READ, HEALTH, shape=CHOSEN, form=HealthForm, public=True, optional_token=True, audited=False)
async def health(call: Call) -> Answer:
    """Returns whether this node can serve requests, and its problems.

    The response contains what this node last read, because many load balancers poll it often.
    """
    form = call.form(HealthForm)
    node = call.context.node
    data = {
        **_common(call),
        "standby": False,
        "performance_standby": False,
        "replication_performance_mode": "disabled",
        "replication_dr_mode": "disabled",
        "server_time_utc": int(call.now),
        "node_id": node.id,
        "problems": [problem.code for problem in node.problems],
        "store_latency_ms": round(node.latency * 1000),
        "clock_skew_ms": None if node.clock is None else round(node.clock.offset * 1000),
    }
    if call.caller is not None and call.caller.acl.allows("read", f"{SYSTEM.path}/health"):
        data |= _details(node, call.caller)
    status = (form.problemcode if node.problems else 0) or form.activecode
    return Answer(data=data, plain=True, status=status if node.can_serve else CANNOT_SERVE)


def _details(node: Node, caller: Caller) -> dict[str, Json]:
    """Return what not every caller may know: names, the problems in words, and their fixes."""
    return {
        "node_name": node.name,
        "settings_that_differ": list(node.differences),
        "problem_count": sum(map(len, node.problems.values())),
        "problem_details": [
            {
                "code": problem.code,
                "text": problem.text(_shown(occurrence, caller)),
                "consequence": problem.consequence.value,
                "remedy": problem.remedy(occurrence),
                **({"mount": occurrence["mount"]} if "mount" in occurrence else {}),
            }
            for problem, occurrences in node.problems.items()
            for occurrence in occurrences[:MOST_DETAILS]
        ],
    }


def _shown(occurrence: Occurrence, caller: Caller) -> Occurrence:
    """Return an occurrence, with Azure's error code only for callers who may read the configuration of its mount."""
    if "reason" not in occurrence:
        return occurrence
    may_know = "mount" not in occurrence or caller.acl.allows(READ.value, f"{occurrence['mount']}/config")
    return occurrence if may_know else {**occurrence, "reason": without_provider_code(occurrence["reason"])}


@route("seal-status", READ, SEAL_STATUS, shape=PLAIN, public=True, audited=False)
async def seal_status(call: Call) -> Answer:
    """Returns that the service is unsealed. The server reads the master key at start."""
    data = {
        "type": "static",
        **_common(call),
        "t": 1,
        "n": 1,
        "progress": 0,
        "nonce": "",
        "build_date": "",
        "migration": False,
        "recovery_seal": False,
        "storage_type": "cloudid",
    }
    return Answer(data=data, plain=True)


@route("leader", READ, LEADER, shape=PLAIN, public=True, audited=False)
async def leader(call: Call) -> Answer:
    """Returns which node leads.

    Every node serves all requests, and is the leader for its clients. One of them does the background work.
    """
    node = call.context.node
    data = {
        "ha_enabled": bool(node.others),
        "is_self": True,
        "active_time": rfc3339.show(node.started_at),
        "leader_address": "",
        "leader_cluster_address": "",
        "performance_standby": False,
        "performance_standby_last_remote_wal": 0,
        "node_id": node.id,
        "background_node_id": node.leader,
    }
    return Answer(data=data, plain=True)


@route("ha-status", READ, schemas.members(nodes=schemas.list_of(NODE)))
async def ha_status(call: Call) -> Answer:
    """Lists the nodes that share the store, and which of them does the background work."""
    node = call.context.node
    shown = [
        (node.id, node.name, VERSION, node.started_at, call.now),
        *((other.id, other.name, other.version, other.started_at, other.seen_at) for other in node.others),
    ]
    nodes = [
        {
            "node_id": node_id,
            "hostname": name,
            "api_address": "",
            "cluster_address": "",
            "active_node": True,
            "background_node": node_id == node.leader,
            "version": version,
            "started_at": rfc3339.show(started_at),
            "last_echo": rfc3339.show(seen_at),
        }
        for node_id, name, version, started_at, seen_at in shown
    ]
    return Answer(data={"nodes": nodes})


@route("init", READ, schemas.members(BOOLEAN="initialized"), shape=PLAIN, public=True, audited=False)
async def init_status(call: Call) -> Answer:
    """Returns that the store is initialised."""
    return Answer(data={"initialized": True}, plain=True)


@route("init", WRITE, public=True, audited=False)
async def refuse_init(call: Call) -> Answer:
    """Refused, because the store is initialised with the server's command `init`."""
    raise Refused(Code.MALFORMED_REQUEST, "the service is already initialised")


ROUTES: Final = (health, seal_status, leader, ha_status, init_status, refuse_init)
