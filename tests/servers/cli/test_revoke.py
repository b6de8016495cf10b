"""`revoke` on a server and a simulated cloud: what it ends, what it shows meanwhile, and what it says at its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from ..client_site import ROOT as ROOT_TOKEN
from ..client_site import Site
from ..running import PATIENCE, ROOT, wait_until
from .shell import Shell

GOES_ON = "the service goes on; leases that are left: 1; cloudid list sys/leases/lookup/cloud/creds/reader shows them"


@pytest.fixture
def operator(cloudid: Shell) -> Shell:
    cloudid.set(VAULT_TOKEN=ROOT_TOKEN)
    return cloudid


def lend(site: Site, count: int) -> list[str]:
    return [site.ask("GET", "cloud/creds/reader")["lease_id"] for _ in range(count)]


def test_the_leases_of_a_role_end(site: Site, operator: Shell) -> None:
    site.end_loans()
    lend(site, 2)
    shown = operator("revoke", "reader")
    assert (shown.code, shown.json) == (0, {"prefix": "cloud/creds/reader", "leases": 2, "left": 0})
    wait_until(lambda: not site.alive())


def test_one_lease_ends_and_no_other(site: Site, operator: Shell) -> None:
    first, second = lend(site, 2)
    shown = operator("revoke", first)
    assert (shown.code, shown.json) == (0, {"lease": first, "left": 0})
    assert operator("write", "sys/leases/lookup", f"lease_id={second}").code == 0
    assert operator("revoke", "cloud/").json == {"prefix": "cloud", "leases": 1, "left": 0}


def test_an_empty_word_is_not_all_of_them(site: Site, operator: Shell) -> None:
    [lease] = lend(site, 1)
    for nothing in ("", "/"):
        assert operator("revoke", nothing).code == 2
    assert operator("revoke", lease).code == 0


def test_a_prefix_without_leases_is_told(operator: Shell) -> None:
    shown = operator("revoke", "no-such-role", "--mount", "cloud", "--format", "table")
    assert (shown.code, shown.err) == (0, "there was no lease below cloud/creds/no-such-role\n")


def test_a_lease_that_is_misspelt_is_told(operator: Shell) -> None:
    """The service answers 204 for any id: it read as if a lease had ended."""
    shown = operator("revoke", "cloud/creds/reader/misspelt", "--format", "table")
    assert (shown.code, shown.err) == (0, "there was no lease cloud/creds/reader/misspelt\n")


def test_the_end_of_logins_is_told_as_such(site: Site, operator: Shell) -> None:
    operator.set(**site.of_vm())
    token = operator("login", "--role", "all", "--print").out.strip()
    shown = operator("revoke", "auth/cloud/", "--format", "table")
    assert (shown.code, shown.out) == (0, "prefix  auth/cloud\n")
    assert shown.err == "the tokens that were issued below auth/cloud are ended, and what they were lent follows\n"
    operator.set(VAULT_TOKEN=token)
    assert "permission denied" in operator("read", "auth/token/lookup-self").err


def test_who_may_not_list_is_not_told_that_nothing_is_left(site: Site, operator: Shell) -> None:
    policy = 'path "sys/leases/revoke-prefix/*" { capabilities = ["update", "sudo"] }'
    site.ask("POST", "sys/policies/acl/revoker", {"policy": policy})
    token = site.ask("POST", "auth/token/create", {"policies": ["revoker"]})["auth"]["client_token"]
    operator.set(VAULT_TOKEN=token)
    shown = operator("revoke", "reader")
    assert (shown.code, shown.json["left"]) == (0, None)
    assert "the token may not list sys/leases/lookup" in shown.err
    shown = operator("revoke", "cloud/creds/reader/x")
    assert (shown.code, "permission denied" in shown.err) == (1, True)


@pytest.mark.usefixtures("broken_cloud")
def test_what_is_left_when_the_time_is_over_is_told(site: Site, operator: Shell) -> None:
    [lease] = lend(site, 1)
    assert operator("revoke", "reader", "--wait", "0").code == 0
    wait_until(lambda: "revoke_error" in site.ask("POST", "sys/leases/lookup", {"lease_id": lease})["data"])
    shown = operator("revoke", "reader", "--wait", "2s")
    assert (shown.code, shown.json["left"]) == (1, 1)
    assert shown.err.startswith("the provider does not do its part yet: ")
    assert shown.err.splitlines()[-1] == f"error: {GOES_ON}"
    assert operator("revoke", "reader", "--wait", "soon").code == 2


@pytest.mark.usefixtures("broken_cloud")
def test_who_stops_watching_is_told_that_the_service_goes_on(site: Site, operator: Shell) -> None:
    lend(site, 1)
    words = [sys.executable, "-m", "cloudid_servers.cli", "revoke", "reader", "--format", "table"]
    with subprocess.Popen(
        words, cwd=ROOT, env={**os.environ}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        told = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    assert told == "leases are ended: 1; Ctrl-C ends the watching alone\n"
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-1] == GOES_ON
