"""Proof of new credentials."""

from __future__ import annotations

import pytest

from cloudid_core.errors import ProviderProblem
from cloudid_core.provider.acceptance import wait_until_proven
from cloudid_core.provider.client import Credentials
from cloudid_core.provider.propagation import FreshObject
from cloudid_core.values.secret import Secret

from .cloud import START, TOKEN_PATH, Reply, Setting, form_of, reply, token


def refusal(code: int, status: int = 401) -> Reply:
    return reply(status, {"error": "invalid_client", "error_codes": [code]})


def prove(setting: Setting, *replies: Reply, needed: int = 1) -> bool:
    setting.cloud.script(f"POST {TOKEN_PATH}", *replies)
    new = Credentials(client_id="new-app", client_secret=Secret("new-secret"))
    return setting.world.perform(wait_until_proven(setting.client, new, FreshObject.SECRET, needed=needed))


def test_the_new_credentials_are_tried_and_nothing_is_kept() -> None:
    setting = Setting()
    assert prove(setting, token())
    form = form_of(setting.cloud.requests[0])
    assert (form["client_id"], form["client_secret"]) == ("new-app", "new-secret")
    assert len(setting.context.caches.access_tokens) == 0


@pytest.mark.parametrize("refused", [refusal(7000215), refusal(700016, 400), refusal(7000229)])
def test_a_secret_that_is_not_known_yet_is_asked_for_again(refused: Reply) -> None:
    setting = Setting()
    assert prove(setting, refused, refused, token())
    assert len(setting.cloud.requests) == 3
    assert all(1.6 <= pause <= 2.4 for pause in setting.pauses)


def test_successes_must_come_in_a_row() -> None:
    setting = Setting()
    not_yet = refusal(7000215)
    assert prove(setting, token(), token(), not_yet, token(), token(), token(), not_yet, needed=3)
    assert len(setting.cloud.requests) == 6


def test_a_deadline_ends_the_proof() -> None:
    setting = Setting()
    assert not prove(setting, refusal(7000215))
    assert START + 80 < setting.world.clock < START + 90


def test_without_time_nothing_is_proven() -> None:
    setting = Setting()
    setting.world.advance(90)
    assert not prove(setting, token())
    assert setting.cloud.requests == []


def test_a_secret_that_has_expired_will_not_get_better() -> None:
    setting = Setting()
    with pytest.raises(ProviderProblem) as caught:
        prove(setting, refusal(7000222))
    assert caught.value.code == "AADSTS7000222"
    assert len(setting.cloud.requests) == 1
