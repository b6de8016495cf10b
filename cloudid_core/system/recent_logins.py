"""Who logged in at this node last, and who was refused: for people who look for a machine that cannot log in.

A login is remembered once its signature has held, so nobody fills the memory with claims of their own. A refusal of
the same machine for the same reason is remembered once, and counted; of logins the last ones are there. Nothing is
stored, and nothing is decided by it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Final

from attrs import evolve, frozen
from msgspec.structs import replace

from ..auth_method import CHECK, Case, explanation_of
from ..caches import Caches
from ..effects import in_turns
from ..events import RequestAnswered
from ..forms import Json, schemas
from ..messages import READ, Answer
from ..routing import Call, Proven, route
from ..values import rfc3339

MOST_SHOWN: Final = 100
"""How many members of a list an explanation shows: a principal may be in thousands of groups."""


@frozen
class RecentLogin:
    """The last login of a machine with an outcome, and how many there were."""

    answered: RequestAnswered
    case: Callable[[], object] | None
    count: int = 1

    @property
    def key(self) -> Hashable:
        """The machine and its outcome."""
        last = self.answered
        return last.mount_accessor, last.role, last.principal_id, last.resource_id, last.codes

    def after(self, before: RecentLogin | None) -> RecentLogin:
        return evolve(self, count=before.count + 1) if before else self


def note_login(caches: Caches, answered: RequestAnswered, proven: Proven) -> None:
    """Remember a login that was answered, if its signature has held."""
    if not proven.principal_id:
        return
    if not answered.codes:
        caches.admitted_logins.append((answered, proven.case))
        return
    login = RecentLogin(replace(answered, audit=None), proven.case)
    caches.refused_logins.put(login.key, login.after(caches.refused_logins.get(login.key)))


LOGIN: Final = schemas.members(
    TIME="time",
    TEXT="request_id mount role principal_id resource_id remote_address verdict accessor",
    LIST="codes",
    INTEGER="count",
    checks=schemas.list_of(CHECK),
)


@route("internal/recent-logins", READ, schemas.members(TEXT="node_id node_name", logins=schemas.list_of(LOGIN)))
async def read_recent_logins(call: Call) -> Answer:
    """Lists the last logins and refusals at this node, with every check of each."""
    caches, node = call.context.caches, call.context.node
    admitted: dict[Hashable, RecentLogin] = {}
    for answered, case in caches.admitted_logins:
        login = RecentLogin(answered, case)
        admitted[login.key] = login.after(admitted.get(login.key))
    known = [*admitted.values(), *caches.refused_logins.values()]
    known.sort(key=lambda login: login.answered.time)
    known.reverse()
    shown = await in_turns(known, _described, 1)  # roles may have long lists
    return Answer(data={"node_id": node.id, "node_name": node.name, "logins": shown})


def _described(login: RecentLogin) -> Iterator[dict[str, Json]]:
    answered, case = login.answered, login.case and login.case()
    checks = [check.described for check in explanation_of(case).checks] if isinstance(case, Case) else []
    yield {
        "time": rfc3339.show(answered.time),
        "request_id": answered.request_id,
        "mount": f"{answered.mount}/",
        "role": answered.role,
        "principal_id": answered.principal_id,
        "resource_id": answered.resource_id,
        "remote_address": answered.remote_address,
        "verdict": "refused" if answered.codes else "admitted",
        "codes": list(answered.codes),
        "accessor": answered.accessor,
        "count": login.count,
        "checks": [{name: _shortened(value) for name, value in check.items()} for check in checks],
    }


def _shortened(value: Json) -> Json:
    if isinstance(value, list) and len(value) > MOST_SHOWN:
        return [*value[:MOST_SHOWN], f"and {len(value) - MOST_SHOWN} more"]
    return value


ROUTES: Final = (read_recent_logins,)
