"""The commands of those who use the service: `login`, `creds`, `why`, `status`, on a server and a simulated cloud."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from stat import S_IMODE
from typing import Any, Final

import httpx
import pytest

from cloudid_servers.cli.main import COMMANDS
from cloudid_servers.client import Service
from tests.waiting import PATIENT

from ..certificates import write_certificate
from ..client.test_service import Fake, ok
from ..client_site import ROOT as ROOT_TOKEN
from ..client_site import Site
from ..deployment import Deployment
from ..running import PATIENCE, ROOT, Running, wait_until
from .shell import Shell, Shown

pytestmark = pytest.mark.usefixtures("nothing_inherited")


def token_of(folder: Path) -> str:
    token: str = json.loads((folder / ".cloudid-token").read_text())["token"]
    return token


def accessors(site: Site) -> set[str]:
    """Of all tokens."""
    return {*site.ask("GET", "auth/token/accessors?list=true")["data"]["keys"]}


def test_a_machine_logs_in_and_its_token_is_kept_for_its_owner(site: Site, cloudid: Shell, tmp_path: Path) -> None:
    cloudid.set(**site.of_vm())
    shown = cloudid("login", "--role", "all")
    assert (shown.code, shown.err) == (0, "")
    file = tmp_path / ".cloudid-token"
    assert S_IMODE(file.stat().st_mode) == 0o600
    assert token_of(tmp_path) not in shown.out
    answer = shown.json
    assert answer.pop("accessor")
    assert answer == {
        "role": "all",
        "identity": "vm",
        "policies": ["app", "default"],
        "seconds": 3600,
        "address": site.url,
        "file": str(file),
    }
    assert json.loads(file.read_text()) == {
        "address": site.url,
        "mount": "auth/cloud",
        "role": "all",
        "token": token_of(tmp_path),
    }
    assert site.ask("GET", "auth/token/lookup-self", token=token_of(tmp_path))["data"]["meta"]["vm_name"] == "web"


def test_a_login_is_repeated_with_its_address_role_and_mount(
    site: Site, logged_in: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VAULT_ADDR")
    before = token_of(tmp_path)
    shown = logged_in("login")
    assert (shown.code, shown.json["role"], shown.json["address"]) == (0, "all", site.url)
    assert token_of(tmp_path) != before
    assert logged_in("read", "auth/token/lookup-self").json["data"]["meta"]["role"] == "all"
    assert logged_in("login", "--mount", "auth/other").err.startswith("error: Missing option '--role'")


def test_a_login_without_a_role_lists_the_roles_to_those_who_may_see_them(site: Site, cloudid: Shell) -> None:
    cloudid.set(VAULT_TOKEN=ROOT_TOKEN)
    shown = cloudid("login")
    roles = ", ".join(site.ask("LIST", "auth/cloud/role")["data"]["keys"])
    assert (shown.code, f"Missing option '--role'. Roles of auth/cloud: {roles}" in shown.err) == (2, True), shown.err
    cloudid.set(VAULT_TOKEN="")
    assert "Roles of" not in cloudid("login").err


@pytest.mark.parametrize("named_by", ["option", "CLOUDID_ADDR", "VAULT_ADDR"])
@pytest.mark.parametrize(
    "words", [["creds", "reader"], ["read", "sys/mounts"], ["why", "--last"], ["revoke", "reader"]]
)
def test_a_token_is_sent_only_to_the_address_that_issued_it(
    site: Site, logged_in: Shell, words: list[str], named_by: str
) -> None:
    with Fake([]).serving() as fake:
        if named_by == "option":
            words = [*words, "--address", fake.url]
        else:
            logged_in.set(**{named_by: fake.url})
        shown = logged_in(*words)
        assert (shown.code, fake.requests) == (1, [])
    assert site.url in shown.err
    assert f"cloudid login --address {fake.url}" in shown.err


def test_what_needs_no_token_is_asked_of_another_address_without_one(site: Site, logged_in: Shell) -> None:
    with Fake([(200, {}, b"{}")]).serving() as fake:
        shown = logged_in("read", "sys/health", "--address", fake.url)
        assert [headers.get("x-service-token") for _, _, headers, _ in fake.requests] == [None]
    assert shown.err.startswith("warning: the token in ")


def test_a_test_of_roles_sends_the_token_to_the_address_that_issued_it_only(logged_in: Shell, tmp_path: Path) -> None:
    case = {
        "name": "a",
        "role": "all",
        "subscription_id": "s",
        "resource_group_name": "r",
        "vm_name": "v",
        "claims": {},
        "expect": "admitted",
    }
    (tmp_path / "cases.json").write_text(json.dumps({"cases": [case]}))
    with Fake([]).serving() as fake:
        shown = logged_in("roles", "test", str(tmp_path / "cases.json"), "--address", fake.url)
        assert (shown.code, fake.requests) == (2, [])
    assert "is not sent to" in shown.err


def test_a_token_without_an_address_is_used_with_a_warning_until_the_next_login(
    site: Site, logged_in: Shell, tmp_path: Path
) -> None:
    """As files of versions before have it."""
    file = tmp_path / ".cloudid-token"
    file.write_text(f"{token_of(tmp_path)}\n")
    shown = logged_in("read", "auth/token/lookup-self")
    assert shown.code == 0
    assert "does not contain the address that issued its token" in shown.err
    assert logged_in("login", "--role", "all").code == 0
    assert logged_in("read", "auth/token/lookup-self").err == ""


def test_a_token_of_the_environment_goes_to_the_address_of_the_environment(site: Site, logged_in: Shell) -> None:
    """As `vault` does: whoever sets both variables has chosen both."""
    with Fake([(200, {}, b'{"data": {}}')]).serving() as fake:
        logged_in.set(VAULT_ADDR=fake.url, VAULT_TOKEN="chosen")
        assert logged_in("read", "sys/mounts").code == 0
        assert [headers["x-service-token"] for _, _, headers, _ in fake.requests] == ["chosen"]


def test_every_identity_logs_in(site: Site, cloudid: Shell, tmp_path: Path) -> None:
    (tmp_path / "pod").write_text(site.cluster.token(time.time()))
    kinds = {
        "vm": site.of_vm("fleet-uniform"),
        "app-service": site.of_app_service(),
        "aks": site.of_pod(str(tmp_path / "pod")),
        "client-secret": site.of_application(),
    }
    for kind, variables in kinds.items():
        for name in {name for others in kinds.values() for name in others} - {*variables}:
            cloudid.set(**{name: ""})
        cloudid.set(**variables)
        shown = cloudid("login", "--role", "anybody")
        assert (shown.code, shown.err) == (0, ""), kind
        assert shown.json["identity"] == kind


def test_an_identity_is_picked(site: Site, cloudid: Shell) -> None:
    cloudid.set(**site.of_vm(), **site.of_app_service())
    assert cloudid("login", "--role", "all", "--identity", "vm").json["identity"] == "vm"
    shown = cloudid("login", "--role", "all", "--identity", "arc")
    assert (shown.code, shown.err.splitlines()) == (
        1,
        ["error: no identity was found on this machine", "  arc  IMDS_ENDPOINT is not set"],
    )
    assert cloudid("login", "--role", "all", "--identity", "mainframe").code == 2


def test_a_token_of_the_environment_that_counts_before_the_file_is_told(site: Site, cloudid: Shell) -> None:
    cloudid.set(**site.of_vm(), VAULT_TOKEN="other")
    assert cloudid("login", "--role", "all").err == "VAULT_TOKEN is set, and takes precedence over the file\n"


def test_a_token_is_printed_if_that_is_asked_for(site: Site, cloudid: Shell, tmp_path: Path) -> None:
    cloudid.set(**site.of_vm())
    shown = cloudid("login", "--role", "all", "--print")
    assert site.ask("GET", "auth/token/lookup-self", token=shown.out.strip())["data"]["meta"]["role"] == "all"
    assert not (tmp_path / ".cloudid-token").exists()


def program(site: Site, *words: str, **variables: str) -> subprocess.Popen[str]:
    """`cloudid` in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "cloudid_servers.cli", *words],
        cwd=ROOT,
        env={**os.environ, "VAULT_ADDR": site.url, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_command_gets_the_token_and_ends_as_it_ends(site: Site, tmp_path: Path) -> None:
    script = 'test "$VAULT_TOKEN" = "$CLOUDID_TOKEN" && echo "$VAULT_TOKEN"; exit 7'
    with program(site, "login", "--role", "all", "--exec", "sh", "-c", script, **site.of_vm()) as process:
        out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 7
    assert site.ask("GET", "auth/token/lookup-self", token=out.strip())["data"]["meta"]["vm_name"] == "web"
    assert not (tmp_path / ".cloudid-token").exists()


def test_a_token_of_somebody_else_comes_from_a_file_or_standard_input(
    site: Site, cloudid: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{site.cloud.url}/machines/web/metadata/identity/oauth2/token"
    query = {"api-version": "2018-02-01", "resource": "https://management.azure.com/"}
    jwt = httpx.get(url, params=query, headers={"Metadata": "true"}, **PATIENT).json()["access_token"]
    (tmp_path / "jwt").write_text(f"{jwt}\n")
    assert cloudid("login", "--role", "all", "--jwt", str(tmp_path / "jwt")).json["identity"] == "jwt"
    with (tmp_path / "jwt").open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert cloudid("login", "--role", "all", "--jwt", "-").code == 0
    (tmp_path / "jwt").write_text("x" * 200_000)
    shown = cloudid("login", "--role", "all", "--jwt", str(tmp_path / "jwt"))
    assert (shown.code, shown.err) == (1, f"error: the JWT in {tmp_path / 'jwt'} is longer than 65536 characters\n")
    with (tmp_path / "jwt").open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert cloudid("login", "--role", "all", "--jwt", "-").code == 1
        assert len(file.read()) == 200_000 - 65_537
    shown = cloudid("login", "--role", "all", "--jwt", "/nowhere")
    assert (shown.code, shown.err) == (1, "error: the JWT in /nowhere cannot be read: No such file or directory\n")


def test_names_that_a_service_sends_do_not_control_the_terminal(cloudid: Shell) -> None:
    with Fake([ok(keys=["\x1b[2Jweb\x07"])]).serving() as fake:
        cloudid.set(VAULT_ADDR=fake.url, VAULT_TOKEN="t")
        shown = cloudid("login", "--mount", "auth/cloud")
    assert shown.code == 2
    assert "Roles of auth/cloud: \\x1b[2Jweb\\x07" in shown.err
    assert "\x1b" not in shown.err


def test_what_to_do_names_the_mount_that_was_asked(site: Site, cloudid: Shell) -> None:
    """Of either kind, and of any name; the secret of this one is wrong."""
    cloudid.set(VAULT_TOKEN=ROOT_TOKEN, **site.of_vm())
    config = {"tenant_id": site.world["tenant"], "subscription_id": site.machine("web")["subscription"]}
    config |= {"client_id": site.application["client_id"], "client_secret": "wrong"}
    site.ask("POST", "sys/mounts/team/lent", {"type": "azure"})
    site.ask("POST", "team/lent/config", config)
    application = site.world["applications"][1]["object_id"]
    shown = cloudid("write", "team/lent/roles/reader", f"application_object_id={application}").err.splitlines()
    assert "(provider_secret_refused)" in shown[0]
    assert shown[3] == "more: cloudid read team/lent/permissions"
    site.ask("DELETE", "sys/mounts/team/lent")
    site.ask("POST", "sys/auth/team", {"type": "azure"})
    for command, more in {"login": "connect azure auth/team", "why": "list auth/team/role"}.items():
        shown = cloudid(command, "--role", "x", "--mount", "auth/team").err.splitlines()
        assert shown[3] == f"more: cloudid {more}"
    site.ask("POST", "auth/team/config", {"tenant_id": site.world["tenant"], "resource": "api://other"})
    site.ask("POST", "auth/team/role/x", {"bound_service_principal_ids": "*"})
    shown = cloudid("login", "--role", "x", "--mount", "auth/team").err.splitlines()
    assert shown[-1] == "more: cloudid why --role x --mount auth/team"
    assert "more:" not in cloudid("why", "--role", "x", "--mount", "auth/team", "--format", "table").out
    site.ask("DELETE", "sys/auth/team")


def test_a_refusal_says_what_to_do_and_nothing_secret(site: Site, cloudid: Shell, tmp_path: Path) -> None:
    cloudid.set(**site.of_vm())
    shown = cloudid("login", "--role", "west")
    assert (shown.code, shown.out) == (1, "")
    lines = shown.err.splitlines()
    assert lines[0] == "error: the scale set is not allowed by the role (bound_scale_set_mismatch)"
    assert lines[1].startswith("cause: ")
    assert lines[2].startswith("fix: ")
    assert lines[3] == "more: cloudid why --role west"
    assert "eyJ" not in shown.err
    assert not (tmp_path / ".cloudid-token").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["login", "--role", "nobody"],
        ["login", "--role", "west"],
        ["login", "--role", "all", "--mount", "auth/nowhere"],
        ["login", "--role", "all", "--resource", "api://other"],
        ["login", "--role", "all", "--identity", "client-secret"],
        ["creds", "nobody"],
        ["creds", "reader", "--mount", "nowhere"],
        ["why", "--role", "nobody"],
    ],
    ids=" ".join,
)
def test_nothing_secret_is_printed_when_something_fails(site: Site, cloudid: Shell, words: list[str]) -> None:
    cloudid.set(**site.of_vm(), CLOUDID_TOKEN="canary-of-a-token")
    if "client-secret" in words:
        cloudid.set(**{**site.of_application(), "AZURE_CLIENT_SECRET": "canary-of-a-secret"})
    shown = cloudid(*words)
    assert shown.code == 1
    assert shown.err.startswith("error: ")
    assert "canary" not in shown.err + shown.out
    assert "eyJ" not in shown.err + shown.out


