"""Pages about hosting: their commands fit the chart, and mounts use the credential that the page promises."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Final

import httpx
import pytest

from tests.pages.blocks import blocks_of
from tests.pages.runner import commands, facts_of, is_shown, outputs
from tests.servers.running import SERVERS, Running
from tests.waiting import PATIENT

from .test_chart import CHART, of_kind, requires_helm

AKS: Final = "docs/hosting/aks.md"
CONTAINER_APPS: Final = "docs/hosting/container-apps.md"


def words_of(page: str, program: str) -> list[str]:
    [text] = [
        command.text
        for block in blocks_of(page, "console")
        for command in commands(block)
        if command.text.startswith(f"{program} ")
    ]
    return shlex.split(text.replace("\\\n", ""))


@pytest.mark.long
@requires_helm
def test_aks_page_uses_the_image_and_the_secret_of_the_chart() -> None:
    words = words_of(AKS, "helm install")
    assert (CHART.parents[2] / words[3]).samefile(CHART)
    options = [word for word in words[4:] if word not in ("--namespace", "cloudid", "--wait")]
    service = of_kind("Service", *options)
    assert service["metadata"]["annotations"] == {"service.beta.kubernetes.io/azure-load-balancer-internal": "true"}
    account = of_kind("ServiceAccount", *options)
    assert "azure.workload.identity/client-id" in account["metadata"]["annotations"]
    settings = of_kind("ConfigMap", *options)["data"]["cloudid.toml"]
    secret = words_of(AKS, "kubectl --namespace cloudid create secret")
    given = {word for option, word in pairwise(secret) if option == "--from-file"}
    assert set(re.findall(r'"/run/secrets/cloudid/([^"]+)"', settings)) == given


@contextmanager
def server(name: str, environment: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    with Running(f"cloudid_servers.{name}", "--dev", "--listen", "127.0.0.1:0", environment=environment) as running:
        yield facts_of(running)[:3]


def check_mounts(page: str, at: tuple[str, str, str], folder: Path, source: str) -> None:
    """Run the page's commands that configure both mounts; then both use the credential."""
    url, token, simulator = at
    world = httpx.get(f"{simulator}/simulator/world", **PATIENT).json()
    client = world["applications"][0]["client_id"]
    names = dict.fromkeys(("LOGINS", "ENGINE", "IDENTITY"), client)
    names |= {"TENANT": world["tenant"], "SUBSCRIPTION": world["subscriptions"][0], "ROOT_TOKEN": token}
    [block] = [block for block in blocks_of(page, "console") if "cloud/config" in block.text]
    [export, *writes] = commands(block)
    assert export.text.startswith("export VAULT_ADDR=")
    for command, (came, status) in zip(
        writes, outputs([*writes], folder, {**names, "VAULT_ADDR": url, "VAULT_TOKEN": token}), strict=True
    ):
        assert (status, is_shown(command.shown, came)) == (0, True), came
    for mount in ("auth/cloud", "cloud"):
        answer = httpx.get(f"{url}/v1/{mount}/rotation", headers={"X-Vault-Token": token}, **PATIENT).json()
        assert answer["data"]["credential_source"] == source


@pytest.mark.parametrize("name", SERVERS)
def test_mounts_on_aks_use_the_token_of_the_service_account(name: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a.b.c")
    with server(name, {"AZURE_FEDERATED_TOKEN_FILE": str(tmp_path / "token")}) as at:
        check_mounts(AKS, at, tmp_path, "federated_token_file")


@pytest.mark.parametrize("name", SERVERS)
def test_mounts_on_container_apps_use_the_managed_identity(name: str, tmp_path: Path) -> None:
    with server(name, {"IDENTITY_ENDPOINT": "http://127.0.0.1:9/msi", "IDENTITY_HEADER": "h"}) as at:
        check_mounts(CONTAINER_APPS, at, tmp_path, "managed_identity")
