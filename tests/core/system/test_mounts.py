"""The routes of mounts: list, enable, read, tune and disable."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from cloudid_core.forms import spellings_of
from cloudid_core.policies.document import Rule
from cloudid_core.policies.parameters import fit
from cloudid_core.system import mounts
from cloudid_core.system.mounts import AUDIT_KEYS, EnableForm
from cloudid_core.version import VERSION
from tests.installation import Installation
from tests.tokens import new_token, write_policy

KINDS = ("auth", "mounts")
GUID = "00000000-0000-0000-0000-000000000001"
LONG = "x" * 20_000


@pytest.fixture
def service() -> Installation:
    return Installation()


@pytest.mark.parametrize(
    "base, paths, type_names",
    [
        ("auth", {"cloud/", "token/"}, {"cloud", "token"}),
        ("mounts", {"cloud/", "identity/", "sys/"}, {"cloud", "identity", "system"}),
    ],
)
def test_the_list_has_the_built_in_ones_too(
    service: Installation, base: str, paths: set[str], type_names: set[str]
) -> None:
    """By path with its final slash; and all once more beside `data`."""
    reply = service.must("GET", f"sys/{base}")
    assert set(reply.data) == paths
    assert {info["type"] for info in reply.data.values()} == type_names
    assert {name: reply.body[name] for name in reply.data} == reply.data


def test_a_mount_is_described_by_all_its_members(service: Installation) -> None:
    info = service.must("GET", "sys/auth").data["cloud/"]
    assert info["accessor"].startswith("auth_cloud_")
    assert service.must("GET", "sys/auth/cloud").data == info
    assert {name: value for name, value in info.items() if name not in ("accessor", "uuid")} == {
        "type": "cloud",
        "description": "",
        "local": False,
        "seal_wrap": False,
        "external_entropy_access": False,
        "options": None,
        "plugin_version": "",
        "running_plugin_version": f"v{VERSION}",
        "running_sha256": "",
        "deprecation_status": "supported",
        "config": {
            "default_lease_ttl": 0,
            "max_lease_ttl": 0,
            "force_no_cache": False,
            "token_type": "default-service",
        },
    }


@pytest.mark.parametrize("base", KINDS)
def test_a_component_is_mounted_wherever_it_is_wanted(service: Installation, base: str) -> None:
    """Also below several segments, and under its other name, which reads back."""
    body = {
        "type": "azure",
        "description": "West",
        "options": {"a": "b"},
        "config": {"default_lease_ttl": "1h", "max_lease_ttl": 7200, "listing_visibility": "unauth"},
    }
    assert service.ask("POST", f"sys/{base}/team/west", body).status == 204
    info = service.must("GET", f"sys/{base}").data["team/west/"]
    assert info["type"] == "azure"
    assert (info["description"], info["options"]) == ("West", {"a": "b"})
    assert (info["config"]["default_lease_ttl"], info["config"]["max_lease_ttl"]) == (3600, 7200)
    assert info["config"]["listing_visibility"] == "unauth"
    path = "auth/team/west" if base == "auth" else "team/west"
    config = {"tenant_id": "t", "resource": "r"} if base == "auth" else {"tenant_id": "t", "subscription_id": GUID}
    service.must("POST", f"{path}/config", config)
    shown = service.must("GET", f"{path}/config")
    assert shown.data["tenant_id"] == "t"
    default = service.ask("GET", "auth/cloud/config" if base == "auth" else "cloud/config")
    assert default.status == 404 or default.data["tenant_id"] == ""


@pytest.mark.parametrize(
    "body, status",
    [
        ({"type": "cloud"}, 204),
        ({"type": "plugin", "plugin_name": "azure"}, 204),
        ({"plugin_name": "cloud"}, 204),
        (
            {
                "type": "azure",
                "description": "",
                "local": False,
                "seal_wrap": False,
                "external_entropy_access": False,
                "options": None,
                "config": {
                    "options": None,
                    "default_lease_ttl": "",
                    "max_lease_ttl": "system",
                    "force_no_cache": False,
                    "audit_non_hmac_request_keys": None,
                    "plugin_version": "",
                },
            },
            204,
        ),
        ({"type": "cloud", "config": None}, 204),
        ({"type": "cloud", "config": {"default_lease_tll": "1h"}}, 200),
        ({"type": "cloud", "descriptoin": ""}, 200),
        ({"type": "kubernetes"}, 400),
        ({"type": "system"}, 400),
        ({"type": "token"}, 400),
        ({}, 400),
        ({"type": "cloud", "config": []}, 400),
        ({"type": "cloud", "config": {"default_lease_ttl": "soon"}}, 400),
        ({"type": "cloud", "config": {"max_lease_ttl": "200y"}}, 400),
        ({"type": "cloud", "config": {"max_lease_ttl": 2**31 + 1}}, 400),
        ({"type": "cloud", "config": {"default_lease_ttl": "2h", "max_lease_ttl": "1h"}}, 400),
        ({"type": "cloud", "config": {"default_lease_ttl": "33d"}}, 400),
        ({"type": "cloud", "config": {"token_type": "paper"}}, 400),
    ],
)
@pytest.mark.parametrize("base", KINDS)
def test_a_mount_is_enabled_or_refused_by_its_fields(
    service: Installation, base: str, body: dict[str, Any], status: int
) -> None:
    """All that clients send as "nothing special" is accepted without a warning."""
    reply = service.ask("PUT", f"sys/{base}/new", body)
    assert reply.status == status
    assert ("new/" in service.must("GET", f"sys/{base}").data) is (status < 300)


def test_a_warning_names_an_unknown_member_of_config(service: Installation) -> None:
    reply = service.must("POST", "sys/auth/new", {"type": "cloud", "config": {"max_lease_tll": 5}})
    assert reply.body["warnings"] == ["Endpoint ignored these unrecognized parameters: [config.max_lease_tll]"]


def test_an_invalid_member_of_config_is_named(service: Installation) -> None:
    reply = service.ask("POST", "sys/auth/new", {"type": "cloud", "config": {"max_lease_ttl": "soon"}})
    assert reply.status == 400
    [text] = reply.body["errors"]
    assert '"config" is invalid: "max_lease_ttl" must be' in text


SPELLINGS: Final[list[dict[str, Any]]] = [
    {"max_lease_ttl": "100h"},
    {"max_lease_ttl": 360000},
    {"max_lease_ttl": "360000s"},
    {"max_lease_ttl": "100h", "default_lease_ttl": 0},
    {"max_lease_ttl": "100h", "description": "", "options": None},
    {"max_lease_ttl": "100h", "max_lease_tll": 5},
]


@pytest.mark.parametrize("ruled", SPELLINGS)
@pytest.mark.parametrize("base", KINDS)
def test_policies_compare_config_as_the_route_reads_it(service: Installation, base: str, ruled: dict[str, Any]) -> None:
    fields = spellings_of(EnableForm)
    config = {name: value for name, value in ruled.items() if value is not None}
    denying = Rule("p", frozenset(), denied_parameters={"config": (config,)})
    allowing = Rule("p", frozenset(), allowed_parameters={"config": (config,)})
    other = {"config": {"max_lease_ttl": "99h"}}
    for spelling in SPELLINGS:
        assert not fit(denying, {"config": spelling}, fields)
        assert fit(allowing, {"config": spelling}, fields)
    assert fit(denying, other, fields)
    assert not fit(allowing, other, fields)
    token = new_token(service, policies=[write_denial(service, f"sys/{base}/*", {"config": [config]})])
    body = {"type": "cloud", "config": {"max_lease_ttl": 360000}}
    assert service.refused("POST", f"sys/{base}/new", body, token) == (403, "permission_denied")


@pytest.mark.parametrize(
    "denied, config, passes",
    [
        ({"listing_visibility": []}, {"listing_visibility": "unauth"}, False),
        ({"listing_visibility": []}, {"listing_visibility": "unauth", "max_lease_ttl": "1h", "unknown": 1}, False),
        ({"listing_visibility": ["UNAUTH"]}, {"listing_visibility": "unauth"}, False),
        ({"max_lease_ttl": ["100h"]}, {"max_lease_ttl": 360000}, False),
        ({"max_lease_ttl": ["100h"]}, {"max_lease_ttl": 360001}, True),
        ({"options": []}, {"options": {"version": "2"}}, False),
        ({"description": ["*secret*"]}, {"description": "a secret"}, False),
        ({"listing_visibility": []}, {"listing_visibility": "", "max_lease_ttl": "1h"}, True),
        ({"listing_visibility": []}, {"max_lease_ttl": "1h"}, True),
        ({"listing_visibility": []}, {}, True),
    ],
)
@pytest.mark.parametrize("base", KINDS)
def test_what_a_policy_denies_to_tune_cannot_be_given_to_a_new_mount(
    service: Installation, base: str, denied: dict[str, Any], config: dict[str, Any], passes: bool
) -> None:
    """The members of `config` are the fields of `tune`."""
    token = new_token(service, policies=[write_denial(service, f"sys/{base}/*", denied)])
    reply = service.ask("POST", f"sys/{base}/new", {"type": "cloud", "config": config}, token)
    assert (reply.status in (200, 204)) is passes
    assert passes or reply.code == "permission_denied"


def write_denial(service: Installation, path: str, denied: dict[str, Any]) -> str:
    rule = {"capabilities": ["create", "update", "sudo"], "denied_parameters": denied}
    service.must("POST", "sys/policies/acl/denial", {"policy": json.dumps({"path": {path: rule}})})
    return "denial"


@pytest.mark.parametrize("token_type, status", [("batch", 204), ("default-batch", 204), ("", 204)])
def test_only_authentication_methods_have_a_token_type(service: Installation, token_type: str, status: int) -> None:
    body = {"type": "cloud", "config": {"token_type": token_type}}
    assert service.ask("POST", "sys/auth/new", body).status == status
    shown = service.must("GET", "sys/auth/new").data["config"]["token_type"]
    assert shown == (token_type or "default-service")
    assert service.ask("POST", "sys/mounts/new", body).status == (400 if token_type else 204)


@pytest.mark.parametrize(
    "base, path, status",
    [
        ("auth", "cloud", 409),
        ("auth", "cloud/sub", 409),
        ("auth", "CLOUD", 409),
        ("auth", "token", 409),
        ("auth", "token/x", 409),
        ("auth", "sys", 204),
        ("mounts", "cloud", 409),
        ("mounts", "cloud/a/b", 409),
        ("mounts", "sys", 409),
        ("mounts", "auth", 403),
        ("mounts", "auth/x", 403),
        ("mounts", "identity", 409),
        ("mounts", "a+b", 400),
        ("mounts", "a*", 400),
        ("mounts", ".a", 400),
        ("mounts", "a%20b", 400),
        ("mounts", "a" * 257, 400),
    ],
)
def test_a_mount_is_accepted_only_at_a_free_path(service: Installation, base: str, path: str, status: int) -> None:
    assert service.ask("POST", f"sys/{base}/{path}", {"type": "cloud"}).status == status


@pytest.mark.parametrize("base, words", [("auth", "No auth engine at"), ("mounts", "No secret engine mount at")])
def test_the_error_for_a_missing_mount_has_the_words_that_clients_look_for(
    service: Installation, base: str, words: str
) -> None:
    for path in (f"sys/{base}/nothing", f"sys/{base}/nothing/tune"):
        reply = service.ask("GET", path)
        assert (reply.status, reply.body["codes"]) == (400, ["mount_not_found"])
        assert words in reply.body["errors"][0]
    assert service.ask("POST", f"sys/{base}/nothing/tune", {"description": "x"}).status == 400
    assert service.ask("DELETE", f"sys/{base}/nothing").status == 204


@pytest.mark.parametrize("path", ["sys/auth/cloud/tune", "sys/mounts/auth/cloud/tune", "sys/mounts/cloud/tune"])
def test_tuning_reads_the_effective_values_and_changes_the_given_ones(service: Installation, path: str) -> None:
    assert service.must("GET", path).data["max_lease_ttl"] == 2_764_800
    assert service.ask("POST", path, {"max_lease_ttl": "2h", "description": "short"}).status == 204
    service.must("PUT", path, {"default_lease_ttl": 60})
    reply = service.must("GET", path)
    assert (reply.data["default_lease_ttl"], reply.data["max_lease_ttl"]) == (60, 7200)
    assert reply.data["description"] == reply.body["description"] == "short"
    service.must("POST", path, {"max_lease_ttl": "system", "default_lease_ttl": "system"})
    assert service.must("GET", path).data["default_lease_ttl"] == 2_764_800


def test_an_empty_lifetime_leaves_the_stored_one_when_a_mount_is_tuned(service: Installation) -> None:
    service.must("POST", "sys/mounts/cloud/tune", {"default_lease_ttl": "1h", "max_lease_ttl": "2h"})
    service.must("POST", "sys/mounts/cloud/tune", {"description": "x", "default_lease_ttl": "", "max_lease_ttl": ""})
    tuned = service.must("GET", "sys/mounts/cloud/tune").data
    assert (tuned["default_lease_ttl"], tuned["max_lease_ttl"]) == (3600, 7200)
    assert service.ask("POST", "sys/mounts/cloud/tune", {"default_lease_ttl": "3h", "max_lease_ttl": ""}).status == 400


@pytest.mark.parametrize(
    "fields, code",
    [
        ({"default_lease_ttl": "2h", "max_lease_ttl": "1h"}, "ttl_exceeds_max"),
        ({"listing_visibility": "everybody"}, "field_invalid"),
        ({"default_lease_ttl": -1}, "field_invalid"),
        ({"description": LONG}, "field_invalid"),
        ({"options": {"a": LONG}}, "field_invalid"),
        ({"passthrough_request_headers": [LONG]}, "field_invalid"),
    ],
)
def test_invalid_tuning_changes_nothing(service: Installation, fields: dict[str, Any], code: str) -> None:
    before = service.must("GET", "sys/auth/cloud").data
    assert service.ask("POST", "sys/auth/cloud/tune", fields).body["codes"] == [code]
    assert service.must("GET", "sys/auth/cloud").data == before


def test_a_mount_with_more_texts_than_may_be_written_now_is_still_tuned(
    service: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All mounts are one entry, which every request needs."""
    service.must("POST", "sys/mounts/cloud/tune", {"description": LONG[:9000]})
    monkeypatch.setattr(mounts, "MOST_OF_A_MOUNT", 1000)
    service.must("POST", "sys/mounts/cloud/tune", {"max_leases": 5})
    assert service.ask("POST", "sys/mounts/cloud/tune", {"options": {"a": "b" * 100}}).status == 400
    service.must("POST", "sys/mounts/cloud/tune", {"description": "short"})


