"""`apply` on a server and a simulated cloud: what it shows, what it writes, and what it leaves alone."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from ..client_site import POLICY, Site
from ..client_site import ROOT as ROOT_TOKEN
from ..deployment import Deployment
from ..running import ROOT, Running, wait_until
from .shell import Shell

Fill = Callable[[Mapping[str, str]], str]


@pytest.fixture
def operator(cloudid: Shell) -> Shell:
    cloudid.set(VAULT_TOKEN=ROOT_TOKEN)
    return cloudid


@pytest.fixture
def fill(tmp_path: Path) -> Fill:
    """Puts files into a folder, and answers its name."""
    folder = tmp_path / "service"

    def put(files: Mapping[str, str]) -> str:
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        return str(folder)

    return put


def a_service(site: Site, mount: str) -> dict[str, str]:
    """One file of each kind; its mounts are called so."""
    subscription = site.world["subscriptions"][0]
    return {
        f"sys/auth/{mount}.toml": 'type = "cloud"\ndescription = "machines"\n[config]\nmax_lease_ttl = "2h"\n',
        f"sys/mounts/team/{mount}.toml": 'type = "azure"\n[config]\nmax_leases = 5\n',
        f"auth/{mount}/config.toml": f'tenant_id = "{site.world["tenant"]}"\nresource = "https://x"\n',
        f"auth/{mount}/role/web.toml": f'bound_subscription_ids = "{subscription}"\ntoken_ttl = "1h"\n',
        f"sys/policies/acl/{mount}.hcl": 'path "cloud/creds/*" { capabilities = ["read"] }\n',
        f"auth/token/roles/{mount}.toml": 'allowed_policies = ["default"]\n',
        f"sys/quotas/rate-limit/{mount}.toml": f'rate = 100\npath = "auth/{mount}"\n',
        f"sys/config/auditing/request-headers/x-{mount}.toml": "hmac = true\n",
        "sys/quotas/config.toml": "enable_rate_limit_response_headers = true\n",
    }


def test_a_folder_is_applied_once(site: Site, operator: Shell, fill: Fill) -> None:
    folder = fill(a_service(site, "once"))
    shown = operator("apply", folder, "--dry-run")
    assert (shown.code, shown.err) == (3, "")
    assert {row["path"] for row in shown.json} == {name.rpartition(".")[0] for name in a_service(site, "once")}
    assert "once/" not in site.ask("GET", "sys/auth")["data"], "only shown"

    assert operator("apply", folder).code == 0
    assert site.ask("GET", "auth/once/role/web")["data"]["token_ttl"] == 3600
    assert site.ask("GET", "sys/auth")["data"]["once/"]["config"]["max_lease_ttl"] == 7200
    again = operator("apply", folder, "--dry-run")
    assert (again.code, again.json) == (0, [])


def test_what_differs_is_shown_and_written_and_nothing_else(site: Site, operator: Shell, fill: Fill) -> None:
    folder = fill(a_service(site, "drift"))
    assert operator("apply", folder).code == 0
    site.ask("POST", "auth/drift/role/web", {"token_ttl": 60, "token_max_ttl": 7200})
    site.ask("POST", "sys/mounts/team/drift/tune", {"max_leases": 9})
    expected = [
        {"path": "sys/mounts/team/drift", "field": "max_leases", "is": 9, "becomes": 5},
        {"path": "auth/drift/role/web", "field": "token_ttl", "is": 60, "becomes": "1h"},
    ]
    assert operator("apply", folder, "--dry-run").json == expected
    assert operator("apply", folder).json == expected
    role = site.ask("GET", "auth/drift/role/web")["data"]
    assert (role["token_ttl"], role["token_max_ttl"]) == (3600, 7200), "a field without a line stays as it is"
    shown = operator("apply", folder, "--dry-run", "--format", "table")
    assert (shown.code, shown.out) == (0, "nothing differs\n"), "and is no difference"


def test_grants_are_compared_as_the_provider_has_them(site: Site, operator: Shell, fill: Fill) -> None:
    [grant] = site.ask("GET", "cloud/roles/reader")["data"]["azure_roles"]
    by_name = f'azure_roles = [{{ role_name = "reader", scope = "{grant["scope"]}" }}]\n'
    by_id = f'azure_roles = [{{ role_id = "{grant["role_id"].rpartition("/")[2]}", scope = "{grant["scope"]}" }}]\n'
    for text in (by_name, by_id):
        assert operator("apply", fill({"cloud/roles/reader.toml": text}), "--dry-run").code == 0
    other = by_name.replace("reader", "Contributor")
    assert operator("apply", fill({"cloud/roles/reader.toml": other}), "--dry-run").code == 3


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("cloud/creds/reader.toml", "", "cloud/creds/reader is not a path where"),
        ("cloud/reconcile.toml", "", "cloud/reconcile is not a path where"),
        ("sys/mounts/auth/x.toml", "", "sys/mounts/auth/x is not a path where"),
        ("cloud/roles/x.hcl", "", "cloud/roles/x is not a path where"),
        ("sys/policies/acl/x.hcl", "", "sys/policies/acl/x.hcl is empty"),
        ("sys/policies/acl/x.hcl", "\ufeff \n", "sys/policies/acl/x.hcl is empty"),
        ("cloud/roles/x.toml", "canary", "cloud/roles/x.toml is not valid TOML: at end of document"),
        ("cloud/roles/x.toml", 'tttl = "canary"', "cloud/roles/x: there is no field tttl"),
        ("cloud/roles/x.toml", '\ufefftttl = "canary"', "cloud/roles/x: there is no field tttl"),
        ("sys/mounts/cloud.toml", "max_leases = 1", "sys/mounts/cloud: there is no field max_leases"),
        ("cloud/config.toml", 'client_secret = "canary"', "cloud/config: client_secret is a secret"),
        ("cloud/config.toml", 'client_secret = { env = "NOT_SET" }', "set the environment variable NOT_SET"),
        (
            "cloud/config.toml",
            'client_secret = { file = "nowhere" }',
            "nowhere cannot be read: No such file",
        ),
        ("sys/auth/cloud.toml", 'type = "azure"', "the existing object is different"),
    ],
)
def test_what_no_folder_can_have_is_refused_by_its_name(
    operator: Shell, fill: Fill, name: str, text: str, said: str
) -> None:
    shown = operator("apply", fill({name: text}))
    assert (shown.code, said in shown.err, "canary" in shown.err) == (1, True, False), shown.err


@pytest.mark.parametrize("name", ["cloud/roles/x.toml", "pipe"])
def test_a_pipe_is_refused_and_not_waited_for(operator: Shell, fill: Fill, name: str) -> None:
    """Nobody writes to it: a server that applies its folder waited for ever."""
    folder = fill({"cloud/config.toml": 'client_secret = { file = "pipe" }', "cloud/roles/y.toml": ""})
    os.mkfifo(Path(folder, name))
    shown = operator("apply", folder)
    assert (shown.code, f"{name} cannot be read: it is not a regular file" in shown.err) == (1, True), shown.err


def test_a_refusal_names_the_file(operator: Shell, fill: Fill) -> None:
    shown = operator("apply", fill({"sys/quotas/rate-limit/x.toml": 'path = "nowhere"\n'}))
    assert (shown.code, shown.err.splitlines()[0]) == (1, "sys/quotas/rate-limit/x was refused:")


def test_a_secret_is_applied_once_and_never_shown(site: Site, operator: Shell, fill: Fill) -> None:
    secret = site.application["client_secret"]
    files = a_service(site, "secret")
    files["auth/secret/config.toml"] += 'client_id = "app"\nclient_secret = { env = "APP" }\n'
    folder = fill(files)
    operator.set(APP=secret)
    shown = operator("apply", folder)
    assert (shown.code, secret in shown.out + shown.err) == (0, False)
    assert {"path": "auth/secret/config", "field": "client_secret", "is": "(new)", "becomes": "(secret)"} in shown.json
    assert site.ask("GET", "auth/secret/config")["data"]["client_secret"] == secret
    assert operator("apply", folder, "--dry-run").code == 0

    operator.set(APP="another")
    [row] = operator("apply", folder, "--dry-run").json
    assert (row["is"], row["becomes"]) == ("(another)", "(secret)")


@pytest.mark.parametrize("name", ["trio_server", "aiohttp_server"])
def test_a_rotated_secret_survives_a_restart_a_reload_and_the_folder(
    name: str, site: Site, operator: Shell, fill: Fill, tmp_path: Path
) -> None:
    """Machines log in whatever the order; who wants the folder's secret back has to insist."""
    place = tmp_path / "server"
    place.mkdir()
    deployment = Deployment.prepare(name, place, site.cloud.url, {})
    application, subscription = site.application, site.world["subscriptions"][0]
    location = site.world["machines"][0]["location"]
    (tmp_path / "secret").write_text(f"{application['client_secret']}\n")
    config = f'tenant_id = "{site.world["tenant"]}"\nclient_id = "{application["client_id"]}"\n'
    source = f'client_secret = {{ file = "{tmp_path}/secret" }}\n'
    folder = fill(
        {
            "auth/cloud/config.toml": f'{config}{source}resource = "https://management.azure.com/"\n',
            "auth/cloud/role/all.toml": f'bound_subscription_ids = "{subscription}"\nbound_locations = "{location}"\n',
        }
    )
    deployment.identify()

    def log_in(server: Running) -> int:
        with deployment.client(server, "") as client:
            return client.post("auth/cloud/login", json=deployment.form).status_code

    operator.set(VAULT_TOKEN=deployment.root)
    with deployment.serving() as server:
        operator.set(VAULT_ADDR=server.url)
        assert operator("apply", folder).code == 0
        with deployment.client(server) as client:
            assert client.post("auth/cloud/rotate-root").status_code == 204
        assert log_in(server) == 200
    with deployment.serving() as server:
        operator.set(VAULT_ADDR=server.url)
        server.process.send_signal(signal.SIGHUP)
        shown = operator("apply", folder)
        assert (shown.code, shown.json) == (0, [])
        assert log_in(server) == 200

        (tmp_path / "secret").write_text("wrong")
        shown = operator("apply", folder)
        assert (shown.code, "--replace-root-secret replaces it" in shown.err) == (3, True), shown.err
        assert log_in(server) == 200
        assert operator("apply", folder, "--replace-root-secret").code == 0
        with deployment.client(server) as client:
            assert client.get("auth/cloud/config").json()["data"]["client_secret"] == "wrong"


