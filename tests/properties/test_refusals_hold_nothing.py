"""A refused request leaves nothing behind that only the garbage collector could free.

An exception refers to the frames that it went through. Where one of them refers to the exception, the two keep all that
the frames hold, and on a server the collector comes seldom: refused bodies filled the memory of one.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Final, TypeAlias

import pytest

from cloudid_core import Request, service
from cloudid_core.catalog import CATALOG
from cloudid_core.dispatch import Exchange
from cloudid_core.effects import CallProvider, Commit, Effect, ReadEntry, Record
from cloudid_core.errors import Code, Refused
from cloudid_core.messages import Answer
from cloudid_core.mounts import SYSTEM
from cloudid_core.routing import Call
from cloudid_core.testing import FaultKind, Stall
from tests.engines import NO_ID, SecretsEngine, engine_with_roles
from tests.installation import ROOT
from tests.logins import LOGIN, configure_logins, identity, login_form
from tests.tokens import new_token, write_policy

MARKED: Final = "x" * 2000
"""In the body of each request."""

HOLDING: Final = (Request, Exchange, Call, BaseException, FrameType, TracebackType)


class Troubled(SecretsEngine):
    """An installation with one kind of trouble at the effects of one type."""

    trouble: tuple[type[Effect[Any]], FaultKind | Stall] | None = None

    def fault_for(self, effect: Effect[Any]) -> FaultKind | None:
        if self.trouble and type(effect) is self.trouble[0] and isinstance(self.trouble[1], FaultKind):
            return self.trouble[1]
        return super().fault_for(effect)

    def stall_for(self, effect: Effect[Any]) -> Stall | None:
        if self.trouble and type(effect) is self.trouble[0] and isinstance(self.trouble[1], Stall):
            return self.trouble[1]
        return super().stall_for(effect)


NOTHING: Final[Mapping[str, object]] = {}
Provoke: TypeAlias = Callable[[Troubled], Request]


@pytest.fixture(scope="module")
def original() -> Troubled:
    world = Troubled.copy_of(engine_with_roles())
    configure_logins(world)
    return world


def asks(method: str, path: str, body: Mapping[str, object] = NOTHING, token: str = ROOT, **headers: str) -> Provoke:
    return lambda world: world.request(method, path, {"marked": MARKED, **body}, token, **headers)


def by_login(**changes: object) -> Provoke:
    def provoke(world: Troubled) -> Request:
        form = login_form(world, world.scene["machines"][0], marked=MARKED, **changes)
        return world.request("POST", LOGIN, form, token="")

    return provoke


def under_role(**role: object) -> Provoke:
    def provoke(world: Troubled) -> Request:
        world.must("POST", "auth/cloud/role/dev", role)
        return by_login()(world)

    return provoke


def forged(world: Troubled) -> Request:
    token = identity(world, world.scene["machines"][0]["name"])["access_token"]
    return by_login(jwt=f"{token[:-8]}AAAAAAAA")(world)


def troubled(effect: type[Effect[Any]], trouble: FaultKind | Stall, provoke: Provoke) -> Provoke:
    def with_trouble(world: Troubled) -> Request:
        request = provoke(world)
        world.trouble = effect, trouble
        return request

    return with_trouble


def throttled(world: Troubled) -> Request:
    for _ in range(30):
        world.perform(world.service.handle(forged(world)))
    return forged(world)


def unaudited(world: Troubled) -> Request:
    world.must("PUT", "sys/audit/file", {"type": "file", "options": {"file_path": "/var/log/a"}})
    return troubled(Record, FaultKind.FAIL, asks("POST", "sys/policies/acl/p", {"policy": ""}))(world)


def with_uses(uses: int, method: str, path: str) -> Provoke:
    return lambda world: asks(method, path, token=new_token(world, num_uses=uses))(world)


def limited(world: Troubled) -> Request:
    world.must("POST", "sys/quotas/rate-limit/all", {"rate": 1, "path": "sys/policies"})
    for _ in range(3):
        world.ask("GET", "sys/policies/acl/default")
    return asks("POST", "sys/policies/acl/p", {"policy": ""})(world)


def with_more_policies(world: Troubled) -> Request:
    token = new_token(world, policies=[write_policy(world, "maker", ("auth/token/create", ["update"]))])
    return asks("POST", "auth/token/create", {"policies": "root"}, token)(world)


CASES: Final[Mapping[Code, Provoke]] = {
    Code.MALFORMED_PATH: asks("POST", "sys/policies/../acl"),
    Code.MALFORMED_JSON: lambda world: Request(
        "POST", "/v1/sys/policies/acl/p", {"x-service-token": ROOT}, b'{"policy": "' + MARKED.encode()
    ),
    Code.BODY_TOO_COMPLEX: lambda world: Request(
        "POST", "/v1/sys/policies/acl/p", {"x-service-token": ROOT}, b'{"policy": ' + b"[" * 100 + b"]" * 100 + b"}"
    ),
    Code.NAMESPACE_UNKNOWN: asks("GET", "sys/mounts", x_vault_namespace="other"),
    Code.FIELD_INVALID: asks("POST", "cloud/roles/web", {"ttl": "never"}),
    Code.FIELD_REQUIRED: asks("POST", LOGIN, {"role": "dev"}, token=""),
    Code.PERMISSION_DENIED: asks("POST", "sys/policies/acl/p", {"policy": ""}, token="nobody"),
    Code.NOT_FOUND: asks("GET", "cloud/roles/none"),
    Code.NO_HANDLER: asks("POST", "nothing/here"),
    Code.UNSUPPORTED_PATH: asks("POST", "sys/nothing"),
    Code.UNSUPPORTED_OPERATION: asks("DELETE", "sys/health"),
    Code.RATE_LIMIT_EXCEEDED: limited,
    Code.LOGINS_THROTTLED: throttled,
    Code.LOGIN_REFUSED: forged,
    Code.JWT_MALFORMED: by_login(jwt=f"{MARKED}.a"),
    Code.ROLE_NOT_FOUND: by_login(role="none"),
    Code.SOURCE_ADDRESS_REFUSED: under_role(token_bound_cidrs="198.51.100.1"),
    Code.BOUND_SERVICE_PRINCIPAL_MISMATCH: under_role(bound_service_principal_ids="other"),
    Code.BOUND_LOCATION_MISMATCH: under_role(bound_locations="nowhere"),
    Code.BOUND_RESOURCE_GROUP_MISMATCH: under_role(bound_resource_groups="other"),
    Code.BOUND_SUBSCRIPTION_MISMATCH: under_role(bound_subscription_ids="other"),
    Code.SUBSCRIPTION_MISMATCH: by_login(subscription_id=NO_ID),
    Code.RESOURCE_GROUP_MISMATCH: by_login(resource_group_name="other"),
    Code.VM_NAME_MISMATCH: by_login(vm_name="other"),
    Code.MACHINE_REQUIRED: by_login(subscription_id=""),
    Code.STORE_UNAVAILABLE: troubled(ReadEntry, FaultKind.FAIL, asks("POST", "sys/policies/acl/p", {"policy": ""})),
    Code.STORE_CONTENDED: troubled(Commit, FaultKind.CONFLICT, asks("POST", "auth/token/create")),
    Code.DEADLINE_PASSED: troubled(Commit, Stall.AFTER, asks("POST", "auth/token/create")),
    Code.PROVIDER_UNREACHABLE: troubled(CallProvider, FaultKind.FAIL, by_login()),
    Code.AUDIT_UNAVAILABLE: unaudited,
    Code.POLICY_INVALID: asks("POST", "sys/policies/acl/p", {"policy": MARKED}),
    Code.POLICY_PROTECTED: asks("DELETE", "sys/policies/acl/default"),
    Code.POLICY_NOT_SUBSET: with_more_policies,
    Code.TOKEN_RESTRICTED: with_uses(5, "POST", "auth/token/create"),
    Code.BATCH_TOKEN_UNSUPPORTED: asks("POST", "auth/token/create", {"type": "batch", "num_uses": 3}),
    Code.WRAPPING_TOKEN_INVALID: asks("POST", "sys/wrapping/unwrap", {"token": "nobody"}),
    Code.WRAPPING_NOT_ALLOWED: asks("GET", "sys/seal-status", token="", x_vault_wrap_ttl="60"),
    Code.LEASE_NOT_FOUND: asks("POST", "sys/leases/renew", {"lease_id": "none"}),
    Code.MOUNT_PATH_IN_USE: asks("POST", "sys/mounts/cloud", {"type": "cloud"}),
    Code.MOUNT_UNKNOWN_TYPE: asks("POST", "sys/mounts/a", {"type": "none"}),
    Code.AUDIT_FILE_OUTSIDE: asks("PUT", "sys/audit/a", {"type": "file", "options": {"file_path": "/etc/a"}}),
    Code.TOKEN_USED_UP: with_uses(1, "GET", "cloud/creds/web"),
}


@contextmanager
def garbage_counted() -> Iterator[Callable[[], list[object]]]:
    """Gives what the collector finds among the objects that were made in the block and hold a request."""
    gc.collect()
    gc.disable()

    def found() -> list[object]:
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            gc.collect()
            return [each for each in gc.garbage if isinstance(each, HOLDING)]
        finally:
            gc.set_debug(0)
            gc.garbage.clear()

    try:
        yield found
    finally:
        gc.enable()


def codes_of(world: Troubled, request: Request) -> tuple[str, ...]:
    """The codes of the answer to a request. Nothing of it is kept."""
    codes = world.perform(world.service.handle(request)).codes
    world.trace.clear()
    world.events.clear()
    return codes


def test_a_refusal_leaves_nothing_for_the_collector(original: Troubled) -> None:
    """Real requests, by the codes of their refusals."""
    worlds = {code: Troubled.copy_of(original) for code in CASES}
    with garbage_counted() as garbage:
        for code, provoke in CASES.items():
            assert code.wire in codes_of(worlds[code], provoke(worlds[code]))
        assert garbage() == []


async def refuse_deeply(code: Code) -> Answer:
    """A refusal on the way of which other exceptions were handled, and kept in variables."""
    kept: list[Exception] = []
    try:
        try:
            int("none")
        except ValueError as error:
            kept.append(error)
            raise LookupError from error
    except LookupError as failure:
        kept.append(failure)
        raise Refused(code) from None
    return Answer()


def test_no_code_is_different(original: Troubled, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that refuses with any code, whatever exceptions it has kept, leaves nothing either."""
    world = Troubled.copy_of(original)
    routes = CATALOG.of(SYSTEM).routes.routes
    (route,) = (row for row in routes if row.path == "mounts" and row.operation.value == "read")
    with garbage_counted() as garbage:
        for code in Code:
            monkeypatch.setitem(vars(route), "program", lambda call, code=code: refuse_deeply(code))
            assert codes_of(world, world.request("GET", "sys/mounts", {"marked": MARKED})) == (code.wire,)
        assert garbage() == []


def test_the_count_finds_a_request_that_a_refusal_keeps(original: Troubled, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was before tracebacks were dropped."""
    monkeypatch.setattr(service, "drop_tracebacks", lambda *failures: None)
    world = Troubled.copy_of(original)
    with garbage_counted() as garbage:
        assert codes_of(world, CASES[Code.PERMISSION_DENIED](world)) == ("permission_denied",)
        assert any(isinstance(each, Request | Exchange) for each in garbage())
