"""Accounts: what some record mentions is accounted for, whatever moves while the records are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import pytest
from attrs import evolve

from cloudid_core.background.journal import abandoned_intent, find_intent
from cloudid_core.credentials import Key
from cloudid_core.deadline import Deadline
from cloudid_core.errors import Refused
from cloudid_core.leases.record import Lease
from cloudid_core.leases.revocation import forget_lease
from cloudid_core.messages import Request
from cloudid_core.mounts import Mount, mount_table
from cloudid_core.provider.provisioned import Provisioned
from cloudid_core.rotation.record import Phase, Rotation
from cloudid_core.routing.exchange import Exchange
from cloudid_core.routing.routes import Call
from cloudid_core.secrets_engine.inventory import Object, ObjectKind
from cloudid_core.secrets_engine.ownership import Ownership, read_ownership
from cloudid_core.secrets_engine.persistent_app import PersistentApp
from cloudid_core.secrets_engine.roles import Role
from cloudid_core.store import keys
from cloudid_core.store.changes import Changes
from cloudid_core.values.secret import Secret
from tests.engines import SecretsEngine, configured_engine

from .interleaving import interleaved

HELD: Final = Provisioned(made_at=0.0, unique_name="name", application_id="application", client_id="client")
APPLICATION: Final = Object(kind=ObjectKind.APPLICATION, id="application", name="name", made_at=0.0, client_id="client")
PASSWORD: Final = Object(kind=ObjectKind.PASSWORD, id="key", name="name", made_at=0.0, application_id="x", hint="abc")


@pytest.fixture(scope="module")
def engine() -> SecretsEngine:
    return configured_engine()


@pytest.fixture
def mount(engine: SecretsEngine) -> Mount:
    return engine.perform(mount_table(engine.context.records)).record.by_path["cloud"]


def call(engine: SecretsEngine, mount: Mount, seconds: float = 60.0) -> Call:
    exchange = Exchange(
        request=Request("GET", "/"),
        request_id="",
        time=engine.clock,
        deadline=Deadline(engine.clock + seconds),
        mount=mount,
    )
    return Call(engine.context, exchange)


def write(engine: SecretsEngine, puts: Mapping[str, object], *deletes: str) -> None:
    engine.perform(engine.context.records.commit(Changes({}, puts, deletes)))


def accounts_with(engine: SecretsEngine, mount: Mount, puts: Mapping[str, object]) -> Ownership:
    """The accounts of an installation that has some more records."""
    write(engine, puts)
    try:
        return engine.perform(read_ownership(call(engine, mount)))
    finally:
        write(engine, {}, *puts)


def lease(mount: Mount, provisioned: Provisioned) -> Lease:
    return Lease(
        id="cloud/creds/web/1",
        mount_id=mount.id,
        role="web",
        token_id="",
        provisioned=provisioned,
        issued_at=0.0,
        expires_at=0.0,
        ends_at=0.0,
        due_at=0.0,
    )


def role(provisioned: Provisioned) -> Role:
    kept = PersistentApp(id="1", provisioned=provisioned, assignments=(), groups=(), tags=(), sign_in_audience="")
    return Role(persist_app=True, persistent_app=kept)


# What accounts for what


@pytest.mark.parametrize(
    "held, one, accounted",
    [
        (HELD, APPLICATION, True),
        (HELD, evolve(APPLICATION, name="another"), True),
        (HELD, evolve(APPLICATION, id="another"), False),
        (evolve(HELD, application_id=""), evolve(APPLICATION, id="another"), True),
        (evolve(HELD, application_id=""), evolve(APPLICATION, id="another", name="another"), False),
        (HELD, Object(kind=ObjectKind.PRINCIPAL, id="principal", name="name", made_at=0.0), True),
        (evolve(HELD, principal_id="p"), Object(kind=ObjectKind.PRINCIPAL, id="q", name="name", made_at=0.0), False),
        (evolve(HELD, principal_id="p"), Object(kind=ObjectKind.PRINCIPAL, id="p", name="", made_at=0.0), True),
        (HELD, PASSWORD, True),
        (Provisioned(made_at=0.0, password_on="x", password_name="name"), PASSWORD, True),
        (Provisioned(made_at=0.0, password_on="x", password_name="name", password_key_id="key"), PASSWORD, True),
        (Provisioned(made_at=0.0, password_on="x", password_name="name", password_key_id="other"), PASSWORD, False),
        (Provisioned(made_at=0.0, password_on="application", password_name="other"), APPLICATION, True),
    ],
)
def test_what_is_held_is_accounted_for(
    engine: SecretsEngine, mount: Mount, held: Provisioned, one: Object, accounted: bool
) -> None:
    """By its id; by its name as long as the id is not known. By a lease, a role and an intent alike."""
    for puts in (
        {keys.lease("cloud/creds/web/1"): lease(mount, held)},
        {keys.role(mount.id, "web"): role(held)},
        abandoned_intent("1", mount.id, held, 0.0).abandonment.puts,
    ):
        assert accounts_with(engine, mount, puts).covers(one) is accounted


def test_an_application_that_a_role_points_to_is_used(engine: SecretsEngine, mount: Mount) -> None:
    puts = {keys.role(mount.id, "web"): Role(application_object_id="application")}
    assert accounts_with(engine, mount, puts).covers(APPLICATION)


@pytest.mark.parametrize(
    "rotation, accounted",
    [
        (Rotation(mount_id="", phase=Phase.ADDING, name="name"), True),
        (Rotation(mount_id="", phase=Phase.PROVING, new=Key(id="key", secret=Secret("s"))), True),
        (Rotation(mount_id="", outgoing=(Key(id="key", secret=Secret("s")),)), True),
        (Rotation(mount_id="", current=Key(id="another", secret=Secret("s"))), False),
    ],
)
def test_a_rotation_of_either_kind_of_mount_accounts_for_its_keys(
    engine: SecretsEngine, mount: Mount, rotation: Rotation, accounted: bool
) -> None:
    login = engine.perform(mount_table(engine.context.records)).record.by_path["auth/cloud"]
    for each in (mount, login):
        puts = {keys.rotation(each.id): evolve(rotation, mount_id=each.id)}
        assert accounts_with(engine, mount, puts).covers(PASSWORD) is accounted


@pytest.mark.parametrize(
    "client_id, hint, accounted",
    [
        ("ROOT", "{used}", True),
        ("ROOT", "", True),
        ("ROOT", "???", False),
        ("another", "{used}", False),
        ("another", "", False),
    ],
)
def test_a_secret_that_may_be_in_use_is_accounted_for(
    engine: SecretsEngine, mount: Mount, client_id: str, hint: str, accounted: bool
) -> None:
    """On a root application, if its hint starts the configured secret or is missing; in any spelling of the id."""
    used = engine.config["client_secret"][:3]
    one = evolve(
        PASSWORD,
        client_id=client_id.replace("ROOT", engine.config["client_id"].upper()),
        hint=hint.format(used=used),
    )
    assert accounts_with(engine, mount, {}).covers(one) is accounted


def test_only_the_leases_and_roles_of_the_mount_are_counted(engine: SecretsEngine, mount: Mount) -> None:
    other = lease(evolve(mount, id="other"), HELD)
    puts: dict[str, object] = {
        keys.lease("cloud/creds/web/1"): lease(mount, HELD),
        keys.lease("other/creds/web/2"): other,
        keys.role(mount.id, "web"): role(HELD),
    }
    accounts = accounts_with(engine, mount, puts)
    assert [each.mount_id for each in accounts.leases] == [mount.id]
    assert set(accounts.roles) == {"web"}


def test_the_reading_ends_at_the_deadline_of_the_request(engine: SecretsEngine, mount: Mount) -> None:
    write(engine, {keys.role(mount.id, "web"): role(HELD)})
    with pytest.raises(Refused, match="deadline"):
        engine.perform(read_ownership(call(engine, mount, seconds=0.0)))
    write(engine, {}, keys.role(mount.id, "web"))


# Moves meanwhile


@pytest.mark.parametrize("home", ["lease", "role"])
def test_an_object_is_found_although_its_record_changes_during_the_reading(
    engine: SecretsEngine, mount: Mount, home: str
) -> None:
    """An intent becomes a lease or a role, and that an intent again, at whichever two points of the reading."""
    records = engine.context.records
    begin = abandoned_intent("1", mount.id, HELD, 0.0).abandonment.puts
    held = lease(mount, HELD)
    role_key = keys.role(mount.id, "web")

    def account() -> None:
        found = engine.perform(find_intent(engine.context, mount.id, "1"))
        assert found is not None
        puts: Mapping[str, object] = held.creation.puts if home == "lease" else {role_key: role(HELD)}
        engine.perform(records.commit(Changes(found.expected, puts, tuple(begin))))

    def give_up() -> None:
        if home == "lease":
            assert engine.perform(forget_lease(engine.context, held.id, held.mount_id, 0.0))
        else:
            write(engine, begin, role_key)

    def read(first: int, second: int) -> tuple[Ownership, int]:
        write(engine, begin, *held.removal.deletes, role_key)
        events: dict[int, list[Callable[[], object]]] = {}
        events.setdefault(first, []).append(account)
        events.setdefault(second, []).append(give_up)
        return interleaved(engine, read_ownership(call(engine, mount)), events)

    _, steps = read(1000, 1000)
    assert steps < 1000
    for first in range(steps):
        for second in range(first, steps):
            assert read(first, second)[0].covers(APPLICATION), (first, second)
    write(engine, {}, *begin)
