"""A damaged entry of the store: it is refused by name, passed over in the background, and can be written anew.

An older state of an entry is not damage, and nothing notices it: docs/why/promises.md says so.
"""

from __future__ import annotations

from hashlib import sha256

from cloudid_core.background.journal import abandoned_intent
from cloudid_core.mounts import TOKEN
from cloudid_core.provider.provisioned import Provisioned
from cloudid_core.store import keys
from tests.engines import SecretsEngine, engine_config, engine_with_roles


def damage(world: SecretsEngine, key: str) -> str:
    """Spoil an entry; the digest of its key."""
    entry = world.store.read(key)
    assert entry is not None
    world.store.commit({}, {key: entry.value[:-1] + bytes([entry.value[-1] ^ 1])}, ())
    return sha256(key.encode()).hexdigest()[:16]


def test_a_damaged_entry_is_refused_with_the_digest_of_its_key() -> None:
    world = engine_with_roles()
    digest = damage(world, keys.role(world.mount().id, "existing"))
    reply = world.ask("GET", "cloud/roles/existing")
    assert (reply.status, reply.codes) == (503, ["entry_damaged"])
    assert digest in reply.body["errors"][0]
    assert digest in repr(world.events[-1])


def test_a_damaged_configuration_can_be_deleted() -> None:
    world = engine_with_roles()
    damage(world, keys.config(world.mount().id))
    assert world.ask("DELETE", "cloud/config").status == 204
    assert world.ask("GET", "cloud/config").status == 200


def test_a_damaged_configuration_can_be_written_anew() -> None:
    world = engine_with_roles()
    damage(world, keys.config(world.mount().id))
    world.must("POST", "cloud/config", engine_config(world))
    world.issue("existing")


def test_a_damaged_role_can_be_written_anew() -> None:
    world = engine_with_roles()
    damage(world, keys.role(world.mount().id, "existing"))
    application = world.scene["applications"][1]["object_id"]
    world.must("POST", "cloud/roles/existing", {"application_object_id": application})
    world.issue("existing")


def test_background_work_passes_over_a_damaged_lease() -> None:
    """It is recorded once, and the other leases end."""
    world = engine_with_roles()
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
    world = engine_with_roles()
    leases = [world.issue("existing") for _ in range(2)]
    damage(world, keys.lease(leases[0]))
    assert world.ask("PUT", "sys/leases/revoke", {"lease_id": leases[0]}).status == 503
    assert world.ask("PUT", "sys/leases/revoke-prefix/cloud").status == 503
    assert world.store.read(keys.lease(leases[0]))
    assert world.store.read(keys.lease(leases[1])) is None
    world.must("PUT", "sys/leases/revoke-force/cloud")
    world.pass_time(4000)
    left = [key for key in world.keys("") if leases[0] in key]
    assert [key.partition("/")[0] for key in left] == ["token-lease"], "that goes with the token"


def test_a_damaged_role_can_be_deleted() -> None:
    world = engine_with_roles()
    damage(world, keys.role(world.mount().id, "existing"))
    assert world.ask("DELETE", "cloud/roles/existing").status == 200
    assert world.ask("GET", "cloud/roles/existing").status == 404


def test_a_damaged_role_of_the_authentication_method_can_be_written_anew_and_deleted() -> None:
    world = engine_with_roles()
    mount_id = world.mount("auth/cloud").id
    fields = {"bound_service_principal_ids": "*"}
    for method, status in (("POST", 204), ("DELETE", 200)):
        world.must("POST", "auth/cloud/role/web", fields)
        damage(world, keys.role(mount_id, "web"))
        assert world.ask("GET", "auth/cloud/role/web").codes == ["entry_damaged"]
        assert world.ask(method, "auth/cloud/role/web", fields).status == status
    assert world.ask("GET", "auth/cloud/role/web").status == 404


def test_a_damaged_configuration_of_the_authentication_method_can_be_written_anew() -> None:
    world = engine_with_roles()
    fields = {name: engine_config(world)[name] for name in ("tenant_id", "client_id", "client_secret")}
    fields["resource"] = "https://management.azure.com/"
    world.must("POST", "auth/cloud/config", fields)
    damage(world, keys.config(world.mount("auth/cloud").id))
    assert world.ask("GET", "auth/cloud/config").codes == ["entry_damaged"]
    world.must("POST", "auth/cloud/config", fields)
    assert world.ask("GET", "auth/cloud/config").status == 200