def test_without_a_token_a_command_says_where_one_comes_from(cloudid: Shell, tmp_path: Path) -> None:
    assert "cloudid login --role" in cloudid("creds", "reader").err
    (tmp_path / ".cloudid-token").write_text("canary")
    (tmp_path / ".cloudid-token").chmod(0o644)
    shown = cloudid("creds", "reader")
    assert (shown.code, "mode 0644" in shown.err, "canary" in shown.err) == (1, True, False)


@pytest.fixture
def logged_in(site: Site, cloudid: Shell) -> Shell:
    cloudid.set(**site.of_vm())
    assert cloudid("login", "--role", "all").code == 0
    return cloudid


VARIABLES: Final = ("CLIENT_ID", "CLIENT_SECRET", "TENANT_ID", "SUBSCRIPTION_ID")


def ids(site: Site) -> tuple[str, str]:
    """The tenant, and the subscription that the role reader assigns rights in."""
    return site.world["tenant"], site.world["subscriptions"][0]


def revoke_shown(site: Site, shown: Shown) -> None:
    site.ask("POST", "sys/leases/revoke", {"lease_id": shown.err.split("lease ")[1].split(": ")[0]})


def test_credentials_carry_the_tenant_without_a_second_request(site: Site, logged_in: Shell) -> None:
    """Nor is the right to read the configuration needed: the policy has none, and no request is refused."""
    sent: list[str] = []
    ask = Service.ask

    def noted(self: Service, method: str, path: str, *rest: Any, **more: Any) -> Any:
        sent.append(path)
        return ask(self, method, path, *rest, **more)

    logged_in.set(AZURE_TENANT_ID="that-of-the-machine")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Service, "ask", noted)
        shown = logged_in("creds", "reader", "--json")
    assert sent == ["cloud/creds/reader"]
    assert {*shown.json} == {
        *("client_id", "client_secret", "tenant_id", "subscription_id", "lease_id", "lease_duration")
    }
    assert (shown.json["tenant_id"], shown.json["subscription_id"]) == ids(site)
    assert shown.err == f"lease {shown.json['lease_id']}: 3600 seconds\n"
    revoke_shown(site, shown)


