"""What entries record of a request, and that they hold no secret."""

from __future__ import annotations

from typing import Any

import jwt
import msgspec
import pytest

from cloudid_core.audit.device import AuditContext, Check, Decision, Device
from cloudid_core.dispatch.audit_entry import _checks, response_entries
from cloudid_core.events import Event, RequestAnswered, RequestReceived
from cloudid_core.messages.operations import Operation
from cloudid_core.messages.response import Answer, Request
from cloudid_core.routing.exchange import Exchange
from tests.installation import Installation
from tests.logins import configure_logins, login_form
from tests.tokens import create_token, look_up_self, new_token

FILE = {"type": "file", "options": {"file_path": "/var/log/audit.log"}}
CANARY = "c4n4ry-s3cret"
ELIDING = Device(name="file", type="file", key="5a" * 32, options={"elide_list_responses": "true"})
HASHER = ELIDING.hasher


def audited(**options: str) -> Installation:
    world = Installation()
    world.must("PUT", "sys/audit/file", {"type": "file", "options": {"file_path": "/var/log/a", **options}})
    world.events.clear()
    return world


def entry(event: Event) -> Any:
    assert event.audit is not None
    (text,) = event.audit.texts
    return msgspec.json.decode(text)


def entries(world: Installation) -> list[Any]:
    return [entry(event) for event in world.events if event.audit is not None]


def hash_of(world: Installation, text: str) -> str:
    hashed: str = world.must("PUT", "sys/audit-hash/file", {"input": text}).data["hash"]
    return hashed


def test_a_request_has_an_entry_before_and_one_after_it() -> None:
    world = audited()
    world.must("POST", "auth/cloud/role/web", {"bound_service_principal_ids": "*"})
    received, answered = [event for event in world.events if event.audit is not None]
    assert isinstance(received, RequestReceived)
    assert isinstance(answered, RequestAnswered)
    request, response = entry(received), entry(answered)
    assert (request["type"], response["type"]) == ("request", "response")
    assert request["request"] == response["request"]
    assert request["auth"] == response["auth"]


def test_an_entry_has_the_members_that_tools_know() -> None:
    world = audited()
    world.must("POST", "auth/cloud/role/web", {"bound_service_principal_ids": "*"})
    request, response = entries(world)
    assert set(request) == {"type", "auth", "request"}
    assert {"client_token", "accessor", "display_name", "policies", "token_policies", "metadata", "token_type"} <= set(
        request["auth"]
    )
    assert request["request"]["operation"] == "update"
    assert request["request"]["mount_point"] == "auth/cloud/"
    assert request["request"]["mount_type"] == "cloud"
    assert request["request"]["namespace"] == {"id": "root"}
    assert request["request"]["path"] == "auth/cloud/role/web"
    assert request["request"]["remote_address"] == "192.0.2.1"
    assert request["request"]["data"]["bound_service_principal_ids"].startswith("hmac-sha256:")
    assert set(response) == {"type", "auth", "request", "response"}


def test_an_entry_has_no_member_for_what_a_request_has_not() -> None:
    world = audited()
    world.ask("POST", "auth/cloud/login", {"role": "web", "jwt": "x"}, token="")
    world.must("GET", "sys/mounts/cloud")
    login, _, reading, answer = entries(world)
    assert login["auth"] == {"token_type": "default"}
    assert not {"client_token", "client_token_accessor", "wrap_ttl", "headers"} & login["request"].keys()
    assert {"client_token", "client_token_accessor"} <= reading["request"].keys()
    assert not {"data", "wrap_ttl", "headers"} & reading["request"].keys()
    assert answer["response"]["mount_point"] == reading["request"]["mount_point"] == "sys/"


def test_a_token_in_a_request_and_the_same_token_in_a_response_have_one_hash() -> None:
    world = audited()
    made = new_token(world)
    granted = entries(world)[-1]["response"]["auth"]["client_token"]
    look_up_self(world, made)
    assert entries(world)[-1]["auth"]["client_token"] == granted