@pytest.mark.parametrize("base, path", [("auth", "token"), ("mounts", "sys")])
def test_built_in_mounts_are_read_but_never_changed(service: Installation, base: str, path: str) -> None:
    assert service.must("GET", f"sys/{base}/{path}/tune").data["max_lease_ttl"] == 2_764_800
    for method, target in (("POST", f"sys/{base}/{path}/tune"), ("DELETE", f"sys/{base}/{path}")):
        reply = service.ask(method, target, {"description": "mine"})
        assert (reply.status, reply.body["codes"]) == (400, ["mount_protected"])


@pytest.mark.parametrize("base, path", [("auth", "cloud"), ("mounts", "cloud")])
def test_a_disabled_mount_is_gone_at_once_and_its_path_is_free(service: Installation, base: str, path: str) -> None:
    """What comes after it at the same path starts empty, under another accessor."""
    config = "auth/cloud/config" if base == "auth" else "cloud/config"
    service.must("POST", config, {"tenant_id": "t", "resource": "r", "subscription_id": GUID})
    accessor = service.must("GET", f"sys/{base}/{path}").data["accessor"]
    assert service.ask("DELETE", f"sys/{base}/{path}").status == 204
    assert service.ask("GET", config).body == {"errors": ["no handler for route"]}
    assert f"{path}/" not in service.must("GET", f"sys/{base}").data
    service.must("POST", f"sys/{base}/{path}", {"type": "cloud"})
    assert service.must("GET", f"sys/{base}/{path}").data["accessor"] != accessor
    reply = service.ask("GET", config)
    assert reply.status == 404 or reply.data["tenant_id"] == ""


