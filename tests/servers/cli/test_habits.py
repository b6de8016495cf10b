"""Command lines of `vault` and `bao`, on a server."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from cloudid_servers.cli.habits import HABITS, Habit, understood
from cloudid_servers.cli.main import COMMANDS

from ..client_site import ROOT as ROOT_TOKEN
from ..client_site import Site
from .shell import Shell


@pytest.fixture
def operator(cloudid: Shell) -> Shell:
    cloudid.set(VAULT_TOKEN=ROOT_TOKEN)
    return cloudid


@pytest.mark.parametrize(
    "typed, meant",
    [
        ("token lookup", "read auth/token/lookup-self"),
        ("token lookup -format=json", "read auth/token/lookup-self --format=json"),
        ("token create -policy=web -ttl=1h", "write auth/token/create policies=web ttl=1h"),
        ("token create -policy web -field token", "write auth/token/create policies=web --field=token"),
        ("token renew", "write auth/token/renew-self"),
        ("token capabilities cloud/config", "write sys/capabilities-self paths=cloud/config"),
        ("policy write web web.hcl", "write sys/policies/acl/web policy=@web.hcl"),
        ("policy read web", "read sys/policies/acl/web --field=policy"),
        ("auth enable -path=team azure", "write sys/auth/team type=azure"),
        ("auth enable azure", "write sys/auth/azure type=azure"),
        ("secrets enable -path=team azure", "write sys/mounts/team type=azure"),
        ("lease revoke cloud/creds/reader/1", "revoke cloud/creds/reader/1"),
        ("lease revoke -prefix cloud/creds/reader/", "revoke cloud/creds/reader/"),
        ("login -method=azure role=web", "login --role=web --mount=auth/cloud"),
        ("login -method azure -path=team role=web", "login --role=web --mount=auth/team"),
        ("login --role web", "login --role web"),
        ("version", "--version"),
        ("read -field=ttl auth/token/lookup-self", "read --field=ttl auth/token/lookup-self"),
        ("write -f cloud/rotate-root", "write cloud/rotate-root"),
        ("write -force cloud/rotate-root", "write cloud/rotate-root"),
        ("write auth/token/revoke token=-", "write auth/token/revoke token=-"),
        ("creds reader --exec vault token lookup", "creds reader --exec vault token lookup"),
        ("status -format=json", "status --format=json"),
        ("audit verify a.log", "audit verify a.log"),
        ("audit list", "read sys/audit"),
        ("agent --role web", "agent --role web"),
    ],
)
def test_a_command_line_of_vault_is_understood(typed: str, meant: str) -> None:
    assert understood(typed.split()) == meant.split()


@pytest.mark.parametrize(
    "typed, instead",
    [
        ("operator init", "cloudid init --settings FILE"),
        ("operator unseal", "the server opens its store with the key that its settings name"),
        ("token lookup s.1", "cloudid write auth/token/lookup token=-"),
        ("policy write web", "cloudid write sys/policies/acl/NAME policy=@FILE"),
        ("login -method=userpass username=x", "cloudid login --role ROLE"),
        ("login -method=azure", "cloudid login --role ROLE"),
        ("server -dev", "cloudid dev"),
        ("kv get secret/x", "no key-value engine"),
    ],
)
def test_another_one_is_answered_with_the_command_of_cloudid(typed: str, instead: str, cloudid: Shell) -> None:
    with pytest.raises(click.UsageError):
        understood(typed.split())
    shown = cloudid(*typed.split())
    assert (shown.code, shown.out) == (2, "")
    assert instead in shown.err


@pytest.mark.parametrize("habit", [each for each in HABITS if each.becomes], ids=lambda habit: habit.words)
def test_every_row_leads_to_a_command(habit: Habit) -> None:
    typed = [*habit.words.split(), *(["-method=azure", "role=web"] if habit.words == "login" else [])]
    typed += [f"argument{number}" for number in sorted({*re.findall(r"{(\d)}", habit.becomes)})]
    assert understood(typed)[0] in {"--version", *(listed.name for listed in COMMANDS)}


def test_the_habits_of_a_day(site: Site, operator: Shell, tmp_path: Path) -> None:
    (tmp_path / "web.hcl").write_text('path "cloud/creds/web" { capabilities = ["read"] }')
    assert operator("policy", "write", "habit", str(tmp_path / "web.hcl")).code == 0
    assert "cloud/creds/web" in operator("policy", "read", "habit").out
    assert "habit" in operator("policy", "list").out.splitlines()
    assert operator("token", "lookup", "-format=json").json["data"]["policies"] == ["root"]
    token = operator("token", "create", "-policy=habit", "-ttl=1h", "-field=token").out.strip()
    assert site.ask("GET", "auth/token/lookup-self", token=token)["data"]["policies"] == ["default", "habit"]
    assert "cloud/" in operator("secrets", "list", "-format=json").json["data"]
    assert operator("read", "-field=ttl", "auth/token/lookup-self").out == "0\n"
    assert operator("version").out.startswith("cloudid ")
    operator.set(**site.of_vm())
    assert operator("login", "-method=azure", "role=all").json["role"] == "all"
    lease = site.ask("GET", "cloud/creds/reader")["lease_id"]
    assert operator("lease", "lookup", lease).json["data"]["id"] == lease
    assert operator("lease", "revoke", lease).json == {"lease": lease, "left": 0}
    assert operator("policy", "delete", "habit").code == 0
