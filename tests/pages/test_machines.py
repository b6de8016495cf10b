"""What a page cannot run here: a unit, a pod and an agent log in with what the page about logins configures."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import hcl2
import httpx
import pytest

from tests.servers.client_site import Site, client_site
from tests.servers.story import identity
from tests.waiting import PATIENCE, PATIENT

from .blocks import ROOT, blocks_of
from .runner import PROGRAMS, Command, steps_of

PAGE: Final = "docs/how-to/programs-log-in.md"
FILES: Final = {block.marks["file"]: block.text for block in blocks_of(PAGE) if "file" in block.marks}
INSTANCE: Final = {"api-version": "2021-02-01"}


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with client_site() as site:
        site.ask("POST", "auth/cloud/role/web", {"bound_resource_groups": ["prod"]})
        site.ask("POST", "auth/cloud/role/anywhere", {"bound_service_principal_ids": "*"})
        yield site


def test_the_unit_starts_what_the_page_tried() -> None:
    unit = configparser.ConfigParser(interpolation=None)
    unit.read_string(FILES["shop.service"])
    program, *words = shlex.split(unit["Service"]["ExecStart"])
    tried = [step.text for step in steps_of((ROOT / PAGE).read_text()) if isinstance(step, Command)]
    assert program == "/usr/local/bin/cloudid"
    assert shlex.join(["cloudid", *words]) in tried


def test_a_pod_logs_in_with_the_command_of_the_page(site: Site, tmp_path: Path) -> None:
    [command] = re.findall(r"^ *command: (\[.*\])$", FILES["shop.yaml"], re.MULTILINE)
    (tmp_path / "shop.py").write_text(FILES["shop.py"])
    token = tmp_path / "token"
    token.write_text(site.cluster.token(time.time()))
    environment = site.of_pod(str(token)) | {
        "PATH": os.pathsep.join((str(PROGRAMS), str(Path(sys.executable).parent), os.environ["PATH"])),
        "PYTHONPATH": str(ROOT),
        "VAULT_ADDR": site.url,
    }
    ran = subprocess.run(
        json.loads(command), cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("renewed for ")


def test_the_agent_logs_in_with_what_the_page_configures(site: Site) -> None:
    """It sends all that the metadata service knows of the machine."""
    method = _plain(hcl2.loads(FILES["agent.hcl"]))["auto_auth"][0]["method"][0]["azure"]
    config = method["config"]
    machine = f"{site.cloud.url}/machines/web"
    known = httpx.get(f"{machine}/metadata/instance", params=INSTANCE, headers={"Metadata": "true"}, **PATIENT).json()
    form = {
        "role": config["role"],
        "jwt": identity(site.cloud.url, "web", resource=config["resource"]),
        "vm_name": known["compute"]["name"],
        "vmss_name": known["compute"]["vmScaleSetName"],
        "subscription_id": known["compute"]["subscriptionId"],
        "resource_group_name": known["compute"]["resourceGroupName"],
    }
    answer = httpx.post(f"{site.url}/v1/{method['mount_path']}/login", json=form, **PATIENT)
    assert answer.json()["auth"]["token_policies"] == ["default"]


def _plain(value: Any) -> Any:
    """What the library read, without the quotes that it keeps."""
    if isinstance(value, dict):
        return {_plain(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value.strip('"') if isinstance(value, str) else value
