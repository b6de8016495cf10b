"""Never again: mistakes that systems of this kind have made when a machine logs in, one test for each."""

from __future__ import annotations

import hmac
import json
from hashlib import sha256
from typing import Any

import pytest
from attrs import evolve
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from cloudid_core.auth_method.bounds import Bounds
from cloudid_core.auth_method.claims import read
from cloudid_core.auth_method.decision import Facts, Verified
from cloudid_core.auth_method.form import validate
from cloudid_core.auth_method.verification import verify_login_jwt
from cloudid_core.errors import Code

from ..cases import bounds, check_claims, claims, form, machine, outcome
from ..minting import (
    AUDIENCE,
    HEADER,
    IDENTITY,
    ISSUER,
    NOW,
    PRINCIPAL,
    SCALE_SET,
    SITE,
    SUBSCRIPTION,
    TENANT,
    VM,
    VM_ID,
    code_of,
    encode,
    key_set,
    machine_id,
    mint,
    mint_raw,
    new_caches,
    private_key,
    said,
)

ELSEWHERE = "50b50000-0000-4000-8000-00000000000b"
ANYBODY = bounds(bound_service_principal_ids=("*",))
VMS = "Microsoft.Compute/virtualMachines"
EVIL = "deadbeef-0000-4000-8000-000000000001"


def decided(role: Bounds = ANYBODY, login: dict[str, str] | None = None, **claimed: Any) -> Code | None:
    """The code of the refusal of a machine that the provider confirms, if it is refused."""
    verdict = outcome(claims(**claimed), Facts(machine=machine()), role=role, login=form(**login or {}))
    return verdict if isinstance(verdict, Code) else None


def verified(token: str, **changes: Any) -> Code | None:
    """The code of the refusal of a token, if it is refused."""
    known: dict[str, Any] = {"key_set": key_set(), "caches": new_caches(), "mount_id": "m", "limit": 16_384, **changes}
    return code_of(verify_login_jwt, token, **known)


def test_what_the_request_says_of_the_machine_is_tied_to_the_token() -> None:
    """The token of one machine was good for the facts of any other."""
    for lie in ({"vm_name": "db"}, {"vmss_name": "db"}, {"resource_group_name": "vaults"}, {"resource_id": SITE}):
        assert decided(login=lie) is not None


def test_it_is_tied_whether_or_not_the_role_binds_it() -> None:
    assert decided(ANYBODY, {"vm_name": "db"}) is Code.VM_NAME_MISMATCH


def test_a_resource_group_is_no_substring_of_another() -> None:
    for group in ("prod-evil", "xprod", "prod2"):
        assert decided(xms_mirid=machine_id(VMS, "web", group)) is Code.RESOURCE_GROUP_MISMATCH


def test_a_machine_name_is_no_substring_of_another() -> None:
    for name in ("web2", "web-evil", "we", "xweb"):
        assert decided(login={"vm_name": "web"}, xms_mirid=machine_id(VMS, name)) is Code.VM_NAME_MISMATCH


def test_a_scale_set_name_is_no_prefix_of_another() -> None:
    assert decided(login={"vmss_name": "fleet"}, xms_mirid=SCALE_SET + "2") is Code.VMSS_NAME_MISMATCH


def test_a_machine_is_not_in_a_set_because_its_name_begins_like_it() -> None:
    """Anybody can name a virtual machine `fleet_1`; only the provider knows its set."""
    lookalike = machine_id(VMS, "fleet_1")
    assert decided(login={"vmss_name": "fleet"}, xms_mirid=lookalike) is Code.VMSS_NAME_MISMATCH
    assert decided(bounds(bound_scale_sets=("fleet",)), xms_mirid=lookalike) is Code.BOUND_SCALE_SET_MISMATCH


def test_the_subscription_is_the_token_s() -> None:
    role = bounds(bound_subscription_ids=(SUBSCRIPTION,))
    assert decided(role) is None
    assert decided(role, xms_mirid=machine_id(VMS, "web", subscription=ELSEWHERE)) is Code.SUBSCRIPTION_MISMATCH
    assert decided(role, {"subscription_id": ELSEWHERE}) is Code.SUBSCRIPTION_MISMATCH


def test_a_resource_id_in_another_subscription_does_not_pass_a_bound() -> None:
    role = bounds(bound_subscription_ids=(SUBSCRIPTION,))
    other = machine_id("Microsoft.Web/sites", "shop", subscription=ELSEWHERE)
    assert decided(role, {"resource_id": other}, xms_mirid=SITE) is Code.RESOURCE_ID_MISMATCH
    assert decided(role, {"resource_id": other}, xms_mirid=other) is Code.SUBSCRIPTION_MISMATCH


