"""The table of the engine's routes: what is offered, to whom, and what becomes of it when its mount goes."""

from __future__ import annotations

import pytest

from cloudid_core.messages.operations import Operation
from cloudid_core.secrets_engine.routes import COMPONENT
from tests.engines import CONFIG, CREDS, ROLE, SecretsEngine, configured_engine

OFFERED = {
    "config": "read update delete",
    "roles": "list",
    "roles/web": "read update delete",
    "creds/web": "read",
    "token/web": "read update",
    "rotate-root": "update",
}


@pytest.fixture
def engine() -> SecretsEngine:
    return configured_engine()


@pytest.mark.parametrize("path", OFFERED)
@pytest.mark.parametrize("operation", Operation)
def test_each_path_offers_its_operations_and_no_others(path: str, operation: Operation) -> None:
    found = COMPONENT.routes.find(path, operation)
    assert isinstance(found, tuple) is (operation.value in OFFERED[path].split())


def test_every_path_needs_a_token(engine: SecretsEngine) -> None:
    assert not any(route.public for route in COMPONENT.routes.routes)
    for method, path in (("GET", CONFIG), ("POST", ROLE), ("GET", CREDS), ("POST", "cloud/rotate-root")):
        assert engine.ask(method, path, token="").status == 403


@pytest.mark.parametrize("path", [CONFIG, ROLE])
def test_creating_and_changing_need_different_capabilities(engine: SecretsEngine, path: str) -> None:
    engine = configured_engine() if path == ROLE else SecretsEngine()
    fields = {"azure_roles": engine.grants()} if path == ROLE else engine.config
    tokens = {}
    for capability in ("create", "update"):
        policy = f'path "{path}" {{ capabilities = ["{capability}"] }}'
        engine.must("PUT", f"sys/policies/acl/{capability}", {"policy": policy})
        made = engine.must("POST", "auth/token/create", {"policies": [capability]})
        tokens[capability] = made.auth["client_token"]
    assert engine.ask("POST", path, fields, token=tokens["update"]).status == 403
    assert engine.ask("POST", path, fields, token=tokens["create"]).status == 204
    assert engine.ask("POST", path, fields, token=tokens["create"]).status == 403
    assert engine.ask("POST", path, fields, token=tokens["update"]).status == 204


def test_several_engines_at_any_paths_are_separate(engine: SecretsEngine) -> None:
    """Each mount has its own configuration, roles and leases."""
    engine.must("POST", "sys/mounts/team/cloud", {"type": "cloud"})
    assert engine.must("GET", "team/cloud/config").data["tenant_id"] == ""
    engine.must("POST", "team/cloud/config", engine.config)
    engine.must("POST", "team/cloud/roles/web", {"azure_roles": engine.grants()})
    assert engine.ask("LIST", "cloud/roles").status == 404
    reply = engine.must("GET", "team/cloud/creds/web")
    assert reply.body["lease_id"].startswith("team/cloud/creds/web/")
    engine.must("DELETE", CONFIG)


def test_a_mount_that_goes_leaves_nothing(engine: SecretsEngine) -> None:
    """Neither its leases nor the applications that its roles keep."""
    engine.role(persist_app=True)
    engine.must("POST", "cloud/roles/plain", {"azure_roles": engine.grants()})
    for name in ("web", "plain"):
        engine.must("GET", f"cloud/creds/{name}")
    engine.must("DELETE", "sys/mounts/cloud")
    engine.converge()
    assert engine.is_over()
