"""The table of proofs: every row is executed at the simulated cloud."""

from __future__ import annotations

import pytest

from cloudid_core.credentials.application_keys import self_signed
from cloudid_core.effects import Program
from cloudid_core.provider.applications import make_password
from cloudid_core.provider.certificates import add_certificate
from cloudid_core.provider.federated_credentials import add_federated_credential
from cloudid_core.provider.proofs import CERTIFICATE, FEDERATED, PROOFS, SECRET
from cloudid_core.testing.rsa_keys import private_key_pem
from cloudid_core.values import Secret

from .test_simulated import Simulated, simulated

__all__ = ["simulated"]


KEY_ID = "11111111-1111-4111-8111-111111111111"


def certificate(now: float) -> bytes:
    return self_signed(Secret(private_key_pem("key 0 of a world")), 1, now, now + 60)


def add(simulated: Simulated, proof: str, object_id: str) -> Program[object]:
    now, client = simulated.world.clock, simulated.client
    if proof == SECRET:
        return make_password(client, object_id, name="n", starts_at=now, ends_at=now + 60)
    if proof == CERTIFICATE:
        return add_certificate(
            client, object_id, name="n", key_id=KEY_ID, der=certificate(now), starts_at=now, ends_at=now + 60
        )
    assert proof == FEDERATED
    return add_federated_credential(client, object_id, name="n", issuer="https://i", subject="s", audience="a")


@pytest.mark.parametrize("proof", sorted(PROOFS))
def test_what_stands_under_a_name_is_removed_once(simulated: Simulated, proof: str) -> None:
    object_id = simulated.scene["applications"][1]["object_id"]
    simulated.world.perform(add(simulated, proof, object_id))
    row, client = PROOFS[proof], simulated.client
    assert simulated.world.perform(row.stands(client, object_id, "n"))
    assert not simulated.world.perform(row.stands(client, object_id, "other"))
    remove = [PROOFS[proof].remove(simulated.client, object_id, "n", "") for _ in range(2)]
    assert [simulated.world.perform(each) for each in remove] == [True, False]
    assert not simulated.world.perform(row.stands(client, object_id, "n"))
