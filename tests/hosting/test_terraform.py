"""The Terraform file of the app registrations grants what the features need, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
from typing import Any, Final

import hcl2
import pytest

from tests.pages.blocks import ROOT
from tests.reference.parts import PARTS
from tests.waiting import PATIENCE

FOLDER: Final = ROOT / "deploy/terraform"


def resource(kind: str, name: str) -> dict[str, Any]:
    parsed: Any = hcl2.loads((FOLDER / "main.tf").read_text())
    [found] = [each[kind][name] for each in unquoted(parsed)["resource"] if name in each.get(kind, {})]
    return dict(found)


def unquoted(value: Any) -> Any:
    """The parsed file without the quotes that the library keeps."""
    if isinstance(value, dict):
        return {unquoted(name): unquoted(each) for name, each in value.items()}
    if isinstance(value, list):
        return [unquoted(each) for each in value]
    return value.strip('"') if isinstance(value, str) else value


@pytest.mark.parametrize(("name", "part"), [("logins", "login_role"), ("engine", "engine_role")])
def test_roles_have_the_actions_that_the_features_need(name: str, part: str) -> None:
    """Those of the commands that connect a tenant by hand."""
    [permissions] = resource("azurerm_role_definition", name)["permissions"]
    needed = [line.strip(' ",') for line in PARTS[part]().splitlines() if line.strip().startswith('"Microsoft.')]
    assert permissions["actions"] == needed
    assert len(needed) == 5


def test_the_engine_may_only_change_app_registrations_that_it_owns() -> None:
    assert "Application.ReadWrite.OwnedBy" in resource("azuread_app_role_assignment", "engine")["app_role_id"]
    assert "Application.ReadWrite.OwnedBy" in PARTS["engine_permissions"]()


def test_no_client_secret_is_created() -> None:
    assert "password" not in (FOLDER / "main.tf").read_text()


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("terraform"), reason="terraform is missing: install Terraform")
def test_terraform_accepts_the_format() -> None:
    command = ["terraform", f"-chdir={FOLDER}", "fmt", "-check", "-diff"]
    formatted = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert (formatted.returncode, formatted.stdout) == (0, "")
