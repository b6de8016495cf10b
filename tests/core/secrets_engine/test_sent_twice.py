"""A gateway may send a request twice: the second password, whose key id is unknown, goes with the first."""

from __future__ import annotations

import pytest

from cloudid_core import HttpRequest
from cloudid_servers.provider_simulator.engine.requests import Answer
from tests.engines import CREDS, SecretsEngine, configured_engine

STATIC = "cloud/static-roles/app"


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> SecretsEngine:
    """An engine whose gateway has each `addPassword` executed twice, and answers the second."""
    engine = configured_engine()
    handle = engine.simulator.handle

    def twice(request: HttpRequest) -> Answer:
        if request.url.endswith("/addPassword"):
            handle(request)
        return handle(request)

    monkeypatch.setattr(engine.simulator, "handle", twice)
    return engine


def ours(engine: SecretsEngine) -> list[str]:
    """The passwords of this service on the existing application."""
    application = engine.simulator.world.directory.application_of(engine.other_application["client_id"])
    assert application is not None
    prefix = engine.context.marker_prefix
    return [each.key_id for each in application.passwords if str(each.display_name).startswith(prefix)]


def test_a_revocation_leaves_no_second_password(engine: SecretsEngine) -> None:
    engine.role(application_object_id=engine.other_application["object_id"])
    lease_id = engine.must("GET", CREDS).body["lease_id"]
    assert len(ours(engine)) == 2
    assert engine.must("PUT", "sys/leases/revoke", {"lease_id": lease_id}).status == 204
    assert ours(engine) == []


def test_rotating_and_deleting_a_static_role_leaves_no_second_password(engine: SecretsEngine) -> None:
    engine.must("POST", STATIC, {"application_object_id": engine.other_application["object_id"]})
    engine.must("POST", "cloud/rotate-role/app", {"force": True})
    assert len(ours(engine)) == 4
    engine.pass_time(330)
    assert len(ours(engine)) == 2
    engine.must("DELETE", STATIC, {"remove_secret": True})
    engine.converge()
    assert ours(engine) == []
