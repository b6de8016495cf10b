"""What a commit rests on, it expects: all that its request has read, but for what is named here with a reason.

A commit that expects less writes under rules that another node has changed, or for a token that it has ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import pytest

from cloudid_core.catalog import CATALOG
from cloudid_core.effects import Commit, Effect, ReadEntries, ReadEntry
from cloudid_core.routing import Route
from cloudid_core.store import keys
from tests.installation import ROOT

from .operations import TOKEN_SCOPE, furnished
from .recorded import RecordedInstallation
from .stalled import StallingInstallation
from .test_delivery import KINDS, world_like

Request: TypeAlias = tuple[str, str, Mapping[str, object] | None]

TOKEN: Final = "a token"
ACCESSOR: Final = "an accessor"
LEASE: Final = "a lease"
"""Stand in bodies for what the installation has."""

FOLDER: Final = "0" * 32

FURNISHED: Final[tuple[Request, ...]] = (
    ("POST", "auth/token/renew", {"token": TOKEN}),
    ("POST", "auth/token/renew-self", {}),
    ("POST", "auth/token/renew-accessor", {"accessor": ACCESSOR}),
    ("POST", "auth/token/roles/some", {"orphan": True}),
    ("DELETE", "auth/token/roles/some", None),
    ("POST", "sys/policies/acl/some", {"policy": ""}),
    ("DELETE", "sys/policies/acl/some", None),
    ("POST", "sys/policy/some", {"policy": ""}),
    ("DELETE", "sys/policy/some", None),
    ("POST", "sys/auth/some", {"type": "cloud"}),
    ("POST", "sys/auth/some/tune", {"description": "some"}),
    ("POST", "sys/mounts/auth/some/tune", {"description": "some"}),
    ("DELETE", "sys/auth/some", None),
    ("POST", "sys/mounts/some", {"type": "cloud"}),
    ("POST", "sys/mounts/some/tune", {"description": "some"}),
    ("DELETE", "sys/mounts/some", None),
    ("POST", "sys/remount", {"from": "cloud", "to": "moved"}),
    ("POST", "sys/remount", {"from": "moved", "to": "cloud"}),
    ("PUT", "sys/audit/some", {"type": "file", "options": {"file_path": "/var/log/a"}}),
    ("PUT", "sys/config/auditing/request-headers/x-some", {}),
    ("DELETE", "sys/config/auditing/request-headers/x-some", None),
    ("DELETE", "sys/audit/some", None),
    ("POST", "sys/quotas/rate-limit/some", {"rate": 100}),
    ("DELETE", "sys/quotas/rate-limit/some", None),
    ("POST", "sys/quotas/lease-count/some", {"max_leases": 100}),
    ("DELETE", "sys/quotas/lease-count/some", None),
    ("POST", "sys/quotas/config", {"enable_rate_limit_response_headers": True}),
    ("PUT", f"sys/applied/{FOLDER}", {"path": "/some", "host": "some"}),
    ("DELETE", f"sys/applied/{FOLDER}", None),
    ("POST", "sys/rotate", None),
    ("POST", "sys/rotate/keyring", None),
    ("POST", "identity/oidc/role/some", {"audience": "some"}),
    ("DELETE", "identity/oidc/role/some", None),
    ("POST", "auth/cloud/config", {"tenant_id": "contoso.example", "resource": "https://a"}),
    ("POST", "auth/cloud/role/some", {"bound_service_principal_ids": "*"}),
    ("DELETE", "auth/cloud/role/some", None),
    ("DELETE", "auth/cloud/config", None),
    ("POST", "cloud/config", {"root_password_ttl": "60d"}),
    ("POST", "cloud/roles/existing", {"token_scopes": TOKEN_SCOPE}),
    ("DELETE", "cloud/roles/existing", None),
    ("DELETE", "cloud/roles/kept", None),
    ("DELETE", "cloud/config?force=true", None),
    ("POST", "auth/token/revoke-orphan", {"token": TOKEN}),
)
LAST: Final[tuple[tuple[Request, ...], ...]] = (
    (("POST", "sys/rotate/tokens", None),),
    (("POST", "auth/token/revoke", {"token": TOKEN}),),
    (("POST", "auth/token/revoke-accessor", {"accessor": ACCESSOR}),),
    (("POST", "auth/token/revoke-self", {}),),
)
SEQUENCES: Final = (FURNISHED, *LAST)

ALWAYS: Final = {
    keys.QUOTAS: "a request is counted once, when it comes",
}
MADE: Final = "made/"
"""The record of which folder made an object: the commit expects the object itself, with which the record changes."""

NOT_MOUNTS: Final = frozenset(
    {
        "policies/acl/*name",
        "policy/*name",
        "roles/:name",
        "role/:name",
        "oidc/role/:name",
        "revoke",
        "revoke-accessor",
        "revoke-self",
        "revoke-orphan",
        "applied/:name",
        "rotate",
        "rotate/keyring",
        "rotate/tokens",
        "config",
    }
)
"""Routes whose commits need not expect the table of mounts: what they write belongs to a mount by its id, and goes with
it, or is no mount's."""