def test_the_quotas_of_a_disabled_mount_are_gone(service: Installation) -> None:
    """The next mount at its path would be limited by them."""
    service.must("POST", "sys/mounts/team", {"type": "cloud"})
    gone = {"rate-limit/a": "Team", "rate-limit/b": "team/creds/w*", "lease-count/a": "team"}
    kept = {"rate-limit/c": "", "rate-limit/d": "cloud", "lease-count/b": "cloud"}
    for name, path in (gone | kept).items():
        service.must("POST", f"sys/quotas/{name}", {"path": path, "rate": 100, "max_leases": 5})
    service.must("DELETE", "sys/mounts/team")
    assert service.must("LIST", "sys/quotas/rate-limit").data == {"keys": ["c", "d"]}
    assert service.must("LIST", "sys/quotas/lease-count").data == {"keys": ["b"]}


def test_authentication_methods_need_sudo_and_engines_do_not(service: Installation) -> None:
    """All below `sys/auth/`, but not its older spelling for tuning, nor `sys/mounts/`."""
    rule = '{ capabilities = ["read", "update", "delete"] }'
    service.must("PUT", "sys/policies/acl/ops", {"policy": f'path "sys/*" {rule}'})
    token = service.must("POST", "auth/token/create", {"policies": ["ops"]}).auth["client_token"]
    assert service.ask("GET", "sys/auth", token=token).status == 200
    assert service.ask("POST", "sys/auth/new", {"type": "cloud"}, token).status == 403
    assert service.ask("GET", "sys/auth/cloud/tune", token=token).status == 403
    assert service.ask("GET", "sys/mounts/auth/cloud/tune", token=token).status == 200
    assert service.ask("POST", "sys/mounts/new", {"type": "cloud"}, token).status == 204