def test_a_damaged_role_of_the_token_store_can_be_written_anew_and_deleted() -> None:
    world = engine_with_roles()
    for method in ("POST", "DELETE"):
        world.must("POST", "auth/token/roles/web", {})
        damage(world, keys.role(TOKEN.id, "web"))
        assert world.ask("GET", "auth/token/roles/web").codes == ["entry_damaged"]
        world.must(method, "auth/token/roles/web", {})
    assert world.ask("GET", "auth/token/roles/web").status == 404


def test_a_damaged_policy_refuses_its_tokens_until_it_is_written_anew() -> None:
    """Without the policy nothing says what its tokens must not do."""
    world = engine_with_roles()
    policy = {"policy": 'path "cloud/roles/*" { capabilities = ["read"] }'}
    world.must("POST", "sys/policies/acl/web", policy)
    token = world.must("POST", "auth/token/create", {"policies": ["web"]}).auth["client_token"]
    damage(world, keys.policy("web"))
    assert world.refused("GET", "cloud/roles/existing", token=token) == (503, "entry_damaged")
    world.must("POST", "sys/policies/acl/web", policy)
    assert world.ask("GET", "cloud/roles/existing", token=token).status == 200
    damage(world, keys.policy("web"))
    world.must("DELETE", "sys/policies/acl/web")
    assert world.ask("GET", "cloud/roles/existing", token=token).status == 403


def test_the_token_sweep_passes_over_a_damaged_token_and_reports_it_once() -> None:
    world = engine_with_roles()
    before = world.keys(keys.TOKENS)
    for _ in range(3):
        world.must("POST", "auth/token/create", {"ttl": "60s"})
    made = [key for key in world.keys(keys.TOKENS) if key not in before]
    digest = damage(world, made[1])
    world.advance(61)
    for _ in range(3):
        world.tick()
        world.advance(60)
    assert set(world.keys(keys.TOKENS)) == {*before, made[1]}
    assert sum(digest in repr(event) for event in world.events) == 1


def test_a_damaged_token_is_revoked_by_its_accessor_with_what_hangs_on_it() -> None:
    world = engine_with_roles()
    auth = world.must("POST", "auth/token/create", {"policies": ["root"]}).auth
    lease_id = world.issue("existing", auth["client_token"])
    (index_key,) = [key for key in world.keys("token-lease/") if lease_id in key]
    damage(world, keys.token(index_key.split("/")[1]))
    assert world.ask("GET", "auth/token/lookup-self", token=auth["client_token"]).codes == ["entry_damaged"]
    world.must("POST", "auth/token/revoke-accessor", {"accessor": auth["accessor"]})
    world.tick()
    world.tick()
    assert world.lease(lease_id) is None
    assert world.ask("GET", "auth/token/lookup-self", token=auth["client_token"]).status == 403


def test_a_damaged_wrapping_token_is_revoked_with_its_answer() -> None:
    world = engine_with_roles()
    info = world.must("POST", "sys/wrapping/wrap", {"a": 1}, x_service_wrap_ttl="60").body["wrap_info"]
    (key,) = world.keys("wrapped/")
    damage(world, keys.token(key.removeprefix("wrapped/")))
    world.must("POST", "auth/token/revoke-accessor", {"accessor": info["accessor"]})
    assert not world.keys("wrapped/")


def test_a_damaged_child_ends_with_its_parent() -> None:
    world = engine_with_roles()
    parent = world.must("POST", "auth/token/create", {"policies": ["root"]}).auth["client_token"]
    before = world.keys("child/")
    world.must("POST", "auth/token/create", {}, token=parent)
    (index_key,) = set(world.keys("child/")) - set(before)
    child = keys.token(index_key.rpartition("/")[2])
    damage(world, child)
    world.must("POST", "auth/token/revoke", {"token": parent})
    for _ in range(3):
        world.tick()
    assert world.store.read(child) is None


def retiring_with_damage() -> tuple[SecretsEngine, str, str]:
    """A disabled mount with a lease whose entry is damaged, its accessor, and the id of the lease."""
    world = engine_with_roles()
    lease_id = world.issue("existing")
    accessor = world.mount().accessor
    damage(world, keys.lease(lease_id))
    assert world.ask("DELETE", "sys/mounts/cloud").status == 202
    return world, accessor, lease_id


def test_a_retiring_mount_says_that_entries_are_damaged_and_drops_them_by_force() -> None:
    world, accessor, lease_id = retiring_with_damage()
    told = world.must("GET", f"sys/retiring/{accessor}").data
    assert (told["leases"], told["damaged"]) == (1, 1)
    dropped = world.must("DELETE", f"sys/retiring/{accessor}?force=true").data
    assert dropped["damaged"] == [lease_id]
    world.pass_time(4000)
    assert world.ask("LIST", "sys/retiring").status == 404
    assert not [key for key in world.keys("") if lease_id in key and not key.startswith("token-lease/")]


