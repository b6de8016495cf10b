"""The jobs of the page about pipelines: their steps run as a runner would run them, on a simulated cloud."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml  # type: ignore[import-untyped]

from tests.servers.client.test_service import Fake
from tests.servers.client_site import Site, client_site
from tests.waiting import PATIENCE, wait_until

from .blocks import ROOT, blocks_of
from .runner import PROGRAMS

PAGE: Final = "docs/how-to/in-a-pipeline.md"
FILES: Final = {
    block.marks["file"]: yaml.safe_load(block.text) for block in blocks_of(PAGE, "yaml") if "file" in block.marks
}
NAMES: Final = ("CLIENT_ID", "CLIENT_SECRET", "TENANT_ID", "SUBSCRIPTION_ID")
TERRAFORM: Final = f"""#!/bin/sh
test -z "$CLOUDID_TOKEN$VAULT_TOKEN" && printf '%s\\n' "$*" {" ".join(f'"$ARM_{name}"' for name in NAMES)} > seen
"""


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with client_site() as site:
        policy = next(block.text for block in blocks_of(PAGE) if block.marks.get("file") == "ci.hcl")
        site.ask("POST", "sys/policies/acl/ci", {"policy": policy})
        site.ask("POST", "auth/cloud/role/ci", {"bound_service_principal_ids": "*", "token_policies": "ci"})
        site.ask("POST", "cloud/roles/deploy", site.ask("GET", "cloud/roles/reader")["data"])
        yield site


class Runner:
    """A runner: an empty folder, and the variables that a job's steps share."""

    def __init__(self, site: Site, folder: Path) -> None:
        self.site, self.folder = site, folder
        programs = folder / "programs"
        programs.mkdir()
        (programs / "terraform").write_text(TERRAFORM)
        (programs / "terraform").chmod(0o755)
        self.shared = {
            "PATH": os.pathsep.join(map(str, (programs, PROGRAMS, Path(sys.executable).parent, os.environ["PATH"]))),
            "PYTHONPATH": str(ROOT),
            "HOME": str(folder),
            "SIMULATOR": site.cloud.url,
            "AZURE_AUTHORITY_HOST": site.of_pod("")["AZURE_AUTHORITY_HOST"],
            "RUNNER_TEMP": str(folder),
            "GITHUB_ENV": str(folder / "github.env"),
        }

    def run(self, script: str, variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """Run a step. Addresses and ids that stand for the reader's own are those of the simulated cloud."""
        real = {**self.site.of_pod(""), "CLOUDID_ADDR": self.site.url}
        given = {name: real.get(name, value) for name, value in variables.items()}
        ran = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", script],
            cwd=self.folder,
            env={**self.shared, **given},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert ran.returncode == 0, ran.stderr
        return ran

    @property
    def seen(self) -> list[str]:
        """What Terraform was started with: its words, and its variables."""
        return (self.folder / "seen").read_text().splitlines()

    def check(self, words: str) -> None:
        seen, world = self.seen, self.site.world
        assert seen[0] == words
        assert all(seen)
        assert seen[3:] == [world["tenant"], world["subscriptions"][0]]

    def check_logged_out(self) -> None:
        """Neither token nor credentials outlive the job."""
        token = json.loads((self.folder / ".cloudid-token").read_text())["token"]
        with pytest.raises(Exception, match="403"):
            self.site.ask("GET", "auth/token/lookup-self", token=token)
        wait_until(lambda: not self.site.alive())


@pytest.fixture
def runner(site: Site, tmp_path: Path) -> Runner:
    """One for each job."""
    return Runner(site, tmp_path)


def test_the_job_of_github_logs_in_applies_and_logs_out(site: Site, runner: Runner) -> None:
    job = FILES["deploy.yml"]["jobs"]["deploy"]
    assert FILES["deploy.yml"]["permissions"]["id-token"] == "write"
    steps = {step["name"]: step for step in job["steps"] if "run" in step}
    with Fake([(200, {}, json.dumps({"value": site.cluster.token(time.time())}).encode())]).serving() as fake:
        system = {"ACTIONS_ID_TOKEN_REQUEST_URL": f"{fake.url}/?run=1", "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "t"}
        runner.run(steps["Log in"]["run"], {**job["env"], **steps["Log in"]["env"], **system})
        [(_, path, headers, _)] = fake.requests
    assert (path, headers["authorization"]) == ("/?run=1&audience=api://AzureADTokenExchange", "Bearer t")
    runner.run(steps["Apply"]["run"], job["env"])
    runner.check("apply -auto-approve")
    first, second = FILES["steps.yml"]
    ran = runner.run(first["run"], job["env"])
    handed_on = dict(line.split("=", 1) for line in (runner.folder / "github.env").read_text().splitlines())
    assert f"::add-mask::{handed_on['ARM_CLIENT_SECRET']}" in ran.stderr.splitlines()
    runner.shared |= handed_on
    runner.run(second["run"], job["env"])
    runner.check("plan")
    runner.run(steps["Log out"]["run"], job["env"])
    runner.check_logged_out()


def test_the_job_of_gitlab_logs_in_applies_and_logs_out(site: Site, runner: Runner) -> None:
    job: Any = FILES[".gitlab-ci.yml"]["deploy"]
    [name] = job["id_tokens"]
    runner.run("\n".join(job["script"]), {**job["variables"], name: site.cluster.token(time.time())})
    runner.check("apply -auto-approve")
    runner.run("\n".join(job["after_script"]), job["variables"])
    runner.check_logged_out()


def test_the_job_of_azure_devops_logs_in_applies_and_logs_out(runner: Runner) -> None:
    pipeline = FILES["azure-pipelines.yml"]
    [step] = pipeline["steps"]
    runner.run(step["inputs"]["inlineScript"], pipeline["variables"])
    runner.check("apply -auto-approve")
    runner.check_logged_out()


def test_a_command_that_logs_az_in_gets_what_it_needs() -> None:
    """What it names is what `--exec` sets."""
    [command] = [block.text for block in blocks_of(PAGE, "console") if "az login" in block.text]
    named = set(re.findall(r"\$([A-Z_]+)", command))
    assert named == {f"ARM_{name}" for name in ("CLIENT_ID", "CLIENT_SECRET", "TENANT_ID")}