@pytest.mark.parametrize(
    "words, start", [(["--env"], "AZURE"), (["--env=azure"], "AZURE"), (["--env=terraform"], "ARM")]
)
def test_lines_for_a_shell(site: Site, logged_in: Shell, words: list[str], start: str) -> None:
    shown = logged_in("creds", "reader", *words)
    script = f"{shown.out}\nenv | grep ^{start}_"
    out = subprocess.run(["sh", "-eu", "-c", script], capture_output=True, text=True, timeout=PATIENCE, check=True)
    seen = dict(line.split("=", 1) for line in out.stdout.splitlines())
    assert {*seen} >= {f"{start}_{name}" for name in VARIABLES}
    assert (seen[f"{start}_TENANT_ID"], seen[f"{start}_SUBSCRIPTION_ID"]) == ids(site)
    assert all(line.startswith(f"export {start}_") for line in shown.out.splitlines())
    revoke_shown(site, shown)


@pytest.mark.parametrize("form", ["github", "dotenv"])
def test_lines_for_files_of_a_pipeline(site: Site, logged_in: Shell, form: str) -> None:
    """Azure's libraries and Terraform both find theirs; nothing is quoted, and GitHub hides the secret in its log."""
    shown = logged_in("creds", "reader", f"--env={form}")
    seen = dict(line.split("=", 1) for line in shown.out.splitlines())
    assert [*seen] == [f"{start}_{name}" for start in ("AZURE", "ARM") for name in VARIABLES]
    assert "'" not in shown.out
    masked = f"::add-mask::{seen['ARM_CLIENT_SECRET']}"
    assert (masked in shown.err.splitlines()) == (form == "github")
    revoke_shown(site, shown)


