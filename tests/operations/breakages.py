"""What breaks during the night, how its cause and its fix are shown, and how an operator carries out that fix."""

from __future__ import annotations

import json
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from tests.servers.certificates import write_certificate
from tests.servers.deployment import POLICY

from .night import CREDS, SERVER, Breakage, Night

LOCK: Final = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("BEGIN EXCLUSIVE")
print(flush=True)
input()
"""
UNKNOWN_TENANT: Final = "00000000-0000-4000-8000-000000000001"
DENIED: Final[dict[str, Any]] = {"status": 403, "code": "Authorization_RequestDenied"}
ABSENT: Final = "http://azure.invalid:80"
CLOSED: Final = "http://127.0.0.1:9"
DECLARED: Final = '[audit.main]\ntype = "file"\nfile_path = "{folder}/audit.log"\n'


# Azure


def configure(**fields: object) -> Callable[[Night], None]:
    """Write wrong fields of the engine's configuration, and have a client notice."""

    def do_break(night: Night) -> None:
        night.must("POST", "cloud/config", fields)
        night.ask("GET", CREDS)

    return do_break


def fail(family: str, method: str = "", **action: Any) -> Callable[[Night], None]:
    """Let calls of a family of Azure's services fail, and have a client notice."""

    def do_break(night: Night) -> None:
        match = {"family": family} | ({"method": method} if method else {})
        night.must("POST", "cloud/config", {"max_retries": 0})  # drops the cached access tokens
        night.faults({"match": match, "times": None, "action": action})
        night.ask("GET", CREDS)

    return do_break


def azure_at(address: Callable[[Night], str]) -> Callable[[Night], None]:
    """Start the server with another address of Azure."""

    def do_break(night: Night) -> None:
        night.provider = address(night)
        night.restart()
        night.ask("GET", CREDS)

    return do_break


# What the server runs on


def start_with(more: str = "", *, server: str = "") -> Callable[[Night], None]:
    """Start the server with wrong settings. `{folder}` stands for the folder of the installation."""

    def do_break(night: Night) -> None:
        texts = [text.replace("{folder}", str(night.folder)) for text in (more, server)]
        night.restart(texts[0], server=texts[1])

    return do_break


def lose_audit_disk(night: Night) -> None:
    path = night.folder / "audit.log"
    start_with(DECLARED)(night)
    path.unlink()
    path.mkdir()
    hang_up(night)
    night.ask("GET", "auth/token/lookup-self")


class LockedFile:
    """A process that holds the lock of a SQLite file until it is ended."""

    def __init__(self, path: Path) -> None:
        words = [sys.executable, "-c", LOCK, str(path)]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self._process.stdout.readline()

    def end(self) -> None:
        self._process.communicate(b"\n")


def hang_up(night: Night) -> None:
    assert night.server is not None
    night.server.process.send_signal(signal.SIGHUP)


def lose_store(night: Night) -> None:
    night.stop()
    path = night.folder / "store.sqlite"
    path.rename(path.with_suffix(".away"))
    night.start()


def lock_store(night: Night) -> None:
    """Let another process hold the store's lock."""
    night.others.append(LockedFile(night.folder / "store.sqlite"))
    night.ask("POST", "sys/policies/acl/other", {"policy": ""})


def expire_certificate(night: Night) -> None:
    write_certificate(night.folder, "127.0.0.1", timedelta(hours=-1))
    night.restart(server=f'tls_certificate = "{night.folder}/cert.pem"\ntls_key = "{night.folder}/key.pem"\n')
    night.is_refused = True  # clients no longer connect


def fail_reload(night: Night) -> None:
    night.settings.write_text(f'{SERVER}log_levl = "debug"\n')
    hang_up(night)


def misspell_setting(night: Night) -> None:
    night.stop()
    night.settings.write_text(f'{SERVER}log_levl = "debug"\n')
    night.start()


def show_key(night: Night) -> None:
    night.stop()
    (night.folder / "key").chmod(0o644)
    night.start()


def exchange_key(night: Night) -> None:
    key = night.folder / "key"
    night.stop()
    key.rename(night.folder / "key.right")
    key.write_text("5b" * 32 + "\n")
    key.chmod(0o600)
    night.start()