NOT_TRIED: Final = {
    "init": "there is no service yet, or the request is refused",
    "explain": "it commits nothing",
    "lookup-self": "it commits nothing",
    "lookup": "it commits nothing",
    "lookup-accessor": "it commits nothing",
    "wrapping/lookup": "it commits nothing",
    "leases/lookup": "it commits nothing",
    "capabilities": "it commits nothing",
    "capabilities-self": "it commits nothing",
    "capabilities-accessor": "it commits nothing",
    "audit-hash/*path": "it commits nothing",
    "oidc/token/:name": "it commits nothing",
    "tidy": "the background does its work, under the fence",
    "mounts/auth/*path": "not offered",
    "config/applied": "the plan and the mount have tests of their own",
    "leases/renew": "`tests/core/system/test_leases.py`",
    "leases/renew/*lease_id": "as leases/renew",
    "renew": "tried at the token store; the other is as leases/renew",
    "renew/*lease_id": "as leases/renew",
    **dict.fromkeys(
        (
            "leases/revoke",
            "leases/revoke/*lease_id",
            "revoke/*lease_id",
            "leases/revoke-prefix/*prefix",
            "revoke-prefix/*prefix",
            "leases/revoke-force/*prefix",
            "revoke-force/*prefix",
        ),
        "an end rests on nothing but what ends",
    ),
    **dict.fromkeys(
        ("retiring/:accessor", "retiring/:accessor/config", "reconcile"),
        "removals rest on nothing but what they remove",
    ),
    **dict.fromkeys(("rotate/signing-keys", "oidc/key/default/rotate"), "the issuer's keys are one record"),
    **dict.fromkeys(
        ("rotate-root", "rotate-role/:name", "token/:name", "static-roles/:name", "static-creds/:name/token"),
        "`test_meanwhile.py` and `test_exhaustive.py`: several commits, of which each rests on the one before",
    ),
}


def unexpected(trace: list[tuple[str, Effect[Any]]]) -> list[frozenset[str]]:
    """For each commit, what was read before it, and is neither expected nor written by it or one before it."""
    read: set[str] = set()
    found = []
    for _, effect in trace:
        if isinstance(effect, ReadEntry):
            read.add(effect.key)
        elif isinstance(effect, ReadEntries):
            read.update(effect.keys)
        elif isinstance(effect, Commit):
            found.append(frozenset(read - effect.expects.keys()))
            read -= {*effect.expects, *effect.puts}  # what was made sure of once is a new question
    return found


def committing() -> set[str]:
    return {
        route.path
        for component in CATALOG
        for route in component.routes.routes
        if route.operation.value not in ("read", "list") or route.has_side_effect
    }


def send(world: RecordedInstallation, request: Request) -> tuple[Route, str, list[frozenset[str]]]:
    """The route of a request, the key of its caller's token, and what its commits do not expect."""
    method, path, body = request
    made = world.must("POST", "auth/token/create", {"ttl": "2h", "no_parent": True}).auth
    values = {TOKEN: made["client_token"], ACCESSOR: made["accessor"]}
    filled = {name: values.get(str(value), value) for name, value in body.items()} if body is not None else None
    token = made["client_token"] if path.endswith("-self") else ROOT
    exchange = world.service.begin(world.request(method, path, filled, token))
    first = len(world.trace)
    response = world.perform(world.service.work_on(exchange))
    assert response.status < 300, (path, response.body)
    assert exchange.route is not None
    assert exchange.caller is not None
    return exchange.route, exchange.caller.token.key, unexpected(world.trace[first:])


def check(route: Route, caller: str, commits: list[frozenset[str]]) -> None:
    allowed = {*ALWAYS, caller, *({keys.MOUNTS} if route.path in NOT_MOUNTS else ())}
    for number, read in enumerate(commits):
        left = {key for key in read if not key.startswith(MADE)}
        assert left <= allowed, f"commit {number} of {route.path} does not expect {sorted(left - allowed)}"


@pytest.mark.parametrize("requests", SEQUENCES, ids=lambda requests: str(requests[0][1]))
def test_a_commit_expects_what_it_rests_on(requests: tuple[Request, ...]) -> None:
    world = StallingInstallation.like(furnished())
    for request in requests:
        check(*send(world, request))


@pytest.mark.parametrize("name", KINDS)
def test_the_commit_that_creates_something_expects_what_that_rests_on(name: str) -> None:
    """The parent and the role of a token above all: they could end, or become stricter, meanwhile."""
    kind = KINDS[name]
    world = world_like("one node", kind.start())
    exchange = world.service.begin(kind.make(world))
    first = len(world.trace)
    assert world.perform(world.service.work_on(exchange)).status == 200
    trace = world.trace[first:]
    caller = {exchange.caller.token.key} if exchange.caller is not None else set()
    creating = next(number for number, left in enumerate(unexpected(trace)) if creates(commits_of(trace)[number], name))
    left = unexpected(trace)[creating]
    allowed = {*ALWAYS, *({keys.MOUNTS, *caller} if "wrapped" in name and "body" in name else ())}
    allowed |= {keys.MOUNTS, *caller} if kind.route in ("", "wrapping/unwrap", "wrapping/rewrap") else set()
    assert left <= allowed, f"not expected: {sorted(left - allowed)}"


def commits_of(trace: list[tuple[str, Effect[Any]]]) -> list[Commit]:
    return [effect for _, effect in trace if isinstance(effect, Commit)]


def creates(commit: Commit, name: str) -> bool:
    """Whether a commit puts the lease or the token, or makes sure that a batch token may be given."""
    if "credentials" in name:
        return any(key.startswith(keys.LEASES) for key in commit.puts)
    return "batch" in name or any(key.startswith("token/") for key in commit.puts)


def test_every_route_that_commits_is_tried_or_has_a_reason() -> None:
    world = StallingInstallation.like(furnished())
    tried = {send(world, request)[0].path for request in FURNISHED}
    for requests in LAST:
        tried |= {send(world, request)[0].path for request in requests}
    tried |= {kind.route for kind in KINDS.values()} - {""}
    assert committing() - tried == NOT_TRIED.keys() - tried
    assert tried & NOT_TRIED.keys() <= {"renew", "config/applied"}
