"""A server on a simulated cloud for each module, and a shell whose commands go to it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..client_site import Site, client_site
from .shell import Shell

FAILING = [{"match": {"method": "DELETE"}, "times": None, "action": {"status": 403, "code": "Refused"}}]


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with client_site() as site:
        yield site


@pytest.fixture
def nothing_inherited(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [*os.environ]:
        if name.startswith(("ARM_", "AZURE_", "IDENTITY_", "IMDS_", "MSI_", "VAULT_", "CLOUDID_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def cloudid(
    site: Site, nothing_inherited: None, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Shell:
    return Shell(site.url, monkeypatch, capfd)


@pytest.fixture
def broken_cloud(site: Site) -> Iterator[None]:
    """Nothing can be deleted there."""
    site.ask("POST", "cloud/config", {"max_retries": 0})
    site.simulate("POST", "faults", FAILING)
    yield
    site.simulate("POST", "faults", [])
    site.ask("POST", "sys/leases/revoke-force/cloud")
