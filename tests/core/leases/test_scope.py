"""Which leases a path means: the mount's id decides, whatever path is in the ids."""

from __future__ import annotations

import pytest

from cloudid_core.effects import ListKeys
from cloudid_core.leases.scope import local_path, scopes_of
from cloudid_core.mounts import AUTH, MountTable, new_mount
from cloudid_core.store import keys
from cloudid_core.tokens.record import Token
from tests.engines import SecretsEngine, engine_with_roles

NAMES = ("auth/foo", "auth/foobar")
PREFIXES = ("sys/leases/revoke-prefix", "sys/leases/revoke-force")


def moved() -> tuple[SecretsEngine, str]:
    """A lease whose mount was moved away, and another mount where it was."""
    world = engine_with_roles()
    lease_id = world.issue("fresh")
    world.must("POST", "sys/remount", {"from": "cloud", "to": "elsewhere"})
    world.must("POST", "sys/mounts/cloud", {"type": "cloud"})
    return world, lease_id


def test_the_part_of_an_id_that_follows_the_path_of_its_mount() -> None:
    assert local_path("team/a/creds/web/1") == "creds/web/1"


def pages(world: SecretsEngine, path: str, limit: int) -> list[str]:
    """All keys of a list that is read page by page."""
    found: list[str] = []
    while True:
        after = found[-1] if found else ""
        answer = world.ask("LIST", f"sys/leases/lookup/{path}?after={after}&limit={limit}")
        if answer.status == 404:
            return found
        assert len(answer.data["keys"]) <= limit
        found += answer.data["keys"]


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_pages_of_a_list_are_the_whole_list_also_after_a_move(limit: int) -> None:
    world = engine_with_roles()
    for role in ("fresh", "existing", "fresh"):
        world.issue(role)
    world.must("POST", "sys/remount", {"from": "cloud", "to": "elsewhere"})
    for _ in range(2):
        world.must("GET", "elsewhere/creds/fresh")
    for path in ("elsewhere/creds/fresh", "elsewhere/creds", "elsewhere", ""):
        whole = world.must("LIST", f"sys/leases/lookup/{path}").data["keys"]
        assert pages(world, path, limit) == whole
    assert len(pages(world, "elsewhere/creds/fresh", limit)) == 4
    assert pages(world, "elsewhere/creds", limit) == ["existing/", "fresh/"]


def test_a_page_of_a_list_reads_no_more_of_the_index_than_it_needs() -> None:
    world = engine_with_roles()
    names = [f"{number:04}" for number in range(4000)]
    index = keys.mount_leases(world.mount().id)
    world.store.commit({}, {f"{index}cloud/creds/many/{name}": b"" for name in names}, ())
    begin = len(world.trace)
    answer = world.must("LIST", f"sys/leases/lookup/cloud/creds/many?after={names[999]}&limit=5")
    assert answer.data["keys"] == names[1000:1005]
    asked = [effect for _, effect in world.trace[begin:] if isinstance(effect, ListKeys)]
    assert len(asked) <= 3


@pytest.mark.parametrize("after", ["%00", "%C3%A9"])
def test_a_page_may_begin_behind_any_text(after: str) -> None:
    world = engine_with_roles()
    world.issue("fresh")
    assert world.ask("LIST", f"sys/leases/lookup/cloud/creds?after={after}&limit=5").status in (200, 400, 404)


@pytest.mark.parametrize("route", PREFIXES)
@pytest.mark.parametrize("path", ["cloud", "cloud/creds", "cloud/creds/fresh"])
def test_a_path_does_not_reach_the_leases_of_a_mount_that_was_moved_away(route: str, path: str) -> None:
    world, lease_id = moved()
    assert world.must("PUT", f"{route}/{path}").status == 204
    assert world.must("PUT", f"{route}/{lease_id}").status == 204
    lease = world.lease(lease_id)
    assert lease is not None
    assert not lease.revoking


@pytest.mark.parametrize("route", PREFIXES)
@pytest.mark.parametrize("path", ["elsewhere", "elsewhere/creds", "elsewhere/creds/fresh"])
def test_a_path_reaches_the_leases_of_a_mount_that_was_moved_there(route: str, path: str) -> None:
    world, lease_id = moved()
    world.must("PUT", f"{route}/{path}")
    assert world.lease(lease_id) is None


def test_a_path_ends_where_a_segment_ends() -> None:
    world = engine_with_roles()
    lease_id = world.issue("existing")
    for path in ("cloud/creds/exist", "clou", "cloud/cred"):
        world.must("PUT", f"sys/leases/revoke-prefix/{path}")
    assert world.lease(lease_id)


