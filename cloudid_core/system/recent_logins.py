"""The last logins and refusals at this node, for operators who investigate a machine that cannot log in.

A login is remembered with its machine and role once its mount has accepted the token. A refusal of the same machine for
the same reason is remembered once, and counted. Of successful logins, only the last ones are kept.

Earlier refusals are in separate lists, by source address and code, without role and machine: their tokens may come from
anywhere, and must not displace the refusal of a real machine. Tokens with and without a verified signature have
separate limits, because anyone can send the latter. Refusals of the form are not remembered. Nothing is stored, and
nothing is decided by it.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Iterator
from functools import partial
from typing import Final

from attrs import evolve, frozen
from msgspec.structs import replace

from ..auth_method import CHECK, Case, ExplainedCheck, checks_of_token, explanation_of, may_explain
from ..caches import Caches
from ..effects import in_turns
from ..events import RequestAnswered
from ..forms import Json, schemas
from ..messages import READ, Answer
from ..routing import Call, Proven, route
from ..values import network, rfc3339

MOST_SHOWN: Final = 100
"""Maximum members of a list in an explanation, because a principal may be in thousands of groups."""
LONGEST_SHOWN: Final = 1000
"""Maximum characters of a text, because tokens of unknown callers may contain anything."""


@frozen
class RecentLogin:
    """The last login of a machine with an outcome, and how many there were."""

    answered: RequestAnswered
    case: object
    count: int = 1

    @property
    def key(self) -> Hashable:
        """The machine and its outcome."""
        last = self.answered
        return last.mount_accessor, last.role, last.principal_id, last.resource_id, last.codes

    def after(self, before: RecentLogin | None) -> RecentLogin:
        return evolve(self, count=before.count + 1) if before else self


@frozen
class UnacceptedLogin:
    """The last refusal of a source with a code before its token was accepted, and how many there were."""

    answered: RequestAnswered
    case: object
    count: int

    @property
    def key(self) -> Hashable:
        last = self.answered
        return last.mount_accessor, network.source(last.remote_address), last.codes


def note_unaccepted(caches: Caches, answered: RequestAnswered, proven: Proven) -> None:
    """Remember the refusal of a login whose token was not accepted, by source and code, unless its form was refused."""
    if proven.has_invalid_form:
        return
    refusals = caches.unaccepted_logins if proven.is_verified else caches.unverified_logins
    refusal = UnacceptedLogin(replace(answered, audit=None), proven.case, 1)
    before: UnacceptedLogin | None = refusals.get(refusal.key)
    refusals.put(refusal.key, evolve(refusal, count=before.count + 1) if before else refusal)


def note_login(caches: Caches, answered: RequestAnswered, proven: Proven) -> None:
    """Remember an answered login, if its token was accepted."""
    if not proven.principal_id:
        return
    if not answered.codes:
        caches.admitted_logins.append((answered, proven.case))
        return
    login = RecentLogin(replace(answered, audit=None), proven.case)
    weight = proven.case.bounds.weight if isinstance(proven.case, Case) else 1
    caches.refused_logins.put(login.key, login.after(caches.refused_logins.get(login.key)), weight)


LOGIN: Final = schemas.members(
    TIME="time",
    TEXT="request_id mount role principal_id resource_id remote_address verdict accessor",
    LIST="codes",
    INTEGER="count",
    checks=schemas.list_of(CHECK),
)


UNACCEPTED: Final = schemas.members(
    TIME="time",
    TEXT="request_id mount remote_address",
    LIST="codes",
    INTEGER="count",
    checks=schemas.list_of(CHECK),
)
MEMBERS: Final = schemas.members(
    TEXT="node_id node_name", logins=schemas.list_of(LOGIN), unaccepted=schemas.list_of(UNACCEPTED)
)


@route("internal/recent-logins", READ, MEMBERS)
async def read_recent_logins(call: Call) -> Answer:
    """Lists the last logins and refusals at this node, with every check of each.

    `logins` are those whose token was accepted. `unaccepted` has earlier refusals, by source address and code, without
    roles. What a check expected is shown to callers who may use `explain` of the mount, which needs `sudo`, and is null
    for all others.
    """
    caches, node = call.context.caches, call.context.node
    admitted: dict[Hashable, RecentLogin] = {}
    for answered, case in caches.admitted_logins:
        login = RecentLogin(answered, case)
        admitted[login.key] = login.after(admitted.get(login.key))
    known = [*admitted.values(), *caches.refused_logins.values()]
    known.sort(key=lambda login: login.answered.time)
    known.reverse()
    mounts = {login.answered.mount for login in known}
    strangers: list[UnacceptedLogin] = [*caches.unaccepted_logins.values(), *caches.unverified_logins.values()]
    strangers.sort(key=lambda refusal: refusal.answered.time)
    strangers.reverse()
    mounts |= {refusal.answered.mount for refusal in strangers}
    explained = frozenset(mount for mount in mounts if may_explain(call.token.acl, mount))
    shown = await in_turns(known, partial(_described, explained), 1)  # roles may have long lists
    unaccepted = await in_turns(strangers, partial(_described_unaccepted, explained), 1)
    return Answer(data={"node_id": node.id, "node_name": node.name, "logins": shown, "unaccepted": unaccepted})


def _described_unaccepted(explained: Container[str], refusal: UnacceptedLogin) -> Iterator[dict[str, Json]]:
    answered, case = refusal.answered, refusal.case
    checks = checks_of_token(case) if isinstance(case, Case) else ()
    yield {
        "time": rfc3339.show(answered.time),
        "request_id": answered.request_id,
        "mount": f"{answered.mount}/",
        "remote_address": answered.remote_address,
        "codes": list(answered.codes),
        "count": refusal.count,
        "checks": _shown(checks, answered.mount in explained),
    }


def _described(explained: Container[str], login: RecentLogin) -> Iterator[dict[str, Json]]:
    answered, case = login.answered, login.case
    checks = explanation_of(case).checks if isinstance(case, Case) else ()
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
        "checks": _shown(checks, answered.mount in explained),
    }


def _shown(checks: Iterable[ExplainedCheck], is_explained: bool) -> list[dict[str, Json]]:
    """Checks as a caller may see them. What a role or a mount demands is for callers who may use `explain`."""
    hidden: dict[str, Json] = {} if is_explained else {"expected": None}
    return [{name: _shortened(value) for name, value in {**check.described, **hidden}.items()} for check in checks]


def _shortened(value: Json) -> Json:
    if isinstance(value, list):
        shown = [_shortened(each) for each in value[:MOST_SHOWN]]
        return [*shown, f"and {len(value) - MOST_SHOWN} more"] if len(value) > MOST_SHOWN else shown
    return f"{value[:LONGEST_SHOWN]}…" if isinstance(value, str) and len(value) > LONGEST_SHOWN else value


ROUTES: Final = (read_recent_logins,)