def test_a_resource_id_that_contains_the_right_one_is_another() -> None:
    for text in (f"{SITE}/slots/evil", SITE[:-1], f"{SITE}2"):
        assert decided(login={"resource_id": text}, xms_mirid=SITE) is Code.RESOURCE_ID_MISMATCH


def test_mixed_case_of_a_resource_group_does_not_lock_out() -> None:
    role = bounds(bound_resource_groups=("PROD",))
    assert decided(role, {"resource_group_name": "pROd"}, xms_mirid=machine_id(VMS, "web", "pRoD")) is None


def test_uniform_scale_sets_are_not_locked_out() -> None:
    role = bounds(bound_scale_sets=("fleet",))
    assert decided(role, {"vmss_name": "fleet"}, xms_mirid=SCALE_SET) is None


def test_members_of_flexible_sets_are_not_locked_out() -> None:
    role, facts = bounds(bound_scale_sets=("fleet",)), Facts(machine=machine(scale_set="fleet"))
    member = claims(xms_mirid=machine_id(VMS, "fleet_0a1b2c3d"))
    for names in ({"vmss_name": "fleet"}, {"vm_name": "fleet_0a1b2c3d"}):
        assert isinstance(outcome(member, facts, role=role, login=form(**names)), Verified)


def test_resources_other_than_machines_can_satisfy_a_location() -> None:
    role = bounds(bound_locations=("westus2",))
    assert decided(role, {"resource_id": SITE}, xms_mirid=SITE) is None


def test_locations_are_compared_without_their_blanks() -> None:
    assert decided(bounds(bound_locations=("West US 2",))) is None


def test_machines_that_share_an_identity_are_told_apart() -> None:
    """One principal on two machines: the token of the one is not good for the other, wherever that is."""
    role = bounds(bound_service_principal_ids=(PRINCIPAL,), bound_resource_groups=("prod",))
    shared: dict[str, Any] = {"xms_mirid": IDENTITY, "xms_az_rid": machine_id(VMS, "worker-2", "dev")}
    assert decided(role, {"vm_name": "web"}, **shared) is Code.RESOURCE_GROUP_MISMATCH
    assert decided(role, {"resource_group_name": "dev"}, **shared) is Code.BOUND_RESOURCE_GROUP_MISMATCH


def test_the_group_of_an_identity_is_not_the_group_of_its_machine() -> None:
    role = bounds(bound_resource_groups=("identities",))
    for claimed in ({"xms_mirid": IDENTITY, "xms_az_rid": VM}, {"xms_mirid": IDENTITY}):
        for group in ("identities", "prod"):
            assert decided(role, {"resource_group_name": group}, **claimed) is not None


def test_two_claims_are_not_mixed() -> None:
    """The name from one and the group from the other would make a machine that nobody signed."""
    mixed: dict[str, Any] = {"xms_az_rid": machine_id(VMS, "web", "dev"), "xms_mirid": machine_id(VMS, "db", "prod")}
    assert decided(login={"vm_name": "web", "resource_group_name": "prod"}, **mixed) is Code.RESOURCE_GROUP_MISMATCH
    assert decided(login={"vm_name": "db", "resource_group_name": "dev"}, **mixed) is Code.VM_NAME_MISMATCH


def test_an_application_id_is_no_way_round_the_bounds() -> None:
    role = bounds(bound_resource_groups=("vaults",))
    for claimed in ({"xms_mirid": None}, {"xms_mirid": IDENTITY}, {}):
        assert decided(role, {"resource_id": SITE, "resource_group_name": "vaults"}, **claimed) is not None


def test_a_token_for_a_custom_audience_names_no_machine() -> None:
    """It says so with a code of its own, and roles that bind no resource still work."""
    assert decided(bounds(bound_resource_groups=("prod",)), xms_mirid=None) is Code.MACHINE_CLAIM_MISSING
    assert decided(bounds(bound_service_principal_ids=(PRINCIPAL,)), xms_mirid=None) is None


@pytest.mark.parametrize(
    "text", ["", "nonsense", VM + "/", VM.replace("/Prod/", "/x/../prod/"), f"{VM}/providers/A/b/c"]
)
def test_a_malformed_machine_claim_satisfies_no_bound_and_no_other_claim_stands_in_for_it(text: str) -> None:
    every_bound = {
        "bound_subscription_ids": (SUBSCRIPTION,),
        "bound_resource_groups": ("prod", "x"),
        "bound_locations": ("westus2",),
        "bound_scale_sets": ("web",),
        "bound_vm_ids": (VM_ID,),
    }
    for name, entries in every_bound.items():
        role = bounds(**{name: entries})
        assert decided(role, xms_mirid=text) is Code.MACHINE_CLAIM_MISSING
        assert decided(role, xms_az_rid=text, xms_mirid=VM) is Code.MACHINE_CLAIM_MISSING


