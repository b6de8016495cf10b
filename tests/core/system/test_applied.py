"""The service records which folder made an object, and deletes for a folder nothing else."""

from __future__ import annotations

from typing import Any, Final

import pytest

from cloudid_core.store import Changes, keys
from cloudid_core.system.applied import FormerRecord
from tests.installation import Installation

FOLDER: Final = "0" * 31 + "a"
OTHER: Final = "0" * 31 + "b"
WEB: Final = "sys/policies/acl/web"
TEXT: Final = {"policy": 'path "x" { capabilities = ["read"] }'}
APPLIER: Final = """
path "sys/applied/*" { capabilities = ["create", "read", "update", "sudo"] }
path "sys/policies/acl/*" { capabilities = ["create", "read", "update", "delete"] }
"""


def claimed(*folders: str) -> Installation:
    world = Installation()
    for folder in folders or (FOLDER,):
        world.must("POST", f"sys/applied/{folder}", {"path": "/srv/shop", "host": "one"})
    return world


def made(world: Installation, folder: str = FOLDER) -> list[str]:
    paths: list[str] = world.must("GET", f"sys/applied/{folder}").data["paths"]
    return paths


def write(world: Installation, path: str, body: Any = None, folder: str = FOLDER, token: str = "root") -> None:
    world.must("POST", path, TEXT if body is None else body, token, x_service_applied_folder=folder)


def token_with(world: Installation, policy: str) -> str:
    world.must("POST", "sys/policies/acl/limited", {"policy": policy})
    token: str = world.must("POST", "auth/token/create", {"policies": "limited"}).auth["client_token"]
    return token


def test_a_folder_has_made_what_its_writes_created_and_nothing_else() -> None:
    world = claimed()
    world.must("POST", "sys/policies/acl/before", TEXT)
    write(world, "sys/policies/acl/before")
    write(world, "sys/policies/acl/Web")
    write(world, "sys/policy/old")
    write(world, "sys/auth/Team", {"type": "cloud"})
    write(world, "auth/token/roles/a", {})
    write(world, "sys/quotas/rate-limit/q", {"rate": 100})
    expected = ["auth/token/roles/a", "sys/auth/Team", "sys/policies/acl/Web", "sys/policies/acl/old"]
    assert made(world) == [*expected, "sys/quotas/rate-limit/q"]
    world.restart()
    assert made(world) == [*expected, "sys/quotas/rate-limit/q"]


def test_a_token_without_sudo_at_sys_applied_can_neither_claim_nor_record() -> None:
    world = claimed()
    token = token_with(world, APPLIER.replace(', "sudo"', ""))
    body = {"path": "/srv/shop", "host": "one"}
    assert world.refused("POST", f"sys/applied/{FOLDER}", body, token) == (403, "permission_denied")
    assert world.refused("GET", f"sys/applied/{FOLDER}", None, token) == (403, "permission_denied")
    for method in ("POST", "DELETE"):
        refusal = world.refused(method, WEB, TEXT, token, x_service_applied_folder=FOLDER)
        assert refusal == (403, "permission_denied")
    world.must("POST", WEB, TEXT, token)
    assert made(world) == []


def test_a_token_adopts_no_former_record_that_it_may_not_write() -> None:
    """The record of another team names objects that the folder could prune then."""
    world = claimed()
    former = FormerRecord(("sys/policies/acl/theirs",))
    world.perform(world.context.records.commit(Changes(puts={keys.applied("theirs"): former})))
    world.must("POST", "sys/policies/acl/theirs", TEXT)
    own = f'path "sys/applied/{FOLDER}" {{ capabilities = ["create", "read", "update", "sudo"] }}'
    body = {"path": "/srv/moved", "host": "one", "adopt": True, "former": "Theirs"}
    token = token_with(world, own)
    assert world.refused("POST", f"sys/applied/{FOLDER}", body, token) == (403, "permission_denied")
    folder = world.must("GET", f"sys/applied/{FOLDER}").data
    assert (folder["paths"], folder["path"]) == ([], "/srv/shop")
    assert world.must("GET", "sys/applied/theirs").data["paths"] == list(former.paths)
    token = token_with(world, own + 'path "sys/applied/theirs" { capabilities = ["update", "sudo"] }')
    world.must("POST", f"sys/applied/{FOLDER}", body, token)
    assert made(world) == list(former.paths)


