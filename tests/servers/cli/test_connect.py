"""`cloudid connect azure`: the commands that it prints, run on the simulated cloud, grant what it then proves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from cloudid_core.mounts import AUTH, SECRET
from cloudid_core.permissions.table import features_of
from tests.pages.runner import PROGRAMS

from ..client.test_service import Fake, ok
from ..client_site import ROOT as ROOT_TOKEN
from ..client_site import Site, client_site
from ..running import PATIENCE, ROOT, SERVERS
from .shell import Shell, Shown

SETTINGS: Final = "[service]\nsettle_time = 1\n"
"""Azure is thought to know everything after a second, so that a refused secret is not tried for long."""

ID: Final = "00000000-0000-0000-0000-000000000001"
MOUNTS: Final = {"auth/cloud": AUTH, "cloud": SECRET}


@pytest.fixture(scope="module", params=SERVERS)
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    settings = tmp_path_factory.mktemp("settings") / "cloudid.toml"
    settings.write_text(SETTINGS)
    with client_site(request.param, "--settings", str(settings)) as site:
        yield site


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


@pytest.mark.parametrize(
    "fields", [{"client_secret": "canary-of-a-secret"}, {"client_id": ID}, {"tenant": ID}], ids=str
)
@pytest.mark.parametrize("mount", MOUNTS)
def test_what_azure_refuses_leaves_a_mount_that_works(
    site: Site, cloudid: Shell, tmp_path: Path, mount: str, fields: dict[str, str]
) -> None:
    before = site.ask("GET", f"{mount}/config")["data"]
    (tmp_path / "secret").write_text(fields.get("client_secret", site.application["client_secret"]))
    feature = "virtual machines" if MOUNTS[mount] == AUTH else "azure_roles"
    typed = [*words(site, mount, feature), "--tenant", fields.get("tenant", site.world["tenant"])]
    client = fields.get("client_id", before["client_id"])
    shown = cloudid(*typed, "--client-id", client, "--client-secret", str(tmp_path / "secret"))
    assert (shown.code, shown.out.count("canary"), shown.err.count("canary")) == (1, 0, 0)
    assert f"nothing was written: {mount}/config is unchanged" in shown.err
    assert "AADSTS" in shown.err + shown.out
    assert site.ask("GET", f"{mount}/config")["data"] == before
    assert site.ask("GET", "cloud/creds/reader")["data"]["client_secret"]


@pytest.mark.parametrize("mount", MOUNTS)
def test_the_client_id_alone_shows_what_the_mount_may_do(
    site: Site, cloudid: Shell, tmp_path: Path, mount: str
) -> None:
    """Nothing is asked, nothing counts as missing, and no command is printed."""
    client = site.ask("GET", f"{mount}/config")["data"]["client_id"]
    run(site, cloudid(*words(site, mount, "rotate-root", subscriptions=1)).out, tmp_path)
    client = site.ask("GET", f"{mount}/config")["data"]["client_id"]
    shown = cloudid("connect", "azure", mount, "--client-id", client)
    assert shown.code == 0
    found = marks(shown)
    assert found.keys() == {"token", "directory", *(each.name for each in features_of(MOUNTS[mount]))}
    assert (found["token"], found["rotate-root, scheduled rotation"]) == ("✓", "✓")
    assert "–" in found.values()
    assert "az " not in cloudid("connect", "azure", mount, "--client-id", client, "--format", "table").out


NAMES: Final = ("$(touch x)", "`touch x`", "'; touch x; '", "a b", '"$(touch x)"', "a\ntouch x #")


@pytest.mark.parametrize("name", NAMES)
def test_no_name_in_a_printed_command_is_run(site: Site, cloudid: Shell, tmp_path: Path, name: str) -> None:
    """Whatever is named so: the mount, the tenant, a subscription."""
    typed = ["connect", "azure", f"cloud{name}", "--tenant", name, "--subscription", name, "--feature", "azure_roles"]
    printed = cloudid(*typed)
    assert printed.code == 0
    subprocess.run(
        ["sh", "-c", f"az() {{ cat > /dev/null; }}; cloudid() {{ cat > /dev/null; }}; cd {tmp_path}\n{printed.out}"],
        stdin=subprocess.DEVNULL,
        timeout=PATIENCE,
        check=True,
    )
    assert list(tmp_path.iterdir()) == []


def test_permissions_that_a_service_invents_are_not_granted(cloudid: Shell) -> None:
    """A stolen node would choose its own rights: names in commands and in the table are the client's own."""
    need = {"api": "resource manager", "any_of": ["$(touch x)"], "scope": "/", "granted": False, "reason": ""}
    invented = {"feature": "reconcile", "granted": False, "needs": [need, {**need, "api": "directory"}]}
    data = {"directory": ["$(touch x)"], "scopes": ["/"], "features": [invented], "missing": []}
    with Fake([ok(**data)]).serving() as fake:
        cloudid.set(VAULT_ADDR=fake.url)
        typed = ["connect", "azure", "cloud", "--tenant", ID, "--subscription", ID, "--feature", "reconcile"]
        shown = cloudid(*typed, "--client-id", ID, "--format", "table")
    assert shown.code == 1
    assert "touch" not in shown.out
    assert "1 that cloudid does not use" in shown.out
    assert "does not know these permissions, and prints no command for them: $(touch x)" in shown.err


@pytest.mark.parametrize("features", [(), ("roles",), ("nothing of the kind",)])
def test_features_are_named_so_that_one_is_meant(site: Site, cloudid: Shell, features: tuple[str, ...]) -> None:
    shown = cloudid(*words(site, "cloud", *features))
    assert (shown.code, "; reconcile" in shown.err) == (2, True), shown.err
