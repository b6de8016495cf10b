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

GOES_ON = "the service continues; remaining leases: 1; cloudid list sys/leases/lookup/cloud/creds/reader shows them"


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


def test_a_prefix_without_leases_is_reported_in_a_pipe_too(operator: Shell) -> None:
    shown = operator("revoke", "cloud/creds/no-such-role")
    assert (shown.code, shown.json["leases"]) == (0, 0)
    assert shown.err == "there are no leases below cloud/creds/no-such-role\n"


def test_a_role_that_does_not_exist_is_an_error(operator: Shell) -> None:
    shown = operator("revoke", "nosuch")
    text = "cloud has no role nosuch and no leases of it; cloudid list cloud/roles lists the roles"
    assert (shown.code, shown.out, shown.err) == (1, "", f"error: {text}\n")


def test_a_role_without_leases_is_no_error(site: Site, operator: Shell) -> None:
    site.end_loans()
    shown = operator("revoke", "reader")
    assert (shown.code, shown.err) == (0, "there are no leases below cloud/creds/reader\n")


def test_a_lease_that_is_misspelt_is_an_error(operator: Shell) -> None:
    """The service answers 204 for any id: it read as if a lease had ended."""
    shown = operator("revoke", "cloud/creds/reader/misspelt", "--format", "table")
    text = "there is no lease cloud/creds/reader/misspelt: it has ended, or its id is wrong"
    assert (shown.code, shown.err) == (1, f"error: {text}\n")


def test_tokens_below_auth_are_revoked_only_after_a_question(site: Site, operator: Shell) -> None:
    operator.set(**site.of_vm())
    token = operator("login", "--role", "all", "--print").out.strip()
    for words in (("auth/",), ("auth/cloud/",), ("auth/cloud/login/all",)):
        shown = operator("revoke", *words)
        assert (shown.code, shown.err.endswith("add --yes to confirm\n")) == (1, True)
    assert site.ask("GET", "auth/token/lookup-self", token=token)
    shown = operator("revoke", "auth/cloud/", "--yes", "--format", "table")
    assert (shown.code, shown.out) == (0, "prefix  auth/cloud\n")
    assert shown.err == "the tokens that were issued below auth/cloud are revoked, and their leases will be\n"
    operator.set(VAULT_TOKEN=token)
    assert "permission denied" in operator("read", "auth/token/lookup-self").err


@pytest.mark.usefixtures("broken_cloud")
def test_a_single_lease_is_watched_as_long_as_it_should_be(site: Site, operator: Shell) -> None:
    """`--wait` was ignored for it: the command printed nothing until the service gave up."""
    [lease] = lend(site, 1)
    shown = operator("revoke", lease, "--wait", "0")
    assert (shown.code, shown.json["left"]) == (0, 1)
    wait_until(lambda: "revoke_error" in site.ask("POST", "sys/leases/lookup", {"lease_id": lease})["data"])
    shown = operator("revoke", lease, "--wait", "2s")
    assert (shown.code, shown.json) == (1, {"lease": lease, "left": 1})
    first, *_, last = shown.err.splitlines()
    assert first.startswith("Azure has not removed everything yet: ")
    assert last.endswith(f"remaining leases: 1; cloudid write sys/leases/lookup lease_id={lease} shows them")


def test_who_may_not_look_a_lease_up_can_revoke_it(site: Site, operator: Shell) -> None:
    [lease] = lend(site, 1)
    policy = 'path "sys/leases/revoke" { capabilities = ["update"] }'
    site.ask("POST", "sys/policies/acl/lease-revoker", {"policy": policy})
    token = site.ask("POST", "auth/token/create", {"policies": ["lease-revoker"]})["auth"]["client_token"]
    operator.set(VAULT_TOKEN=token)
    shown = operator("revoke", lease)
    assert (shown.code, shown.json) == (0, {"lease": lease, "left": 0})


def test_who_may_not_list_is_not_told_that_nothing_is_left(site: Site, operator: Shell) -> None:
    policy = 'path "sys/leases/revoke-prefix/*" { capabilities = ["update", "sudo"] }'
    site.ask("POST", "sys/policies/acl/revoker", {"policy": policy})
    token = site.ask("POST", "auth/token/create", {"policies": ["revoker"]})["auth"]["client_token"]
    operator.set(VAULT_TOKEN=token)
    shown = operator("revoke", "reader")
    assert (shown.code, shown.json["left"]) == (0, None)
    assert "the token may not list sys/leases/lookup" in shown.err
    shown = operator("revoke", *lend(site, 1))
    assert (shown.code, "permission denied" in shown.err) == (1, True)
    site.end_loans()


@pytest.mark.usefixtures("broken_cloud")
def test_what_is_left_when_the_time_is_over_is_told(site: Site, operator: Shell) -> None:
    [lease] = lend(site, 1)
    assert operator("revoke", "reader", "--wait", "0").code == 0
    wait_until(lambda: "revoke_error" in site.ask("POST", "sys/leases/lookup", {"lease_id": lease})["data"])
    shown = operator("revoke", "reader", "--wait", "2s")
    assert (shown.code, shown.json["left"]) == (1, 1)
    assert shown.err.startswith("Azure has not removed everything yet: ")
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
    assert told == "revoking 1 leases; Ctrl-C stops only the watching\n"
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-1] == GOES_ON