def share_store(night: Night) -> None:
    night.stop()
    (night.folder / "store.sqlite").chmod(0o644)
    night.start()


def break_folder(night: Night) -> None:
    paths = ("sys/policies/acl/*", "sys/applied/*")
    rights = 'capabilities = ["create", "update", "read", "delete", "list", "sudo"]'
    allowed = "\n".join(f'path "{path}" {{ {rights} }}' for path in paths)
    night.must("POST", "sys/policies/acl/apply", {"policy": allowed})
    policies = night.folder / "apply/sys/policies/acl"
    policies.mkdir(parents=True)
    (policies / "web.hcl").write_text("path {")
    start_with(server='apply_folder = "{folder}/apply"\napply_policies = ["apply"]\n')(night)


def take_port(night: Night) -> None:
    taken = socket.create_server(("127.0.0.1", 0))
    night.restart(server=f'metrics_listen = "127.0.0.1:{taken.getsockname()[1]}"\n')
    taken.close()


# What clients and roles rest on


def stick_lease(night: Night) -> None:
    lease = night.must("GET", CREDS)["lease_id"]
    night.faults({"match": {"family": "graph"}, "times": None, "action": DENIED})
    night.ask("PUT", "sys/leases/revoke", {"lease_id": lease, "sync": True})


def forbid_roles(night: Night) -> None:
    scope = f"/subscriptions/{night.world['subscriptions'][0]}"
    roles = json.dumps([{"role_name": "Owner", "scope": scope}])
    night.must("POST", "cloud/roles/owner", {"azure_roles": roles})
    night.must("POST", "cloud/config", {"deny_privileged_roles": True})
    night.ask("GET", "cloud/creds/owner")


def use_up_quota(night: Night) -> None:
    night.must("POST", "sys/quotas/rate-limit/tight", {"rate": 0.1, "path": "auth/cloud"})
    for _ in range(4):
        night.log_in()


def tighten_policy(night: Night) -> None:
    token = night.log_in().json()["auth"]["client_token"]
    night.must("POST", "sys/policies/acl/app", {"policy": 'path "cloud/creds/other" { capabilities = ["read"] }'})
    night.ask("GET", CREDS, token=token)


def bind_elsewhere(night: Night) -> None:
    night.must("POST", "auth/cloud/role/all", {"bound_resource_groups": "elsewhere"})
    night.log_in()


# Fixes


def paste(night: Night, shown: re.Match[str]) -> None:
    """Carry out the command that was shown, as it was shown."""
    night.paste(shown[1])


def write_credential(night: Night, shown: re.Match[str]) -> None:
    """Carry out the command that was shown with the right credential, from standard input."""
    night.paste(shown[1], **{"client_secret=-": f"client_secret={night.root_credential['client_secret']}"})


def repair_azure(night: Night, shown: re.Match[str]) -> None:
    """Do at Azure what was shown."""
    night.faults()


def replace_secret(night: Night, shown: re.Match[str]) -> None:
    repair_azure(night, shown)
    write_credential(night, shown)


def grant_and_paste(night: Night, shown: re.Match[str]) -> None:
    repair_azure(night, shown)
    paste(night, shown)


def reroute(night: Night, shown: re.Match[str]) -> None:
    """Let the server reach the address that was shown."""
    night.provider = ""
    night.restart()


def correct_tenant(night: Night, shown: re.Match[str]) -> None:
    """Carry out the command that was shown, for the other field that it names; force it if its refusal says so."""
    words = [*shlex.split(shown[1])[1:-1], f"{shown[2]}={night.world['tenant']}"]
    code, refusal = night.run(*words)
    if code and "force=true" in refusal:
        code, refusal = night.run(*words, "force=true")
    assert code == 0, refusal


def end_lock(night: Night, shown: re.Match[str]) -> None:
    night.others.pop().end()


def restore_store(night: Night, shown: re.Match[str]) -> None:
    path = Path(shown[1])
    path.with_suffix(".away").rename(path)
    night.start()