def test_a_service_that_does_not_return_the_tenant_is_reported(logged_in: Shell) -> None:
    issued = {"data": {"client_id": "c", "client_secret": "s"}, "lease_id": "l", "lease_duration": 60}
    with Fake([(200, {}, json.dumps(issued).encode())] * 2).serving() as fake:
        logged_in.set(VAULT_ADDR=fake.url, VAULT_TOKEN="t")
        shown = logged_in("creds", "reader", "--env")
        assert "the service did not return the tenant: use --tenant, or set AZURE_TENANT_ID" in shown.err
        assert "TENANT_ID" not in shown.out
        assert "export AZURE_TENANT_ID=given" in logged_in("creds", "reader", "--env", "--tenant", "given").out


def test_ways_of_printing_exclude_each_other(cloudid: Shell) -> None:
    assert cloudid("creds", "reader", "--env", "--json").code == 2
    assert cloudid("creds", "reader", "--env", "--exec", "true").code == 2
    assert cloudid("creds", "reader", "--exec").code == 2


@pytest.mark.parametrize("script, code", [("exit 0", 0), ("exit 7", 7), ("kill -INT $$", 130), ("kill -KILL $$", 137)])
def test_a_lease_ends_with_its_command(site: Site, logged_in: Shell, script: str, code: int) -> None:
    site.end_loans()
    logged_in.set(AZURE_TENANT_ID="that-of-the-machine")
    shown = logged_in("creds", "reader", "--exec", "sh", "-c", f'echo "$AZURE_CLIENT_ID $AZURE_TENANT_ID"; {script}')
    assert shown.code == code
    client_id, tenant = shown.out.split()
    assert (len(client_id), tenant) == (36, site.world["tenant"])
    assert shown.err.splitlines()[-1].endswith(" is revoked")
    assert not site.alive()


def test_a_command_gets_both_forms_of_variables_and_not_the_token_of_the_caller(site: Site, logged_in: Shell) -> None:
    """The subscription that the caller works in stays."""
    logged_in.set(ARM_SUBSCRIPTION_ID="chosen", VAULT_TOKEN=ROOT_TOKEN, CLOUDID_TOKEN=ROOT_TOKEN)
    shown = logged_in("creds", "reader", "--exec", "env")
    seen = dict(line.split("=", 1) for line in shown.out.splitlines() if "=" in line)
    tenant, subscription = ids(site)
    assert all(seen[f"AZURE_{name}"] == seen[f"ARM_{name}"] for name in ("CLIENT_ID", "CLIENT_SECRET"))
    assert [seen[f"{start}_TENANT_ID"] for start in ("AZURE", "ARM")] == [tenant] * 2
    assert [seen[f"{start}_SUBSCRIPTION_ID"] for start in ("AZURE", "ARM")] == [subscription, "chosen"]
    assert not {"VAULT_TOKEN", "CLOUDID_TOKEN"} & {*seen}
    assert ROOT_TOKEN not in shown.out