# Auth methods below `sys/mounts`


def test_an_authentication_method_is_read_below_sys_mounts_too(service: Installation) -> None:
    assert service.must("GET", "sys/mounts/auth/cloud").data == service.must("GET", "sys/auth/cloud").data
    service.must("POST", "sys/mounts/auth/cloud/tune", {"description": "West"})
    assert service.must("GET", "sys/mounts/auth/cloud").data["description"] == "West"


@pytest.mark.parametrize("token_may", [["read", "update", "delete", "create", "list"], None])
@pytest.mark.parametrize("method", ["DELETE", "POST", "LIST"])
@pytest.mark.parametrize("path", ["auth/cloud", "auth/new", "auth/cloud/x"])
def test_an_authentication_method_is_not_changed_below_sys_mounts(
    service: Installation, method: str, path: str, token_may: list[str] | None
) -> None:
    """To disable one needs `sudo` at `sys/auth`, and this path would not ask for it; not even root does it here."""
    token = "root"
    if token_may:
        rule = json.dumps({"path": {"sys/mounts/*": {"capabilities": token_may}}})
        service.must("PUT", "sys/policies/acl/some", {"policy": rule})
        token = service.must("POST", "auth/token/create", {"policies": ["some"]}).auth["client_token"]
    reply = service.ask(method, f"sys/mounts/{path}", {"type": "cloud"} if method == "POST" else None, token)
    assert reply.status == 403
    assert set(service.must("GET", "sys/auth").data) == {"cloud/", "token/"}


