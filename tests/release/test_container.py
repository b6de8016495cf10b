"""The image: what its file says, and its steps in an empty folder, since a base image need not be at hand here."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from cloudid_servers.stores.postgres.temporary import free_port
from tests.pages.blocks import blocks_of
from tests.servers.certificates import write_certificate
from tests.waiting import PATIENCE

from .building import ROOT, run
from .installed import AS_NOBODY, ON_A_READ_ONLY_ROOT, USER, Image, image

SEEN: Final = tuple(re.findall("^!(.*)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE))
FILE: Final = (ROOT / "Containerfile").read_text()
PAGE: Final = "docs/how-to/install.md"


def instructions(name: str) -> list[str]:
    return re.findall(rf"^{name} (.*)$", FILE, re.MULTILINE)


def words(name: str) -> list[str]:
    """The program and arguments of the one instruction of a kind."""
    [text] = instructions(name)
    return list(json.loads(text[text.index("[") :]))


@pytest.fixture(scope="module")
def installed(dist: Path) -> Iterator[Image]:
    with image(dist) as made:
        yield made


def test_the_image_has_a_stage_of_its_own_for_building_and_no_root() -> None:
    assert len(instructions("FROM")) == 2
    assert instructions("COPY") == [". /source", "--from=build /opt/cloudid /opt/cloudid"]
    assert instructions("USER") == [f"{USER}:{USER}"]
    assert instructions("VOLUME") == ["/var/lib/cloudid"]
    assert not set(re.findall("^([A-Z]+)", FILE, re.MULTILINE)) & {"ADD", "ENV"}


def test_an_image_is_built_from_what_the_build_may_see_of_a_checkout(tmp_path: Path) -> None:
    """No wheel was built before."""
    source = tmp_path / "source"
    for name in run(ROOT, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0"):
        if name.startswith(SEEN) and os.path.lexists(ROOT / name):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, source / name, follow_symlinks=False)
    with image(source / "dist", source) as made:
        assert made.run("/opt/cloudid/bin/cloudid", "--version").stdout


def test_nothing_in_the_image_installs_anything(installed: Image) -> None:
    """Nor can its user change what is installed."""
    folder = installed.root / "opt" / "cloudid"
    assert not list(folder.glob("bin/pip*"))
    assert not list(folder.glob("lib/*/site-packages/pip"))
    if installed.confinement:
        assert installed.run("touch", "/opt/cloudid/bin/more").returncode
    assert not installed.run("touch", "/var/lib/cloudid/more").returncode


def test_an_image_serves_over_tls_and_knows_whether_it_is_healthy(installed: Image, tmp_path: Path) -> None:
    """With the settings of the page, as nobody on a root that is read only, as far as tests may confine anything."""
    if os.getuid() == 0 and installed.confinement:
        assert set(installed.confinement) & {*AS_NOBODY, *ON_A_READ_ONLY_ROOT}
    port = free_port()
    [settings] = [block.text for block in blocks_of(PAGE, "toml") if "0.0.0.0" in block.text and not block.marks]
    write_certificate(tmp_path, "id.example.org")
    for name, content in {
        "cloudid.toml": settings.replace(":8200", f":{port}"),
        "tls.pem": (tmp_path / "cert.pem").read_text(),
        "tls.key": (tmp_path / "key.pem").read_text(),
    }.items():
        installed.write(name, content)
    entry, health = words("ENTRYPOINT"), words("HEALTHCHECK")

    shown = installed.run(*entry, "init", "--settings", "/var/lib/cloudid/cloudid.toml")
    assert shown.returncode == 0
    assert shown.stderr.startswith("initialised: ")
    assert shown.stdout.startswith("root token: ")
    assert installed.run(*health).returncode == 1

    log = tmp_path / "log"
    with (
        log.open("w") as stderr,
        subprocess.Popen(
            installed.command(*entry, *words("CMD")),
            cwd=installed.data,
            env=installed.environment,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as server,
    ):
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == f"listening on https://0.0.0.0:{port}\n", log.read_text()
            checked = installed.run(*health)
            assert (checked.returncode, checked.stderr) == (0, "")
            server.send_signal(signal.SIGTERM)
            assert server.wait(PATIENCE) == 0
        finally:
            server.kill()
    assert installed.run(*health).returncode == 1
