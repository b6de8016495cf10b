"""A server reads the secrets that its folder names below one directory, whatever links there are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cloudid_servers.folders import ServersSecrets, read_folder
from cloudid_servers.folders.files import FolderRefused


def found(directory: Path, name: str) -> str:
    return ServersSecrets(str(directory)).find("x: client_secret", {"file": name}).reveal()


def test_a_secret_that_kubernetes_mounts_is_read_by_its_links(tmp_path: Path) -> None:
    (tmp_path / "..2026").mkdir()
    (tmp_path / "..2026/key").write_text("s3cret\n")
    (tmp_path / "..data").symlink_to("..2026")
    (tmp_path / "key").symlink_to("..data/key")
    assert found(tmp_path, "key") == "s3cret"
    assert found(tmp_path, f"{tmp_path}/key") == "s3cret"


@pytest.mark.parametrize(
    "name", ["../outside", "/proc/self/environ", "/etc/passwd", "up", "absolute", "folder", "pipe", "loop", "", "a\0b"]
)
def test_nothing_else_is_read(tmp_path: Path, name: str) -> None:
    directory = tmp_path / "secrets"
    (directory / "folder").mkdir(parents=True)
    (tmp_path / "outside").write_text("canary")
    (directory / "up").symlink_to("../outside")
    (directory / "absolute").symlink_to(tmp_path / "outside")
    (directory / "loop").symlink_to("loop")
    os.mkfifo(directory / "pipe")
    with pytest.raises(FolderRefused) as refused:
        found(directory, name)
    assert "canary" not in str(refused.value)


@pytest.mark.parametrize(("directory", "name"), [("/", "proc/self/environ"), ("/proc/self", "environ")])
def test_a_directory_above_the_kernels_files_does_not_give_them_away(directory: str, name: str) -> None:
    with pytest.raises(FolderRefused):
        found(Path(directory), name)


def test_a_server_gives_its_folder_no_variable_and_without_a_directory_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUDID_MASTER_KEY", "canary")
    for source in ({"env": "CLOUDID_MASTER_KEY"}, {"file": "/proc/self/environ"}):
        with pytest.raises(FolderRefused, match="apply_secrets"):
            ServersSecrets("").find("x: client_secret", source)


def test_a_file_of_a_folder_is_no_link_to_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("# canary\n")
    policies = tmp_path / "folder/sys/policies/acl"
    policies.mkdir(parents=True)
    (policies / "x.hcl").symlink_to("../../../../outside")
    with pytest.raises(FolderRefused, match="cannot be read"):
        read_folder(tmp_path / "folder")
