"""From the configuration to an empty ledger, in each of the three ways to get credentials."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engines import CONFIG, CREDS, ROLE, SecretsEngine


def fields_of(engine: SecretsEngine, way: str) -> dict[str, Any]:
    if way == "an existing application":
        return {"application_object_id": engine.other_application["object_id"]}
    fields = {"azure_roles": engine.grants(), "azure_groups": engine.groups(0), "permanently_delete": True}
    return fields | {"persist_app": way == "a persisted application"}


@pytest.mark.parametrize("preset", ["immediate", "realistic"])
@pytest.mark.parametrize("way", ["a fresh principal", "an existing application", "a persisted application"])
@pytest.mark.parametrize("end", ["revocation", "expiry"])
def test_from_the_configuration_to_an_empty_ledger(way: str, end: str, preset: str) -> None:
    engine = SecretsEngine()
    engine.behave(preset=preset)
    engine.must("POST", CONFIG, engine.config)
    engine.must("POST", ROLE, {**fields_of(engine, way), "ttl": "1h", "max_ttl": "4h"})
    reply = engine.must("GET", CREDS)
    assert engine.alive("password")

    engine.advance(1800)
    engine.tick()
    assert engine.signs_in(**reply.data)
    engine.must("PUT", "sys/leases/renew", {"lease_id": reply.body["lease_id"]})
    engine.advance(3000)
    engine.tick()
    assert engine.signs_in(**reply.data)

    if end == "revocation":
        engine.must("PUT", "sys/leases/revoke", {"lease_id": reply.body["lease_id"]})
    else:
        engine.advance(700)
    engine.converge()
    assert engine.leases() == []
    assert not engine.alive("password")

    engine.must("DELETE", ROLE)
    engine.converge()
    assert engine.is_clean()
    engine.must("DELETE", CONFIG)