def test_a_folder_deletes_with_the_rights_of_its_token() -> None:
    world = claimed()
    write(world, WEB)
    token = token_with(world, APPLIER.replace(', "delete"', ""))
    assert world.refused("DELETE", WEB, None, token, x_service_applied_folder=FOLDER) == (403, "permission_denied")
    world.must("DELETE", WEB, x_service_applied_folder=FOLDER)
    assert (made(world), world.ask("GET", WEB).status) == ([], 404)


def test_a_folder_deletes_nothing_that_another_writer_made() -> None:
    world = claimed(FOLDER, OTHER)
    world.must("POST", "sys/policies/acl/theirs", TEXT)
    write(world, WEB)
    write(world, "sys/policies/acl/other", folder=OTHER)
    world.must("DELETE", WEB)
    world.must("POST", WEB, TEXT)
    for path in ("sys/policies/acl/theirs", "sys/policies/acl/other", WEB):
        refusal = world.refused("DELETE", path, None, x_service_applied_folder=FOLDER)
        assert refusal == (409, "not_made_by_folder"), path
        world.must("GET", path)
    assert (made(world), made(world, OTHER)) == ([], ["sys/policies/acl/other"])


def test_objects_of_a_later_mount_at_the_same_path_are_not_the_folders() -> None:
    world = claimed()
    write(world, "sys/auth/team", {"type": "cloud"})
    write(world, "auth/team/role/web", {"bound_service_principal_ids": "*"})
    assert made(world) == ["auth/team/role/web", "sys/auth/team"]
    world.must("POST", "sys/remount", {"from": "auth/team", "to": "auth/moved"})
    assert made(world) == []
    world.must("POST", "sys/auth/team", {"type": "cloud"})
    world.must("POST", "auth/team/role/web", {"bound_service_principal_ids": "*"})
    for path in ("sys/auth/team", "auth/team/role/web"):
        assert world.refused("DELETE", path, None, x_service_applied_folder=FOLDER) == (409, "not_made_by_folder")


def test_a_quota_that_went_with_its_mount_and_was_made_again_is_not_the_folders() -> None:
    world = claimed()
    quota = {"rate": 100, "path": "auth/team"}
    world.must("POST", "sys/auth/team", {"type": "cloud"})
    write(world, "sys/quotas/rate-limit/q", quota)
    world.must("DELETE", "sys/auth/team")
    world.must("POST", "sys/auth/team", {"type": "cloud"})
    world.must("POST", "sys/quotas/rate-limit/q", quota)
    assert made(world) == []


def test_a_write_that_is_refused_records_nothing() -> None:
    world = claimed()
    world.refused("POST", WEB, {"policy": "path {"}, x_service_applied_folder=FOLDER)
    world.refused("POST", "sys/auth/cloud", {"type": "cloud"}, x_service_applied_folder=FOLDER)
    assert made(world) == []


def test_an_id_that_no_folder_has_claimed_or_that_is_none_is_refused() -> None:
    world = claimed()
    for method in ("POST", "DELETE"):
        assert world.refused(method, WEB, TEXT, x_service_applied_folder=OTHER) == (400, "folder_unknown")
        assert world.refused(method, WEB, TEXT, x_service_applied_folder="shop") == (400, "malformed_request")
    assert world.refused("POST", "sys/applied/shop", {}) == (400, "name_invalid")
    assert world.must("LIST", "sys/applied").data == {"keys": [FOLDER]}


