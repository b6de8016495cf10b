"""Service principals."""

from __future__ import annotations

import pytest

from cloudid_core.errors import ProviderProblem
from cloudid_core.provider.principals import TAKEN, delete_principal, ensure_principal, principal_of
from cloudid_core.provider.propagation import FreshObject, is_transient

from .cloud import Reply, Setting, error, reply, unreachable

PRINCIPALS = "/v1.0/servicePrincipals"
KEY_PATH = f"{PRINCIPALS}(appId='c-1')"
NOT_OFFERED = error(405, "MethodNotAllowed")
ABSENT = error(404, "Request_ResourceNotFound")


def ensure(setting: Setting) -> str:
    return setting.world.perform(ensure_principal(setting.client, "c-1"))


def without_upserts() -> Setting:
    setting = Setting()
    setting.cloud.script(f"PATCH {KEY_PATH}", NOT_OFFERED)
    setting.cloud.script(f"GET {KEY_PATH}", NOT_OFFERED)
    setting.cloud.script(f"GET {PRINCIPALS}", reply(200, {"value": []}))
    return setting


def test_a_principal_is_made_for_its_application() -> None:
    setting = Setting()
    setting.cloud.script(f"PATCH {KEY_PATH}", reply(201, {"id": "p-1"}))
    assert ensure(setting) == "p-1"


def test_a_principal_that_is_there_is_taken() -> None:
    setting = Setting()
    setting.cloud.script(f"PATCH {KEY_PATH}", reply(204))
    setting.cloud.script(f"GET {KEY_PATH}", reply(200, {"id": "p-1"}))
    assert ensure(setting) == "p-1"


def test_without_upserts_it_is_made_by_a_post() -> None:
    setting = without_upserts()
    setting.cloud.script(f"POST {PRINCIPALS}", reply(201, {"id": "p-1"}))
    assert ensure(setting) == "p-1"
    assert setting.cloud.requests[-1].body == b'{"appId":"c-1"}'


@pytest.mark.parametrize("taken", [error(409, "Conflict"), error(409, TAKEN), error(400, TAKEN)])
def test_without_upserts_one_whose_answer_was_lost_is_adopted(taken: Reply) -> None:
    setting = without_upserts()
    setting.cloud.script(f"POST {PRINCIPALS}", unreachable(), taken)
    setting.cloud.script(f"GET {PRINCIPALS}", reply(200, {"value": [{"id": "p-1"}]}))
    assert ensure(setting) == "p-1"


def test_one_that_is_there_but_does_not_show_is_worth_another_attempt() -> None:
    setting = without_upserts()
    setting.cloud.script(f"POST {PRINCIPALS}", error(409, TAKEN))
    with pytest.raises(ProviderProblem) as caught:
        ensure(setting)
    assert is_transient(FreshObject.PRINCIPAL, caught.value)


@pytest.mark.parametrize("problem", [ABSENT, error(400, "Request_BadRequest")])
def test_an_application_that_does_not_show_yet_is_worth_another_attempt(problem: Reply) -> None:
    setting = Setting()
    setting.cloud.script(f"PATCH {KEY_PATH}", problem)
    setting.cloud.script(f"POST {PRINCIPALS}", problem)
    with pytest.raises(ProviderProblem) as caught:
        ensure(setting)
    assert is_transient(FreshObject.PRINCIPAL, caught.value)


def test_a_principal_is_found_by_its_application() -> None:
    setting = Setting()
    setting.cloud.script(f"GET {KEY_PATH}", reply(200, {"id": "p-1"}), ABSENT)
    setting.cloud.script(f"GET {PRINCIPALS}", reply(200, {"value": [{"id": "p-2"}]}), reply(200, {"value": []}))
    found = [setting.world.perform(principal_of(setting.client, "c-1")) for _ in range(3)]
    assert found == ["p-1", "p-2", None]


@pytest.mark.parametrize("answer, removed", [(reply(204), True), (ABSENT, False)])
def test_deletion_tells_whether_there_was_something(answer: Reply, removed: bool) -> None:
    setting = Setting()
    setting.cloud.script(f"DELETE {PRINCIPALS}/p-1", answer)
    assert setting.world.perform(delete_principal(setting.client, "p-1")) is removed