@pytest.mark.parametrize("base", KINDS)
def test_all_tuning_keys_of_existing_clients_are_read_back(service: Installation, base: str) -> None:
    """All keys that existing clients write, at the tuning and at the enabling of a mount."""
    tuned = {
        "audit_non_hmac_request_keys": ["a"],
        "audit_non_hmac_response_keys": ["b"],
        "passthrough_request_headers": ["X-One"],
        "allowed_response_headers": ["X-Two"],
        "plugin_version": "v1.2.3",
        "identity_token_key": "default",
    }
    assert service.ask("POST", f"sys/{base}/cloud/tune", tuned).status == 204
    assert service.must("GET", f"sys/{base}/cloud/tune").data.items() >= tuned.items()
    assert service.must("GET", f"sys/{base}").data["cloud/"]["config"].items() >= tuned.items()
    assert service.ask("POST", f"sys/{base}/other", {"type": "cloud", "config": tuned}).status == 204
    assert service.must("GET", f"sys/{base}/other").data["config"].items() >= tuned.items()


@pytest.mark.parametrize("type_name", ["cloud", "azure"])
def test_an_answer_names_the_type_as_it_was_given(service: Installation, type_name: str) -> None:
    service.must("POST", "sys/mounts/other", {"type": type_name})
    assert service.must("GET", "other/config").body["mount_type"] == type_name