@pytest.mark.parametrize("words", [("creds", "reader"), ("login", "--role", "all")], ids=" ".join)
def test_nothing_is_asked_of_the_service_for_a_command_that_is_not_there(
    site: Site, logged_in: Shell, tmp_path: Path, words: tuple[str, ...]
) -> None:
    before = accessors(site)
    for command, (code, reason) in {
        "/nowhere/at/all": (127, "No such file or directory"),
        "misspelt-program": (127, "No such file or directory"),
        str(tmp_path): (126, "Permission denied"),
    }.items():
        shown = logged_in(*words, "--exec", command, "--help")
        assert (shown.code, shown.err) == (code, f"error: the command cannot be started: {command}: {reason}\n")
    assert accessors(site) == before


def test_lease_and_token_end_if_their_command_cannot_be_started(site: Site, logged_in: Shell, tmp_path: Path) -> None:
    site.end_loans()
    (tmp_path / "text").write_text("no program")
    (tmp_path / "text").chmod(0o755)
    shown = logged_in("creds", "reader", "--exec", str(tmp_path / "text"))
    reason = f"error: the command cannot be started: {tmp_path / 'text'}: Exec format error"
    assert (shown.code, shown.err.splitlines()[-1]) == (126, reason)
    assert not site.alive()
    before = accessors(site)
    assert logged_in("login", "--role", "all", "--exec", str(tmp_path / "text")).err == f"{reason}\n"
    assert accessors(site) == before


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_lease_ends_if_this_process_is_told_to_stop(
    site: Site, logged_in: Shell, tmp_path: Path, stop: signal.Signals
) -> None:
    site.end_loans()
    script = f"touch {tmp_path}/begun; while :; do sleep 0.05; done"
    with program(site, "creds", "reader", "--exec", "sh", "-c", script) as process:
        wait_until((tmp_path / "begun").exists)
        process.send_signal(stop)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + stop
    assert err.splitlines()[-1].endswith(" is revoked")
    assert not site.alive()


def test_a_lease_that_cannot_be_ended_is_told(site: Site, logged_in: Shell) -> None:
    site.ask("POST", "sys/policies/acl/app", {"policy": 'path "cloud/creds/*" { capabilities = ["read"] }'})
    shown = logged_in("creds", "reader", "--exec", "sh", "-c", 'test -z "$VAULT_TOKEN$CLOUDID_TOKEN" || exit 1; exit 3')
    assert shown.code == 3
    assert "is not revoked yet: permission denied" in shown.err
    site.ask("POST", "sys/leases/revoke-force/cloud/creds/reader")


def test_why_shows_the_failed_line_first(site: Site, cloudid: Shell) -> None:
    cloudid.set(**site.of_vm(), CLOUDID_TOKEN=ROOT_TOKEN)
    shown = cloudid("why", "--role", "west", "--format", "table")
    assert (shown.code, shown.err) == (1, "")
    lines = shown.out.splitlines()
    assert lines[0] == "west: refused"
    assert lines[2].split() == ["check", "expected", "found"]
    assert lines[3].split()[:3] == ["✗", "bound_scale_sets", "fleet"]
    assert lines[4].split() == ["✗", "bound_locations", "westus2", "westeurope"]
    marks = [line[0] for line in lines[3:] if line[:1] in {"✗", "?", "✓"}]
    assert marks == sorted(marks, key="✗?✓".index)
    assert {*marks} >= {"✗", "✓"}
    assert lines[-2].startswith("cause: The machine is in another scale set")
    assert lines[-1].startswith("fix: Add the scale set")


def test_why_tells_the_last_refusal_without_an_identity(site: Site, cloudid: Shell) -> None:
    cloudid.set(**site.of_vm())
    assert cloudid("login", "--role", "west").code == 1
    cloudid.set(CLOUDID_TOKEN=ROOT_TOKEN)
    shown = cloudid("why", "--last", "--role", "west", "--format", "table")
    assert (shown.code, shown.err) == (1, "")
    lines = shown.out.splitlines()
    assert lines[0] == "west: refused"
    assert lines[1].endswith(" from 127.0.0.1")
    assert lines[4].split()[:3] == ["✗", "bound_scale_sets", "fleet"]
    site.ask("POST", "auth/cloud/role/once", {"bound_locations": "westus2"})
    cloudid("login", "--role", "once")
    assert "Z, once: " in cloudid("why", "--last", "--role", "once", "--format", "table").out
    nothing = cloudid("why", "--last", "--role", "never-asked")
    assert (nothing.code, nothing.out) == (1, "")
    assert "no refused login is stored" in nothing.err
    assert cloudid("why").code == 2


def test_a_mount_may_be_named_as_the_service_shows_it(site: Site, cloudid: Shell, tmp_path: Path) -> None:
    cloudid.set(**site.of_vm())
    assert "bound_scale_set_mismatch" in cloudid("login", "--role", "west", "--mount", "auth/cloud/").err
    words = ("--mount", "auth/cloud/", "--write", f"login={tmp_path / 'token'}", "--once")
    assert cloudid("agent", "--role", "all", *words).code == 0
    cloudid.set(CLOUDID_TOKEN=ROOT_TOKEN)
    assert cloudid("why", "--role", "west", "--mount", "/auth/cloud/", "--json").json["verdict"] == "refused"
    assert cloudid("why", "--last", "--mount", "auth/cloud/", "--json").json["role"] == "west"
    assert cloudid("creds", "reader", "--mount", "cloud/", "--exec", "true").code == 0


