"""`cloudid agent` on a server and a simulated cloud, and towards services that fail in every way."""

from __future__ import annotations

import configparser
import json
import os
import resource
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from stat import S_IMODE
from typing import Any, Final

import pytest

from cloudid_core.errors import CloudidError
from cloudid_core.values.secret import Secret
from cloudid_servers.client import Address, Agent, Identity, Kept, Service
from cloudid_servers.client.agent import Clock, content
from tests.pages.blocks import blocks_of

from ..client.test_service import Fake
from ..client_site import Site
from ..running import PATIENCE, ROOT, wait_until
from ..service_manager import fake_manager
from .shell import Shell

pytestmark = [pytest.mark.usefixtures("nothing_inherited"), pytest.mark.one_server]

CANARY: Final = "canary-of-a-secret"
GOOD: Final = {"auth": {"client_token": CANARY, "lease_duration": 3600, "renewable": True}}
CREDS: Final = "cloud/creds/reader"
PAGE: Final = "docs/how-to/keep-a-machine-logged-in.md"


@contextmanager
def agent(
    site: Site, folder: Path, *words: str, role: str = "all", **variables: str
) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-m", "cloudid_servers.cli", "agent", "--role", role, *words],
        cwd=folder,
        env={**os.environ, "VAULT_ADDR": site.url, "PYTHONPATH": str(ROOT), **site.of_vm(), **variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


ISSUED: Final = ["login: issued, valid for 3600 seconds", f"{CREDS}: issued, valid for 3600 seconds"]


def said(err: str) -> list[str]:
    """The lines of the agent, without their times."""
    return [line.partition("Z ")[2] for line in err.splitlines()]


def text(file: Path) -> str:
    return file.read_text().strip() if file.exists() else ""


def test_files_are_written_for_their_owner_in_three_forms(site: Site, cloudid: Shell, tmp_path: Path) -> None:
    cloudid.set(**site.of_vm())
    config = tmp_path / "agent.toml"
    files = {"token": "login", ".env": CREDS, "azure.json": CREDS}
    targets = [f"{source}={tmp_path / name}" for name, source in files.items()]
    config.write_text(f'role = "all"\ntenant = "other"\nwrite = {json.dumps(targets)}\n')
    shown = cloudid("agent", "--config", str(config), "--once")
    assert (shown.code, shown.out, said(shown.err)) == (0, "", ISSUED)
    assert {S_IMODE((tmp_path / name).stat().st_mode) for name in files} == {0o600}
    assert site.ask("GET", "auth/token/lookup-self", token=text(tmp_path / "token"))["data"]["meta"]["role"] == "all"
    lent = json.loads(text(tmp_path / "azure.json"))
    for start in ("AZURE", "ARM"):
        names = [f"${start}_{name}" for name in ("CLIENT_ID", "CLIENT_SECRET", "TENANT_ID", "SUBSCRIPTION_ID")]
        read = ["sh", "-c", f'. {tmp_path}/.env; echo "{"/".join(names)}"']
        shell = subprocess.run(read, capture_output=True, text=True, check=True, timeout=PATIENCE)
        assert shell.stdout.strip() == "/".join(lent.values())
    assert [*lent] == ["client_id", "client_secret", "tenant_id", "subscription_id"]
    assert lent["tenant_id"] == site.world["tenant"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["agent.toml", *files])


def test_the_token_is_renewed_and_a_lost_one_replaced(site: Site, tmp_path: Path) -> None:
    """Also when its longest life is over. What was lent with it is lent anew, and the command hears of each change."""
    site.ask("POST", "auth/cloud/role/short", {**site.ask("GET", "auth/cloud/role/all")["data"], "token_ttl": "2s"})
    words = ("--write", "login=token", "--write", f"{CREDS}=secret", "--on-change", "touch changed")
    with agent(site, tmp_path, *words, role="short") as process:
        wait_until((tmp_path / "changed").exists)
        token, secret = text(tmp_path / "token"), text(tmp_path / "secret")
        looked_up = site.ask("GET", "auth/token/lookup-self", token=token)["data"]
        wait_until(
            lambda: (
                site.ask("GET", "auth/token/lookup-self", token=token)["data"]["expire_time"] > looked_up["expire_time"]
            )
        )
        assert text(tmp_path / "token") == token
        (tmp_path / "changed").unlink()
        site.ask("POST", "auth/token/revoke-accessor", {"accessor": looked_up["accessor"]})
        wait_until((tmp_path / "changed").exists)
        assert {token, secret}.isdisjoint({text(tmp_path / "token"), text(tmp_path / "secret")})
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (0, "")
    assert {"login: issued, valid for 2 seconds", "login: renewed, valid for 2 seconds"} <= {*said(err)}


def test_a_child_is_restarted_with_what_is_new_told_of_the_end_and_everything_is_revoked(
    site: Site, tmp_path: Path
) -> None:
    site.end_loans()
    script = (
        "trap 'echo told > told; exit 7' TERM; echo $VAULT_TOKEN $AZURE_CLIENT_ID > env; while :; do sleep .02; done"
    )
    words = ("--write", f"{CREDS}=azure.json", "--restart", "--revoke-on-exit", "--", "sh", "-c", script)
    with agent(site, tmp_path, *words) as process:
        token, client = wait_until(lambda: text(tmp_path / "env")).split()
        assert json.loads(text(tmp_path / "azure.json"))["client_id"] == client
        assert site.alive() == 1
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, said(err), text(tmp_path / "told")) == (7, "", ISSUED, "told")
    wait_until(lambda: not site.alive())
    with pytest.raises(Exception, match="403"):
        site.ask("GET", "auth/token/lookup-self", token=token)


