"""The Helm chart: Helm renders it, Kubernetes' schemas accept it, and it fits the server and its image."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
import yaml  # type: ignore[import-untyped]

from cloudid_servers.settings.settings import read_file
from cloudid_servers.stores.postgres.temporary import free_port
from tests.servers.running import SERVERS, Running
from tests.waiting import PATIENCE

CHART: Final = Path(__file__).parents[2] / "deploy/helm/cloudid"
KUBERNETES: Final = "1.31"
STORE: Final = "postgresql://cloudid@db.example.com/cloudid?sslmode=verify-full"
REQUIRED: Final = ("--set", "image.repository=example.azurecr.io/cloudid", "--set-string", f"store={STORE}")
EVERYTHING: Final = ("--set", "serviceMonitor.enabled=true", "--set-string", "workloadIdentityClientId=1")

requires_helm = pytest.mark.skipif(shutil.which("helm") is None, reason="helm is missing: `make chart` builds it")
pytestmark = [pytest.mark.long, requires_helm]


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["helm", *arguments], capture_output=True, text=True, timeout=PATIENCE)


def rendered(*options: str) -> list[dict[str, Any]]:
    shown = helm("template", "cloudid", str(CHART), *REQUIRED, *options)
    assert shown.returncode == 0, shown.stderr
    return [found for found in yaml.safe_load_all(shown.stdout) if found]


def of_kind(kind: str, *options: str) -> dict[str, Any]:
    return next(found for found in rendered(*options) if found["kind"] == kind)


def test_helm_accepts_the_chart() -> None:
    linted = helm("lint", "--strict", str(CHART), *REQUIRED)
    assert linted.returncode == 0, linted.stdout


@pytest.mark.parametrize("family", ["IPv4", "IPv6", "Dual"])
def test_kubernetes_schemas_accept_every_resource(family: str) -> None:
    schemas = pytest.importorskip(
        "kubernetes_validate", reason="kubernetes-validate is missing: `make chart` installs it"
    )
    for found in rendered(*EVERYTHING, "--set", f"ipFamily={family}"):
        if found["kind"] != "ServiceMonitor":  # of the Prometheus operator, which has schemas of its own
            schemas.validate(found, KUBERNETES, strict=True)


def test_the_server_accepts_the_settings(tmp_path: Path) -> None:
    text = of_kind("ConfigMap", "--set-string", "serviceSettings.issuer=https://id.example.com")["data"]["cloudid.toml"]
    (tmp_path / "cloudid.toml").write_text(text)
    assert read_file(tmp_path / "cloudid.toml").server.store == STORE
    assert tomllib.loads(text)["service"] == {"issuer": "https://id.example.com"}


def test_the_pod_is_given_time_to_drain() -> None:
    pod = of_kind("Deployment", "--set", "drainSeconds=50,preStopSeconds=7")["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] > 50 + 7


def test_the_pod_runs_without_root_on_a_read_only_file_system() -> None:
    pod = of_kind("Deployment")["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["runAsUser"] == pod["securityContext"]["fsGroup"] == 65532
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert "env" not in container  # secrets are mounted as files


def alive(port: int, timeout: float) -> bool:
    """Return what the liveness probe says of the metrics listener at a port of this machine, with another timeout."""
    [container] = of_kind("Deployment")["spec"]["template"]["spec"]["containers"]
    [_, option, script] = container["livenessProbe"]["exec"]["command"]
    script = script.replace('"cloudid", 9102, timeout=8', f'"127.0.0.1", {port}, timeout={timeout}')
    return subprocess.run([sys.executable, option, script], capture_output=True, timeout=PATIENCE).returncode == 0


@pytest.mark.parametrize("server", SERVERS)
def test_a_server_that_answers_is_alive(server: str, tmp_path: Path) -> None:
    port = free_port()
    (tmp_path / "cloudid.toml").write_text(f'[server]\nmetrics_listen = "127.0.0.1:{port}"\n')
    options = ("--dev", "--listen", "127.0.0.1:0", "--settings", str(tmp_path / "cloudid.toml"))
    with Running(f"cloudid_servers.{server}", *options):
        assert alive(port, PATIENCE)


def test_a_server_whose_event_loop_stands_still_is_not_alive() -> None:
    """The kernel accepts its connections, and no one answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert not alive(silent.getsockname()[1], 1.0)