def restore_key(night: Night, shown: re.Match[str]) -> None:
    (night.folder / "key.right").rename(night.folder / "key")
    night.start()


def chmod(night: Night, shown: re.Match[str]) -> None:
    Path(shown[2]).chmod(int(shown[1], 8))
    night.restart()


def replace_audit_file(night: Night, shown: re.Match[str]) -> None:
    Path(shown[1]).rmdir()


def renew_certificate(night: Night, shown: re.Match[str]) -> None:
    write_certificate(night.folder, "127.0.0.1")
    hang_up(night)


def correct_settings(night: Night, shown: re.Match[str]) -> None:
    """Correct the name that was shown in the file that was shown, and reload, or start a server that did not."""
    path, wrong, meant = Path(shown[1]), shown[2], shown[3]
    path.write_text(path.read_text().replace(wrong, meant))
    if night.server is None:
        night.start()
    else:
        hang_up(night)


def make_folder(night: Night, shown: re.Match[str]) -> None:
    (night.folder / "www").mkdir()
    assert shown[1].startswith(f"{night.folder}/www/")


def correct_file(night: Night, shown: re.Match[str]) -> None:
    (night.folder / "apply" / shown[1]).write_text('path "a" {\n  capabilities = ["read"]\n}\n')
    hang_up(night)


def raise_quota(night: Night, shown: re.Match[str]) -> None:
    _, names = night.run(*shlex.split(shown[1])[1:])
    night.paste(shown[2], NAME=names.strip(), RATE="1000")


def allow_path(night: Night, shown: re.Match[str]) -> None:
    policy = night.folder / "app.hcl"
    policy.write_text(POLICY)
    night.paste(shown[1], NAME="app", FILE=str(policy))


def correct_role(night: Night, shown: re.Match[str]) -> None:
    night.must("POST", "auth/cloud/role/all", {shown[1]: ""})


def widen_mount(night: Night, shown: re.Match[str]) -> None:
    name, value = shown[2].split("=")
    night.must("POST", shown[1], {name: value})
    night.must("DELETE", "cloud/roles/owner")


def restart(night: Night, shown: re.Match[str]) -> None:
    night.restart()


CREDENTIAL: Final = (
    r"fix: (cloudid write cloud/config client_secret=-) writes a new client secret, and also accepts (tenant_id)"
)
REACH: Final = r"Allow the server to reach the login endpoint, [^\"]+"
GRANT: Final = r"Grant the permissions that `cloudid read cloud/permissions` shows as missing"
CORRECT: Final = r'(/\S+cloudid.toml): \[server\] "(\w+)" is unknown: is "(\w+)" meant'

