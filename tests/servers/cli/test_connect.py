"""`cloudid connect azure`: the commands that it prints, run on the simulated cloud, grant what it then proves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from cloudid_core.mounts import AUTH, SECRET
from cloudid_core.permissions.table import features_of
from tests.pages.runner import PROGRAMS

from ..client_site import ROOT as ROOT_TOKEN
from ..client_site import Site
from ..running import PATIENCE, ROOT
from .shell import Shell, Shown

pytestmark = pytest.mark.one_server

ID: Final = "00000000-0000-0000-0000-000000000001"
MOUNTS: Final = {"auth/cloud": AUTH, "cloud": SECRET}


@pytest.fixture(autouse=True)
def operator(cloudid: Shell) -> None:
    cloudid.set(VAULT_TOKEN=ROOT_TOKEN)


def words(site: Site, mount: str, *features: str, subscriptions: int = 2) -> list[str]:
    named = [word for each in site.world["subscriptions"][:subscriptions] for word in ("--subscription", each)]
    wished = [word for each in features for word in ("--feature", each)]
    return ["connect", "azure", mount, "--tenant", site.world["tenant"], *named, *wished, "--format", "json"]


def run(site: Site, script: str, home: Path) -> subprocess.CompletedProcess[str]:
    """By a shell, with the commands of Azure's command line that know the simulated cloud."""
    return subprocess.run(
        ["sh", "-c", script],
        env={
            **os.environ,
            "SIMULATOR": site.cloud.url,
            "PYTHONPATH": str(ROOT),
            "HOME": str(home),
            "PATH": os.pathsep.join((str(PROGRAMS), str(Path(sys.executable).parent), os.environ["PATH"])),
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def marks(shown: Shown) -> dict[str, str]:
    return {row["what"]: row["granted"] for row in shown.json["proof"]}


@pytest.mark.parametrize("mount", MOUNTS)
def test_every_feature_is_granted_by_the_commands_and_proven(
    site: Site, cloudid: Shell, tmp_path: Path, mount: str
) -> None:
    printed = cloudid(*words(site, mount, *(each.name for each in features_of(MOUNTS[mount]))))
    assert (printed.code, printed.err) == (0, "")
    ran = run(site, printed.out.replace("--wait 300", "--format json"), tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    found = marks(Shown(0, ran.stdout, ""))
    assert set(found.values()) == {"✓"}
    assert found.keys() > {
        "token",
        "directory",
        *(f"/subscriptions/{each}" for each in site.world["subscriptions"][:2]),
    }


def test_what_is_missing_is_granted_by_the_command_that_mends_it(site: Site, cloudid: Shell, tmp_path: Path) -> None:
    """An application has the rights of one feature; another one is wished for."""
    run(site, cloudid(*words(site, "cloud", subscriptions=1), "--feature", "reconcile").out, tmp_path)
    client: Any = site.ask("GET", "cloud/config")["data"]["client_id"]
    wished = [*words(site, "cloud", "azure_groups", "azure_roles"), "--client-id", client, "--format"]
    before = cloudid(*wished, "table")
    assert before.code == 1
    assert before.out.splitlines()[1].startswith("✓  token")
    mending = before.out.partition("\n\n")[2]
    assert mending.startswith(f"APP={client}\n")
    ran = run(site, mending, tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    after = cloudid(*wished, "json")
    assert (after.code, set(marks(after).values())) == (0, {"✓"})


def test_an_empty_secret_is_not_written(site: Site, cloudid: Shell) -> None:
    """An `az` that failed before the pipe leaves one; as a configuration it would be a managed identity."""
    shown = cloudid(*words(site, "cloud", "azure_roles"), "--client-id", "x", "--client-secret", os.devnull)
    assert (shown.code, json.loads(shown.err)["errors"]) == (1, [f"the secret in {os.devnull} is empty"])


def test_a_wrong_secret_is_told_with_the_providers_code(site: Site, cloudid: Shell, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("canary-of-a-secret")
    client = site.application["client_id"]
    shown = cloudid(
        *words(site, "cloud", "azure_roles"), "--client-id", client, "--client-secret", str(tmp_path / "secret")
    )
    assert (shown.code, "AADSTS7000215" in shown.out, "canary" in shown.out + shown.err) == (1, True, False)
    assert set(marks(shown).values()) == {"?"}


@pytest.mark.parametrize("secret", ["", "wrong"])
@pytest.mark.parametrize("mount", MOUNTS)
def test_what_gives_no_token_leaves_a_mount_as_it_was(
    site: Site, cloudid: Shell, tmp_path: Path, mount: str, secret: str
) -> None:
    """Unless its secret cannot be read, which is told: that of a secrets engine."""
    before = site.ask("GET", f"{mount}/config")["data"]
    feature = "virtual machines" if MOUNTS[mount] == AUTH else "azure_roles"
    typed = [*words(site, mount, feature), "--tenant", ID, "--client-id", before["client_id"]]
    if secret:
        (tmp_path / "secret").write_text(secret)
        typed += ["--client-secret", str(tmp_path / "secret")]
    shown = cloudid(*typed)
    after = site.ask("GET", f"{mount}/config")["data"]
    is_restored = not secret or "client_secret" in before
    assert (shown.code, after == before) == (1, is_restored)
    assert ("again what they were before" if is_restored else "cannot be read") in shown.err
    root = {name: site.application[name] for name in ("client_id", "client_secret")}
    site.ask("POST", f"{mount}/config", {**before, **root})


@pytest.mark.parametrize("features", [(), ("roles",), ("nothing of the kind",)])
def test_features_are_named_so_that_one_is_meant(site: Site, cloudid: Shell, features: tuple[str, ...]) -> None:
    shown = cloudid(*words(site, "cloud", *features))
    assert (shown.code, "; reconcile" in shown.err) == (2, True)