@pytest.mark.parametrize(
    "method, path, body, token, error",
    [
        ("GET", "auth/token/lookup-self", None, "unknown", "permission_denied"),
        ("GET", "nowhere", None, "root", "no_handler"),
        ("GET", "auth/cloud/nothing", None, "root", "unsupported_path"),
        ("GET", "auth/../x", None, "root", "malformed_path"),
        ("POST", "auth/cloud/config", {"max_retries": "x"}, "root", "field_invalid"),
        ("POST", "auth/cloud/login", {"role": "x"}, "", "field_required"),
        ("POST", "auth/cloud/login", ["role"], "", "malformed_json"),
    ],
)
def test_a_refusal_has_an_entry_too(method: str, path: str, body: object, token: str, error: str) -> None:
    world = audited()
    world.ask(method, path, body, token)
    (told,) = entries(world)
    assert told["type"] == "response"
    assert told["error_codes"][0] == error
    assert told["error"]
    assert told["request"]["path"] == ("" if error == "malformed_path" else path)


@pytest.mark.parametrize("path", ["sys/health", "sys/seal-status", "sys/leader", "sys/init"])
def test_the_state_of_the_service_is_not_audited(path: str) -> None:
    world = audited()
    world.must("GET", path, None, "")
    assert entries(world) == []


def test_without_a_device_nothing_is_made_for_audit() -> None:
    world = Installation()
    world.must("GET", "auth/token/lookup-self")
    world.ask("GET", "nowhere")
    assert all(event.audit is None for event in world.events)


def test_a_mount_can_be_tuned_to_keep_members_clear() -> None:
    """Only those that were named, in requests and in responses each for itself."""
    world = audited()
    keys = {"audit_non_hmac_request_keys": "bound_group_ids", "audit_non_hmac_response_keys": ["token_ttl"]}
    world.must("POST", "sys/auth/cloud/tune", keys)
    world.must("POST", "auth/cloud/role/web", {"bound_group_ids": "g1", "token_ttl": 60})
    world.must("GET", "auth/cloud/role/web")
    written, read = entries(world)[-3]["request"]["data"], entries(world)[-1]["response"]["data"]
    assert (written["bound_group_ids"], read["token_ttl"]) == ("g1", 60)
    assert written["token_ttl"].startswith("hmac-sha256:")
    assert read["bound_group_ids"][0].startswith("hmac-sha256:")


def test_names_that_requests_make_up_are_in_no_entry() -> None:
    """A name is a text like any other: neither in what was asked nor in what the answer repeats."""
    world = audited()
    name = f"$({CANARY})"
    for body in ({name: 1, "policies": ["default"]}, {"policies": {name: 1}}):
        world.ask("POST", "auth/token/create", body)
    world.ask("POST", "sys/mounts/x", {"type": "cloud", "config": {name: 1, CANARY: 1}})
    world.ask("PUT", "sys/audit/y", {"type": "file", "options": {name: "1"}})
    world.ask("POST", "nowhere", {CANARY: 1})
    world.ask("POST", "auth/cloud/login", {CANARY: 1})
    wrapped = world.ask("POST", "sys/wrapping/wrap", {CANARY: {name: 1}}, **{"x-vault-wrap-ttl": "60"})
    texts = b"\n".join(text for event in world.events if event.audit is not None for text in event.audit.texts)
    assert wrapped.body["wrap_info"]["token"]
    assert CANARY.encode() not in texts


def test_accessors_are_clear_when_that_is_wanted() -> None:
    world = audited(hmac_accessor="false")
    auth = create_token(world)
    assert entries(world)[-1]["response"]["auth"]["accessor"] == auth["accessor"]


