"""Who logged in at this node last, and who was refused, with every check."""

from __future__ import annotations

from typing import Any

import jwt as pyjwt
import pytest

from cloudid_core.caches import LARGEST_CASES, Caches
from cloudid_core.effects import Sleep
from tests.installation import Installation
from tests.logins import LOGIN, configure_logins, identity, log_in, login_form
from tests.tokens import new_token, write_policy

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
        assert secret not in repr((case, case.form, case.form.jwt))


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


def test_refusals_by_large_roles_are_forgotten_before_there_are_many(service: Installation) -> None:
    """Each holds its role, and the writers of roles choose how large these are."""
    ids = [f"{number:08x}-0000-4000-8000-000000000000" for number in range(9000)]
    form = login_form(service, configure_logins(service))
    for number in range(8):
        role = f"large-{number}"
        service.must("POST", f"auth/cloud/role/{role}", {"bound_service_principal_ids": ids})
        assert service.refused("POST", LOGIN, {**form, "role": role}) == (403, "bound_service_principal_mismatch")
    remembered = service.context.caches.refused_logins
    assert 1 < len(remembered) < 8
    assert remembered.weight <= LARGEST_CASES


def large_bound(machine: Any) -> dict[str, list[str]]:
    """A bound of 340 KB that admits the machine."""
    others = (f"{number:08x}-0000-4000-8000-000000000000" for number in range(9000))
    return {"bound_service_principal_ids": [*others, *machine["principals"]]}


def test_admissions_by_large_roles_are_forgotten_once_another_role_is_read(service: Installation) -> None:
    """Each holds its role, even one that was deleted since."""
    machine = configure_logins(service)
    form = login_form(service, machine)
    for number in range(12):
        role = f"large-{number}"
        service.must("POST", f"auth/cloud/role/{role}", large_bound(machine))
        service.must("POST", LOGIN, {**form, "role": role}, token="")
        service.must("DELETE", f"auth/cloud/role/{role}")
    service.must("POST", LOGIN, form, token="")
    remembered = service.context.caches.admitted_logins
    roles = [answered.role for answered, _ in remembered]
    assert roles[-2:] == ["large-11", "dev"]
    assert 2 < len(roles) < 12
    assert sum(case.bounds.weight for _, case in remembered) <= LARGEST_CASES


def test_many_admissions_by_one_large_role_are_remembered(service: Installation) -> None:
    """They share the role."""
    machine = configure_logins(service)
    form = login_form(service, machine)
    service.must("POST", "auth/cloud/role/large", large_bound(machine))
    for _ in range(15):
        service.must("POST", LOGIN, {**form, "role": "large"}, token="")
    service.must("POST", LOGIN, form, token="")
    assert len(service.context.caches.admitted_logins) == 16


def test_a_policy_must_grant_it(service: Installation) -> None:
    token = service.must("POST", "auth/token/create", {"policies": ["default"]}).auth["client_token"]
    assert service.ask("GET", PATH, token=token).status == 403


def token_of(service: Installation, jwt: object, **claims: object) -> str:
    """A token that the simulated cloud signs, with the claims of another and these."""
    said = {**pyjwt.decode(str(jwt), options={"verify_signature": False}), **claims}
    token: str = service.cloud("POST", "/simulator/tokens", {"claims": said})["token"]
    return token


def unaccepted_of(service: Installation) -> Any:
    return service.must("GET", PATH).data["unaccepted"]


def test_a_token_that_is_not_accepted_is_listed_apart_by_source_and_code_without_its_role(
    service: Installation,
) -> None:
    form = login_form(service, configure_logins(service))
    foreign = {**form, "jwt": token_of(service, form["jwt"], aud="https://elsewhere.example", oid="made-up")}
    for role, address in (("dev", "192.0.2.1"), ("invented", "192.0.2.1"), ("dev", "192.0.2.2")):
        service.ask("POST", LOGIN, {**foreign, "role": role}, token="", address=address)
    service.ask("POST", LOGIN, {**form, "jwt": "x.y.z"}, token="", address="192.0.2.1")
    malformed, second, first = unaccepted_of(service)
    assert (first["remote_address"], first["codes"], first["count"]) == ("192.0.2.1", ["jwt_audience_mismatch"], 2)
    assert (second["remote_address"], second["count"], second["mount"]) == ("192.0.2.2", 1, "auth/cloud/")
    assert (malformed["codes"], malformed["checks"]) == (["jwt_malformed"], [])
    assert [check["check"] for check in first["checks"]] == ["iss", "tid", "aud", "exp", "nbf"]
    [failed] = [check for check in first["checks"] if check["verdict"] == "failed"]
    assert (failed["check"], failed["found"]) == ("aud", ["https://elsewhere.example"])
    assert failed["expected"] == "https://management.azure.com/"
    text = service.must("GET", PATH).response.body
    assert b"invented" not in text
    assert b"made-up" not in text
    assert logins_of(service) == []


