"""The routes below `identity`."""

from __future__ import annotations

from cloudid_core.issuer.routes import COMPONENT
from tests.installation import Installation


def test_only_the_documents_are_for_anybody() -> None:
    public = {route.path for route in COMPONENT.routes.routes if route.public}
    assert public == {route.path for route in COMPONENT.routes.routes if "/.well-known/" in route.path}


def test_what_is_left_out_says_why() -> None:
    world = Installation()
    for path in ("config", "introspect", "key/mine", "provider/default", "client/web", "assignment/a", "scope/s"):
        reply = world.ask("GET", f"identity/oidc/{path}")
        assert reply.status == 404, path
        assert ":" in reply.body["errors"][0], (path, reply.body)
