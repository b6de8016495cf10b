"""`export`: a folder that makes the same service on an empty store, and what is told of an existing one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import httpx
import pytest

from cloudid_core.forms import NOT_OFFERED
from cloudid_core.messages import Operation
from cloudid_core.routing.left_out import reason_of
from cloudid_servers.paths import route_at

from ..client_site import ROOT as ROOT_TOKEN
from ..client_site import Site
from ..deployment import Deployment
from ..existing_service import existing_service
from ..running import ROOT
from .shell import Shell


def test_a_token_that_may_read_nothing_exports_nothing_and_fails(cloudid: Shell, tmp_path: Path) -> None:
    cloudid.set(VAULT_TOKEN="ended")
    shown = cloudid("export", str(tmp_path / "exported"))
    assert (shown.code, shown.err.startswith("error: nothing was exported: ")) == (1, True)
    assert {row["path"] for row in shown.json} >= {"sys/mounts", "sys/auth"}


def test_apply_and_export_rebuild_a_service(site: Site, cloudid: Shell, tmp_path: Path) -> None:
    """Machines log in at the new one and credentials are lent, as at the old one."""
    quota, header = "sys/quotas/rate-limit/Web", "sys/config/auditing/request-headers/X-Trace"
    site.ask("POST", quota, {"rate": 100.5, "path": "auth/cloud"})
    site.ask("POST", header, {"hmac": True})
    site.ask("POST", "sys/mounts/team/lent", {"type": "azure", "config": {"max_leases": 3}})
    site.ask("POST", "sys/auth/old", {"type": "azure"})
    site.ask("POST", "auth/old/config", {"tenant_id": "t", "resource": "r", "retry_delay": 7})
    other = {"application_object_id": site.world["applications"][1]["object_id"], "rotation_period": "30d"}
    site.ask("POST", "cloud/static-roles/deploy", other)
    site.ask("POST", "auth/token/roles/app", {"allowed_policies": "app"})
    site.ask("POST", "sys/policies/acl/nothing", {"policy": ""})
    site.ask("POST", "identity/oidc/role/shop", {"client_id": "https://shop.example", "ttl": 600})
    cloudid.set(VAULT_TOKEN=ROOT_TOKEN)
    site.ask("POST", "sys/audit/file", {"type": "file", "options": {"file_path": str(tmp_path / "audit.log")}})
    assert {row["field"] for row in cloudid("export", str(tmp_path / "audited")).json} == {"client_secret"}
    site.ask("DELETE", "sys/audit/file")
    folder = tmp_path / "exported"
    shown = cloudid("export", str(folder))
    assert (shown.code, [row["field"] for row in shown.json]) == (0, ["client_secret"] * 2), shown.err
    secret = site.application["client_secret"]
    assert secret not in "".join(path.read_text() for path in folder.rglob("*.*"))
    assert "ttl = 600" in (folder / "identity/oidc/role/shop.toml").read_text()
    assert (folder / "sys/policies/acl/nothing.toml").read_text() == 'policy = ""\n'
    cloudid.set(AUTH_CLOUD_CLIENT_SECRET=secret, CLOUD_CLIENT_SECRET=secret)
    assert [row["field"] for row in cloudid("apply", str(folder), "--dry-run").json] == ["client_secret"] * 2
    assert cloudid("export", str(folder)).err == f"error: {folder} is not empty\n"

    place = tmp_path / "server"
    place.mkdir()
    deployment = Deployment.prepare("trio_server", place, site.cloud.url, {})
    deployment.identify()
    with deployment.serving() as server, deployment.client(server) as client:
        cloudid.set(VAULT_ADDR=server.url, VAULT_TOKEN=deployment.root)
        assert cloudid("apply", str(folder)).code == 0
        assert client.post("auth/cloud/login", json=deployment.form).status_code == 200
        lent = client.get("cloud/creds/reader")
        assert lent.status_code == 200
        again = tmp_path / "again"
        assert cloudid("export", str(again)).code == 0
        files = {path.relative_to(folder): path.read_text() for path in folder.rglob("*.*")}
        del files[Path(".cloudid-folder")]  # the id of the folder that was applied
        assert {path.relative_to(again): path.read_text() for path in again.rglob("*.*")} == files
        client.post("sys/leases/revoke", json={"lease_id": lent.json()["lease_id"]})


def test_the_mounts_of_an_existing_service_move_here(site: Site, cloudid: Shell, tmp_path: Path) -> None:
    """What cannot is told by its name; what can is applied as it is, but for what the provider has to have."""
    with existing_service() as existing:
        cloudid.set(VAULT_ADDR=existing, VAULT_TOKEN="s.x")
        shown = cloudid("export", str(tmp_path / "moved"))
    assert shown.code == 0, shown.err
    assert {(row["path"], row["field"]) for row in shown.json} == {
        ("sys/auth/approle", "type"),
        ("sys/auth/../x", ""),
        ("sys/mounts/kv", "type"),
        ("auth/azure/config", "rotation_policy"),
        ("auth/azure/config", "client_secret"),
        ("auth/azure/role/web", "alias_metadata"),
        ("azure/config", "rotation_policy"),
        ("azure/config", "client_secret"),
        ("sys/policies/acl/odd", "policy"),
    }
    config = (tmp_path / "moved/auth/azure/config.toml").read_text()
    assert "rotation_period = 86400\n" in config
    assert "retry_delay" not in config, "the default, in nanoseconds"
    role = (tmp_path / "moved/azure/roles/reader.toml").read_text()
    assert 'role_name = "Reader"' in role
    assert "application_object_id" not in role, "it is made anew"
    (tmp_path / "moved/azure/roles/reader.toml").unlink()  # the simulated cloud has no such subscription
    cloudid.set(VAULT_ADDR=site.url, VAULT_TOKEN=ROOT_TOKEN)
    cloudid.set(AUTH_AZURE_CLIENT_SECRET="x", AZURE_CLIENT_SECRET="x")
    shown = cloudid("apply", str(tmp_path / "moved"))
    assert shown.code == 0, shown.err
    assert cloudid("apply", str(tmp_path / "moved"), "--dry-run").json == []


PAGE: Final = ROOT / "docs/how-to/move-from-vault.md"
ROWS: Final = re.findall(r"^\| `([^`]+)` \| (\w+) \|([^|]*)\|", PAGE.read_text(), re.MULTILINE)
REFUSED: Final = [(path, name) for path, _, names in ROWS for name in re.findall(r"`(\w+)`", names)]


@pytest.mark.parametrize(("path", "here"), [row[:2] for row in ROWS])
def test_the_page_says_which_paths_are_here(path: str, here: str) -> None:
    """Equal paths have a route; absent ones have none and, but for other engines, a reason that who asks is told."""
    has_route = any(route_at(path.replace("NAME", "x"), operation) for operation in Operation)
    is_left_out = bool(reason_of(path)) or path.startswith("kv/")
    assert (here, has_route, is_left_out) in (("equal", True, False), ("absent", False, True))


def test_the_page_has_every_kind_of_path() -> None:
    assert {here for _, here, _ in ROWS} == {"equal", "absent"}


@pytest.mark.parametrize(("path", "name"), REFUSED)
def test_the_page_says_which_fields_are_refused(site: Site, path: str, name: str) -> None:
    value = {name: "true"}
    body = {"type": "file", "options": {"file_path": "x", **value}} if path.startswith("sys/audit/") else value
    with pytest.raises(httpx.HTTPStatusError) as refusal:
        site.ask("POST", path.replace("azure", "cloud").replace("NAME", "x"), body)
    answer = refusal.value.response
    assert (answer.status_code, f'"{name}" must be' in " ".join(answer.json()["errors"])) == (400, True), answer.text


def test_the_page_has_every_field_that_is_not_offered() -> None:
    assert {*NOT_OFFERED} <= {name for _, name in REFUSED}