def test_a_mount_with_a_damaged_intent_can_be_disabled_and_dropped() -> None:
    world = engine_with_roles()
    mount = world.mount()
    intent = abandoned_intent("x", mount.id, Provisioned(made_at=world.clock, application_id="x"), world.clock)
    world.perform(world.context.records.commit(intent.abandonment))
    damage(world, keys.intent(mount.id, "x"))
    assert world.ask("DELETE", "sys/mounts/cloud").status == 202
    told = world.must("GET", f"sys/retiring/{mount.accessor}").data
    assert (told["intents"], told["damaged"]) == (1, 1)
    assert world.must("DELETE", f"sys/retiring/{mount.accessor}?force=true").data["damaged"] == ["x"]
    world.pass_time(600)
    assert world.keys(keys.mount(mount.id)) == []


def test_a_mount_with_a_damaged_role_stays_in_sight_until_it_is_dropped() -> None:
    """The role may keep an application, so the mount is not wiped in silence."""
    world = engine_with_roles()
    mount = world.mount()
    damage(world, keys.role(mount.id, "existing"))
    world.ask("DELETE", "sys/mounts/cloud")
    world.pass_time(600)
    assert world.must("GET", f"sys/retiring/{mount.accessor}").data["roles"] == 1
    world.must("DELETE", f"sys/retiring/{mount.accessor}?force=true")
    world.pass_time(600)
    assert world.keys(keys.mount(mount.id)) == []


def test_a_mount_with_a_damaged_configuration_can_be_disabled() -> None:
    world = engine_with_roles()
    damage(world, keys.config(world.mount().id))
    assert world.ask("DELETE", "sys/mounts/cloud").status == 204


def test_reconcile_lists_damaged_entries_and_repairs_nothing_until_they_are_dropped() -> None:
    """What a damaged lease lists is in use for all that is known."""
    world = engine_with_roles()
    mount = world.mount()
    lease_id = world.issue("existing")
    intent = abandoned_intent("x", mount.id, Provisioned(made_at=0.0), world.clock)
    world.perform(world.context.records.commit(intent.abandonment))
    digests = {
        "lease": (lease_id, damage(world, keys.lease(lease_id))),
        "intent": ("x", damage(world, keys.intent(mount.id, "x"))),
    }
    world.advance(301)
    report = world.must("GET", "cloud/reconcile").data
    assert {each["kind"]: (each["id"], each["entry"]) for each in report["damaged"]} == digests
    assert [each["kind"] for each in report["unaccounted"]] == ["password"]
    assert world.refused("POST", "cloud/reconcile") == (503, "entry_damaged")
    assert world.alive("password")
    told = world.must("POST", "cloud/reconcile", {"force": True}).data
    assert (told["dropped"], told["repaired"]) == (2, 1)
    world.pass_time(600)
    assert not world.alive("password")
    assert world.must("GET", "cloud/reconcile").data["damaged"] == []


def test_force_does_not_repair_over_a_damaged_role_which_may_keep_an_application() -> None:
    world = engine_with_roles()
    digest = damage(world, keys.role(world.mount().id, "existing"))
    reply = world.ask("POST", "cloud/reconcile", {"force": True})
    assert (reply.status, reply.codes) == (503, ["entry_damaged"])
    assert digest in reply.body["errors"][0]
    world.must("DELETE", "cloud/roles/existing")
    assert world.ask("POST", "cloud/reconcile").status == 200


def test_reconcile_does_not_name_the_damaged_entries_of_other_mounts() -> None:
    world = engine_with_roles()
    world.must("POST", "sys/mounts/team", {"type": "cloud"})
    world.must("POST", "team/config", engine_config(world))
    damage(world, keys.lease(world.issue("existing")))
    (damaged,) = world.must("GET", "team/reconcile").data["damaged"]
    assert (damaged["kind"], damaged["id"]) == ("lease", "")


def rotated(world: SecretsEngine) -> str:
    """Rotate the root secret of the engine, by a rule too; the id of the mount."""
    world.must("POST", "cloud/config", {"rotation_period": 86_400})
    world.must("POST", "cloud/rotate-root")
    return world.mount().id


def test_a_damaged_plan_of_rotations_is_made_anew() -> None:
    """By a write of the configuration, which is read all the while, and otherwise in the background."""
    world = engine_with_roles()
    damage(world, keys.rotation_plan(rotated(world)))
    assert world.must("GET", "cloud/config").data["rotation_period"] == 86_400
    world.must("POST", "cloud/config", {"rotation_period": 172_800})
    assert world.must("GET", "cloud/rotation").data["next_rotation"]
    damage(world, keys.rotation_plan(world.mount().id))
    world.perform(world.service.upkeep())
    assert world.must("GET", "cloud/rotation").data["next_rotation"]


