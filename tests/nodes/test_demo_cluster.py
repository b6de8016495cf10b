"""The demo of a cluster: it shows what is promised of several nodes, kills one, and leaves nothing behind."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import Final

import pytest

from cloudid_servers.stores.etcd.temporary import HOW
from tests.servers.running import ROOT
from tests.stores.cluster import Cluster
from tests.waiting import PATIENCE

STEPS: Final = (
    "/v1/auth/cloud/login -> 200",
    "/v1/auth/token/revoke-self -> 204",
    "/v1/auth/token/lookup-self -> 403",
    "/v1/cloud/creds/reader -> 200",
    "is killed (kill -9)",
    "objects at the provider: 0",
)


@pytest.mark.parametrize("store", ["", pytest.param("etcd", marks=pytest.mark.long)])
def test_the_demo_of_a_cluster_tells_its_story_to_the_end(cluster: Cluster, store: str) -> None:
    """Where PostgreSQL is installed, which `cluster` finds out."""
    if store == "etcd" and shutil.which("etcd") is None:
        pytest.skip(HOW)
    command = [sys.executable, "-m", "cloudid_servers.demo_cluster", store]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    places = [ran.stdout.find(step) for step in STEPS]
    assert places == sorted(places)
    assert places[0] > 0