def test_why_is_text_in_a_pipe_and_an_object_with_an_option(site: Site, cloudid: Shell) -> None:
    cloudid.set(**site.of_vm(), CLOUDID_TOKEN=ROOT_TOKEN)
    shown = cloudid("why", "--role", "all", "--json")
    assert (shown.code, shown.json["verdict"], shown.json["codes"]) == (0, "admitted", [])
    shown = cloudid("why", "--role", "west", "--json")
    assert (shown.code, shown.json["codes"]) == (1, ["bound_scale_set_mismatch", "bound_location_mismatch"])
    assert shown.json["fix"].startswith("Add the scale set")
    assert "fix: Add the scale set" in cloudid("why", "--role", "west").out


def test_why_names_a_refused_address_as_the_login_does(site: Site, cloudid: Shell) -> None:
    """It was undecided, although the service knows where the machine asks from."""
    site.ask("POST", "auth/cloud/role/home", {"bound_service_principal_ids": "*", "token_bound_cidrs": "10.0.0.0/8"})
    cloudid.set(**site.of_vm(), CLOUDID_TOKEN=ROOT_TOKEN)
    assert "source_address_refused" in cloudid("login", "--role", "home").err
    shown = cloudid("why", "--role", "home")
    assert (shown.code, shown.out.splitlines()[0]) == (1, "home: refused")
    assert shown.out.splitlines()[3].split() == ["✗", "token_bound_cidrs", "10.0.0.0/8", "127.0.0.1"]
    assert "fix: Add the network to `token_bound_cidrs`" in shown.out


def test_why_leaves_the_address_of_a_given_token_undecided(site: Site, cloudid: Shell, tmp_path: Path) -> None:
    site.ask("POST", "auth/cloud/role/home", {"bound_service_principal_ids": "*", "token_bound_cidrs": "10.0.0.0/8"})
    cloudid.set(CLOUDID_TOKEN=ROOT_TOKEN)
    url = f"{site.cloud.url}/machines/web/metadata/identity/oauth2/token"
    query = {"api-version": "2018-02-01", "resource": "https://management.azure.com/"}
    (tmp_path / "jwt").write_text(
        httpx.get(url, params=query, headers={"Metadata": "true"}, **PATIENT).json()["access_token"]
    )
    shown = cloudid("why", "--role", "home", "--jwt", str(tmp_path / "jwt"))
    assert (shown.code, shown.out.splitlines()[0]) == (1, "home: undecided")
    assert shown.out.splitlines()[3].split()[:2] == ["?", "token_bound_cidrs"]


def test_why_explains_a_token_whose_signature_does_not_hold(site: Site, cloudid: Shell, tmp_path: Path) -> None:
    cloudid.set(CLOUDID_TOKEN=ROOT_TOKEN)
    (tmp_path / "jwt").write_text("no.token.atall")
    shown = cloudid("why", "--role", "all", "--jwt", str(tmp_path / "jwt"), "--format", "table")
    assert shown.code == 1
    assert "✗  signature  a key of the tenant" in shown.out
    assert "cause: The value of `jwt` is not a JSON web token" in shown.out


def test_a_healthy_service(site: Site, cloudid: Shell) -> None:
    shown = cloudid("status")
    assert (shown.code, shown.err) == (0, "")
    assert (shown.json["state"], shown.json["problems"], shown.json["nodes"]) == ("healthy", [], None)
    assert shown.json["not_read"]["nodes"] == "not permitted: there is no token"
    cloudid.set(CLOUDID_TOKEN=ROOT_TOKEN)
    shown = cloudid("status", "--format", "table")
    assert shown.out.startswith(f"address    {site.url}\nstate      healthy\n")
    assert "background_node" in shown.out
    assert "last_error" not in shown.out


def test_a_service_with_problems(site: Site, cloudid: Shell, tmp_path: Path) -> None:
    """What they are everybody sees; what mends them, those who may read health. Without its store it cannot serve."""
    troubled = Deployment.prepare("trio_server", tmp_path, site.cloud.url, {})
    (tmp_path / "store.sqlite").chmod(0o644)
    with troubled.serving() as server:
        cloudid.set(VAULT_ADDR=server.url)
        shown = cloudid("status")
        assert (shown.code, shown.json["state"]) == (4, "serves, with problems")
        assert [problem["code"] for problem in shown.json["problems"]] == ["store_shared"]
        assert "whose mode is MODE" in shown.json["problems"][0]["text"], "only the client's table has a text here"
        assert "fix: chmod 600 PATH" in cloudid("status", "--format", "table").out
        cloudid.set(CLOUDID_TOKEN=troubled.root)
        shown = cloudid("status", "--format", "table")
        assert shown.code == 4
        assert "whose mode is 0644" in shown.out
        assert f"fix: chmod 600 {tmp_path}/store.sqlite" in shown.out
        (tmp_path / "store.sqlite").unlink()
        wait_until(lambda: httpx.get(f"{server.url}/v1/sys/health", **PATIENT).status_code == 503)
        shown = cloudid("status")
        assert (shown.code, shown.json["state"]) == (4, "cannot serve")
        assert "store_unavailable" in [problem["code"] for problem in shown.json["problems"]]
        assert all(problem["text"] and problem["fix"] for problem in shown.json["problems"])
        assert shown.json["nodes"] is None
        assert shown.json["not_read"]["nodes"].startswith("failed: ")