def test_the_agent_ends_as_its_child(site: Site, tmp_path: Path) -> None:
    for command, code in ((("sh", "-c", "exit 3"), 3), (("sh", "-c", "kill -9 $$"), 137), (("/nowhere",), 127)):
        with agent(site, tmp_path, "--", *command) as process:
            out, err = process.communicate(timeout=PATIENCE)
        assert (process.returncode, out) == (code, "")
        reason = "error: the command cannot be started: /nowhere: No such file or directory\n"
        assert said(err)[0] == ISSUED[0]
        assert err.endswith(reason) == (code == 127)


FAILING: Final[dict[str, list[tuple[int, Any]]]] = {
    "refused": [(403, {"errors": [CANARY], "codes": [CANARY, "permission_denied"]})],
    "errors of another type": [(400, {"errors": 7, "codes": {CANARY: CANARY}})],
    "a page": [(502, CANARY)],
    "no JSON": [(200, CANARY)],
    "a text in place of the login": [(200, {"auth": CANARY})],
    "an object in place of the token": [(200, {"auth": {"client_token": {CANARY: CANARY}, "lease_duration": 1}})],
    "a token of two lines": [(200, {"auth": {"client_token": f"{CANARY}\n{CANARY}", "lease_duration": 1}})],
    "no number of seconds": [(200, {"auth": {"client_token": CANARY, "lease_duration": CANARY}})],
    "elsewhere": [(302, {"errors": [CANARY]})],
    "credentials refused": [(200, GOOD), (403, {"errors": [CANARY]}), (200, GOOD), (403, {"errors": [CANARY]})],
    "a text in place of credentials": [(200, GOOD), (200, {"data": CANARY})],
    "half a letter": [(200, GOOD), (200, {"data": {"client_secret": "\ud800" + CANARY}, "lease_duration": 1})],
    "endless credentials": [(200, GOOD), (200, {"data": {"client_secret": CANARY}, "lease_duration": 1e400})],
}


def answer(body: object, status: int = 200) -> tuple[int, Mapping[str, str], bytes]:
    return status, {}, json.dumps(body).encode()


@pytest.mark.parametrize("failing", FAILING)
def test_no_failure_of_the_service_prints_a_secret(site: Site, cloudid: Shell, tmp_path: Path, failing: str) -> None:
    answers = [answer(body, status) for status, body in FAILING[failing]]
    (tmp_path / "secret").write_text("old")
    with Fake(answers).serving() as fake:
        cloudid.set(**site.of_vm(), VAULT_ADDR=fake.url)
        shown = cloudid("agent", "--role", "all", "--once", "--write", f"{CREDS}={tmp_path / 'secret'}")
    assert shown.code == 1
    assert shown.out == ""
    assert all(line.startswith(("login: ", f"{CREDS}: ")) for line in said(shown.err))
    assert CANARY not in shown.err
    assert text(tmp_path / "secret") == "old"


