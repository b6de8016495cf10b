"""A damaged entry of the store: it is refused by name, passed over in the background, and can be written anew."""

from __future__ import annotations

from hashlib import sha256

from cloudid_core.store import keys

from ..engine import Engine, config, engine


def damage(world: Engine, key: str) -> str:
    """Spoil an entry; the digest of its key."""
    entry = world.store.read(key)
    assert entry is not None
    world.store.commit({}, {key: entry.value[:-1] + bytes([entry.value[-1] ^ 1])}, ())
    return sha256(key.encode()).hexdigest()[:16]


def test_a_damaged_entry_is_refused_with_the_digest_of_its_key() -> None:
    world = engine()
    digest = damage(world, keys.role(world.mount().id, "existing"))
    reply = world.ask("GET", "cloud/roles/existing")
    assert (reply.status, reply.codes) == (503, ["entry_damaged"])
    assert digest in reply.body["errors"][0]
    assert digest in repr(world.events[-1])


def test_a_damaged_configuration_can_be_deleted() -> None:
    world = engine()
    damage(world, keys.config(world.mount().id))
    assert world.ask("DELETE", "cloud/config").status == 204
    assert world.ask("GET", "cloud/config").status == 200


def test_a_damaged_configuration_can_be_written_anew() -> None:
    world = engine()
    damage(world, keys.config(world.mount().id))
    world.must("POST", "cloud/config", config(world))
    world.issue("existing")


def test_a_damaged_role_can_be_written_anew() -> None:
    world = engine()
    damage(world, keys.role(world.mount().id, "existing"))
    application = world.cloud("GET", "world")["applications"][1]["object_id"]
    world.must("POST", "cloud/roles/existing", {"application_object_id": application})
    world.issue("existing")


def test_background_work_passes_over_a_damaged_lease() -> None:
    """It is recorded once, and the other leases end."""
    world = engine()
    leases = [world.issue("existing") for _ in range(3)]
    damage(world, keys.lease(leases[0]))
    world.advance(3601)
    for _ in range(5):
        world.tick()
        world.advance(60)
    assert world.store.read(keys.lease(leases[0]))
    assert not any(world.store.read(keys.lease(lease_id)) for lease_id in leases[1:])
    (listed,) = world.must("GET", "sys/leases").data["leases"]
    assert listed["lease_id"] == leases[0]
    assert "damaged" in listed["error"]
    assert sum("EntryDamaged" in repr(event) for event in world.events) == 1


def test_a_damaged_lease_can_only_be_dropped_by_force() -> None:
    world = engine()
    leases = [world.issue("existing") for _ in range(2)]
    damage(world, keys.lease(leases[0]))
    assert world.ask("PUT", "sys/leases/revoke", {"lease_id": leases[0]}).status == 503
    assert world.ask("PUT", "sys/leases/revoke-prefix/cloud").status == 503
    assert world.store.read(keys.lease(leases[0]))
    assert world.store.read(keys.lease(leases[1])) is None
    world.must("PUT", "sys/leases/revoke-force/cloud")
    world.pass_time(4000)
    left = [key for key in world.store.list("", "", 1000) if leases[0] in key]
    assert [key.partition("/")[0] for key in left] == ["token-lease"], "that goes with the token"


def test_a_damaged_role_can_be_deleted() -> None:
    world = engine()
    damage(world, keys.role(world.mount().id, "existing"))
    assert world.ask("DELETE", "cloud/roles/existing").status == 200
    assert world.ask("GET", "cloud/roles/existing").status == 404