@pytest.mark.parametrize("path", ["auth/foo", "auth/foo/login"])
def test_a_path_does_not_reach_a_mount_whose_name_it_starts(path: str) -> None:
    table = MountTable()
    for number, name in enumerate(NAMES):
        table = table.with_mount(new_mount(AUTH, name, "cloud", bytes([number] * 12)))
    assert [scope.mount.path for scope in scopes_of(table, path)] == ["auth/foo"]


@pytest.mark.parametrize(
    "path, reached",
    [
        ("auth/foo", {"foo", "foo after a move"}),
        ("auth/foo/login", {"foo", "foo after a move"}),
        ("auth/foo/log", set[str]()),
        ("auth/foobar", {"foobar"}),
        ("auth", {"foo", "foo after a move", "foobar"}),
    ],
)
def test_a_path_reaches_the_tokens_of_its_own_mounts_only(path: str, reached: set[str]) -> None:
    mounts = [new_mount(AUTH, name, "cloud", bytes([number] * 12)) for number, name in enumerate(NAMES)]
    table = MountTable().with_mount(mounts[0]).with_mount(mounts[1])
    tokens = {
        "foo": token_of(mounts[0].id, "auth/foo/login"),
        "foo after a move": token_of(mounts[0].id, "auth/formerly/login"),
        "foobar": token_of(mounts[1].id, "auth/foobar/login"),
        "one of no mount here": token_of("other", "auth/foo/login"),
    }
    scopes = scopes_of(table, path)
    assert {name for name, token in tokens.items() if any(scope.has_token(token) for scope in scopes)} == reached


def token_of(mount_id: str, path: str) -> Token:
    return Token(path=path, mount_id=mount_id, policies=(), display_name="", created_at=0, ttl=1, expires_at=1)


def test_a_path_above_mounts_means_all_of_them() -> None:
    table = MountTable()
    for number, name in enumerate(("team/a", "team/b", "teams")):
        table = table.with_mount(new_mount("secret", name, "cloud", bytes([number] * 12)))
    assert [scope.mount.path for scope in scopes_of(table, "team")] == ["team/a", "team/b"]


def test_a_path_without_a_mount_means_the_retired_mount_that_was_there() -> None:
    mount = new_mount("secret", "team/a", "cloud", bytes(12))
    table = MountTable().with_mount(mount).with_retired(mount, 1.0)
    assert [scope.path for scope in scopes_of(table, "team/a/creds/web")] == ["creds/web"]
    assert [scope.path for scope in scopes_of(table, "team")] == [""]
    table = table.with_mount(new_mount("secret", "team/a", "cloud", bytes([1] * 12)))
    for path in ("team/a", "team"):
        assert [scope.mount.id for scope in scopes_of(table, path)] == ["01" * 8]


@pytest.mark.parametrize("action", ["renew", "revoke"])
@pytest.mark.parametrize("where, status", [("cloud", 403), ("elsewhere", 200)])
def test_rights_on_a_path_do_not_reach_the_leases_of_a_mount_that_was_moved_away(
    action: str, where: str, status: int
) -> None:
    world, lease_id = moved()
    rules = [f'path "sys/leases/{action}/{path}/*" {{ capabilities = ["update"] }}' for path in {"cloud", where}]
    world.must("PUT", "sys/policies/acl/operator", {"policy": "\n".join(rules)})
    wanted = {"policies": ["operator"], "no_default_policy": True}
    token = world.must("POST", "auth/token/create", wanted).auth["client_token"]
    reply = world.ask("PUT", f"sys/leases/{action}/{lease_id}", token=token)
    assert reply.status == (204 if (status, action) == (200, "revoke") else status)


def test_a_field_of_a_moved_lease_is_compared_as_its_route_reads_it() -> None:
    world, lease_id = moved()
    denial = 'denied_parameters = { increment = ["1h"] }'
    rules = (
        f'path "sys/leases/renew/elsewhere/*" {{ capabilities = ["update"] {denial} }}',
        'path "sys/leases/renew/cloud/*" { capabilities = ["update"] }',
    )
    world.must("PUT", "sys/policies/acl/operator", {"policy": "\n".join(rules)})
    wanted = {"policies": ["operator"], "no_default_policy": True}
    token = world.must("POST", "auth/token/create", wanted).auth["client_token"]
    statuses = {
        increment: world.ask("PUT", f"sys/leases/renew/{lease_id}", {"increment": increment}, token=token).status
        for increment in ("3600", "60m", "2h")
    }
    assert statuses == {"3600": 403, "60m": 403, "2h": 200}
