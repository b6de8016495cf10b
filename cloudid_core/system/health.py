"""The state of the service, for load balancers and clients: plain JSON, without a token."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from ..api.fields import BOOLEAN, FieldType, Json, setting
from ..api.response import Answer
from ..api.routing import Call, Operation, Route
from ..errors import Code, Refused
from ..values import coercion
from ..version import VERSION


def _status(raw: object) -> int:
    status = coercion.integer(raw)
    if not (200 <= status <= 299 or 400 <= status <= 599):
        raise ValueError("must be a status from 200 to 299 or from 400 to 599")
    return status


STATUS: Final = FieldType("status from 200 to 299 or from 400 to 599", _status)


@frozen(kw_only=True)
class HealthForm:
    """Query parameters that choose the status of each state, for load balancers that know few."""

    activecode: int = setting(STATUS, 200, "Status of an active node.")
    standbyok: bool = setting(BOOLEAN, False, "Answer like an active node when on standby.")
    standbycode: int = setting(STATUS, 429, "Status of a standby node.")
    sealedcode: int = setting(STATUS, 503, "Status of a sealed node.")
    uninitcode: int = setting(STATUS, 501, "Status of a node that is not initialised.")
    perfstandbyok: bool = setting(BOOLEAN, False, "Accepted; there are no such nodes.")
    drsecondarycode: int = setting(STATUS, 472, "Accepted; there are no such nodes.")
    performancestandbycode: int = setting(STATUS, 473, "Accepted; there are no such nodes.")


def _common() -> dict[str, Json]:
    return {"initialized": True, "sealed": False, "version": VERSION}


async def health(call: Call) -> Answer:
    form = call.form(HealthForm)
    data = {
        **_common(),
        "standby": False,
        "performance_standby": False,
        "replication_performance_mode": "disabled",
        "replication_dr_mode": "disabled",
        "server_time_utc": int(call.now),
    }
    return Answer(data=data, plain=True, status=form.activecode)


async def seal_status(call: Call) -> Answer:
    data = {
        "type": "static",
        **_common(),
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


async def leader(call: Call) -> Answer:
    data = {
        "ha_enabled": False,
        "is_self": True,
        "active_time": "0001-01-01T00:00:00Z",
        "leader_address": "",
        "leader_cluster_address": "",
        "performance_standby": False,
        "performance_standby_last_remote_wal": 0,
    }
    return Answer(data=data, plain=True)


async def init_status(call: Call) -> Answer:
    return Answer(data={"initialized": True}, plain=True)


async def refuse_init(call: Call) -> Answer:
    raise Refused(Code.MALFORMED_REQUEST, "the service is already initialised")


ROUTES: Final = (
    Route(
        path="health",
        operation=Operation.READ,
        program=health,
        form=HealthForm,
        public=True,
        audited=False,
        doc="Tells whether this node can serve.",
    ),
    Route(
        path="seal-status",
        operation=Operation.READ,
        program=seal_status,
        public=True,
        audited=False,
        doc="Tells that the service is open; the master key comes from the host.",
    ),
    Route(
        path="leader",
        operation=Operation.READ,
        program=leader,
        public=True,
        audited=False,
        doc="Tells which node leads.",
    ),
    Route(
        path="init",
        operation=Operation.READ,
        program=init_status,
        public=True,
        audited=False,
        doc="Tells that the store is in use.",
    ),
    Route(
        path="init",
        operation=Operation.WRITE,
        program=refuse_init,
        public=True,
        audited=False,
        doc="Refused: done before the start.",
    ),
)
