"""Claims: how a payload is read, and whom it has to come from, go to, and when."""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.auth_method.claims import (
    VIRTUAL_MACHINE,
    Claims,
    Collection,
    NamedMachine,
    OtherClaim,
    read,
)
from cloudid_core.errors import Code, Refused

from ...cases import check_claims, check_lifetime, claims
from ...minting import (
    APP,
    AUDIENCE,
    GROUP,
    IDENTITY,
    ISSUER,
    NOW,
    PRINCIPAL,
    RESOURCE_GROUP,
    SCALE_SET,
    SITE,
    SUBSCRIPTION,
    TENANT,
    VM,
    code_of,
    new_caches,
    said,
)


def refusal(payload: bytes) -> Refused:
    with pytest.raises(Refused) as caught:
        read(payload, new_caches())
    return caught.value


def test_a_payload_is_read() -> None:
    assert claims() == Claims(
        issuer=ISSUER,
        audiences=(AUDIENCE,),
        tenant_id=TENANT,
        principal_id=PRINCIPAL,
        expires_at=NOW + 3600,
        valid_from=NOW - 60,
        app_id=APP,
        groups=frozenset({GROUP}),
        groups_overflow=False,
        machine=NamedMachine(
            collection=Collection(
                written=VM.removesuffix("web"),
                folded=VM.lower().removesuffix("web"),
                subscription=SUBSCRIPTION,
                resource_group=RESOURCE_GROUP.lower(),
                metadata={"subscription_id": SUBSCRIPTION, "resource_group_name": RESOURCE_GROUP},
                kind=VIRTUAL_MACHINE,
                is_virtual_machine=True,
                is_scale_set=False,
            ),
            written_name="web",
            name="web",
        ),
    )


def test_what_is_optional_may_be_absent_or_null() -> None:
    bare = claims(nbf=None, iat=None, appid=None, groups=None, xms_mirid=None)
    assert (bare.valid_from, bare.app_id, bare.groups, bare.groups_overflow) == (0, "", frozenset(), False)
    assert bare.machine is None
    names = ("nbf", "iat", "appid", "azp", "groups", "xms_mirid", "xms_az_rid", "_claim_names")
    nulls = json.dumps({**said(), **dict.fromkeys(names)})
    assert read(nulls.encode(), new_caches()) == bare


OTHER: Final = PRINCIPAL.replace("0", "1")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"idtyp": "app"},
        {"idtyp": "device"},
        {"sub": None},
        {"sub": PRINCIPAL.upper()},
        {"oid": PRINCIPAL.upper(), "sub": PRINCIPAL},
        {"roles": ["Application.Read.All"], "azpacr": "1", "name": "worker"},
    ],
    ids=str,
)
def test_the_token_of_a_workload(changes: dict[str, Any]) -> None:
    assert claims(**changes).token_type == "app"


@pytest.mark.parametrize(
    "changes",
    [
        {"idtyp": "user"},
        {"idtyp": "User"},
        {"sub": OTHER},
        {"sub": ""},
        {"idtyp": "app", "scp": "user_impersonation"},
        {"scp": ""},
        *({name: "x"} for name in ("preferred_username", "upn", "unique_name", "nonce", "at_hash", "c_hash")),
        {"upn": ["of another", {"kind": 1}]},
    ],
    ids=str,
)
def test_the_token_of_a_person_or_of_an_app_that_acts_for_one(changes: dict[str, Any]) -> None:
    """One sign is enough, whatever the others say."""
    assert claims(**changes).token_type == "user"


def test_a_sign_that_is_null_is_absent() -> None:
    signs = ("idtyp", "sub", "scp", "preferred_username", "upn", "unique_name", "nonce", "at_hash", "c_hash")
    payload = json.dumps({**said(), **dict.fromkeys(signs)}).encode()
    assert read(payload, new_caches()).token_type == "app"


def test_several_audiences_are_kept() -> None:
    assert claims(aud=["a", "b"]).audiences == ("a", "b")


def test_the_application_may_be_named_as_version_2_does() -> None:
    assert claims(appid=None, azp="b").app_id == "b"
    assert claims(azp="b").app_id == APP


