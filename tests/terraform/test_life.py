"""The whole life of everything that Terraform can make: it needs the program and the peer's provider, built.

    make terraform MIRROR=FOLDER

The folder is a mirror of the registry as Terraform's documentation describes it, with the provider's executable at
`registry.terraform.io/hashicorp/vault/VERSION/linux_amd64/terraform-provider-vault_vVERSION`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from attrs import frozen

from cloudid_servers.provider_simulator import Simulator, start
from tests.servers.running import SERVERS, Running
from tests.waiting import PATIENCE, PATIENT

pytestmark = pytest.mark.long  # only `make terraform` has what it needs

CONFIGURATION: Final = Path(__file__).parent / "main.tf"
PROVIDER: Final = "registry.terraform.io/hashicorp/vault/*/*/terraform-provider-vault*"
CHANGED: Final = ("-var", "changed=true")
CLEAN, DIFFERENT = 0, 2
"""What `terraform plan -detailed-exitcode` answers."""

IMPORTS: Final = {
    "vault_policy.app": "Team/App",
    "vault_auth_backend.login": "tf-login",
    "vault_azure_auth_backend_config.login": "auth/tf-login/config",
    "vault_azure_auth_backend_role.web": "auth/tf-login/role/web",
    "vault_azure_secret_backend.engine": "tf-cloud",
    "vault_mount.plain": "tf-plain/inner",
    "vault_token_auth_backend_role.ci": "auth/token/roles/CI",
    "vault_azure_secret_backend_static_role.kept": "tf-cloud/static-roles/kept",
    "vault_quota_rate_limit.login": "Tf-Login",
    "vault_quota_lease_count.engine": "Tf-Leases",
    "vault_audit.file": "tf",
}
"""The ids by which what exists is taken over. The provider cannot take over roles of engines, tokens and headers."""

NOT_IMPORTED: Final = {"client_secret", "disable_remount", "token_bound_cidrs"}
"""What an import does not have: no service reads a secret back, one is Terraform's own, and the provider itself gives
addresses a length."""


@frozen
class Workspace:
    """A folder of Terraform's beside a server."""

    folder: Path
    environment: dict[str, str]
    url: str

    def run(self, *arguments: str, expected: int = 0) -> str:
        """The output of a command that must end so."""
        done = subprocess.run(
            ["terraform", *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode == expected, f"terraform {' '.join(arguments)}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def apply(self, *arguments: str) -> None:
        self.run("apply", "-auto-approve", "-no-color", *arguments)

    def plan(self, expected: int, *arguments: str) -> None:
        self.run("plan", "-detailed-exitcode", "-no-color", *arguments, expected=expected)

    def changes(self, *arguments: str) -> dict[str, set[str]]:
        """The attributes that a plan changes, by resource; those of a resource that is made or removed are `*`."""
        self.run("plan", "-out", "plan", *arguments)
        planned = json.loads(self.run("show", "-json", "plan"))
        return {
            each["address"]: _different(each["change"])
            for each in planned["resource_changes"]
            if each["change"]["actions"] not in (["no-op"], ["read"])
        }

    def read(self, path: str) -> Any:
        answer = httpx.get(f"{self.url}/v1/{path}", headers={"X-Vault-Token": "root"}, **PATIENT)
        return answer.json() if answer.status_code == 200 else answer.status_code


def _different(change: Any) -> set[str]:
    if change["actions"] != ["update"]:
        return {"*"}
    return {name for name, value in change["after"].items() if change["before"].get(name) != value}


@pytest.fixture(params=SERVERS)
def workspace(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Workspace]:
    mirror: str | None = request.config.getoption("--terraform-mirror")
    if mirror is None or not any(
        Path(mirror).glob("registry.terraform.io/hashicorp/vault/*/*/terraform-provider-vault*")
    ):
        pytest.skip("no provider for Terraform: build it, and name its mirror with `make terraform MIRROR=FOLDER`")
    if shutil.which("terraform") is None:
        pytest.skip("no Terraform: install it from https://developer.hashicorp.com/terraform/install")
    settings = tmp_path / "terraform.rc"
    settings.write_text(
        f'provider_installation {{\n  filesystem_mirror {{\n    path = "{Path(mirror).resolve()}"\n  }}\n}}\n'
    )
    shutil.copy(CONFIGURATION, tmp_path)
    with start(Simulator()) as cloud:
        world = httpx.get(f"{cloud.url}/simulator/world", **PATIENT).json()
        own, other = world["applications"][:2]
        variables = {
            "tenant": world["tenant"],
            "subscription": world["subscriptions"][0],
            "client_id": own["client_id"],
            "client_secret": own["client_secret"],
            "application": other["object_id"],
            "group": "web-machines",
            "audit_file": str(tmp_path / "audit.log"),
        }
        (tmp_path / "terraform.tfvars.json").write_text(json.dumps(variables))
        arguments = ("--dev", "--listen", "127.0.0.1:0", "--root-token", "root", "--provider", cloud.url)
        with Running(f"cloudid_servers.{request.param}", *arguments) as server:
            # Nothing else of the environment: both programs read variables and proxies from it.
            environment = {
                "PATH": os.environ["PATH"],
                "HOME": str(tmp_path),
                "TF_CLI_CONFIG_FILE": str(settings),
                "TF_IN_AUTOMATION": "1",
                "CHECKPOINT_DISABLE": "1",
                "VAULT_ADDR": server.url,
                "VAULT_TOKEN": "root",
            }
            made = Workspace(tmp_path, environment, server.url)
            made.run("init", "-input=false")
            yield made


def test_everything_is_made_changed_imported_and_destroyed(workspace: Workspace) -> None:
    """After each step there is nothing more to do, and after the last nothing is left."""
    before = [workspace.read(path) for path in ("sys/mounts", "sys/auth", "sys/policies/acl?list=true", "sys/audit")]
    workspace.apply()
    workspace.plan(CLEAN)
    workspace.plan(DIFFERENT, *CHANGED)
    workspace.apply(*CHANGED)
    workspace.plan(CLEAN, *CHANGED)
    for address, own_id in IMPORTS.items():
        workspace.run("state", "rm", address)
        workspace.run("import", "-input=false", *CHANGED, address, own_id)
    assert {name for changed in workspace.changes(*CHANGED).values() for name in changed} <= NOT_IMPORTED
    workspace.apply(*CHANGED)
    workspace.plan(CLEAN, *CHANGED)
    for _ in range(2):
        workspace.run("destroy", "-auto-approve", *CHANGED)
    after = [workspace.read(path) for path in ("sys/mounts", "sys/auth", "sys/policies/acl?list=true", "sys/audit")]
    assert [_data(each) for each in after] == [_data(each) for each in before]


def test_what_others_removed_is_noticed_and_made_again(workspace: Workspace) -> None:
    workspace.apply()
    for path in ("auth/tf-login/role/web", "tf-cloud/roles/existing", "sys/quotas/rate-limit/Tf-Login"):
        httpx.delete(f"{workspace.url}/v1/{path}", headers={"X-Vault-Token": "root"}, **PATIENT)
    assert set(workspace.changes()) == {
        "vault_azure_auth_backend_role.web",
        "vault_azure_secret_backend_role.existing",
        "vault_quota_rate_limit.login",
    }
    workspace.apply()
    workspace.plan(CLEAN)


def _data(answer: Any) -> Any:
    return answer["data"] if isinstance(answer, dict) else answer