def test_a_list_is_counted_where_that_is_wanted() -> None:
    """Whatever method asks for it, and in the entry of the response only. Each device as it was enabled."""
    world = audited(elide_list_responses="true")
    world.must("PUT", "sys/audit/whole", FILE)
    for number in range(300):
        world.must("POST", f"auth/cloud/role/r{number}", {"bound_service_principal_ids": "*"})
    world.events.clear()
    world.must("LIST", "auth/cloud/role")
    world.must("GET", "auth/cloud/role?list=true")
    for request, response in (world.events[:2], world.events[2:]):
        assert request.audit is not None
        assert response.audit is not None
        elided, whole = [msgspec.json.decode(text)["response"]["data"] for text in response.audit.texts]
        assert elided == {"keys": 300}
        assert set(whole) == {"*"}, "so many values are one hash"
        assert b"response" not in request.audit.texts[0]


def test_only_what_grows_with_a_list_is_counted() -> None:
    """The rest is hashed. A read is not counted, and neither is a member of another type than lists have."""
    texts, infos = ["a", "b"], {"a": {"x": "1"}, "b": {"x": "2"}}
    assert elided("list", {"keys": texts, "key_info": infos}) == {"keys": 2, "key_info": 2}
    assert elided("list", {"keys": (), "more": 2}) == {"keys": 0, "more": HASHER.value(2)}
    assert elided("list", {"keys": infos, "key_info": texts}) == HASHER.members({"keys": infos, "key_info": texts})
    assert elided("read", {"keys": texts}) == HASHER.members({"keys": texts})


def elided(operation: str, data: dict[str, Any]) -> Any:
    """The data of an answer as a device that elides lists gets it."""
    exchange = Exchange(
        request=Request("GET", "/v1/x"),
        request_id="",
        time=0.0,
        operation=Operation(operation),
        path="x",
        shown_path="x",
        answer=Answer(data=data),
        trail=AuditContext((ELIDING,), (ELIDING,), {}, 1),
    )
    made = response_entries(exchange)
    assert made is not None
    return msgspec.json.decode(made.texts[0])["response"]["data"]


def test_every_device_has_hashes_of_its_own() -> None:
    world = audited()
    world.must("PUT", "sys/audit/other", FILE)
    world.events.clear()
    look_up_self(world, "root")
    audit = world.events[-1].audit
    assert audit is not None
    one, other = map(msgspec.json.decode, audit.texts)
    assert one["auth"]["client_token"] != other["auth"]["client_token"]


def test_a_login_is_told_with_its_decision() -> None:
    world = Installation()
    machine = configure_logins(world, bound_locations=["westus2", "eastus"])
    world.must("PUT", "sys/audit/file", FILE)
    world.ask("POST", "auth/cloud/login", login_form(world, machine), token="")
    told = entries(world)[-1]
    checks = {check["check"]: check for check in told["decision"]["checks"]}
    assert checks["bound_subscription_ids"]["verdict"] == "passed"
    assert all(text.startswith("hmac-sha256:") for text in checks["bound_locations"]["expected"])
    assert len(checks["bound_locations"]["expected"]) == 2


def test_a_decision_names_the_machine_in_clear() -> None:
    """Refused or admitted, and though decisions that are alike are remembered."""
    world = Installation()
    one, other, *_ = [each for each in world.scene["machines"] if each["kind"] == "vm"]
    configure_logins(world, bound_subscription_ids="", bound_service_principal_ids="*")
    world.must("PUT", "sys/audit/file", FILE)
    for verdict in ("admitted", "refused"):
        for machine in (one, other):
            world.ask("POST", "auth/cloud/login", login_form(world, machine), token="")
            decision = entries(world)[-1]["decision"]
            named = decision["principal_id"], decision["resource_id"].lower()
            assert (decision["verdict"], named) == (verdict, (machine["principals"][0], machine["resource_id"].lower()))
        world.must("POST", "auth/cloud/role/dev", {"bound_service_principal_ids": "somebody"})


def test_an_entry_has_nothing_of_a_login_whose_signature_does_not_hold() -> None:
    world = Installation()
    machine = configure_logins(world)
    world.must("PUT", "sys/audit/file", FILE)
    form = login_form(world, machine)
    world.ask("POST", "auth/cloud/login", {**form, "jwt": form["jwt"][:-8] + "AAAAAAAA"}, token="")
    assert "decision" not in entries(world)[-1]
    event = world.events[-1]
    assert event.audit is not None
    assert machine["principals"][0].encode() not in event.audit.texts[0]