def test_ids_are_folded_for_comparison_and_nothing_else_is() -> None:
    upper = claims(tid=TENANT.upper(), oid=PRINCIPAL.upper(), iss=ISSUER.upper(), xms_mirid=VM.upper())
    assert (upper.tenant_id, upper.principal_id, upper.issuer) == (TENANT, PRINCIPAL, ISSUER.upper())
    machine = upper.machine
    assert machine is not None
    assert (machine.written, machine.collection.resource_group, machine.name) == (VM.upper(), "prod", "web")
    assert machine.collection.is_virtual_machine


def test_the_later_of_nbf_and_iat_counts() -> None:
    assert claims(nbf=NOW - 5, iat=NOW - 9).valid_from == NOW - 5
    assert claims(nbf=NOW - 9, iat=NOW - 5).valid_from == NOW - 5


@pytest.mark.parametrize("plain", [True, False])
def test_groups_are_folded_however_they_are_written(plain: bool) -> None:
    """A text that holds an escape is not folded as a whole: that would change what the escape stands for."""
    groups = ["A-b"] if plain else ["A-b", "\u00c4\n\u212a"]
    assert claims(groups=groups).groups == {"a-b"} | (set() if plain else {"\u00e4\n\u212a"})
    raw = json.dumps(said(groups=groups), ensure_ascii=False).encode()
    assert read(raw, new_caches()).groups == claims(groups=groups).groups


def test_what_tokens_have_in_common_is_kept_once() -> None:
    caches = new_caches()
    first, second = (read(json.dumps(said(oid=oid)).encode(), caches) for oid in ("a", "b"))
    assert first.groups is second.groups
    assert first.machine is not None
    assert second.machine is not None
    assert first.machine.collection is second.machine.collection


def test_more_groups_than_fit_are_known_to_the_directory() -> None:
    elsewhere = {"_claim_names": {"groups": "src1"}, "_claim_sources": {"src1": {"endpoint": "https://evil.test/"}}}
    assert claims(groups=None, **elsewhere).groups_overflow
    assert claims(groups=[], **elsewhere).groups_overflow
    assert not claims(groups=[]).groups_overflow
    assert not claims(**elsewhere).groups_overflow
    assert not claims(groups=None, _claim_names={"wids": "src1"}).groups_overflow


@pytest.mark.parametrize("name", ["iss", "aud", "tid", "oid", "exp"])
def test_a_required_claim_that_is_missing_is_named(name: str) -> None:
    missing = refusal(json.dumps(said(**{name: None})).encode())
    assert (missing.code, missing.problems[0].detail) == (Code.JWT_CLAIM_MISSING, name)
    null = refusal(json.dumps({**said(), name: None}).encode())
    assert (null.code, null.problems[0].detail) == (Code.JWT_CLAIM_MISSING, name)


@pytest.mark.parametrize(
    "name, value",
    [
        ("iss", 5),
        ("iss", ""),
        ("aud", 5),
        ("aud", ""),
        ("aud", [5]),
        ("aud", {"a": "b"}),
        ("tid", [TENANT]),
        ("oid", 5),
        ("oid", ""),
        ("oid", [PRINCIPAL]),
        ("exp", "1800000000"),
        ("exp", True),
        ("exp", -1),
        ("exp", 1e300),
        ("exp", 10**30),
        ("exp", [NOW]),
        ("nbf", "0"),
        ("nbf", 10**300),
        ("iat", {}),
        ("groups", GROUP),
        ("groups", {"0": GROUP}),
        ("groups", [GROUP, 5]),
        ("groups", [[GROUP]]),
        ("appid", 5),
        ("xms_mirid", 5),
        ("xms_az_rid", [VM]),
        ("_claim_names", "groups"),
        ("_claim_names", ["groups"]),
    ],
)
def test_a_claim_of_a_wrong_type_is_named(name: str, value: Any) -> None:
    """Nothing is converted: what other code takes for a number or a list must not be another one here."""
    wrong = refusal(json.dumps(said(**{name: value})).encode())
    assert (wrong.code, wrong.problems[0].detail) == (Code.JWT_CLAIM_MISSING, name)
    assert "malformed" in wrong.problems[0].text


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "0x10", "01", "1_000"])
def test_a_time_that_is_no_json_number_is_refused(number: str) -> None:
    payload = json.dumps(said(exp=0)).replace('"exp": 0', f'"exp": {number}')
    assert number in payload
    assert refusal(payload.encode()).code in (Code.JWT_MALFORMED, Code.JWT_CLAIM_MISSING)