def recorded(site: Site, folder: str) -> list[str]:
    folder_id = Path(folder, ".cloudid-folder").read_text().strip()
    paths: list[str] = site.ask("GET", f"sys/applied/{folder_id}")["data"]["paths"]
    return paths


def test_folders_with_one_last_name_keep_each_others_objects(site: Site, operator: Shell, tmp_path: Path) -> None:
    for name in ("a", "b"):
        policies = tmp_path / name / "config/sys/policies/acl"
        policies.mkdir(parents=True)
        (policies / f"of-{name}.hcl").write_text(POLICY)
        assert operator("apply", str(tmp_path / name / "config"), "--prune").code == 0
    assert {"of-a", "of-b"} <= {*site.ask("LIST", "sys/policies/acl")["data"]["keys"]}


def test_a_copy_of_a_folder_is_noticed_and_has_to_adopt(operator: Shell, fill: Fill, tmp_path: Path) -> None:
    folder = fill({"sys/policies/acl/copied.hcl": POLICY})
    assert operator("apply", folder).code == 0
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    (copy / "sys/policies/acl/copied.hcl").unlink()
    shown = operator("apply", str(copy), "--prune")
    assert (shown.code, "--adopt" in shown.err) == (1, True), shown.err
    assert operator("apply", folder, "--dry-run").json == [], "it is still there"
    assert [row["becomes"] for row in operator("apply", str(copy), "--prune", "--adopt").json] == ["(removed)"]


