"""The document that the module prints."""

from __future__ import annotations

import json
import runpy
import sys

import pytest


def test_the_module_prints_the_document(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Built-in mounts are at their paths, and the others have parameters for theirs."""
    monkeypatch.delitem(sys.modules, "cloudid_core.documents", raising=False)
    runpy.run_module("cloudid_core.documents", run_name="__main__")
    paths = json.loads(capsys.readouterr().out)["paths"]
    assert {"/sys/health", "/auth/{cloud_mount_path}/login", "/{cloud_mount_path}/creds/{name}"} <= paths.keys()