def test_times_may_have_a_fraction() -> None:
    assert claims(exp=NOW + 0.5).expires_at == NOW + 0.5
    assert claims(exp=int(NOW)).expires_at == NOW


@pytest.mark.parametrize("payload", [b"", b"{", b"nonsense", b"\xff", b'{"iss":"\xff"}', b"{}{}", b"[" * 100_000])
def test_what_is_no_json_is_malformed(payload: bytes) -> None:
    assert refusal(payload).code in (Code.JWT_MALFORMED, Code.JWT_CLAIM_MISSING)


def test_deep_nesting_is_refused() -> None:
    payload = json.dumps(said(_claim_names=0)).replace('"_claim_names": 0', '"_claim_names": ' + '{"a":' * 9000 + "0")
    assert refusal(payload.encode()).code is Code.JWT_MALFORMED


@pytest.mark.parametrize("payload", [b"null", b"[]", b'"text"', b"5"])
def test_a_payload_that_is_no_object_is_refused(payload: bytes) -> None:
    assert refusal(payload).code is Code.JWT_CLAIM_MISSING


def test_of_equal_names_the_last_one_counts_as_everywhere() -> None:
    payload = json.dumps(said())[:-1] + ', "oid": "second"}'
    assert read(payload.encode(), new_caches()).principal_id == json.loads(payload)["oid"]


@pytest.mark.parametrize(
    "azure_rid, mirid, named",
    [
        (None, VM, VM),
        (None, SCALE_SET, SCALE_SET),
        (None, SITE, SITE),
        (None, IDENTITY, ""),
        (VM, IDENTITY, VM),
        (SCALE_SET, IDENTITY, SCALE_SET),
        (SCALE_SET, VM, SCALE_SET),
        (IDENTITY, VM, ""),
        (VM, "nonsense", VM),
    ],
)
def test_one_claim_names_the_machine(azure_rid: str | None, mirid: str, named: str) -> None:
    """The second is looked at only where the first is absent; an identity is not a machine.

    Source of the combinations: the comment on claim patterns in `path_login.go` of hashicorp/vault-plugin-auth-azure.
    """
    found = claims(xms_az_rid=azure_rid, xms_mirid=mirid)
    if named:
        assert found.machine is not None
        assert (found.machine.written, found.machine.resource_id.folded) == (named, found.machine.folded)
        collection = found.machine.collection
        assert (collection.is_virtual_machine, collection.is_scale_set) == (named == VM, named == SCALE_SET)
    else:
        assert found.machine is None


SUBSCRIPTION_RESOURCE = f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Security/pricings/Servers"
POLICY = "/providers/Microsoft.Authorization/policyAssignments/a1b2c3"
MANAGEMENT_GROUP = "/providers/Microsoft.Management/managementGroups/corp"


@pytest.mark.parametrize("name", ["xms_mirid", "xms_az_rid"])
@pytest.mark.parametrize(
    "value, subscription, group",
    [
        ("", "", ""),
        ("/", "", ""),
        ("web", "", ""),
        (VM[1:], "", ""),
        (MANAGEMENT_GROUP, "", ""),
        (f"{MANAGEMENT_GROUP}{POLICY}", "", ""),
        (f"/subscriptions/{SUBSCRIPTION}", SUBSCRIPTION, ""),
        (f"/subscriptions/{SUBSCRIPTION}{POLICY}", SUBSCRIPTION, ""),
        (SUBSCRIPTION_RESOURCE.upper(), SUBSCRIPTION, ""),
        (f"/subscriptions/{SUBSCRIPTION}/resourceGroups/Prod", SUBSCRIPTION, "prod"),
        (f"/subscriptions/{SUBSCRIPTION}/resourceGroups/Prod{POLICY}/exemptions", SUBSCRIPTION, "prod"),
        (f"{VM}/providers/Microsoft.GuestConfiguration/guestConfigurationAssignments/a", SUBSCRIPTION, "prod"),
        (f"{VM}/", SUBSCRIPTION, "prod"),
        (f"{VM}/extensions", SUBSCRIPTION, "prod"),
        (VM.replace("/Prod/", "/../"), SUBSCRIPTION, ".."),
    ],
)
def test_a_claim_that_is_no_machines_id_counts_as_none(name: str, value: str, subscription: str, group: str) -> None:
    """Nor does the other claim stand in for it. What it says is kept, to be compared with the form.

    Assignments of policies have identities too (hashicorp/terraform-provider-azurerm issue 2194), at management groups,
    subscriptions, resource groups and resources (its pull request 15376).
    """
    found = claims(**{"xms_mirid": VM, name: value})
    assert (found.machine, found.other) == (None, OtherClaim(name, subscription, group))


