"""Certificates of applications, at the simulated cloud."""

from __future__ import annotations

import pytest

from cloudid_core.credentials.application_keys import self_signed
from cloudid_core.effects import HttpRequest
from cloudid_core.errors import ProviderProblem
from cloudid_core.provider.certificates import add_certificate, remove_certificate
from cloudid_core.testing.rsa_keys import private_key_pem
from cloudid_core.values import Secret
from cloudid_servers.provider_simulator import Answer

from .cloud import START
from .test_simulated import Simulated, simulated

__all__ = ["simulated"]

DER = self_signed(Secret(private_key_pem("key 0 of a world")), 1, START - 60, START + 60)
NOBODY = "5f0b0c5e-0000-4000-8000-000000000000"


@pytest.fixture(autouse=True)
def none_is_there(simulated: Simulated) -> None:
    for name in names(simulated):
        assert name is not None
        remove(simulated, name)


def application_of(simulated: Simulated) -> str:
    object_id: str = simulated.scene["applications"][1]["object_id"]
    return object_id


def add(simulated: Simulated, name: str, der: bytes = DER) -> None:
    ends_at = START + 60
    added = add_certificate(
        simulated.client,
        application_of(simulated),
        name=name,
        key_id=f"{len(name):08}-0000-4000-8000-000000000000",
        der=der,
        starts_at=START - 60,
        ends_at=ends_at,
    )
    simulated.world.perform(added)


def names(simulated: Simulated) -> list[str | None]:
    application = simulated.simulator.world.directory.applications.get(application_of(simulated))
    assert application is not None
    return [one.display_name for one in application.certificates]


def remove(simulated: Simulated, name: str, object_id: str = "") -> bool:
    return simulated.world.perform(remove_certificate(simulated.client, object_id or application_of(simulated), name))


def test_each_is_added_and_removed_beside_the_others(simulated: Simulated) -> None:
    for name in ("a", "bb", "ccc"):
        add(simulated, name)
    assert [remove(simulated, "bb"), remove(simulated, "bb"), remove(simulated, "a", NOBODY)] == [True, False, False]
    assert names(simulated) == ["a", "ccc"]


def test_what_is_removed_meanwhile_does_not_come_back(simulated: Simulated, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list that is written back was read before somebody removed one of it."""
    add(simulated, "a")
    handle = simulated.simulator.handle
    removed: list[Answer] = []

    def meanwhile(request: HttpRequest) -> Answer:
        if request.method == "PATCH" and not removed:
            removed.append(handle(HttpRequest("PATCH", request.url, request.headers, b'{"keyCredentials": []}')))
        return handle(request)

    monkeypatch.setattr(simulated.world, "provider", meanwhile)
    add(simulated, "bb")
    assert names(simulated) == ["bb"]
    assert len(removed) == 1


def test_a_refusal_that_nobody_else_caused_is_raised(simulated: Simulated) -> None:
    with pytest.raises(ProviderProblem):
        add(simulated, "a", b"no certificate")
    assert names(simulated) == []
