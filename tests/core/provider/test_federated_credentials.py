"""Federated credentials of applications, at the simulated cloud."""

from __future__ import annotations

import pytest

from cloudid_core.errors import Code, Refused
from cloudid_core.provider.federated_credentials import MOST, add_federated_credential, remove_federated_credential

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


def test_more_than_the_limit_are_refused_by_our_own_code(simulated: Simulated) -> None:
    for number in range(MOST):
        add(simulated, f"n{number}")
    with pytest.raises(Refused) as caught:
        add(simulated, "one more")
    assert caught.value.code is Code.PROVIDER_QUOTA_EXCEEDED
