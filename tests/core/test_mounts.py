"""The table of mounts: which path leads where, and which paths go together."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from cloudid_core import Secret, Settings
from cloudid_core.audit import Device
from cloudid_core.errors import Code, Problem, Refused
from cloudid_core.events import DeviceChanged, Event, MountChanged
from cloudid_core.mounts import (
    AUTH,
    BUILT_IN,
    ID_BYTES,
    LIMIT,
    MOUNT_BYTES,
    MOVES_KEPT,
    SECRET,
    Mount,
    MountTable,
    changing,
    default_mounts,
    new_mount,
)
from cloudid_core.store import Found, keys
from cloudid_core.store.records import decode, encode

SETTINGS = Settings(master_key=Secret("00" * 32), default_lease_ttl=100, max_lease_ttl=1000)


def mount(
    path: str, kind: str = SECRET, default_lease_ttl: int = 0, max_lease_ttl: int = 0, accessor: str = ""
) -> Mount:
    return Mount(
        id=path,
        path=path,
        kind=kind,
        type="cloud",
        accessor=accessor or f"cloud_{path}",
        default_lease_ttl=default_lease_ttl,
        max_lease_ttl=max_lease_ttl,
    )


def table(*paths: str) -> MountTable:
    made = MountTable()
    for path in paths:
        made = made.with_mount(mount(path, AUTH if path.startswith("auth/") else SECRET))
    return made


@pytest.mark.parametrize(
    "path, found",
    [
        ("cloud/creds/web", ("cloud", "creds/web")),
        ("cloud", ("cloud", "")),
        ("team/a/config", ("team/a", "config")),
        ("auth/cloud/login", ("auth/cloud", "login")),
        ("auth/token/lookup-self", ("auth/token", "lookup-self")),
        ("sys/health", ("sys", "health")),
        ("clouds/config", None),
        ("team/b", None),
        ("auth", None),
        ("Cloud/config", None),
    ],
)
def test_a_path_belongs_to_the_mount_that_it_starts_with(path: str, found: tuple[str, str] | None) -> None:
    routed = table("cloud", "team/a", "auth/cloud").route(path)
    assert (routed and (routed[0].path, routed[1])) == found


@pytest.mark.parametrize(
    "path, detail",
    [
        ("cloud", ""),
        ("Cloud", ""),
        ("TEAM/A", ""),
        ("cloud/sub", "it is below the path of another mount"),
        ("Cloud/sub", "it is below the path of another mount"),
        ("team/a/b", "it is below the path of another mount"),
        ("team", "the path of another mount is below it"),
        ("TEAM", "the path of another mount is below it"),
    ],
)
def test_no_path_contains_another_whatever_their_case(path: str, detail: str) -> None:
    """Two may not differ only in case either, since policies ignore case. The error says which it is."""
    with pytest.raises(Refused) as refused:
        table("cloud", "team/a").with_mount(mount(path))
    assert refused.value.problems == (Problem(Code.MOUNT_PATH_IN_USE, detail),)


def test_the_case_of_the_mount_that_was_there_first_does_not_matter_either() -> None:
    with pytest.raises(Refused):
        table("Team/A").with_mount(mount("team/a/b"))


@pytest.mark.parametrize(
    "path, kind",
    [
        ("sys", SECRET),
        ("Sys/x", SECRET),
        ("auth", SECRET),
        ("auth/x", SECRET),
        ("identity/x", SECRET),
        ("audit", SECRET),
        ("cubbyhole", SECRET),
        ("auth/token", AUTH),
        ("auth/Token/x", AUTH),
    ],
)
def test_a_reserved_path_cannot_be_mounted(path: str, kind: str) -> None:
    with pytest.raises(Refused) as refused:
        MountTable().with_mount(mount(path, kind))
    assert refused.value.code is Code.MOUNT_PATH_IN_USE


@pytest.mark.parametrize(
    "path, kind", [("cloudy", SECRET), ("team/b", SECRET), ("auth/sys", AUTH), ("auth/clou", AUTH)]
)
def test_paths_that_only_begin_alike_do_not_conflict(path: str, kind: str) -> None:
    made = table("cloud", "team/a", "auth/cloud").with_mount(mount(path, kind))
    assert made.by_path[path].kind == kind


class CountedLookups(dict[str, Mount]):
    """Counts the characters of all paths that are looked up."""

    characters = 0

    def get(self, path: str, default: Any = None) -> Any:
        self.characters += len(path)
        return super().get(path, default)


def test_no_slash_behind_the_longest_path_of_a_mount_is_looked_at() -> None:
    """A request may name a path of a megabyte, and a copy for each slash would be quadratic work."""
    table = MountTable()
    counted = table.__dict__["by_path"] = CountedLookups(table.by_path)
    path = "a/" * 500_000
    assert table.route(path) is None
    assert counted.characters < len(path) + 1000


def test_the_number_of_mounts_is_bounded() -> None:
    full = MountTable(tuple(mount(f"m{number}") for number in range(LIMIT)))
    with pytest.raises(Refused, match="too many"):
        full.with_mount(mount("one-more"))


def test_a_retired_mount_is_found_by_its_id_only() -> None:
    """Its path is free and it answers no request; but what it made can still be undone."""
    made = table("cloud")
    retired = made.with_retired(made.by_path["cloud"], 5.0)
    assert retired.route("cloud/config") is None
    assert "cloud" not in retired.by_id
    assert retired.retired["cloud"].retired_at == 5.0
    assert retired.with_storage("cloud") is retired.retired["cloud"]
    again = retired.with_mount(mount("cloud", default_lease_ttl=1, accessor="another"))
    assert again.by_path["cloud"].default_lease_ttl == 1
    assert retired.without("cloud") == MountTable()


def test_an_unknown_storage_id_finds_no_mount() -> None:
    assert table("cloud").with_storage("other") is None
    assert table("cloud").with_storage("sys") is BUILT_IN[0]


def test_a_move_changes_the_path_alone_and_is_noted() -> None:
    made = table("cloud", "team/a")
    moved = made.with_moved(made.by_path["cloud"], "team/b", "move-1")
    assert moved.by_path["team/b"].id == "cloud"
    assert "cloud" not in moved.by_path
    assert [(move.id, move.source, move.target) for move in moved.moves] == [("move-1", "cloud", "team/b")]
    with pytest.raises(Refused):
        moved.with_moved(moved.by_path["team/b"], "team/a/x", "move-2")


def test_a_mount_can_move_within_its_own_path() -> None:
    made = table("cloud")
    assert "cloud/sub" in made.with_moved(made.by_path["cloud"], "cloud/sub", "").by_path


def test_only_the_last_moves_are_remembered() -> None:
    made = table("m0")
    for number in range(MOVES_KEPT + 5):
        made = made.with_moved(made.by_path[f"m{number}"], f"m{number + 1}", str(number))
    assert len(made.moves) == MOVES_KEPT
    assert made.moves[-1].id == str(MOVES_KEPT + 4)


@pytest.mark.parametrize(
    "own_default, own_most, default, most",
    [(0, 0, 100, 1000), (50, 0, 50, 1000), (0, 60, 60, 60), (3000, 5000, 3000, 5000)],
)
def test_a_mount_has_its_own_lifetimes_or_those_of_the_service(
    own_default: int, own_most: int, default: int, most: int
) -> None:
    made = mount("cloud", SECRET, own_default, own_most)
    assert (made.default_ttl(SETTINGS), made.max_ttl(SETTINGS)) == (default, most)


def test_a_new_mount_has_random_ids_and_keeps_the_spelling_of_its_type() -> None:
    plain = new_mount(SECRET, "cloud", "cloud", bytes(range(ID_BYTES)))
    alias = new_mount(AUTH, "auth/azure", "azure", bytes(ID_BYTES))
    assert (plain.id, plain.accessor, plain.type_alias) == ("0001020304050607", "cloud_08090a0b0c0d0e0f", "")
    assert (alias.type, alias.type_alias, alias.accessor) == ("cloud", "azure", "auth_azure_0000000000000000")


def test_no_two_mounts_have_one_accessor() -> None:
    """The subjects of federated credentials name it. A retired mount keeps its own."""
    made = table("cloud")
    for others in (made, made.with_retired(made.by_path["cloud"], 5.0)):
        with pytest.raises(Refused, match="accessor"):
            others.with_mount(mount("other", accessor=made.by_path["cloud"].accessor))


def test_both_components_are_mounted_from_the_start() -> None:
    made = default_mounts(bytes(range(MOUNT_BYTES)))
    assert set(made.by_path) == {"sys", "auth/token", "identity", "auth/cloud", "cloud"}
    assert len(made.by_id) == 5


def test_a_table_reads_back_from_the_store_as_it_was() -> None:
    made = table("cloud", "auth/x")
    made = made.with_moved(made.by_path["cloud"], "c", "1").with_retired(made.by_path["auth/x"], 7.0)
    assert decode(encode(made), MountTable) == made


def told(before: MountTable, after: MountTable) -> list[Event]:
    return list(changing(Found(keys.MOUNTS, before, 1), after).events)


def test_a_change_of_the_table_is_told_for_the_mounts_and_devices_that_it_is_about() -> None:
    before = table("cloud", "auth/cloud")
    cloud = before.by_id["cloud"]

    def event(path: str, state: str) -> MountChanged:
        return MountChanged(mount_accessor="cloud_cloud", path=path, state=state)

    assert told(before, before) == []
    assert told(table("auth/cloud"), before) == [event("cloud", "enabled")]
    assert told(before, before.with_changed(evolve(cloud, description="d"))) == [event("cloud", "tuned")]
    assert told(before, before.with_moved(cloud, "team", "m")) == [event("team", "moved")]
    assert told(before, before.with_retired(cloud, 1.0)) == [event("cloud", "disabled")]
    device = Device(name="file", type="file", key="00" * 32)
    audited = evolve(before, devices=(device,))
    assert told(before, audited) == [DeviceChanged(device="file", state="enabled")]
    assert told(audited, evolve(audited, audited_headers={"x-a": True})) == []
    assert told(audited, before) == [DeviceChanged(device="file", state="disabled")]