@pytest.mark.usefixtures("broken_cloud")
def test_status_shows_what_needs_an_operator(site: Site, cloudid: Shell) -> None:
    """To those who may read it; the others still learn whether the service is healthy."""
    cloudid.set(VAULT_TOKEN=ROOT_TOKEN)
    site.ask("POST", "sys/mounts/team/cloud", {"type": "azure"})
    config = site.ask("GET", "cloud/config")["data"]
    root = {name: site.application[name] for name in ("client_id", "client_secret")}
    site.ask("POST", "team/cloud/config", {**root, **{name: config[name] for name in ("tenant_id", "subscription_id")}})
    role = {"azure_roles": site.ask("GET", "cloud/roles/reader")["data"]["azure_roles"]}
    site.ask("POST", "team/cloud/roles/reader", role)
    lease = site.ask("GET", "cloud/creds/reader")["lease_id"]
    site.ask("GET", "team/cloud/creds/reader")
    cloudid("revoke", "reader", "--wait", "0")
    wait_until(lambda: cloudid("status").json["stuck_leases"])
    site.ask("DELETE", "sys/mounts/team/cloud")
    shown = cloudid("status")
    assert lease in [stuck["lease_id"] for stuck in shown.json["stuck_leases"]]
    fixes = {stuck["lease_id"]: stuck["fix"] for stuck in shown.json["stuck_leases"]}
    fix = f"grant what cloudid read cloud/permissions shows as missing, then cloudid revoke {lease} --wait 1m"
    assert fixes[lease] == fix
    text = cloudid("status", "--format", "table").out
    assert any(f"  fix: {each}\n" in text for each in fixes.values())
    assert {row["mount"] for row in shown.json["root_secrets"]} == {"auth/cloud/", "cloud/"}
    assert {row["credential_source"] for row in shown.json["root_secrets"]} == {"client_secret"}
    assert shown.json["retiring"][0]["path"] == "team/cloud/"
    text = cloudid("status", "--format", "table").out
    for column in ("lease_id", "credential_source", "disabled_at"):
        assert column in text
    token = site.ask("POST", "auth/token/create", {"policies": ["app"]})["auth"]["client_token"]
    cloudid.set(VAULT_TOKEN=token)
    shown = cloudid("status")
    assert (shown.json["stuck_leases"], shown.json["retiring"]) == (None, None)
    assert {*shown.json["not_read"]} == {"nodes", "stuck_leases", "root_secrets", "retiring"}
    assert all(reason.startswith("not permitted") for reason in shown.json["not_read"].values())
    text = cloudid("status", "--format", "table").out
    for name in ("nodes", "stuck leases", "root secrets", "retiring"):
        assert f"\n{name.ljust(14)}not permitted" in text
    assert shown.json["state"]


def test_a_service_that_does_not_answer(cloudid: Shell) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # but nothing listens
        shown = cloudid("status", "--address", f"http://127.0.0.1:{taken.getsockname()[1]}")
    assert (shown.code, shown.out) == (1, "")
    assert shown.err.startswith("error: the service cannot be reached: Connection refused\nfix: ")


def test_a_certificate_that_is_not_trusted_is_told_with_the_variable(cloudid: Shell, tmp_path: Path) -> None:
    settings = tmp_path / "cloudid.toml"
    write_certificate(tmp_path, "127.0.0.1")
    settings.write_text('[server]\ntls_certificate = "cert.pem"\ntls_key = "key.pem"\n')
    with Running(
        "cloudid_servers.cli", "serve", "--dev", "--settings", str(settings), "--listen", "127.0.0.1:0"
    ) as server:
        shown = cloudid("status", "--address", server.url)
        assert (shown.code, "CLOUDID_CACERT" in shown.err) == (1, True), shown.err
        shown = cloudid("status", "--address", server.url.replace("https", "http"))
        assert (shown.code, "must begin with https://" in shown.err) == (1, True), shown.err
        cloudid.set(CLOUDID_CACERT=str(tmp_path / "cert.pem"))
        assert cloudid("status", "--address", server.url).code == 0
        shown = cloudid("status", "--address", server.url.replace("127.0.0.1", "localhost"))
        assert (shown.code, "use an address that is in the certificate" in shown.err) == (1, True), shown.err


def test_a_certificate_that_has_expired_is_told_as_such(cloudid: Shell, tmp_path: Path) -> None:
    """A file of authorities was advised, which mends nothing."""
    settings = tmp_path / "cloudid.toml"
    write_certificate(tmp_path, "127.0.0.1", timedelta(minutes=-5))
    settings.write_text('[server]\ntls_certificate = "cert.pem"\ntls_key = "key.pem"\n')
    with Running(
        "cloudid_servers.cli", "serve", "--dev", "--settings", str(settings), "--listen", "127.0.0.1:0"
    ) as server:
        cloudid.set(CLOUDID_CACERT=str(tmp_path / "cert.pem"))
        shown = cloudid("status", "--address", server.url)
    assert (shown.code, "certificate has expired\nfix: renew the certificate" in shown.err) == (1, True), shown.err


