"""The manifest for Azure Container Apps: a server starts with its settings, and its parts fit each other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import httpx
import yaml  # type: ignore[import-untyped]

from cloudid_servers.settings.settings import read_file
from tests.pages.blocks import ROOT
from tests.servers.running import Running
from tests.waiting import PATIENT

MANIFEST: Final[dict[str, Any]] = yaml.safe_load((ROOT / "deploy/container-apps/cloudid.yaml").read_text())
CONFIGURATION: Final = MANIFEST["properties"]["configuration"]
TEMPLATE: Final = MANIFEST["properties"]["template"]
[CONTAINER] = TEMPLATE["containers"]
SECRETS: Final = {secret["name"]: secret for secret in CONFIGURATION["secrets"]}
FILES: Final = {item["path"]: item["secretRef"] for item in TEMPLATE["volumes"][0]["secrets"]}
SETTINGS: Final[str] = SECRETS["settings"]["value"]
PLACEHOLDERS: Final = {"SUBSCRIPTION", "GROUP", "ENVIRONMENT", "REGISTRY", "KEYVAULT", "DATABASE", "VERSION"}


def test_the_server_accepts_the_settings_of_the_manifest(tmp_path: Path) -> None:
    (tmp_path / "cloudid.toml").write_text(SETTINGS)
    server = read_file(tmp_path / "cloudid.toml").server
    assert server.allow_plain_http
    assert TEMPLATE["terminationGracePeriodSeconds"] > server.drain


def test_secrets_of_the_manifest_are_the_files_of_its_settings() -> None:
    folder = CONTAINER["volumeMounts"][0]["mountPath"]
    named = set(re.findall(rf'"{folder}/([^"]+)"', SETTINGS)) | {Path(CONTAINER["args"][-1]).name}
    assert named == {*FILES}
    assert {*FILES.values()} == {*SECRETS}
    assert TEMPLATE["volumes"][0]["name"] == CONTAINER["volumeMounts"][0]["volumeName"]


def test_probes_of_the_manifest_are_answered_by_a_server(tmp_path: Path) -> None:
    """The ingress and the probes use the port that the settings listen at."""
    probes = {probe["type"]: probe for probe in CONTAINER["probes"]}
    [port] = re.findall(r'^listen = "0\.0\.0\.0:(\d+)"$', SETTINGS, re.MULTILINE)
    ports = {(probe.get("httpGet") or probe["tcpSocket"])["port"] for probe in probes.values()}
    assert {*ports, CONFIGURATION["ingress"]["targetPort"]} == {int(port)}
    with Running("cloudid_servers.trio_server", "--dev", "--listen", "127.0.0.1:0") as running:
        path = probes["Readiness"]["httpGet"]["path"]
        assert httpx.get(f"{running.url}{path}", **PATIENT).status_code == 200


def test_the_manifest_names_what_its_readers_replace() -> None:
    text = (ROOT / "deploy/container-apps/cloudid.yaml").read_text()
    comment, _, body = text.partition("location:")
    assert set(re.findall(r"\b[A-Z]{5,}\b", body)) == PLACEHOLDERS
    assert [name for name in PLACEHOLDERS if name not in comment] == []
