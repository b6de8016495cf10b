"""A node of the release before and one of this release over one database, under load.

The formats differ: the newer node refuses to open and says why, the older one serves on, and nothing is lost.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final

import httpx
import psycopg
import pytest

from tests.servers.load import Load
from tests.servers.running import PATIENCE, ROOT, SERVERS, Running
from tests.servers.story import ROOT as ROOT_TOKEN
from tests.stores.cluster import Cluster
from tests.stores.test_served import prepared, written
from tests.waiting import PATIENT

pytestmark = [pytest.mark.long, pytest.mark.one_server]

BEFORE: Final = "89c10ec"
"""The last commit whose stores have the first format."""

ENOUGH: Final = 30
OLDER: Final = ("UPDATE cloudid.format SET version = 1", "ALTER TABLE cloudid.format DROP COLUMN release")


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the release before."""
    archived = subprocess.run(["git", "archive", BEFORE], cwd=ROOT, capture_output=True, check=False)
    if archived.returncode:
        pytest.skip("git does not have the release before")
    folder = tmp_path_factory.mktemp("older")
    with tarfile.open(fileobj=io.BytesIO(archived.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def run_older(older: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", *arguments],
        cwd=older,
        env={**os.environ, "PYTHONPATH": str(older)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def url_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("listening on "):
            return line.removeprefix("listening on ").strip()
    raise AssertionError("the older node ended before it was ready")


@pytest.mark.parametrize("server", SERVERS)
def test_a_newer_node_waits_for_the_end_of_the_older_ones(
    server: str, older: Path, cluster: Cluster, tmp_path: Path
) -> None:
    with cluster.database() as address:
        settings = written(tmp_path, address)
        prepared(settings)
        with psycopg.connect(address, autocommit=True) as connection:
            for statement in OLDER:
                connection.execute(statement)
        node = run_older(older, f"servers.{server}", "--settings", str(settings))
        try:
            url = url_of(node)
            request = httpx.Request(
                "POST",
                f"{url}/v1/auth/token/create",
                headers={"x-service-token": ROOT_TOKEN},
                json={"policies": ["default"]},
            )
            newer = [sys.executable, "-m", f"cloudid_servers.{server}", "--settings", str(settings)]
            with Load(request, request, may_fail=False) as load:
                load.wait_for_more(ENOUGH)
                ended = subprocess.run(newer, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
                load.wait_for_more(ENOUGH)
            assert ended.returncode == 1
            assert "nodes of an older release use the store" in ended.stderr
        finally:
            node.terminate()
            node.communicate(timeout=PATIENCE)
        with Running(f"cloudid_servers.{server}", "--settings", str(settings)) as running:
            with httpx.Client(base_url=running.url, **PATIENT) as client:
                for answer in load.answers:
                    headers = {"x-service-token": answer["auth"]["client_token"]}
                    client.get("/v1/auth/token/lookup-self", headers=headers).raise_for_status()
            late = run_older(older, f"servers.{server}", "--settings", str(settings))
            said, _ = late.communicate(timeout=PATIENCE)
            assert late.returncode == 1
            assert "version 2 of the store's format, not 1" in said