BREAKAGES: Final = (
    Breakage("client secret rejected", configure(client_secret="wrong"), "AADSTS7000215", CREDENTIAL, write_credential),
    Breakage(
        "client secret expired",
        fail("login", status=401, code="AADSTS7000222"),
        "AADSTS7000222",
        CREDENTIAL,
        replace_secret,
    ),
    Breakage(
        "tenant unknown", configure(tenant_id=UNKNOWN_TENANT, force=True), "AADSTS90002", CREDENTIAL, correct_tenant
    ),
    Breakage("Azure refuses connections", azure_at(lambda _: CLOSED), "127.0.0.1: connection refused", REACH, reroute),
    Breakage("name of Azure not resolved", azure_at(lambda _: ABSENT), "the name cannot be resolved", REACH, reroute),
    Breakage(
        "TLS to Azure fails",
        azure_at(lambda night: night.cloud.replace("http:", "https:")),
        r"127\.0\.0\.1: TLS: [\w ]+",
        REACH,
        reroute,
    ),
    Breakage("Azure throttles", fail("login", status=429), "answered 429", "Try again later", repair_azure),
    Breakage("403 from Microsoft Graph", fail("graph", **DENIED), "answered 403 Authorization", GRANT, repair_azure),
    Breakage("403 for writes only", fail("graph", "POST", **DENIED), "answered 403 Authorization", GRANT, repair_azure),
    Breakage("Azure fails internally", fail("login", status=500), "answered 500", "check Azure's status", repair_azure),
    Breakage(
        "lease cannot be revoked",
        stick_lease,
        r"cloud/creds/existing/\w+ .*403 Authorization_RequestDenied",
        r"fix: grant what cloudid read cloud/permissions shows as missing, then (cloudid revoke \S+ --wait 1m)",
        grant_and_paste,
    ),
    Breakage(
        "audit file unwritable at the start",
        start_with('[audit.main]\ntype = "file"\nfile_path = "/dev/full"\n'),
        "the audit device could not be written: /dev/full: No space left on device",
        "fix: Fix what the message names, .* start the server again",
        restart,
    ),
    Breakage(
        "audit file replaced by a folder",
        lose_audit_disk,
        r"the audit device main cannot write to /\S+: Is a directory",
        r"fix: fix the cause that the reason names for (/\S+),",
        replace_audit_file,
    ),
    Breakage(
        "store locked by another process",
        lock_store,
        "the write failed: SQLITE_BUSY",
        "another process has locked the file: end it",
        end_lock,
    ),
    Breakage(
        "store gone",
        lose_store,
        r"(/\S+) does not exist, although",
        r"(/\S+) does not .* mount its volume",
        restore_store,
    ),
    Breakage(
        "store readable by others", share_store, "store_shared: .* mode is 0644", r"chmod (600) (/[^,\s]+)", chmod
    ),
    Breakage(
        "key file readable by others",
        show_key,
        "the key file /.* others may read",
        r"run chmod (600) (/[^,\s]+)",
        chmod,
    ),
    Breakage(
        "key file of another installation",
        exchange_key,
        "the master key does not open the key ring",
        "fix: Start the server with the right key file",
        restore_key,
    ),
    Breakage(
        "certificate expired",
        expire_certificate,
        "certificate has expired",
        "fix: renew the certificate of the service, which SIGHUP loads",
        renew_certificate,
    ),
    Breakage("settings misspelled at a start", misspell_setting, "is unknown", CORRECT, correct_settings),
    Breakage("settings misspelled at a reload", fail_reload, "settings_not_reloaded", CORRECT, correct_settings),
    Breakage(
        "port of metrics taken",
        take_port,
        r"cannot listen on \S+: Address already in use",
        "stop the process that listens there, or choose another address",
        restart,
    ),
    Breakage(
        "folder of the issuer gone",
        start_with('[service]\nissuer = "https://id.example"\n', server='publish_to = "{folder}/www"\n'),
        "issuer_unpublished: .* No such file or directory",
        r"could not be published: (/\S+) cannot be written.*\n.*\n  fix: let the server write and read at publish_to",
        make_folder,
    ),
    Breakage(
        "folder of settings not applied",
        break_folder,
        r"folder_not_applied: .* failed to parse the policy: expected a name or } at line 1",
        r"is not applied: (\S+\.hcl): .*\n.*\n  fix: fix what the reason names; .* immediately when it gets SIGHUP",
        correct_file,
    ),
    Breakage(
        "role past a lowered ceiling",
        forbid_roles,
        "ceiling_exceeded",
        r"or write `(cloud/config)` with a wider field, such as `(deny_privileged_roles=false)`",
        widen_mount,
    ),
    Breakage(
        "quota used up",
        use_up_quota,
        "rate_limit_exceeded",
        r"raise the quota: `(cloudid list \S+)`, then `(cloudid write \S+ rate=RATE)`",
        raise_quota,
    ),
    Breakage(
        "policy too strict",
        tighten_policy,
        "its policies do not allow the request",
        r"let a policy of the token allow the path: `(cloudid write [^`]+)`",
        allow_path,
    ),
    Breakage(
        "role bound to another resource group",
        bind_elsewhere,
        "The machine is in another resource group",
        r"Add the group to `(bound_resource_groups)`",
        correct_role,
    ),
)
"""Every breakage of the night, in order."""
_QUICK: Final = ("client secret r", "store readable", "settings misspelled at a r", "quota", "role bound")
QUICK: Final = tuple(each for each in BREAKAGES if each.name.startswith(_QUICK))
"""Those that a short run goes through."""