def test_a_refused_login_is_told_with_every_constraint_that_failed() -> None:
    world = Installation()
    machine = configure_logins(
        world,
        bound_resource_groups=["elsewhere"],
        bound_service_principal_ids=["0" * 8 + "-0000-4000-8000-" + "0" * 12],
    )
    world.must("PUT", "sys/audit/file", FILE)
    world.ask("POST", "auth/cloud/login", login_form(world, machine), token="")
    told = entries(world)[-1]
    failed = [check["check"] for check in told["decision"]["checks"] if check["verdict"] == "failed"]
    assert told["decision"]["verdict"] == "refused"
    assert failed == ["bound_service_principal_ids", "bound_resource_groups"]
    assert told["error_codes"] == ["bound_service_principal_mismatch"]


def test_a_login_is_told_with_the_kind_of_its_token() -> None:
    """Refused or admitted, and though decisions that are alike are remembered."""
    world = Installation()
    machine = configure_logins(world, bound_subscription_ids="", bound_service_principal_ids="*")
    world.must("PUT", "sys/audit/file", FILE)
    body = login_form(world, machine)
    claims = jwt.decode(body["jwt"], options={"verify_signature": False}) | {"upn": "ada@contoso.test"}
    person = {**body, "jwt": world.cloud("POST", "/simulator/tokens", {"claims": claims})["token"]}
    told = []
    for types in ("app", "app,user"):
        world.must("POST", "auth/cloud/role/dev", {"bound_token_types": types})
        for form in (body, person):
            world.ask("POST", "auth/cloud/login", form, token="")
            decision = entries(world)[-1]["decision"]
            told.append((decision["verdict"], decision["jwt_type"]))
    assert told == [("admitted", "app"), ("refused", "user"), ("admitted", "app"), ("admitted", "user")]


def test_a_check_that_failed_is_told_with_the_hash_of_what_it_found() -> None:
    """An entry tells by which identity a login was tried that was refused."""
    world = Installation()
    machine = configure_logins(world, bound_service_principal_ids=["nobody"], max_jwt_exp=1)
    world.must("PUT", "sys/audit/file", FILE)
    world.ask("POST", "auth/cloud/login", login_form(world, machine), token="")
    told = entries(world)[-1]
    checks = {check["check"]: check for check in told["decision"]["checks"]}
    assert checks["bound_service_principal_ids"]["found"] == hash_of(world, machine["principals"][0])
    assert checks["bound_service_principal_ids"]["expected"] == [hash_of(world, "nobody")]
    assert "found" not in checks["bound_subscription_ids"]
    assert told["error_codes"] == ["jwt_expires_too_late"], "the first failure; the others are told beside it"


def test_entries_and_explain_tell_the_same_checks() -> None:
    world = Installation()
    machine = configure_logins(world, bound_locations=["nowhere"], bound_scale_sets=["nowhere"])
    world.must("PUT", "sys/audit/file", FILE)
    form = login_form(world, machine)
    world.ask("POST", "auth/cloud/login", form, token="")
    told = {check["check"]: check["verdict"] for check in entries(world)[-1]["decision"]["checks"]}
    explained = world.must("POST", "auth/cloud/explain", form).data["checks"]
    assert told == {check["check"]: check["verdict"] for check in explained}


def test_what_the_provider_did_not_tell_is_undecided() -> None:
    world = Installation()
    form = login_form(world, configure_logins(world, bound_locations=["westus2"]))
    world.must("PUT", "sys/audit/file", FILE)
    world.fail("arm", status=403, code="AuthorizationFailed")
    world.ask("POST", "auth/cloud/login", form, token="")
    decision = entries(world)[-1]["decision"]
    undecided = [check["check"] for check in decision["checks"] if check["verdict"] == "undecided"]
    assert (decision["verdict"], undecided) == ("undecided", ["machine", "machine_identity", "bound_locations"])


