"""Marked objects: which names are markers, and what is found by looking around and by looking up."""

from __future__ import annotations

import pytest
from attrs import evolve

from cloudid_core.deadline import Deadline
from cloudid_core.effects import CallProvider
from cloudid_core.mounts import mount_table
from cloudid_core.provider.client import Client
from cloudid_core.provider.provisioned import Provisioned
from cloudid_core.secrets_engine import config
from cloudid_core.secrets_engine.inventory import (
    LANES,
    PROOFS,
    Object,
    ObjectKind,
    list_marked_objects,
    look_up,
    marked_at,
    objects_of,
    provisioned_of,
)
from cloudid_core.tokens.encoding import time_ordered_id
from tests.engines import SecretsEngine, configured_engine

PREFIX = "cloudid-0011223344556677-"
ID = time_ordered_id(1_800_000_000.125, bytes(range(10)))


@pytest.fixture
def engine() -> SecretsEngine:
    return configured_engine()


def client(engine: SecretsEngine) -> Client:
    context = engine.context
    mount = engine.perform(mount_table(context.records)).record.by_path["cloud"]
    return engine.perform(config.client(context, mount, Deadline(engine.clock + 60)))


def test_a_marker_tells_when_it_was_made() -> None:
    assert marked_at(PREFIX, PREFIX + ID) == 1_800_000_000.125


@pytest.mark.parametrize(
    "name",
    ["", PREFIX, ID, f"{PREFIX}{ID[1:]}", f"{PREFIX}{ID}0", f"{PREFIX}{ID[:-1]}G", f"{PREFIX}{ID}\n", f" {PREFIX}{ID}"],
)
def test_other_names_are_no_markers(name: str) -> None:
    assert marked_at(PREFIX, name) is None


def test_the_case_of_a_marker_matters(engine: SecretsEngine) -> None:
    """The provider's filter ignores it."""
    assert marked_at(PREFIX, (PREFIX + ID).upper()) is None
    assert marked_at(PREFIX, PREFIX.upper() + ID) is None


OBJECTS = (
    Object(kind=ObjectKind.APPLICATION, id="a", name="n", made_at=1.0, client_id="c"),
    Object(kind=ObjectKind.PRINCIPAL, id="p", name="n", made_at=1.0, client_id="c"),
    Object(kind=ObjectKind.PASSWORD, id="k", name="n", made_at=1.0, client_id="c", application_id="a"),
)


@pytest.mark.parametrize(
    "one", [*OBJECTS[:2], *(evolve(OBJECTS[2], kind=kind) for kind in PROOFS)], ids=lambda one: one.kind.value
)
def test_the_record_of_a_found_object_holds_that_object_only(one: Object) -> None:
    provisioned = provisioned_of(one, "tenant")
    (held,) = objects_of(provisioned)
    assert (held.kind, held.id, held.application_id) == (one.kind, one.id, one.application_id)
    assert (provisioned.tenant, provisioned.made_at, provisioned.assignments, provisioned.groups) == (
        "tenant",
        1.0,
        (),
        (),
    )


def test_objects_without_ids_cannot_be_looked_up() -> None:
    assert list(objects_of(Provisioned(made_at=0.0, unique_name="n", password_on="a", password_name="n"))) == []


def test_looking_around_finds_marked_objects_and_the_holders_of_passwords(engine: SecretsEngine) -> None:
    directory = engine.simulator.world.directory
    marked = directory.add_application(PREFIX + ID)
    directory.add_application("another")
    principal = directory.add_principal(PREFIX + ID, "Application", marked)
    lone = directory.add_principal(PREFIX + ID, "Application")
    holder, root = engine.other_application["object_id"], engine.root_application["object_id"]
    for object_id in (holder, root, marked.id):
        application = directory.applications.get(object_id)
        assert application is not None
        directory.add_password(application, PREFIX + ID, engine.clock, engine.clock + 60)
    shown, holders = engine.perform(list_marked_objects(client(engine), PREFIX, [holder, "gone"]))
    assert set(shown.applications) == {marked.id, holder, root}
    assert set(shown.principals) == {principal.id, lone.id}
    assert holders == {holder, root, "gone"}
    found = list(shown.marked(PREFIX, sorted(holders)))
    assert {(one.kind, one.id, one.application_id) for one in found if one.kind is not ObjectKind.PASSWORD} == {
        (ObjectKind.APPLICATION, marked.id, ""),
        (ObjectKind.PRINCIPAL, lone.id, ""),
    }
    assert {one.application_id for one in found if one.kind is ObjectKind.PASSWORD} == {holder, root}
    assert all(shown.has(one) for one in found)


def test_looking_up_asks_for_each_object_once_and_for_a_few_at_a_time(engine: SecretsEngine) -> None:
    directory = engine.simulator.world.directory
    applications = [directory.add_application(f"application {number}") for number in range(2 * LANES + 1)]
    objects = [
        Object(kind=ObjectKind.APPLICATION, id=application.id, name="", made_at=0.0) for application in applications
    ]
    asking = client(engine)
    since = len(engine.trace)
    shown = engine.perform(look_up(asking, [*objects, *objects, OBJECTS[1], OBJECTS[2]]))
    assert set(shown.applications) == {application.id for application in applications}
    assert [shown.has(one) for one in (objects[0], *OBJECTS)] == [True, False, False, False]
    asked = [effect for _, effect in engine.trace[since:] if isinstance(effect, CallProvider)]
    assert sum("/graph/" in effect.request.url for effect in asked) == len(applications) + 2