def test_a_damaged_record_of_rotations_is_replaced_by_force() -> None:
    """Until then the configuration is read and written as before."""
    world = engine_with_roles()
    damage(world, keys.rotation(rotated(world)))
    assert world.ask("GET", "cloud/rotation").codes == ["entry_damaged"]
    assert world.ask("POST", "cloud/rotate-root").codes == ["entry_damaged"]
    world.must("GET", "cloud/config")
    world.must("POST", "cloud/config", {"root_password_ttl": "10d"})
    world.issue("existing")
    assert world.ask("POST", "cloud/rotate-root", {"force": True}).status == 204
    assert world.must("GET", "cloud/rotation").data["phase"] == "overlapping"
    world.pass_time(1000)
    assert world.must("GET", "cloud/rotation").data["phase"] == "idle"
    world.issue("existing")


def test_a_configuration_with_a_damaged_plan_and_rotation_can_be_deleted() -> None:
    world = engine_with_roles()
    mount_id = rotated(world)
    for key in (keys.rotation_plan(mount_id), keys.rotation(mount_id)):
        damage(world, key)
    assert world.ask("DELETE", "cloud/config").status == 204
    assert world.store.read(keys.rotation_plan(mount_id)) is None


def test_a_mount_with_a_damaged_plan_and_rotation_can_be_disabled() -> None:
    world = engine_with_roles()
    mount_id = rotated(world)
    world.issue("existing")
    for key in (keys.rotation_plan(mount_id), keys.rotation(mount_id)):
        damage(world, key)
    accessor = world.mount().accessor
    assert world.ask("DELETE", "sys/mounts/cloud").status == 202
    assert world.alive("password") != []
    world.pass_time(4000)
    assert world.must("GET", f"sys/retiring/{accessor}").data["leases"] == 0
    world.must("DELETE", f"sys/retiring/{accessor}?force=true")
    world.pass_time(2 * 86_400)
    assert [key for key in world.store.list("", "", 1000) if mount_id in key] == []


def test_damaged_signing_keys_keep_no_service_from_starting_and_are_replaced() -> None:
    world = engine_with_roles()
    damage(world, keys.SIGNING_KEYS)
    world.restart()
    documents = "identity/oidc/plugins/.well-known/keys"
    assert world.ask("GET", documents).codes == ["entry_damaged"]
    world.issue("existing")
    assert world.must("POST", "sys/rotate/signing-keys").data["signs_from"]
    assert len(world.must("GET", documents).body["keys"]) == 1
    world.pass_time(2 * 86_400)
    assert len(world.must("GET", documents).body["keys"]) > 1


def test_no_damaged_entry_is_answered_with_500_or_ends_the_background() -> None:
    """Each entry of the store in its turn. Without its ring or its mounts a service does nothing, and says so."""
    original = engine_with_roles()
    rotated(original)
    for role in ("existing", "fresh"):
        original.issue(role)
    original.must("POST", "sys/quotas/rate-limit/all", {"rate": 1000})
    original.must("PUT", "sys/policies/acl/some", {"policy": 'path "cloud/*" { capabilities = ["read"] }'})
    token = original.must("POST", "auth/token/create", {"policies": ["some"]}).body["auth"]["client_token"]
    paths = (
        "cloud/config",
        "cloud/roles?list=1",
        "cloud/creds/existing",
        "cloud/rotation",
        "cloud/reconcile",
        "sys/leases",
    )
    for key in original.store.list("", "", 1000):
        if key in (keys.RING, keys.MOUNTS):
            continue
        world = original.copy()
        damage(world, key)
        world.restart()
        for path in paths:
            for caller in ("root", token):
                assert world.ask("GET", path, token=caller).status in (200, 403, 404, 503), (key, path)
        world.pass_time(4000)


def test_an_older_state_of_an_entry_is_no_damage() -> None:
    """Who can write to the store can bring a revoked token back: seals do not protect the history of a row."""
    world = engine_with_roles()
    token = world.must("POST", "auth/token/create", {"policies": ["default"]}).body["auth"]["client_token"]
    rows = {key: entry.value for key in world.store.list(keys.TOKENS, "", 100) if (entry := world.store.read(key))}
    world.must("POST", "auth/token/revoke", {"token": token})
    world.tick()
    assert world.ask("GET", "auth/token/lookup-self", token=token).status == 403
    world.store.commit({}, rows, ())
    assert world.ask("GET", "auth/token/lookup-self", token=token).status == 200