def test_no_failure_of_the_machine_prints_a_secret(site: Site, cloudid: Shell, tmp_path: Path) -> None:
    """A folder that is gone, a full disk, a command that fails, a service and an identity that are away."""
    cloudid.set(**site.of_vm())
    gone = cloudid("agent", "--role", "all", "--once", "--write", f"login={tmp_path}/gone/token")
    assert (gone.code, "No such file" in gone.err) == (1, True)
    once = ("agent", "--role", "all", "--once", "--write", f"login={tmp_path}/token")
    failed = cloudid(*once, "--on-change", "sh -c 'exit 3'")
    assert (failed.code, said(failed.err)[1:]) == (0, ["--on-change: the command exited with code 3"])
    failed = cloudid(*once, "--on-change", "/nowhere")
    reason = "--on-change: the command cannot be started: /nowhere: No such file or directory"
    assert said(failed.err)[1:] == [reason]
    (tmp_path / "token").unlink()
    full = subprocess.run(
        [sys.executable, "-m", "cloudid_servers.cli", "agent", "--role", "all", "--once", "--write", "login=token"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (full.returncode, full.stdout) == (1, "")
    assert said(full.stderr)[0].startswith("login: token cannot be written: File too large")
    assert list(tmp_path.iterdir()) == []
    cloudid.set(VAULT_ADDR="http://127.0.0.1:9")
    away = cloudid(*once)
    assert (away.code, said(away.err)) == (1, ["login: http://127.0.0.1:9: Connection refused"])
    cloudid.set(AZURE_POD_IDENTITY_AUTHORITY_HOST="http://127.0.0.1:9")
    assert cloudid(*once).code == 1


def test_the_unit_of_the_page_becomes_ready(site: Site, tmp_path: Path) -> None:
    """What it starts reads the page's file, and tells the service manager once the files are there."""
    page = {block.marks["file"]: block.text for block in blocks_of(PAGE) if "file" in block.marks}
    unit = configparser.ConfigParser(interpolation=None)
    unit.read_string(page["cloudid-agent.service"])
    program, verb, *words = shlex.split(unit["Service"]["ExecStart"])
    assert (unit["Service"]["Type"], program, verb) == ("notify", "/usr/local/bin/cloudid", "agent")
    site.ask("POST", "auth/cloud/role/web", site.ask("GET", "auth/cloud/role/all")["data"])
    site.ask("POST", "cloud/roles/shop", site.ask("GET", "cloud/roles/reader")["data"])
    config = page["agent.toml"].replace("/run/shop", str(tmp_path)).replace("systemctl", "true")
    (tmp_path / "agent.toml").write_text(config)
    with fake_manager() as manager:
        started = [word.replace("/etc/cloudid", str(tmp_path)) for word in words]
        with agent(site, tmp_path, *started, **manager.environment) as process:
            assert manager.hear() == {"READY": "1"}
            assert {path.name for path in tmp_path.iterdir()} == {"agent.toml", "token", "azure.env"}
            process.send_signal(signal.SIGTERM)
            assert manager.hear() == {"STOPPING": "1"}


class _Over(CloudidError):
    """The test has seen enough."""


def keeper(fake: Fake, kept: list[Kept], told: list[str], clock: Clock) -> Agent:
    """An agent that tells what happens."""
    return Agent(
        Service(Address(fake.url)),
        "auth/cloud",
        "all",
        lambda: Identity("jwt", Secret(CANARY), {}),
        kept,
        lambda: told.append("changed"),
        told.append,
        clock=clock,
    )


def test_what_fails_is_tried_again_ever_more_seldom_and_then_goes_on() -> None:
    answers = [*[answer("", 503)] * 9, answer(GOOD)]
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) > 9:
            raise _Over

    told: list[str] = []
    with Fake(answers).serving() as fake:
        clock = Clock(now=lambda: sum(pauses), pause=pause, chance=lambda: 1.0)
        kept = keeper(fake, [Kept("login", ())], told, clock)
        with pytest.raises(_Over):
            kept.run(lambda: told.append("ready"))
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60, 3600 * 0.75]
    assert told[-3:] == ["login: issued after 9 failed attempts, valid for 3600 seconds", "changed", "ready"]
    assert told[0] == f"login: {fake.url}: the service answered 503; again in 1 seconds"


def test_a_dead_token_is_replaced_although_the_first_login_fails() -> None:
    lease = {"lease_id": "l", "lease_duration": 100, "data": {"client_secret": CANARY}}
    denied, now, told = answer("", 403), [0.0], list[str]()
    with Fake([answer(GOOD), denied, answer("", 503), denied, answer(GOOD), answer(lease)]).serving() as fake:
        clock = Clock(now=lambda: now[0], chance=lambda: 0.0)
        kept = keeper(fake, [Kept("login", ()), Kept(CREDS, ())], told, clock)
        for now[0] in (0.0, 1.0):
            kept.keep()
    assert [path.removeprefix("/v1/") for _, path, *_ in fake.requests] == ["auth/cloud/login", CREDS] * 3
    assert told == [
        "login: issued, valid for 3600 seconds",
        f"{CREDS}: {fake.url}: the service answered 503; again in 0 seconds",
        f"{CREDS}: issued after 1 failed attempt, valid for 100 seconds",
        "changed",
    ]


