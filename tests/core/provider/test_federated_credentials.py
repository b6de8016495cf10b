"""Federated credentials of applications, at the simulated cloud."""

from __future__ import annotations

import pytest
from attrs import evolve

from cloudid_core.effects import HttpRequest, HttpResponse
from cloudid_core.errors import Code, ProviderAmbiguous, Refused
from cloudid_core.provider.federated_credentials import (
    MOST,
    add_federated_credential,
    federated_credentials,
    remove_federated_credential,
)
from cloudid_servers.provider_simulator import Answer

from .test_simulated import Simulated, simulated

__all__ = ["simulated"]


def add(simulated: Simulated, name: str) -> str:
    application = simulated.scene["applications"][1]["object_id"]
    return simulated.world.perform(
        add_federated_credential(
            simulated.client, application, name=name, issuer="https://i", subject=name, audience="api://a"
        )
    )


def test_it_is_added_and_removed_by_its_name(simulated: Simulated) -> None:
    application = simulated.scene["applications"][1]["object_id"]
    assert add(simulated, "one")
    remove = [remove_federated_credential(simulated.client, application, "one") for _ in range(2)]
    assert [simulated.world.perform(each) for each in remove] == [True, False]
    unknown = remove_federated_credential(simulated.client, "5f0b0c5e-0000-4000-8000-000000000000", "one")
    assert simulated.world.perform(unknown) is False


def test_one_whose_answer_is_lost_is_found_by_its_name_and_not_made_twice(
    simulated: Simulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(simulated, "other")
    handle, lost = simulated.simulator.handle, list[HttpRequest]()

    def lose(request: HttpRequest) -> Answer:
        answer = handle(request)
        if request.method == "POST" and "federatedIdentityCredentials" in request.url and not lost:
            lost.append(request)
            return evolve(answer, drop=True)
        return answer

    monkeypatch.setattr(simulated.world, "provider", lose)
    made = add(simulated, "mine")
    application = simulated.scene["applications"][1]["object_id"]
    shown = simulated.world.perform(federated_credentials(simulated.client, application))
    assert {(one.display_name, one.key_id) for one in shown if one.display_name != "other"} == {("mine", made)}
    assert len(lost) == 1


@pytest.mark.parametrize("status", [403, 404, 503])
def test_one_whose_answer_is_lost_may_be_there_when_nobody_can_look(
    simulated: Simulated, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    handle = simulated.simulator.handle

    def lose(request: HttpRequest) -> Answer:
        answer = handle(request)
        if request.method == "POST" and "federatedIdentityCredentials" in request.url:
            simulated.world.provider = lambda _: HttpResponse(status, {}, b"{}")
            return evolve(answer, drop=True)
        return answer

    monkeypatch.setattr(simulated.world, "provider", lose)
    with pytest.raises(ProviderAmbiguous):
        add(simulated, f"lost-{status}")


def test_more_than_the_limit_are_refused_by_our_own_code(simulated: Simulated) -> None:
    application = simulated.scene["applications"][1]["object_id"]
    there = len(simulated.world.perform(federated_credentials(simulated.client, application)))
    for number in range(there, MOST):
        add(simulated, f"n{number}")
    with pytest.raises(Refused) as caught:
        add(simulated, "one more")
    assert caught.value.code is Code.PROVIDER_QUOTA_EXCEEDED