def test_only_what_the_folder_made_is_removed(site: Site, operator: Shell, fill: Fill) -> None:
    """Roles with --prune, mounts only with --prune-mounts; what was there before stays."""
    site.ask("POST", "sys/policies/acl/before", {"policy": 'path "x" { capabilities = ["read"] }'})
    files = a_service(site, "prune") | {"sys/policies/acl/before.hcl": POLICY}
    folder = fill(files)
    assert operator("apply", folder).code == 0
    for name in files:
        (Path(folder) / name).unlink()

    shown = operator("apply", folder, "--dry-run", "--prune")
    removed = [row["path"] for row in shown.json]
    assert (shown.code, removed[0]) == (3, "auth/token/roles/prune")
    assert not {"sys/auth/prune", "sys/policies/acl/before"} & {*removed}
    told = operator("apply", folder)
    assert (told.code, "--prune deletes them" in told.err) == (0, True), told.err

    assert operator("apply", folder, "--prune").code == 0
    assert operator("apply", folder, "--prune").json == []
    assert site.ask("GET", "sys/policies/acl/before")["data"]["policy"] == POLICY
    assert "prune/" in site.ask("GET", "sys/auth")["data"]
    assert operator("apply", folder, "--prune-mounts").code == 0
    assert "prune/" not in site.ask("GET", "sys/auth")["data"]
    assert recorded(site, folder) == []