def test_a_json_file_is_indented_by_two_spaces_and_ends_with_a_line() -> None:
    assert content(Path("x.json"), {"client_id": "a"}) == '{\n  "client_id": "a"\n}\n'


def test_a_new_login_issues_everything_again_since_all_leases_end_with_the_former_token() -> None:
    login = {"auth": {**GOOD["auth"], "lease_duration": 100, "renewable": False}}
    lease = {"lease_id": "l", "lease_duration": 3600, "renewable": True, "data": {"client_secret": CANARY}}
    other, now = "cloud/creds/other", [0.0]
    with Fake([answer(body) for body in (login, lease, lease) * 2]).serving() as fake:
        clock = Clock(now=lambda: now[0], chance=lambda: 0.0)
        kept = keeper(fake, [Kept("login", ()), Kept(CREDS, ()), Kept(other, ())], [], clock)
        for now[0] in (0.0, 59.0, 60.0):
            kept.keep()
    paths = [path.removeprefix("/v1/") for _, path, *_ in fake.requests]
    assert paths == ["auth/cloud/login", CREDS, other] * 2


def test_a_lease_is_renewed_until_that_no_longer_prolongs_it() -> None:
    lease = {"lease_id": "l", "lease_duration": 100, "renewable": True, "data": {"client_secret": CANARY}}
    bodies = [GOOD, lease, {**lease, "data": None}, {**lease, "data": None, "lease_duration": 40}, lease]
    now = [0.0]
    told: list[str] = []
    with Fake([answer(body) for body in bodies]).serving() as fake:
        clock = Clock(now=lambda: now[0], chance=lambda: 0.0)
        kept = keeper(fake, [Kept("login", ()), Kept(CREDS, ())], told, clock)
        for now[0] in (0.0, 59.0, 60.0, 120.0):
            kept.keep()
    paths = [path.removeprefix("/v1/") for _, path, *_ in fake.requests]
    assert paths == ["auth/cloud/login", CREDS, "sys/leases/renew", "sys/leases/renew", CREDS]
    assert told == [
        "login: issued, valid for 3600 seconds",
        f"{CREDS}: issued, valid for 100 seconds",
        "changed",
        f"{CREDS}: renewed, valid for 100 seconds",
        f"{CREDS}: issued, valid for 100 seconds",
    ]


@pytest.mark.parametrize(
    "words",
    [
        ["--once", "--", "true"],
        ["--once"],
        ["--restart"],
        ["--signal", "HUP", "--restart", "--", "true"],
        ["--write", "x"],
        ["--once", "--write", "login=x", "--write", "cloud/creds/reader=./x"],
        ["--on-change", "echo 'x", "--once"],
    ],
)
def test_options_that_do_not_fit_are_refused(cloudid: Shell, words: list[str]) -> None:
    assert cloudid("agent", "--role", "all", *words).code == 2


def test_a_role_is_asked_for_before_anything_is_tried(cloudid: Shell) -> None:
    for words in (["agent"], ["login"]):
        shown = cloudid(*words)
        assert (shown.code, shown.err.startswith("error: Missing option '--role'")) == (2, True)


def test_words_of_a_file_may_be_numbers_and_a_folder_is_no_file(site: Site, cloudid: Shell, tmp_path: Path) -> None:
    cloudid.set(**site.of_vm())
    (tmp_path / "agent.toml").write_text('role = "all"\ncommand = ["sleep", 0]')
    assert cloudid("agent", "--config", str(tmp_path / "agent.toml")).code == 0
    shown = cloudid("agent", "--role", "all", "--write", "login=.", "--once")
    assert (shown.code, said(shown.err)[0].startswith("login: . cannot be written: ")) == (1, True)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("\ufeffsecret = 1", "agent.toml has unknown options: 'secret'; allowed are "),
        ("mount = 'a'\nrole = ", "agent.toml is not valid TOML: Invalid value (at end of document)"),
        ('write = "login=a"', "agent.toml: "),
        ("command = 3", "agent.toml: "),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(cloudid: Shell, tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "agent.toml").write_text(content)
    shown = cloudid("agent", "--config", str(tmp_path / "agent.toml"))
    assert (shown.code, said in shown.err) == (1, True), shown.err