def test_what_only_the_form_says_meets_no_bound() -> None:
    asked = {"resource_id": IDENTITY}
    assert decided(bounds(bound_identity_ids=(IDENTITY,)), asked, xms_mirid=None) is Code.BOUND_IDENTITY_MISMATCH
    assert decided(bounds(bound_vm_ids=(VM_ID,)), {"vm_name": VM_ID}, xms_mirid=None) is Code.MACHINE_CLAIM_MISSING


@pytest.mark.parametrize(
    "text", ["", "nonsense", "*", f"{IDENTITY}/", f"/{IDENTITY}", f"{IDENTITY}/x/y", f"{IDENTITY}/providers/A/b/c"]
)
def test_an_identity_is_compared_as_a_whole(text: str) -> None:
    role = bounds(bound_identity_ids=(IDENTITY,))
    for machine_claim in (None, VM):
        assert decided(role, xms_az_rid=machine_claim, xms_mirid=text) is Code.BOUND_IDENTITY_MISMATCH
        assert decided(role, xms_az_rid=machine_claim, xms_mirid=IDENTITY.upper()) is None


def test_a_role_without_bounds_admits_nobody() -> None:
    assert decided(bounds()) is Code.ROLE_UNBOUND


def test_wildcards_are_one_and_deliberate() -> None:
    """`*` beside other ids, in other lists or within a text is a letter like any other."""
    assert decided(bounds(bound_service_principal_ids=("*",))) is None
    for role in (
        bounds(bound_group_ids=("*",)),
        bounds(bound_service_principal_ids=("*", EVIL)),
        bounds(bound_service_principal_ids=("*",), bound_group_ids=("*",)),
        bounds(bound_resource_groups=("*",)),
        bounds(bound_resource_groups=("pro*",)),
    ):
        assert decided(role) is not None


def test_a_principal_that_nobody_named_is_nobody() -> None:
    """A missing id must not equal the empty id of a machine without an identity."""
    for oid in (None, "", 0):
        assert code_of(read, json.dumps(said(oid=oid)).encode(), new_caches()) is Code.JWT_CLAIM_MISSING
    located = bounds(bound_locations=("westus2",))
    bare = outcome(claims(), Facts(machine=machine(principals=())), role=located, login=form())
    assert bare is Code.MACHINE_IDENTITY_MISMATCH


def test_a_machine_that_was_deleted_or_lost_its_identity_is_refused() -> None:
    role = bounds(bound_resource_groups=("prod",))
    assert outcome(claims(), Facts(machine=None), role=role, login=form()) is Code.MACHINE_NOT_FOUND
    replaced = Facts(machine=machine(principals=(EVIL,)))
    assert outcome(claims(), replaced, role=role, login=form()) is Code.MACHINE_IDENTITY_MISMATCH


def test_metadata_holds_nothing_that_only_the_request_said() -> None:
    login = form(vm_name="web", resource_id=SITE)
    verdict = outcome(claims(), Facts(machine=machine()), role=ANYBODY, login=login)
    assert isinstance(verdict, Verified)
    assert "resource_id" not in verdict.metadata("web")
    unnamed = outcome(claims(xms_mirid=None, appid=None), role=ANYBODY, login=form(vm_name="admin", vmss_name="admin"))
    assert isinstance(unnamed, Verified)
    assert unnamed.metadata("web") == {"role": "web", "jwt_type": "app", "tenant_id": TENANT}


@pytest.mark.parametrize("name", ["resource_group_name", "vm_name", "vmss_name", "resource_id", "subscription_id"])
def test_names_are_no_paths(name: str) -> None:
    for text in ("../../x", "a/../../b", "a%2fb", "a?b=c", "a#b", "a//b", "a\n", "a\\b"):
        assert code_of(validate, form(**{name: text})) is Code.FIELD_INVALID


def test_names_that_the_cloud_allows_are_not_locked_out() -> None:
    for name in ("15abc", "fleet_0", "a", "a.b-c_d"):
        assert code_of(validate, form(vm_name=name)) is None
        assert decided(login={"vm_name": name}, xms_mirid=machine_id(VMS, name)) is None