def test_strangers_do_not_displace_the_refusal_of_a_machine(service: Installation) -> None:
    machine = configure_logins(service)
    form = login_form(service, machine)
    service.ask("POST", LOGIN, {**form, "vm_name": "another"}, token="")
    foreign = {**form, "jwt": token_of(service, form["jwt"], tid="another")}
    for number in range(200):
        service.ask("POST", LOGIN, {**foreign, "role": f"r{number}"}, token="", address=f"198.51.100.{number}")
    [refused] = logins_of(service)
    assert refused["codes"] == ["vm_name_mismatch"]
    assert len(unaccepted_of(service)) == service.service.context.caches.unaccepted_logins.size


def test_tokens_that_are_not_verified_do_not_displace_a_verified_one(service: Installation) -> None:
    form = login_form(service, configure_logins(service))
    service.ask("POST", LOGIN, {**form, "jwt": token_of(service, form["jwt"], exp=1)}, token="")
    service.ask("POST", LOGIN, {**form, "jwt": token_of(service, form["jwt"], oid=None)}, token="")
    for number in range(200):
        service.ask("POST", LOGIN, {**form, "jwt": "x.y.z"}, token="", address=f"198.51.100.{number}")
    listed = [refusal["codes"] for refusal in unaccepted_of(service)]
    assert ["jwt_expired"] in listed
    assert ["jwt_claim_missing"] in listed
    assert listed.count(["jwt_malformed"]) == service.service.context.caches.unverified_logins.size


def test_refusals_of_the_form_are_not_listed(service: Installation) -> None:
    form = login_form(service, configure_logins(service))
    for body in ({}, {**form, "role": "!!"}, {**form, "subscription_id": "!!"}):
        assert service.ask("POST", LOGIN, body, token="").status == 400
    assert unaccepted_of(service) == []


def test_what_a_token_says_that_is_not_accepted_is_shown_shortened(service: Installation) -> None:
    form = login_form(service, configure_logins(service))
    long = token_of(service, form["jwt"], aud=["x" * 5000, *map(str, range(500))])
    service.ask("POST", LOGIN, {**form, "jwt": long}, token="")
    [refusal] = unaccepted_of(service)
    [found] = [check["found"] for check in refusal["checks"] if check["check"] == "aud"]
    assert (len(found[0]), found[-1]) == (1001, "and 401 more")


def test_what_a_check_expected_is_for_callers_who_may_explain(service: Installation) -> None:
    """Bounds and networks of a role are not for everyone who may look at logins; `explain` needs sudo for them too."""
    machine = configure_logins(service, bound_resource_groups="secret-group", token_bound_cidrs="10.11.12.0/24")
    form = login_form(service, machine)
    service.ask("POST", LOGIN, form, token="")
    service.ask("POST", LOGIN, {**form, "jwt": token_of(service, form["jwt"], exp=1)}, token="")
    read = (PATH, ["read"])
    policies = {
        "looks": (read,),
        "updates": (read, ("auth/cloud/explain", ["update"])),
        "elsewhere": (read, ("auth/other/explain", ["update", "sudo"])),
        "explains": (read, ("auth/cloud/explain", ["update", "sudo"])),
    }
    shown = {}
    for name, rules in policies.items():
        write_policy(service, name, *rules)
        reply = service.must("GET", PATH, token=new_token(service, policies=[name]))
        shown[name] = reply.response.body
        checks = [check for kind in ("logins", "unaccepted") for each in reply.data[kind] for check in each["checks"]]
        assert checks
        assert any(check["expected"] is not None for check in checks) == (name == "explains")
        assert {check["verdict"] for check in checks} >= {"passed", "failed"}
    secrets = (b"secret-group", b"10.11.12.0/24")
    assert [name for name, body in shown.items() if any(secret in body for secret in secrets)] == ["explains"]