def test_another_service_is_not_healthy(site: Site, cloudid: Shell) -> None:
    shown = cloudid("status", "--address", site.cloud.url)
    assert (shown.code, shown.out) == (1, "")
    assert "404" in shown.err


def test_an_old_token_does_not_hide_the_state(cloudid: Shell) -> None:
    cloudid.set(CLOUDID_TOKEN="canary-of-a-token")
    shown = cloudid("status")
    assert (shown.code, shown.json["state"], shown.json["token"]) == (0, "healthy", "not valid: log in again")


def test_an_address_may_end_as_paths_begin(site: Site, cloudid: Shell) -> None:
    """Every request was refused as one without a right."""
    cloudid.set(CLOUDID_TOKEN=ROOT_TOKEN)
    shown = cloudid("status", "--address", f"{site.url}/v1/")
    assert (shown.json["address"], shown.json["token"]) == (site.url, "root")


def test_what_is_unsafe_about_the_address_is_told(site: Site, cloudid: Shell) -> None:
    cloudid.set(VAULT_SKIP_VERIFY="1")
    assert "warning: tokens are not protected on their way" in cloudid("status").err
    cloudid.set(VAULT_NAMESPACE="team")
    assert cloudid("status").err == "error: cloudid has no namespaces: unset VAULT_NAMESPACE\n"


@pytest.mark.parametrize("name", ["login", "creds", "why", "status"])
def test_the_help_tells_the_options(name: str, cloudid: Shell) -> None:
    shown = cloudid(name, "--help")
    assert shown.code == 0
    assert "--address URL" in shown.out
    assert ("--exec CMD..." in shown.out) == (name in ("login", "creds"))
    assert name in [listed.name for listed in COMMANDS]


def test_a_strict_write_writes_nothing_where_a_field_is_unknown(site: Site, cloudid: Shell) -> None:
    cloudid.set(VAULT_TOKEN=ROOT_TOKEN)
    path, bound = "auth/cloud/role/strict", "bound_service_principal_ids=*"
    shown = cloudid("write", "--strict", path, bound, "token_tll=60")
    assert (shown.code, shown.err) == (1, "error: nothing was written: the path has no field token_tll\n")
    assert cloudid("read", path).code == 1
    assert cloudid("write", "--strict", path, bound, "token_ttl=60").code == 0
    assert cloudid("write", path, bound, "token_tll=60").code == 0, "the service warns, and writes the other fields"


def test_a_patch_that_changes_nothing_fails(site: Site, cloudid: Shell) -> None:
    cloudid.set(VAULT_TOKEN=ROOT_TOKEN)
    path = "auth/cloud/role/patched"
    assert cloudid("write", path, "bound_service_principal_ids=*").code == 0
    shown = cloudid("patch", path, "token_tll=60")
    assert (shown.code, shown.err) == (1, "error: nothing was changed: the path has no field token_tll\n")
    assert cloudid("patch", path, "token_tll=60", "token_ttl=60").code == 0


class _Unrecording(BaseHTTPRequestHandler):
    """Health is good, and no other request can be recorded."""

    def do_GET(self) -> None:
        is_health = self.path.startswith("/v1/sys/health")
        known = {"initialized": True, "sealed": False, "problems": []}
        refused = {"errors": ["the request could not be written to the audit log"], "codes": ["audit_unavailable"]}
        body = json.dumps(known if is_health else refused).encode()
        self.send_response(200 if is_health else 503)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Nothing."""


def test_a_service_that_answers_with_503_is_not_called_healthy(cloudid: Shell) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Unrecording) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        cloudid.set(VAULT_ADDR=f"http://127.0.0.1:{server.server_port}", CLOUDID_TOKEN="x")
        shown = cloudid("status")
        server.shutdown()
        thread.join()
    assert (shown.code, shown.json["state"]) == (4, "cannot serve")
    failed = "failed: the request could not be written to the audit log (audit_unavailable)"
    assert (shown.json["nodes"], shown.json["not_read"]["nodes"]) == (None, failed)


class _Escaping(BaseHTTPRequestHandler):
    """A stolen node, which sends what a terminal takes for a command."""

    def do_GET(self) -> None:
        data = {"client_id": "id", "client_secret": "a\x1b]0;title\x07b", "tenant_id": "t"}
        body = json.dumps({"data": data, "lease_id": "cloud/creds/reader/1", "lease_duration": 60}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Nothing."""


@pytest.mark.parametrize("words", [("--env",), ("--exec", "true")])
def test_credentials_with_control_characters_are_not_printed_or_exported(
    words: tuple[str, ...], cloudid: Shell
) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Escaping) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        cloudid.set(VAULT_ADDR=f"http://127.0.0.1:{server.server_port}", CLOUDID_TOKEN="x")
        shown = cloudid("creds", "reader", *words)
        server.shutdown()
        thread.join()
    assert shown.code == 1
    assert "control characters for client_secret" in shown.err
    assert "\x1b" not in shown.out + shown.err
