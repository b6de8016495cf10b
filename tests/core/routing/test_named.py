"""Named records: what all kinds of roles have in common."""

from __future__ import annotations

import pytest

from cloudid_core.store import keys
from tests.installation import Installation


@pytest.mark.parametrize(
    "path, mount, role", [("auth/token/roles", "auth/token", {}), ("identity/oidc/role", "identity", {"ttl": 60})]
)
def test_a_damaged_record_is_refused_and_can_be_written_anew_or_removed(path: str, mount: str, role: object) -> None:
    world = Installation()
    key = keys.role(world.mount(mount).id, "web")
    for _ in range(2):
        world.must("POST", f"{path}/web", role)
        world.store.commit({}, {key: b"damaged"}, ())
        assert world.ask("GET", f"{path}/web").codes == ["entry_damaged"]
        world.must("POST", f"{path}/web", role)
        assert world.must("GET", f"{path}/WEB").status == 200
        world.store.commit({}, {key: b"damaged"}, ())
        assert world.must("LIST", path).data == {"keys": ["web"]}
        assert world.ask("DELETE", f"{path}/web").status == 204
        assert world.ask("GET", f"{path}/web").status == 404
