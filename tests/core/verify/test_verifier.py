"""The verifier: identities and refusals, what strangers send, and the facts that a verdict may need."""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64encode
from collections.abc import Callable
from hashlib import sha256
from hmac import digest
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from cloudid_core.auth_method import CHECKS
from cloudid_core.verify import Admitted, Facts, MachineFacts, NeedsFacts, RefusalCode, Refused, Verdict, Verifier
from tests.minting import (
    APP,
    AUDIENCE,
    GROUP,
    HEADER,
    IDENTITY,
    KEY_ID,
    NOW,
    PRINCIPAL,
    RESOURCE_GROUP,
    SCALE_SET,
    SITE,
    SUBSCRIPTION,
    TENANT,
    VM,
    VM_ID,
    encode,
    mint,
    mint_raw,
    private_key,
    said,
)

SOMEBODY: Final = "0b1ec700-0000-4000-8000-00000000000f"
ORDERS: Final = "api://orders"


def number(value: int) -> str:
    return urlsafe_b64encode(value.to_bytes((value.bit_length() + 7) // 8)).rstrip(b"=").decode()


def jwks(*names: str) -> dict[str, Any]:
    """The key set of a tenant with these keys."""
    numbers = {name: private_key(name).public_key().public_numbers() for name in names or (KEY_ID,)}
    return {
        "keys": [{"kty": "RSA", "kid": kid, "n": number(key.n), "e": number(key.e)} for kid, key in numbers.items()]
    }


def verifier(**changes: Any) -> Verifier:
    given: dict[str, Any] = {"tenant_id": TENANT, "audience": AUDIENCE, "keys": jwks(), **changes}
    return Verifier(**{"bound_service_principal_ids": [PRINCIPAL], **given})


def on_machine(**bounds: Any) -> Verifier:
    """A verifier with bounds on the machine alone."""
    return verifier(bound_service_principal_ids=(), **bounds)


def verdict_on(checked: Verifier, facts: Facts | None = None, **claims: Any) -> Verdict:
    return checked.verify(mint(said(**claims)), now=NOW, facts=facts or Facts())


def code_of(verdict: Verdict) -> RefusalCode | None:
    return verdict.code if isinstance(verdict, Refused) else None


def test_who_is_admitted_is_told() -> None:
    verdict = verdict_on(verifier())
    assert isinstance(verdict, Admitted)
    identity = verdict.identity
    assert (identity.tenant_id, identity.principal_id, identity.app_id) == (TENANT, PRINCIPAL, APP)
    assert identity.machine_id == VM
    assert identity.groups == {GROUP}
    assert (identity.token_type, identity.expires_at) == ("app", NOW + 3600)


def test_a_token_from_a_file_ends_with_its_line() -> None:
    assert isinstance(verifier().verify(f"{mint()}\n", now=NOW), Admitted)


def hs256(key: bytes) -> str:
    """Signed with the tenant's public key as if that were a shared secret."""
    text = f"{encode(json.dumps({**HEADER, 'alg': 'HS256'}).encode())}.{encode(json.dumps(said()).encode())}"
    return f"{text}.{encode(digest(key, text.encode(), sha256))}"


def public_pem() -> bytes:
    return private_key().public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def unsigned() -> str:
    return mint(header={**HEADER, "alg": "none"}).rpartition(".")[0] + "."


HOSTILE: Final[dict[str, tuple[Callable[[], str], RefusalCode]]] = {
    "another audience": (lambda: mint(said(aud="https://graph.microsoft.com/")), RefusalCode.JWT_AUDIENCE_MISMATCH),
    "another tenant": (lambda: mint(said(tid=SOMEBODY)), RefusalCode.JWT_TENANT_MISMATCH),
    "another issuer": (lambda: mint(said(iss="https://evil.example/")), RefusalCode.JWT_ISSUER_MISMATCH),
    "no algorithm, no signature": (unsigned, RefusalCode.ALGORITHM_NOT_ALLOWED),
    "no algorithm, signed": (lambda: mint(header={**HEADER, "alg": "none"}), RefusalCode.ALGORITHM_NOT_ALLOWED),
    "a public key as a secret": (lambda: hs256(public_pem()), RefusalCode.ALGORITHM_NOT_ALLOWED),
    "somebody else's key": (lambda: mint(key="other"), RefusalCode.SIGNATURE_INVALID),
    "an unknown key": (lambda: mint(header={**HEADER, "kid": "other"}, key="other"), RefusalCode.KEY_UNKNOWN),
    "expired": (lambda: mint(said(exp=NOW)), RefusalCode.JWT_EXPIRED),
    "not valid yet": (lambda: mint(said(nbf=NOW + 61)), RefusalCode.JWT_NOT_YET_VALID),
    "a person": (lambda: mint(said(idtyp="user")), RefusalCode.BOUND_TOKEN_TYPE_MISMATCH),
    "a person by its claims": (lambda: mint(said(scp="user_impersonation")), RefusalCode.BOUND_TOKEN_TYPE_MISMATCH),
    "another principal": (lambda: mint(said(oid=SOMEBODY)), RefusalCode.BOUND_SERVICE_PRINCIPAL_MISMATCH),
    "no principal": (lambda: mint(said(oid=None)), RefusalCode.JWT_CLAIM_MISSING),
    "another payload": (
        lambda: ".".join((mint().split(".")[0], mint(said(oid=SOMEBODY)).split(".")[1], mint().split(".")[2])),
        RefusalCode.SIGNATURE_INVALID,
    ),
    "nothing": (lambda: "", RefusalCode.JWT_MALFORMED),
    "no token": (lambda: "a.b", RefusalCode.JWT_MALFORMED),
    "not ASCII": (lambda: "ä.ö.ü", RefusalCode.JWT_MALFORMED),
    "no JSON": (lambda: mint_raw(json.dumps(HEADER).encode(), b"{"), RefusalCode.JWT_MALFORMED),
    "deep": (lambda: mint_raw(json.dumps(HEADER).encode(), b"[" * 5000), RefusalCode.JWT_CLAIM_MISSING),
    "too long": (lambda: "a" * (2**14 + 1), RefusalCode.TOKEN_TOO_LONG),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_what_is_wrong_is_refused_with_its_code(case: str) -> None:
    make, code = HOSTILE[case]
    verdict = verifier().verify(make(), now=NOW)
    assert code_of(verdict) is code
    assert isinstance(verdict, Refused)
    assert code.text in verdict.reason


@pytest.mark.parametrize(
    "wrong, text",
    [
        ({"bound_service_principal_ids": ()}, "at least one bound"),
        ({"bound_service_principal_ids": (), "bound_token_types": ("app",)}, "at least one bound"),
        ({"bound_service_principal_ids": ["0b1e*"]}, "only as the single entry"),
        ({"bound_token_types": ["robot"]}, "bound_token_types"),
        ({"tenant_id": "contoso.test"}, "tenant_id must be a GUID"),
        ({"audience": ""}, "audience"),
        ({"machine_check": "never"}, "machine_check"),
        ({"keys": {"keys": []}}, "no key"),
        ({"keys": {"keys": [{**jwks()["keys"][0], "issuer": "https://login.test/"}]}}, "set `authority`"),
        ({"keys": {"keys": [{"kty": "EC", "kid": "k", "crv": "P-256"}]}}, "no key"),
        ({"keys": {"keys": [{"kty": "oct", "kid": KEY_ID, "k": "AAAA"}]}}, "no key"),
        ({"keys": b"<html>"}, "JSON"),
        ({"keys": {"keys": [{}] * 101}}, "length"),
        ({"leeway": float("nan")}, "leeway"),
        ({"leeway": -1.0}, "leeway"),
    ],
)
def test_what_cannot_be_used_is_an_error_at_once(wrong: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        verifier(**wrong)


def test_any_principal_of_the_tenant_is_admitted_on_purpose_only() -> None:
    assert isinstance(verdict_on(verifier(bound_service_principal_ids=["*"]), oid=SOMEBODY), Admitted)


def test_persons_are_admitted_where_that_is_said() -> None:
    assert isinstance(verdict_on(verifier(bound_token_types=["user"]), idtyp="user"), Admitted)


def test_a_key_that_is_not_in_the_set_is_named_so_that_the_set_can_be_fetched_anew() -> None:
    token = mint(header={**HEADER, "kid": "newer"}, key="newer")
    old = verifier()
    verdict = old.verify(token, now=NOW)
    assert isinstance(verdict, Refused)
    assert verdict.unknown_kid == "newer"
    new = old.with_keys(json.dumps(jwks("newer")))
    assert isinstance(new.verify(token, now=NOW), Admitted)
    assert code_of(old.verify(token, now=NOW)) is RefusalCode.KEY_UNKNOWN, "the old one is as it was"
    assert code_of(new.verify(mint(said(oid=SOMEBODY), header={**HEADER, "kid": "newer"}, key="newer"), now=NOW))


def test_one_issuer_may_be_a_text() -> None:
    """A text is also a list of texts, to type checkers and to Python: of its characters, which are nobody's issuers."""
    other = "https://login.test/"
    for issuers in (other, [other]):
        assert isinstance(verdict_on(verifier(issuers=issuers), iss=other), Admitted)
        assert code_of(verdict_on(verifier(issuers=issuers))) is RefusalCode.JWT_ISSUER_MISMATCH


def test_a_token_may_last_as_long_as_it_is_let() -> None:
    assert code_of(verdict_on(verifier(max_jwt_exp=3599))) is RefusalCode.JWT_EXPIRES_TOO_LATE
    assert isinstance(verdict_on(verifier(max_jwt_exp=3600)), Admitted)


@pytest.mark.parametrize(
    "bounds, claims, code",
    [
        ({"bound_subscription_ids": [SUBSCRIPTION.upper()]}, {}, None),
        ({"bound_subscription_ids": [SOMEBODY]}, {}, RefusalCode.BOUND_SUBSCRIPTION_MISMATCH),
        ({"bound_resource_groups": [RESOURCE_GROUP]}, {"xms_mirid": SITE}, None),
        ({"bound_resource_groups": ["other"]}, {}, RefusalCode.BOUND_RESOURCE_GROUP_MISMATCH),
        ({"bound_subscription_ids": [SUBSCRIPTION]}, {"xms_mirid": None}, RefusalCode.MACHINE_CLAIM_MISSING),
        (
            {"bound_subscription_ids": [SUBSCRIPTION]},
            {"xms_mirid": f"/subscriptions/{SUBSCRIPTION}"},
            RefusalCode.MACHINE_CLAIM_MISSING,
        ),
        ({"bound_scale_sets": ["fleet"]}, {"xms_mirid": SCALE_SET}, None),
        ({"bound_scale_sets": ["fleet"]}, {"xms_mirid": SITE}, RefusalCode.BOUND_SCALE_SET_MISMATCH),
        ({"bound_identity_ids": [IDENTITY.upper()]}, {"xms_mirid": IDENTITY}, None),
        ({"bound_identity_ids": [IDENTITY]}, {"xms_az_rid": VM, "xms_mirid": IDENTITY}, None),
        ({"bound_identity_ids": [IDENTITY]}, {}, RefusalCode.BOUND_IDENTITY_MISMATCH),
        ({"bound_identity_ids": [IDENTITY]}, {"xms_mirid": None}, RefusalCode.BOUND_IDENTITY_MISMATCH),
        ({"bound_vm_ids": [VM_ID]}, {"xms_mirid": SITE}, RefusalCode.BOUND_VM_ID_MISMATCH),
        ({"bound_group_ids": [GROUP]}, {}, None),
        ({"bound_group_ids": [SOMEBODY]}, {}, RefusalCode.BOUND_GROUP_MISMATCH),
    ],
)
def test_bounds_that_the_token_proves_need_no_facts(
    bounds: dict[str, Any], claims: dict[str, Any], code: RefusalCode | None
) -> None:
    verdict = verdict_on(on_machine(**bounds), **claims)
    assert code_of(verdict) is code
    assert not isinstance(verdict, NeedsFacts)


def needs(verdict: Verdict) -> tuple[bool, bool] | None:
    """Whether facts of the machine, and groups, are needed."""
    return (verdict.machine, verdict.groups) if isinstance(verdict, NeedsFacts) else None


HERE: Final = MachineFacts(location="West Europe", principals=(PRINCIPAL,), scale_set="fleet", vm_id=VM_ID.upper())


@pytest.mark.parametrize(
    "facts, code",
    [
        (Facts(machine=HERE), None),
        (Facts(machine=None), RefusalCode.MACHINE_NOT_FOUND),
        (Facts(machine=MachineFacts(location="eastus", principals=(PRINCIPAL,))), RefusalCode.BOUND_LOCATION_MISMATCH),
        (Facts(machine=MachineFacts(location="westeurope")), RefusalCode.MACHINE_IDENTITY_MISMATCH),
    ],
)
def test_where_a_machine_is_the_caller_says(facts: Facts, code: RefusalCode | None) -> None:
    checked = on_machine(bound_locations=["westeurope"])
    asked = verdict_on(checked)
    assert needs(asked) == (True, False)
    assert isinstance(asked, NeedsFacts)
    assert asked.identity.machine_id == VM
    verdict = verdict_on(checked, facts)
    assert code_of(verdict) is code
    assert isinstance(verdict, Admitted) == (code is None)


@pytest.mark.parametrize("name, code", [("Fleet", None), ("other", RefusalCode.BOUND_SCALE_SET_MISMATCH)])
def test_of_which_scale_set_a_machine_is_the_caller_says(name: str, code: RefusalCode | None) -> None:
    checked = on_machine(bound_scale_sets=[name])
    assert needs(verdict_on(checked)) == (True, False)
    assert code_of(verdict_on(checked, Facts(machine=HERE))) is code


@pytest.mark.parametrize("vm_id, code", [(VM_ID, None), (SOMEBODY, RefusalCode.BOUND_VM_ID_MISMATCH)])
def test_which_virtual_machine_it_is_the_caller_says(vm_id: str, code: RefusalCode | None) -> None:
    checked = on_machine(bound_vm_ids=[vm_id])
    assert needs(verdict_on(checked)) == (True, False)
    assert code_of(verdict_on(checked, Facts(machine=HERE))) is code


OVERFLOW: Final[dict[str, Any]] = {"groups": None, "_claim_names": {"groups": "src1"}}


@pytest.mark.parametrize(
    "groups, code",
    [((GROUP.upper(),), None), ((), RefusalCode.BOUND_GROUP_MISMATCH), (None, RefusalCode.GROUPS_UNAVAILABLE)],
)
def test_groups_that_a_token_cannot_carry_the_caller_says(
    groups: tuple[str, ...] | None, code: RefusalCode | None
) -> None:
    checked = on_machine(bound_group_ids=[GROUP])
    assert needs(verdict_on(checked, **OVERFLOW)) == (False, True)
    assert code_of(verdict_on(checked, Facts(groups=groups), **OVERFLOW)) is code
    assert needs(verdict_on(checked, Facts(groups=groups), **OVERFLOW)) is None


def test_facts_may_be_lists_as_a_decoder_makes_them() -> None:
    groups: Any = [GROUP]
    checked = on_machine(bound_group_ids=[GROUP])
    assert isinstance(verdict_on(checked, Facts(groups=groups), **OVERFLOW), Admitted)


def test_the_machine_can_always_be_looked_at() -> None:
    checked = on_machine(bound_subscription_ids=[SUBSCRIPTION], machine_check="always")
    assert needs(verdict_on(checked)) == (True, False)


def test_what_is_refused_without_facts_needs_none() -> None:
    assert (
        code_of(verdict_on(on_machine(bound_locations=["westeurope"]), aud=ORDERS)) is RefusalCode.JWT_AUDIENCE_MISMATCH
    )


def refusal(verdict: Verdict) -> Refused:
    assert isinstance(verdict, Refused)
    return verdict


def test_any_of_several_audiences_is_accepted() -> None:
    checked = verifier(audience=[ORDERS, "0b1ec700-0000-4000-8000-0000000000aa"])
    for audience in (ORDERS, "0b1ec700-0000-4000-8000-0000000000aa"):
        assert isinstance(verdict_on(checked, aud=audience), Admitted)
    refused = refusal(verdict_on(checked, aud="api://other"))
    assert refused.code is RefusalCode.JWT_AUDIENCE_MISMATCH
    assert refused.expected == [ORDERS, "0b1ec700-0000-4000-8000-0000000000aa"]
    assert refused.found == ["api://other"]


@pytest.mark.parametrize(
    "roles, is_admitted",
    [
        (["Orders.Read", "Orders.Write", "Other"], True),
        (["Orders.Read"], False),
        (["orders.read", "orders.write"], False),
        ("Orders.Read Orders.Write", False),
        ([["Orders.Read"], 1], False),
        (None, False),
    ],
)
def test_all_required_application_roles_must_be_in_the_token(roles: Any, is_admitted: bool) -> None:
    verdict = verdict_on(on_machine(required_roles=["Orders.Read", "Orders.Write"]), roles=roles)
    assert isinstance(verdict, Admitted) == is_admitted
    if not is_admitted:
        assert (refusal(verdict).code, refusal(verdict).status) == (RefusalCode.APPLICATION_ROLE_MISSING, 403)
        assert refusal(verdict).expected == ["Orders.Read", "Orders.Write"]


def test_required_roles_do_not_replace_bounds_that_are_set() -> None:
    checked = verifier(required_roles="Orders.Read")
    assert isinstance(verdict_on(checked, roles=["Orders.Read"]), Admitted)
    found = verdict_on(checked, roles=["Orders.Read"], oid=SOMEBODY)
    assert code_of(found) is RefusalCode.BOUND_SERVICE_PRINCIPAL_MISMATCH


def test_an_identity_has_the_roles_and_all_claims_of_its_token() -> None:
    verdict = verdict_on(verifier(), roles=["Orders.Read"], xms_tcdt=1.5)
    assert isinstance(verdict, Admitted)
    identity = verdict.identity
    assert identity.roles == {"Orders.Read"}
    assert (identity.claims["oid"], identity.claims["xms_tcdt"]) == (PRINCIPAL, 1.5)
    assert "xms_tcdt" not in repr(verdict)
    assert hash(verdict)
    with pytest.raises(TypeError):
        identity.claims["oid"] = SOMEBODY  # type: ignore[index]


@pytest.mark.parametrize("case", HOSTILE)
def test_every_refusal_has_the_answer_that_rfc_6750_asks_for(case: str) -> None:
    make, code = HOSTILE[case]
    refused = refusal(verifier().verify(make(), now=NOW))
    status, error = (403, "insufficient_scope") if code.wire.startswith("bound_") else (401, "invalid_token")
    assert refused.status == status
    assert refused.headers == {"WWW-Authenticate": refused.challenge}
    assert re.fullmatch(rf'Bearer error="{error}", error_description="[^"\\]+"', refused.challenge)
    assert refused.challenge.isascii()


def test_no_text_speaks_of_a_role_where_there_is_none() -> None:
    told = {code: code.text for code in RefusalCode if code is not RefusalCode.APPLICATION_ROLE_MISSING}
    assert [code for code, text in told.items() if re.search(r"\brole\b", text)] == []
    with pytest.raises(ValueError, match="at least one bound constraint") as caught:
        on_machine()
    assert "a role" not in str(caught.value)


def test_every_refusal_of_the_decision_has_a_code_here() -> None:
    """Those of the form cannot occur: it says of its machine what the token says."""
    of_the_form = {"FORM", "SUBSCRIPTION_MISMATCH", "RESOURCE_GROUP_MISMATCH", "VM_NAME_MISMATCH", "VMSS_NAME_MISMATCH"}
    of_the_form |= {"RESOURCE_ID_MISMATCH", "MACHINE_REQUIRED", "ROLE_UNBOUND", "SOURCE_ADDRESS_REFUSED"}
    assert {check.code.name for check in CHECKS} - of_the_form <= set(RefusalCode.__members__)


def test_a_refusal_shows_what_was_expected_and_found_after_the_signature_was_verified_only() -> None:
    refused = refusal(verdict_on(verifier(), oid=SOMEBODY))
    assert (refused.expected, refused.found) == ([PRINCIPAL], SOMEBODY)
    assert SOMEBODY not in repr(refused)
    for make, code in HOSTILE.values():
        if code in (RefusalCode.SIGNATURE_INVALID, RefusalCode.KEY_UNKNOWN, RefusalCode.ALGORITHM_NOT_ALLOWED):
            unproven = refusal(verifier().verify(make(), now=NOW))
            assert (unproven.expected, unproven.found) == (None, None)


def test_a_missing_claim_is_named() -> None:
    assert refusal(verdict_on(verifier(), oid=None)).reason.endswith(": oid")


@pytest.mark.parametrize(
    "authority, issuer",
    [
        ("https://login.microsoftonline.com", "https://sts.windows.net/{}/"),
        ("https://login.microsoftonline.com/", "https://login.microsoftonline.com/{}/v2.0"),
        ("https://login.microsoftonline.us", "https://login.microsoftonline.us/{}/v2.0"),
        ("https://login.chinacloudapi.cn", "https://sts.chinacloudapi.cn/{}/"),
        ("https://login.chinacloudapi.cn", "https://login.partner.microsoftonline.cn/{}/v2.0"),
        ("http://127.0.0.1:8300/login", "http://127.0.0.1:8300/login/{}/v2.0"),
    ],
)
def test_issuers_follow_from_the_authority(authority: str, issuer: str) -> None:
    checked = verifier(authority=authority)
    assert isinstance(verdict_on(checked, iss=issuer.format(TENANT)), Admitted)
    assert code_of(verdict_on(checked, iss="https://evil.example/")) is RefusalCode.JWT_ISSUER_MISMATCH
    assert checked.keys_url == f"{authority.rstrip('/')}/{TENANT}/discovery/v2.0/keys"


def test_without_keys_no_token_is_admitted() -> None:
    refused = refusal(verdict_on(verifier(keys=None)))
    assert (refused.code, refused.status, refused.challenge) == (RefusalCode.KEYS_UNAVAILABLE, 503, "")
    assert refused.headers == {"Retry-After": "30"}


def test_malformed_facts_are_an_error_of_the_program() -> None:
    wrong: Any = Facts(groups=[1])  # type: ignore[list-item]
    with pytest.raises(ValueError, match='"facts" must be'):
        verdict_on(on_machine(bound_group_ids=[GROUP]), wrong, **OVERFLOW)


@pytest.mark.parametrize("now", [float("nan"), float("inf"), float("-inf")])
def test_no_token_is_admitted_at_no_time(now: float) -> None:
    with pytest.raises(ValueError, match="now must be"):
        verifier().verify(mint(), now=now)