def test_groups_that_do_not_fit_are_not_no_groups() -> None:
    role = bounds(bound_group_ids=(EVIL,))
    many = claims(groups=None, _claim_names={"groups": "src1"})
    assert isinstance(outcome(many, Facts(groups=frozenset({EVIL})), role=role, login=form()), Verified)
    assert outcome(many, Facts(groups=None), role=role, login=form()) is Code.GROUPS_UNAVAILABLE


def checked(**claimed: Any) -> Code | None:
    return code_of(
        check_claims,
        claims(**claimed),
        now=NOW,
        leeway=60,
        audience=AUDIENCE,
        issuers=key_set().issuers,
        tenant_id=TENANT,
    )


def test_audience_issuer_and_tenant_are_all_checked() -> None:
    assert checked() is None
    assert checked(aud="https://vault.azure.net") is Code.JWT_AUDIENCE_MISMATCH
    assert checked(iss=ISSUER.replace(TENANT, EVIL)) is Code.JWT_ISSUER_MISMATCH
    assert checked(tid=EVIL) is Code.JWT_TENANT_MISMATCH


def test_a_slash_at_the_end_of_the_audience_is_part_of_it() -> None:
    assert checked(aud=AUDIENCE.rstrip("/")) is Code.JWT_AUDIENCE_MISMATCH


def test_tokens_of_version_2_are_not_locked_out() -> None:
    version_2 = {"iss": f"https://login.microsoftonline.com/{TENANT}/v2.0", "ver": "2.0", "appid": None, "azp": EVIL}
    assert checked(**version_2) is None
    assert claims(**version_2).app_id == EVIL


def test_a_token_without_an_end_is_none() -> None:
    assert code_of(read, json.dumps(said(exp=None)).encode(), new_caches()) is Code.JWT_CLAIM_MISSING
    assert code_of(read, json.dumps(said(exp=1e300)).encode(), new_caches()) is Code.JWT_CLAIM_MISSING


def test_an_expired_token_is_expired_although_its_signature_is_remembered() -> None:
    caches, keys, token = new_caches(), key_set(), mint(said(exp=NOW + 1))
    for now, code in ((NOW, None), (NOW + 1, Code.JWT_EXPIRED)):
        found = verify_login_jwt(token, keys, caches, "m", 16_384)
        rules: dict[str, Any] = {"leeway": 60, "audience": AUDIENCE, "issuers": keys.issuers, "tenant_id": TENANT}
        assert code_of(check_claims, found, now=now, **rules) is code
    assert len(caches.signatures) == 1


def test_what_one_mount_verified_is_not_verified_for_another() -> None:
    """Another mount may have another tenant, and so other keys under the same id."""
    caches, token = new_caches(), mint()
    assert verified(token, caches=caches) is None
    imposed = evolve(key_set(), keys={"key-1": private_key("of another tenant").public_key()})
    assert verified(token, caches=caches, key_set=imposed, mount_id="another") is Code.LOGIN_REFUSED


def test_critical_header_members_are_not_ignored() -> None:
    assert verified(mint(header={**HEADER, "crit": ["exp"], "exp": 0})) is Code.LOGIN_REFUSED


def test_no_token_is_signed_by_nothing() -> None:
    for algorithm in ("none", "None", "NONE", "", None):
        header = json.dumps({**HEADER, "alg": algorithm}).encode()
        signed = mint_raw(header, json.dumps(said()).encode())
        assert verified(signed) is Code.LOGIN_REFUSED
        assert verified(signed.rpartition(".")[0] + ".") is not None
    unset = json.dumps({"kid": "key-1"}).encode()
    assert verified(mint_raw(unset, json.dumps(said()).encode())) is Code.LOGIN_REFUSED


def test_a_public_key_is_no_secret_to_sign_with() -> None:
    pem = private_key().public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    for algorithm in ("HS256", "RS256"):
        header = encode(json.dumps({**HEADER, "alg": algorithm}).encode())
        text = f"{header}.{encode(json.dumps(said()).encode())}"
        assert verified(f"{text}.{encode(hmac.digest(pem, text.encode(), sha256))}") is Code.LOGIN_REFUSED


def test_a_key_in_the_token_itself_is_not_trusted() -> None:
    numbers = private_key("of the attacker").public_key().public_numbers()
    jwk = {"kty": "RSA", "n": encode(numbers.n.to_bytes(256)), "e": "AQAB", "kid": "key-1"}
    for member in ({"jwk": jwk}, {"jku": "https://evil.test/keys"}, {"x5u": "https://evil.test/certificate"}):
        assert verified(mint(header={**HEADER, **member}, key="of the attacker")) is Code.LOGIN_REFUSED


def test_a_token_of_any_length_costs_little() -> None:
    assert verified(mint() + "A" * 100_000) is Code.FIELD_INVALID