def test_what_is_refused_is_not_remembered(site: Site, operator: Shell, fill: Fill) -> None:
    """What was made before it is, and what stands behind it is not."""
    texts = {"a": "", "b": 'token_period = "soon"\n', "c": ""}
    folder = fill({f"auth/token/roles/{name}.toml": text for name, text in texts.items()})
    assert operator("apply", folder).code == 1
    assert recorded(site, folder) == ["auth/token/roles/a"]


def test_what_a_killed_apply_has_made_is_removed_by_a_later_one(site: Site, operator: Shell, fill: Fill) -> None:
    names = [f"killed-{number}" for number in range(300)]
    folder = fill({f"sys/policies/acl/{name}.hcl": POLICY for name in names})

    def made() -> set[str]:
        return {*site.ask("LIST", "sys/policies/acl")["data"]["keys"]} & {*names}

    command = [sys.executable, "-m", "cloudid_servers.cli", "apply", folder]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as process:
        wait_until(lambda: bool(made()))
        process.kill()
    assert made()
    for file in Path(folder, "sys/policies/acl").iterdir():
        file.unlink()
    assert operator("apply", folder, "--prune").code == 0
    assert not made()


@pytest.mark.parametrize("words", [["--dry-run"], []], ids=str)
@pytest.mark.parametrize(
    "name, text",
    [
        ("typo.hcl", 'path "a" { capabilities = ["raed"] }\n'),
        ("open.hcl", 'path "a" { capabilities = ["read"]\n'),
        ("typo.toml", """policy = 'path "a" { capabilities = ["raed"] }'\n"""),
    ],
)
def test_a_policy_that_the_service_would_refuse_is_refused_before_anything_is_written(
    operator: Shell, fill: Fill, name: str, text: str, words: list[str]
) -> None:
    files = {"sys/policies/acl/applied-before.hcl": 'path "a" { capabilities = ["read"] }\n'}
    shown = operator("apply", *words, fill({**files, f"sys/policies/acl/{name}": text}))
    assert (shown.code, shown.out) == (1, "")
    assert shown.err.startswith(f"error: sys/policies/acl/{name}: failed to parse the policy")
    assert operator("read", "sys/policies/acl/applied-before").code == 1
