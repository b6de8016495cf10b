"""The wheel, the source archive and the list of parts: what is in them, and that anybody can build the same bytes."""

from __future__ import annotations

import json
import os
import re
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Final

import pytest
from packaging.metadata import Metadata
from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename

from cloudid_core.version import VERSION
from tests.test_laws import files_of_the_repository
from tests.test_supply import CONSTRAINTS, ROOT

from .building import checkout, make, run

PACKAGES: Final = ("cloudid_core", "cloudid_servers")


def source_of(dist: Path) -> Path:
    [source] = dist.glob("*.tar.gz")
    return source


def metadata_of(wheel: Path) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(f"cloudid-{VERSION}.dist-info/METADATA")


def test_the_same_bytes_are_built_in_another_folder_at_another_time(tmp_path: Path) -> None:
    """The files of the second checkout have other times and modes, and its builder another zone and mask."""
    first, second = (checkout(tmp_path / name) for name in ("first", "a/second"))
    for path in second.rglob("*.py"):
        os.utime(path, (86_400, 86_400))
        path.chmod(0o600)
    make(first, "wheel")
    before = os.umask(0o077)
    try:
        make(second, "wheel", TZ="Pacific/Auckland", LC_ALL="C", PYTHONHASHSEED="7")
    finally:
        os.umask(before)
    built = [{path.name: path.read_bytes() for path in (each / "dist").iterdir()} for each in (first, second)]
    assert len(built[0]) == 2
    assert built[0] == built[1]


def test_the_source_archive_builds_the_wheel_of_the_checkout(dist: Path, wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(source_of(dist)) as archive:
        archive.extractall(tmp_path, filter="data")
        times = {member.mtime for member in archive}
    [time] = times
    [folder] = tmp_path.iterdir()
    environment = {"SOURCE_DATE_EPOCH": str(int(time))}
    run(folder, sys.executable, "-m", "hatchling", "build", "--target", "wheel", environment=environment)
    assert (folder / "dist" / wheel.name).read_bytes() == wheel.read_bytes()


def test_the_wheel_has_the_two_packages_and_nothing_else(wheel: Path) -> None:
    """No tests, no cache: the files that the repository has of the packages, each of which is typed."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if f"cloudid-{VERSION}.dist-info/" not in name}
        [entry] = [line for name in archive.namelist() if "entry_points" in name for line in open_lines(archive, name)]
    files = {re.sub("^servers/", "cloudid_servers/", str(path)) for path in files_of_the_repository()}
    assert names == {name for name in files if name.startswith(tuple(f"{package}/" for package in PACKAGES))}
    assert {f"{package}/py.typed" for package in PACKAGES} < names
    assert entry == "cloudid = cloudid_servers.cli:main"


def open_lines(archive: zipfile.ZipFile, name: str) -> list[str]:
    return [line for line in archive.read(name).decode().splitlines() if "=" in line]


def test_what_the_wheel_says_of_itself_holds_for_an_index(dist: Path, wheel: Path) -> None:
    """As an index checks it: every field valid, and a description that it can show."""
    metadata = Metadata.from_email(metadata_of(wheel), validate=True)
    assert (metadata.name, str(metadata.version)) == ("cloudid", VERSION)
    assert metadata.description_content_type == "text/markdown"
    assert metadata.description == (ROOT / "README.md").read_text()
    assert metadata.license_files == ["LICENSE"]
    assert (
        parse_wheel_filename(wheel.name)[:2]
        == parse_sdist_filename(source_of(dist).name)
        == ("cloudid", metadata.version)
    )


UNLICENSED: Final = ["protobuf"]
"""Parts whose licence the tool does not recognise, though their wheels have it."""


def test_the_list_of_parts_is_what_is_installed(dist: Path) -> None:
    """With versions, licences and who needs whom; it tells nothing of the machine that it was made on."""
    listed = dist / f"cloudid-{VERSION}.cdx.json"
    if not listed.exists():
        pytest.skip("needs cyclonedx-bom: make test-tools PACKAGES=release")
    text = listed.read_text()
    parts = json.loads(text)
    root = parts["metadata"]["component"]
    assert (parts["bomFormat"], root["name"], root["version"]) == ("CycloneDX", "cloudid", VERSION)
    found = {str(canonicalize_name(part["name"])): part for part in parts["components"]}
    assert {"cryptography", "trio", "aiohttp", "click", "psycopg-binary"} < set(found)
    assert {name: part["version"] for name, part in found.items()} == {name: CONSTRAINTS[name] for name in found}
    assert [name for name, part in found.items() if not part.get("licenses")] == UNLICENSED
    needs = {each["ref"]: each.get("dependsOn", []) for each in parts["dependencies"]}
    assert {found[name]["bom-ref"] for name in ("cryptography", "trio")} <= set(needs[root["bom-ref"]])
    assert "file:" not in text
    assert str(dist) not in text
