"""Who logged in at this node last, and who was refused, with every check."""

from __future__ import annotations

from typing import Any

import pytest

from cloudid_core.caches import Caches
from cloudid_core.effects import Sleep
from tests.installation import Installation
from tests.logins import LOGIN, configure_logins, identity, log_in, login_form

PATH = "sys/internal/recent-logins"


@pytest.fixture
def service() -> Installation:
    return Installation()


def logins_of(service: Installation) -> Any:
    return service.must("GET", PATH).data["logins"]


def test_a_login_and_a_refusal_are_told_with_their_checks_the_last_one_first(service: Installation) -> None:
    machine = configure_logins(service)
    auth = log_in(service, machine)
    for _ in range(2):
        refused = service.ask("POST", LOGIN, login_form(service, machine, vm_name="another"), token="")
        assert refused.status == 403
    last, first = logins_of(service)
    assert (first["verdict"], first["count"], first["accessor"]) == ("admitted", 1, auth["accessor"])
    assert (last["verdict"], last["count"], last["codes"]) == ("refused", 2, ["vm_name_mismatch"])
    assert {first["principal_id"], last["principal_id"]} == {*machine["principals"]}
    assert last["request_id"] == refused.response.request_id
    [failed] = [check for check in last["checks"] if check["verdict"] == "failed"]
    assert (failed["check"], failed["expected"], failed["found"]) == ("vm_name", machine["name"], "another")
    assert {check["verdict"] for check in first["checks"]} == {"passed"}


def test_nothing_is_remembered_of_what_nobody_signed_and_no_secret_of_what_somebody_did(service: Installation) -> None:
    machine = configure_logins(service)
    jwt = identity(service, machine["name"])["access_token"]
    for body in (login_form(service, machine, jwt=jwt[:-8] + "AAAAAAAA"), login_form(service, machine, role="../x")):
        assert service.ask("POST", LOGIN, body, token="").status in (400, 403)
    assert logins_of(service) == []
    token = log_in(service, machine, jwt=jwt)["client_token"]
    assert len(logins_of(service)) == 1
    text = service.must("GET", PATH).response.body.decode()
    caches: Caches = service.service.context.caches
    [(_, case)] = caches.admitted_logins
    for secret in (token, jwt, jwt.rpartition(".")[0]):
        assert secret not in text
        assert secret not in repr((case, case().form))


def test_many_refusals_do_not_displace_logins_and_are_bounded(service: Installation) -> None:
    machine = configure_logins(service)
    log_in(service, machine)
    caches: Caches = service.service.context.caches
    assert (caches.admitted_logins.maxlen, caches.refused_logins.size) == (16, 128)
    caches.refused_logins.size = 2
    for number in range(3):
        service.must("POST", f"auth/cloud/role/r{number}", {"bound_locations": "nowhere"})
        service.ask("POST", LOGIN, login_form(service, machine, role=f"r{number}"), token="")
    since = len(service.trace)
    assert [login["role"] for login in logins_of(service)] == ["r2", "r1", "dev"]
    pauses = [effect for _, effect in service.trace[since:] if isinstance(effect, Sleep)]
    assert len(pauses) == 2, "other requests are answered between two logins, whose roles may have long lists"


def test_a_policy_must_grant_it(service: Installation) -> None:
    token = service.must("POST", "auth/token/create", {"policies": ["default"]}).auth["client_token"]
    assert service.ask("GET", PATH, token=token).status == 403
