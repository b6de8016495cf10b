"""What the service starts by itself is missed when it is left out: each `await` of these functions has a story."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from types import CodeType
from typing import Any, Final, TypeAlias

import pytest
from attrs import evolve

from cloudid_core import service
from cloudid_core.audit.device import DeclaredDevice
from cloudid_core.background.loop import Loop
from cloudid_core.context import queue
from cloudid_core.context.keyring import begin_data_key
from cloudid_core.health import HealthProblem
from cloudid_core.mounts import mount_table
from cloudid_core.provider.signing_keys import REFRESH_AGE
from cloudid_core.routing import Held
from cloudid_core.service import Service
from cloudid_core.store import Changes, keys
from cloudid_core.tokens import find_by_text
from tests.engines import CREDS, configured_engine, engine_config
from tests.installation import Installation
from tests.logins import configure_logins, log_in

STARTERS: Final[tuple[Callable[..., Any], ...]] = (
    service.open_service,
    Service.tick,
    Service.upkeep,
    Service._keep_up,
    Service._refresh,
    Service._list_audiences,
    Service.stop,
    Loop.stop,
)
GIVEN: Final = frozenset({"Now", "RandomBytes", "open_keyring"})
"""What cannot be left out: the others need its answer."""

Story: TypeAlias = Callable[[Installation], bool]


def comes_back(key: str) -> Story:
    """Whether an entry that is gone is there after a start."""

    def story(installation: Installation) -> bool:
        installation.store.commit({}, {}, (key,))
        installation.open_node()
        return bool(installation.keys(key))

    return story


def devices_are_declared(installation: Installation) -> bool:
    declared = DeclaredDevice(name="main", type="file", options={"file_path": "/var/log/a.log"})
    installation.open_node(audit_devices=(declared,))
    return bool(installation.peek(mount_table(installation.context.records)).record.devices)


def background_leads(installation: Installation) -> bool:
    installation.tick()
    return bool(installation.keys(keys.LEADER_TERM))


def upkeep(installation: Installation) -> None:
    installation.perform(installation.service.upkeep())


def node_is_seen(installation: Installation) -> bool:
    upkeep(installation)
    return bool(installation.keys(keys.NODES))


def devices_are_tried_again(installation: Installation) -> bool:
    installation.context.node.last_record_failed = True
    upkeep(installation)
    return not installation.context.node.last_record_failed


def plan_is_made_anew(installation: Installation) -> bool:
    installation.must("POST", "cloud/config", {**engine_config(installation), "rotation_period": 3600})
    plan = keys.rotation_plan(installation.mount().id)
    installation.store.commit({}, {}, (plan, *installation.due("rotation-plan")))
    upkeep(installation)
    return bool(installation.keys(plan))


def signing_keys_are_due_again(installation: Installation) -> bool:
    upkeep(installation)
    installation.clock -= 300 * 86_400
    upkeep(installation)
    return installation.next_due <= installation.clock + installation.settings.signing_key_period


def identities_are_kept(installation: Installation) -> bool:
    installation.store.commit({}, {}, (keys.IDENTITIES,))
    upkeep(installation)
    return bool(installation.keys(keys.IDENTITIES))


def signing_keys_are_refreshed_ahead(installation: Installation) -> bool:
    log_in(installation, configure_logins(installation))
    installation.advance(REFRESH_AGE)
    start = len(installation.trace)
    upkeep(installation)
    return any("keys" in call for call in installation.calls(start))


def keys_of_others_are_learnt(installation: Installation) -> bool:
    other = installation.open_node()
    installation.perform(begin_data_key(other.context))
    upkeep(installation)
    return installation.context.records.sealer.keyring.age == other.context.records.sealer.keyring.age


def stored_records_are_looked_at(installation: Installation) -> bool:
    before = installation.service._look_at
    upkeep(installation)
    return installation.service._look_at > before


def what_cancelled_requests_held_is_given_back(installation: Installation) -> bool:
    made = installation.must("POST", "auth/token/create", {"policies": ["default"]}).auth["client_token"]
    token = installation.peek(find_by_text(installation.context, made))
    installation.service._owe(Held(token=token))
    upkeep(installation)
    return installation.ask("GET", "auth/token/lookup-self", None, made).status == 403


def what_is_owed_is_given_back_at_the_end(installation: Installation) -> bool:
    made = installation.must("POST", "auth/token/create", {"policies": ["default"]}).auth["client_token"]
    installation.service._owe(Held(token=installation.peek(find_by_text(installation.context, made))))
    installation.perform(installation.service.stop())
    return installation.ask("GET", "auth/token/lookup-self", None, made).status == 403


def open_audiences_are_found(installation: Installation) -> bool:
    """In a world of its own, with a lease of a release that did not record the audience."""
    world = configured_engine()
    world.role()
    world.must("GET", CREDS)
    (lease_id,) = world.leases()
    lease = world.lease(lease_id)
    assert lease is not None
    older = evolve(lease, provisioned=evolve(lease.provisioned, audience=""))
    world.perform(world.context.records.commit(Changes(puts={lease.key: older})))
    world.perform(world.open_node().upkeep())
    return bool(world.due(queue.AUDIENCE))


def credentials_are_proven(installation: Installation) -> bool:
    installation.must("POST", "cloud/config", {**engine_config(installation), "client_secret": "wrong"})
    upkeep(installation)
    return HealthProblem.CREDENTIAL_REFUSED in installation.context.node.problems


def stops(key: str) -> Story:
    """Whether an entry that a node keeps goes as it stops."""

    def story(installation: Installation) -> bool:
        installation.tick()
        upkeep(installation)
        installation.perform(installation.service.stop())
        return not installation.keys(key)

    return story


STORIES: Final[Mapping[str, Story]] = {
    "open_service keep_signing_keys": comes_back(keys.SIGNING_KEYS),
    "open_service declare_devices": devices_are_declared,
    "open_service keep_identities": comes_back(keys.IDENTITIES),
    "Service.tick self._told": background_leads,
    "Service.upkeep self._told": node_is_seen,
    "Service._keep_up refresh_cluster_view": node_is_seen,
    "Service._keep_up self._give_back_owed": what_cancelled_requests_held_is_given_back,
    "Service._keep_up try_devices_again": devices_are_tried_again,
    "Service._keep_up self._refresh": plan_is_made_anew,
    "Service._keep_up keep_signing_keys": signing_keys_are_due_again,
    "Service._keep_up prove_credentials": credentials_are_proven,
    "Service._keep_up stored_rules.look": stored_records_are_looked_at,
    "Service._refresh keep_plans": plan_is_made_anew,
    "Service._refresh keep_identities": identities_are_kept,
    "Service._refresh self._list_audiences": open_audiences_are_found,
    "Service._refresh refresh_ahead": signing_keys_are_refreshed_ahead,
    "Service._refresh self.context.records.learn_keys": keys_of_others_are_learnt,
    "Service._list_audiences find_open_audiences": open_audiences_are_found,
    "Service.stop self._background.stop": stops(keys.LEADER_TERM),
    "Service.stop leave": stops(keys.NODES),
    "Service.stop self._give_back_owed": what_is_owed_is_given_back_at_the_end,
    "Loop.stop release_leadership": stops(keys.LEADER_TERM),
}


def _called(call: ast.Call) -> ast.Call:
    """The call itself, or the one that it takes as a step."""
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name("steps"), attr="take"), args=[ast.Call() as step]):
            return step
    return call


def left_out(function: Callable[..., Any]) -> Iterator[tuple[str, CodeType]]:
    """Each call that a function awaits, and the code of the function without it."""
    source = textwrap.dedent(inspect.getsource(function))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Await) and isinstance(node.value, ast.Call):
            called, awaited = ast.unparse(_called(node.value).func), ast.get_source_segment(source, node)
            changed = compile(source.replace(str(awaited), "0.0", 1), function.__qualname__, "exec")
            (code,) = (each for each in changed.co_consts if isinstance(each, CodeType))
            if called not in GIVEN:
                yield f"{function.__qualname__} {called}", code


WITHOUT: Final = {name: (function, code) for function in STARTERS for name, code in left_out(function)}


def test_there_is_a_story_for_all_that_is_started() -> None:
    assert STORIES.keys() == WITHOUT.keys()


@pytest.mark.parametrize("name", STORIES)
def test_what_is_started_is_missed_when_it_is_left_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    story, (function, code) = STORIES[name], WITHOUT[name]
    assert story(Installation())
    installation = Installation()
    monkeypatch.setattr(function, "__code__", code)
    assert not story(installation)