def test_a_decision_on_a_role_that_is_out_of_date_is_not_told() -> None:
    world = Installation()
    machine = configure_logins(world)
    world.must("PUT", "sys/audit/file", FILE)
    form = login_form(world, machine)
    world.must("POST", "auth/cloud/login", form, token="")
    with world.requests_to(world.open_node()):
        world.must("DELETE", f"auth/cloud/role/{form['role']}")
    world.ask("POST", "auth/cloud/login", form, token="")
    told = entries(world)[-1]
    assert told["error_codes"] == ["role_not_found"]
    assert "decision" not in told


def test_a_wrapped_answer_is_told_by_its_wrapping_token() -> None:
    world = audited()
    response = world.ask("GET", "sys/policies/acl/default", x_service_wrap_ttl="90")
    info = response.body["wrap_info"]
    request, answered = entries(world)
    assert request["request"]["wrap_ttl"] == 90
    told = answered["response"]
    assert "data" not in told
    assert (told["wrap_info"]["ttl"], told["wrap_info"]["creation_path"]) == (90, "sys/policies/acl/default")
    for name in ("token", "accessor"):
        assert told["wrap_info"][name].startswith("hmac-sha256:")
    world.events.clear()
    unwrapped = world.must("POST", "sys/wrapping/unwrap", {"token": info["token"]}).body
    assert set(unwrapped["data"]) == {"name", "policy"}
    told = entries(world)[-1]
    assert told["response"]["data"]["data"]["policy"].startswith("hmac-sha256:")
    assert info["token"] not in str(told)


def test_no_secret_gets_into_an_entry() -> None:
    """Canaries in every field of every kind of body, as texts and as numbers, in requests and in responses."""
    world = Installation()
    machine = configure_logins(world)
    world.must("PUT", "sys/audit/file", FILE)
    number = 4_815_162_342_108
    credentials = login_form(world, machine)
    auth = world.must("POST", "auth/cloud/login", credentials, token="").auth
    world.ask("POST", "auth/cloud/config", {"client_secret": CANARY, "tenant_id": CANARY, "resource": CANARY})
    world.ask("GET", "auth/cloud/config")
    world.ask("POST", "auth/cloud/config", {"client_secret": number, "unknown": {"deep": [CANARY, number]}})
    world.ask("POST", "cloud/config", {"client_secret": CANARY, "root_password_ttl": number})
    world.ask("POST", "sys/audit-hash/file", {"input": CANARY})
    world.ask("POST", "auth/token/lookup", {"token": CANARY})
    world.ask("GET", "auth/token/lookup-self", None, CANARY)
    world.ask("POST", "auth/cloud/login", {"role": CANARY, "jwt": CANARY})
    world.ask("GET", f"auth/token/lookup-self?token={CANARY}")
    world.must("POST", "auth/token/revoke-accessor", {"accessor": auth["accessor"]})
    texts = b"\n".join(text for event in world.events if event.audit is not None for text in event.audit.texts)
    assert len(texts) > 10_000
    for secret in (CANARY, str(number), credentials["jwt"], auth["client_token"], auth["accessor"]):
        assert str(secret).encode() not in texts


def test_the_lists_of_a_decision_are_hashed_as_one_where_they_are_long_together() -> None:
    """An entry has a bound: three lists of a role, each of which would be hashed by its members."""
    ids = tuple(str(number) for number in range(200))
    checks = tuple(Check(name=name, verdict="failed", expected=ids, found=ids) for name in ("a", "b", "c"))
    made = msgspec.json.decode(_checks(ELIDING.hasher, Decision(verdict="refused", jwt_type="app", checks=checks)))
    assert [(len(check["expected"]), len(check["found"])) for check in made] == [(200, 1), (1, 1), (1, 1)]
    assert len(msgspec.json.encode(made)) < 20_000