def test_an_instance_of_a_set_is_neither_a_machine_nor_a_set_by_type() -> None:
    instance = claims(xms_mirid=f"{SCALE_SET}/virtualMachines/0").machine
    assert instance is not None
    assert instance.name == "0"
    assert not instance.collection.is_virtual_machine
    assert not instance.collection.is_scale_set


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5) | st.just(VM),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*sorted(said()), "_claim_names", "xms_az_rid"]), JSON))
def test_any_object_is_read_or_refused(changes: dict[str, Any]) -> None:
    assert code_of(read, json.dumps({**said(), **changes}).encode(), new_caches()) in (None, Code.JWT_CLAIM_MISSING)


@given(st.binary(max_size=60))
def test_any_bytes_are_refused(payload: bytes) -> None:
    assert code_of(read, payload, new_caches()) in (Code.JWT_MALFORMED, Code.JWT_CLAIM_MISSING)


def checked(found: Claims, **changes: Any) -> Code | None:
    expected = {
        "now": NOW,
        "leeway": 60,
        "audience": AUDIENCE,
        "issuers": frozenset({ISSUER}),
        "tenant_id": TENANT,
        **changes,
    }
    return code_of(check_claims, found, **expected)


def with_claims(**changes: Any) -> Claims:
    return msgspec.structs.replace(claims(), **changes)


def test_a_good_token_passes() -> None:
    assert checked(claims()) is None


@pytest.mark.parametrize(
    "changes, code",
    [
        ({"issuer": ISSUER.upper()}, Code.JWT_ISSUER_MISMATCH),
        ({"issuer": ISSUER.rstrip("/")}, Code.JWT_ISSUER_MISMATCH),
        ({"audiences": (AUDIENCE.rstrip("/"),)}, Code.JWT_AUDIENCE_MISMATCH),
        ({"audiences": (AUDIENCE.upper(),)}, Code.JWT_AUDIENCE_MISMATCH),
        ({"audiences": ()}, Code.JWT_AUDIENCE_MISMATCH),
        ({"audiences": (AUDIENCE + "x", AUDIENCE)}, None),
        ({"tenant_id": SUBSCRIPTION}, Code.JWT_TENANT_MISMATCH),
        ({"expires_at": NOW}, Code.JWT_EXPIRED),
        ({"expires_at": NOW - 30}, Code.JWT_EXPIRED),
        ({"expires_at": NOW + 0.001}, None),
        ({"valid_from": NOW + 60}, None),
        ({"valid_from": NOW + 60.5}, Code.JWT_NOT_YET_VALID),
    ],
)
def test_each_claim_is_checked(changes: dict[str, Any], code: Code | None) -> None:
    assert checked(with_claims(**changes)) is code


def test_the_tenant_may_be_written_in_upper_case() -> None:
    assert checked(claims(), tenant_id=TENANT.upper()) is None


def test_leeway_is_settable_and_never_forgives_expiry() -> None:
    assert checked(with_claims(valid_from=NOW + 1), leeway=0) is Code.JWT_NOT_YET_VALID
    assert checked(with_claims(valid_from=NOW + 300), leeway=300) is None
    assert checked(with_claims(expires_at=NOW - 1), leeway=300) is Code.JWT_EXPIRED


def test_a_role_may_limit_how_long_a_token_still_lasts() -> None:
    lasting = with_claims(expires_at=NOW + 100)
    assert code_of(check_lifetime, lasting, NOW, 100) is None
    assert code_of(check_lifetime, lasting, NOW, 99) is Code.JWT_EXPIRES_TOO_LATE
    assert code_of(check_lifetime, lasting, NOW, 0) is None