def test_the_header_means_nothing_where_no_object_is_made_or_deleted() -> None:
    world = claimed()
    world.must("GET", "sys/policies/acl/default", x_service_applied_folder="shop")
    world.must("POST", "auth/token/create", {}, x_service_applied_folder=FOLDER)
    world.must("POST", f"sys/applied/{FOLDER}", {"path": "/srv/shop", "host": "one"}, x_service_applied_folder=FOLDER)
    login = world.refused("POST", "auth/cloud/login", {}, "", x_service_applied_folder=FOLDER)
    assert login == world.refused("POST", "auth/cloud/login", {}, "")
    assert made(world) == []


@pytest.mark.parametrize("place", [{"path": "/srv/copy", "host": "one"}, {"path": "/srv/shop", "host": "two"}])
def test_a_second_folder_with_the_same_id_has_to_adopt_it(place: dict[str, str]) -> None:
    world = claimed()
    write(world, WEB)
    world.must("POST", f"sys/applied/{FOLDER}", {"path": "/srv/shop", "host": "one"})
    assert world.refused("POST", f"sys/applied/{FOLDER}", place) == (409, "folder_claimed")
    world.must("POST", f"sys/applied/{FOLDER}", {**place, "adopt": True})
    assert world.must("GET", f"sys/applied/{FOLDER}").data == {"paths": [WEB], **place}


def test_a_record_of_an_earlier_version_counts_once_a_folder_adopts_it() -> None:
    world = claimed(FOLDER, OTHER)
    write(world, "sys/policies/acl/other", folder=OTHER)
    world.must("POST", WEB, TEXT)
    former = FormerRecord((*(f"sys/policies/acl/n{number}" for number in range(70)), WEB, "sys/policies/acl/other"))
    world.perform(world.context.records.commit(Changes(puts={keys.applied("shop"): former})))
    assert world.must("LIST", "sys/applied").data == {"keys": [FOLDER, OTHER, "shop"]}
    assert world.must("GET", "sys/applied/shop").data["paths"] == list(former.paths)
    assert world.refused("DELETE", WEB, None, x_service_applied_folder=FOLDER) == (409, "not_made_by_folder")
    place = {"path": "/srv/shop", "host": "one"}
    world.must("POST", f"sys/applied/{FOLDER}", {**place, "former": "shop"})
    assert made(world) == []
    world.must("POST", f"sys/applied/{FOLDER}", {**place, "adopt": True, "former": "Shop"})
    assert len(made(world)) == 71
    assert world.refused("DELETE", "sys/policies/acl/other", None, x_service_applied_folder=FOLDER)[0] == 409
    world.must("DELETE", WEB, x_service_applied_folder=FOLDER)
    assert world.ask("GET", "sys/applied/shop").status == 404


def test_what_a_folder_has_made_stays_when_the_folder_is_forgotten() -> None:
    world = claimed()
    for number in range(70):
        write(world, f"sys/policies/acl/n{number}")
    world.must("DELETE", f"sys/applied/{FOLDER}")
    assert world.ask("GET", f"sys/applied/{FOLDER}").status == 404
    assert (world.keys("made"), world.keys("folder/")) == ([], [])
    world.must("GET", "sys/policies/acl/n69")


def test_records_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloudid_core.applied.MOST_PATHS", 2)
    monkeypatch.setattr("cloudid_core.applied.MOST_FOLDERS", 2)
    world = claimed(FOLDER, OTHER)
    assert world.refused("POST", f"sys/applied/{'c' * 32}", {}) == (400, "folders_too_many")
    write(world, "sys/policies/acl/a")
    write(world, "sys/policies/acl/b")
    write(world, "sys/policies/acl/b")
    assert world.refused("POST", WEB, TEXT, x_service_applied_folder=FOLDER) == (400, "folder_full")
    assert world.ask("GET", WEB).status == 404
    world.must("DELETE", "sys/policies/acl/a")
    write(world, WEB)
    assert world.refused("POST", f"sys/applied/{FOLDER}", {"host": "x" * 1025}) == (400, "field_invalid")
