"""What applications prove themselves with: every kind is made at the simulated cloud, and accepted there."""

from __future__ import annotations

import pytest

from cloudid_core.credentials import Wanted, make_key, present
from cloudid_core.deadline import Deadline
from cloudid_core.provider import FEDERATED, PROOFS, SECRET, FreshObject, wait_until_proven
from cloudid_core.routing import mount_client
from tests.engines import configured_engine


@pytest.mark.parametrize("proof", sorted(PROOFS))
def test_a_key_is_made_and_accepted(proof: str) -> None:
    engine = configured_engine()
    mount, now = engine.mount("cloud"), engine.clock
    client = engine.perform(mount_client(engine.context, mount.id, Deadline(now + 30)))
    wanted = Wanted(
        proof=proof,
        proof_id="0a",
        object_id=engine.other_application["object_id"],
        name="cloudid-x",
        now=now + 0.5,
        ends_at=now + 3600.5,
        family=FreshObject.SHARED,
    )
    key = engine.perform(make_key(engine.context, mount, client, wanted))
    assert (key.name, key.proof, key.expires_at is None) == ("cloudid-x", proof, proof == FEDERATED)
    client_id = engine.other_application["client_id"]
    credentials = present(engine.context, mount, client, client_id, key)
    assert engine.perform(wait_until_proven(client, credentials, PROOFS[proof].family))
    if proof != SECRET:
        assert engine.simulator.world.assertions[-1]["client_id"] == client_id
