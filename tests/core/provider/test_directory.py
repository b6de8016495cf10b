"""The directory."""

from __future__ import annotations

import json

import pytest

from cloudid_core.errors import ProviderProblem
from cloudid_core.provider.directory import member_groups_of
from cloudid_core.provider.responses import NONSENSE

from .cloud import Setting, error, form_of, reply

PATH = "/v1.0/directoryObjects/p1/getMemberGroups"


def ask(setting: Setting, principal: str = "p1") -> frozenset[str] | None:
    return setting.world.perform(member_groups_of(setting.client, principal))


def test_the_groups_of_a_principal() -> None:
    setting = Setting()
    setting.cloud.script(f"POST {PATH}", reply(200, {"value": ["G1", "g2"]}))
    assert ask(setting) == frozenset({"g1", "g2"})
    token_request, request = setting.cloud.requests
    assert form_of(token_request)["scope"] == "https://graph.test/.default"
    assert json.loads(request.body) == {"securityEnabledOnly": False}


def test_the_question_may_be_repeated() -> None:
    setting = Setting()
    setting.cloud.script(f"POST {PATH}", error(500), reply(200, {"value": []}))
    assert ask(setting) == frozenset()


def test_the_groups_of_an_unknown_principal_are_none() -> None:
    """Source: "directoryObject: getMemberGroups" and "Microsoft Graph error responses": the principal was deleted."""
    setting = Setting()
    setting.cloud.script(f"POST {PATH}", error(404, "Request_ResourceNotFound"))
    assert ask(setting) is None


def test_a_denied_question_is_a_problem() -> None:
    setting = Setting()
    setting.cloud.script(f"POST {PATH}", error(403, "Authorization_RequestDenied"))
    with pytest.raises(ProviderProblem) as caught:
        ask(setting)
    assert caught.value.code == "Authorization_RequestDenied"


def test_a_principal_stays_one_segment() -> None:
    setting = Setting()
    assert ask(setting, "../groups?x") is None
    assert setting.cloud.paths[-1] == "/v1.0/directoryObjects/..%2Fgroups%3Fx/getMemberGroups"


def test_a_part_of_the_groups_is_no_answer() -> None:
    """Who is not in the part is not therefore in no other: a login would be refused for a group that it is in."""
    setting = Setting()
    setting.cloud.script(f"POST {PATH}", reply(200, {"value": ["g1"], "@odata.nextLink": "https://graph.test/x"}))
    with pytest.raises(ProviderProblem) as caught:
        ask(setting)
    assert caught.value.code == NONSENSE