TUNERS: Final = (
    ("auth/cloud", "sys/mounts/auth/cloud/tune", "sys/auth/cloud/tune"),
    ("cloud", "sys/mounts/cloud/tune", "sys/mounts/cloud/tune"),
)


@pytest.mark.parametrize("setting", AUDIT_KEYS)
@pytest.mark.parametrize("path, tune, managed", TUNERS)
def test_what_opens_audit_entries_needs_sudo(
    service: Installation, path: str, tune: str, managed: str, setting: str
) -> None:
    """To write what is set already does not: clients write all settings of a mount."""
    write_policy(service, "tune", (tune, ["update"]))
    token = new_token(service, policies=["tune"])
    body = {setting: "role", "description": "x"}
    assert service.refused("POST", tune, body, token) == (403, "permission_denied")
    assert getattr(service.mount(path), setting) == ()
    write_policy(service, "tune", (tune, ["update"]), (managed, ["update", "sudo"]))
    assert service.ask("POST", tune, body, token).status == 204
    write_policy(service, "tune", (tune, ["update"]))
    assert service.ask("POST", tune, body, token).status == 204
    assert service.refused("POST", tune, {setting: ""}, token) == (403, "permission_denied")


def test_a_mount_that_opens_audit_entries_needs_sudo(service: Installation) -> None:
    write_policy(service, "mount", ("sys/mounts/*", ["create", "update"]))
    token = new_token(service, policies=["mount"])
    body = {"type": "cloud", "config": {AUDIT_KEYS[0]: ["role"]}}
    assert service.refused("POST", "sys/mounts/open", body, token) == (403, "permission_denied")
    assert service.ask("POST", "sys/mounts/open", {"type": "cloud"}, token).status == 204


@pytest.mark.parametrize("setting", AUDIT_KEYS)
@pytest.mark.parametrize("secret", ["jwt", "client_secret", "access_token"])
def test_no_mount_opens_a_secret_to_audit_devices(service: Installation, secret: str, setting: str) -> None:
    assert service.refused("POST", "sys/auth/cloud/tune", {setting: f"role,{secret}"}) == (400, "field_invalid")
    body = {"type": "cloud", "config": {setting: [secret]}}
    assert service.refused("POST", "sys/mounts/open", body) == (400, "field_invalid")
