"""Verification alone: the page's application, what strangers send it, and the facts that a verdict may need."""

from __future__ import annotations

import asyncio
import json
import re
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable
from hashlib import sha256
from hmac import digest
from typing import Any, Final

import httpx
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from cloudid_core.effects import HttpRequest, HttpResponse
from cloudid_core.errors import Code
from cloudid_core.testing.conformance import Scripted
from cloudid_core.verify import Admitted, Facts, MachineFacts, NeedsFacts, Refused, Verdict, Verifier

from ..hosts.opened import serving
from ..minting import (
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
from ..pages.blocks import python_of

BLOCKS: Final = python_of("docs/how-to/verify-only.md")
PAGES_TENANT: Final = "d139e43a-d8e3-4eb1-9321-87d0bdd0ee10"
PAGES_PRINCIPAL: Final = "8ff146bf-57d4-43c4-8a47-fbb5aa570a81"
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


def code_of(verdict: Verdict) -> Code | None:
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


HOSTILE: Final[dict[str, tuple[Callable[[], str], Code]]] = {
    "another audience": (lambda: mint(said(aud="https://graph.microsoft.com/")), Code.JWT_AUDIENCE_MISMATCH),
    "another tenant": (lambda: mint(said(tid=SOMEBODY)), Code.JWT_TENANT_MISMATCH),
    "another issuer": (lambda: mint(said(iss="https://evil.example/")), Code.JWT_ISSUER_MISMATCH),
    "no algorithm, no signature": (unsigned, Code.LOGIN_REFUSED),
    "no algorithm, signed": (lambda: mint(header={**HEADER, "alg": "none"}), Code.LOGIN_REFUSED),
    "a public key as a secret": (lambda: hs256(public_pem()), Code.LOGIN_REFUSED),
    "somebody else's key": (lambda: mint(key="other"), Code.LOGIN_REFUSED),
    "an unknown key": (lambda: mint(header={**HEADER, "kid": "other"}, key="other"), Code.LOGIN_REFUSED),
    "expired": (lambda: mint(said(exp=NOW)), Code.JWT_EXPIRED),
    "not valid yet": (lambda: mint(said(nbf=NOW + 61)), Code.JWT_NOT_YET_VALID),
    "a person": (lambda: mint(said(idtyp="user")), Code.BOUND_TOKEN_TYPE_MISMATCH),
    "a person by its claims": (lambda: mint(said(scp="user_impersonation")), Code.BOUND_TOKEN_TYPE_MISMATCH),
    "another principal": (lambda: mint(said(oid=SOMEBODY)), Code.BOUND_SERVICE_PRINCIPAL_MISMATCH),
    "no principal": (lambda: mint(said(oid=None)), Code.JWT_CLAIM_MISSING),
    "another payload": (
        lambda: ".".join((mint().split(".")[0], mint(said(oid=SOMEBODY)).split(".")[1], mint().split(".")[2])),
        Code.LOGIN_REFUSED,
    ),
    "nothing": (lambda: "", Code.JWT_MALFORMED),
    "no token": (lambda: "a.b", Code.JWT_MALFORMED),
    "not ASCII": (lambda: "ä.ö.ü", Code.JWT_MALFORMED),
    "no JSON": (lambda: mint_raw(json.dumps(HEADER).encode(), b"{"), Code.JWT_MALFORMED),
    "deep": (lambda: mint_raw(json.dumps(HEADER).encode(), b"[" * 5000), Code.JWT_CLAIM_MISSING),
    "too long": (lambda: "a" * (2**14 + 1), Code.FIELD_INVALID),
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
        ({"bound_service_principal_ids": ["0b1e*"]}, "wildcard"),
        ({"bound_token_types": ["robot"]}, "bound_token_types"),
        ({"tenant_id": "contoso.test"}, "tenant_id must be a GUID"),
        ({"audience": ""}, "audience"),
        ({"machine_check": "never"}, "machine_check"),
        ({"keys": {"keys": []}}, "no key"),
        ({"keys": {"keys": [{**jwks()["keys"][0], "issuer": "https://login.test/"}]}}, "give issuers"),
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
    assert code_of(old.verify(token, now=NOW)) is Code.LOGIN_REFUSED, "the old one is as it was"
    assert code_of(new.verify(mint(said(oid=SOMEBODY), header={**HEADER, "kid": "newer"}, key="newer"), now=NOW))


def test_one_issuer_may_be_a_text() -> None:
    """A text is also a list of texts, to type checkers and to Python: of its characters, which are nobody's issuers."""
    other = "https://login.test/"
    for issuers in (other, [other]):
        assert isinstance(verdict_on(verifier(issuers=issuers), iss=other), Admitted)
        assert code_of(verdict_on(verifier(issuers=issuers))) is Code.JWT_ISSUER_MISMATCH


def test_a_token_may_last_as_long_as_it_is_let() -> None:
    assert code_of(verdict_on(verifier(max_jwt_exp=3599))) is Code.JWT_EXPIRES_TOO_LATE
    assert isinstance(verdict_on(verifier(max_jwt_exp=3600)), Admitted)


@pytest.mark.parametrize(
    "bounds, claims, code",
    [
        ({"bound_subscription_ids": [SUBSCRIPTION.upper()]}, {}, None),
        ({"bound_subscription_ids": [SOMEBODY]}, {}, Code.BOUND_SUBSCRIPTION_MISMATCH),
        ({"bound_resource_groups": [RESOURCE_GROUP]}, {"xms_mirid": SITE}, None),
        ({"bound_resource_groups": ["other"]}, {}, Code.BOUND_RESOURCE_GROUP_MISMATCH),
        ({"bound_subscription_ids": [SUBSCRIPTION]}, {"xms_mirid": None}, Code.MACHINE_CLAIM_MISSING),
        (
            {"bound_subscription_ids": [SUBSCRIPTION]},
            {"xms_mirid": f"/subscriptions/{SUBSCRIPTION}"},
            Code.MACHINE_CLAIM_MISSING,
        ),
        ({"bound_scale_sets": ["fleet"]}, {"xms_mirid": SCALE_SET}, None),
        ({"bound_scale_sets": ["fleet"]}, {"xms_mirid": SITE}, Code.BOUND_SCALE_SET_MISMATCH),
        ({"bound_identity_ids": [IDENTITY.upper()]}, {"xms_mirid": IDENTITY}, None),
        ({"bound_identity_ids": [IDENTITY]}, {"xms_az_rid": VM, "xms_mirid": IDENTITY}, None),
        ({"bound_identity_ids": [IDENTITY]}, {}, Code.BOUND_IDENTITY_MISMATCH),
        ({"bound_identity_ids": [IDENTITY]}, {"xms_mirid": None}, Code.BOUND_IDENTITY_MISMATCH),
        ({"bound_vm_ids": [VM_ID]}, {"xms_mirid": SITE}, Code.BOUND_VM_ID_MISMATCH),
        ({"bound_group_ids": [GROUP]}, {}, None),
        ({"bound_group_ids": [SOMEBODY]}, {}, Code.BOUND_GROUP_MISMATCH),
    ],
)
def test_bounds_that_the_token_proves_need_no_facts(
    bounds: dict[str, Any], claims: dict[str, Any], code: Code | None
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
        (Facts(machine=None), Code.MACHINE_NOT_FOUND),
        (Facts(machine=MachineFacts(location="eastus", principals=(PRINCIPAL,))), Code.BOUND_LOCATION_MISMATCH),
        (Facts(machine=MachineFacts(location="westeurope")), Code.MACHINE_IDENTITY_MISMATCH),
    ],
)
def test_where_a_machine_is_the_caller_says(facts: Facts, code: Code | None) -> None:
    checked = on_machine(bound_locations=["westeurope"])
    asked = verdict_on(checked)
    assert needs(asked) == (True, False)
    assert isinstance(asked, NeedsFacts)
    assert asked.identity.machine_id == VM
    verdict = verdict_on(checked, facts)
    assert code_of(verdict) is code
    assert isinstance(verdict, Admitted) == (code is None)


@pytest.mark.parametrize("name, code", [("Fleet", None), ("other", Code.BOUND_SCALE_SET_MISMATCH)])
def test_of_which_scale_set_a_machine_is_the_caller_says(name: str, code: Code | None) -> None:
    checked = on_machine(bound_scale_sets=[name])
    assert needs(verdict_on(checked)) == (True, False)
    assert code_of(verdict_on(checked, Facts(machine=HERE))) is code


@pytest.mark.parametrize("vm_id, code", [(VM_ID, None), (SOMEBODY, Code.BOUND_VM_ID_MISMATCH)])
def test_which_virtual_machine_it_is_the_caller_says(vm_id: str, code: Code | None) -> None:
    checked = on_machine(bound_vm_ids=[vm_id])
    assert needs(verdict_on(checked)) == (True, False)
    assert code_of(verdict_on(checked, Facts(machine=HERE))) is code


OVERFLOW: Final[dict[str, Any]] = {"groups": None, "_claim_names": {"groups": "src1"}}


@pytest.mark.parametrize(
    "groups, code",
    [((GROUP.upper(),), None), ((), Code.BOUND_GROUP_MISMATCH), (None, Code.GROUPS_UNAVAILABLE)],
)
def test_groups_that_a_token_cannot_carry_the_caller_says(groups: tuple[str, ...] | None, code: Code | None) -> None:
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
    assert code_of(verdict_on(on_machine(bound_locations=["westeurope"]), aud=ORDERS)) is Code.JWT_AUDIENCE_MISMATCH


def published_keys(request: HttpRequest) -> Scripted:
    return Scripted(HttpResponse(200, {"content-type": "application/json"}, json.dumps(jwks()).encode()))


@pytest.fixture
def page() -> dict[str, Any]:
    """The names that the first block of the page defines, with keys from a server on this machine."""
    names: dict[str, Any] = {}
    with serving(published_keys) as url:
        ours = {"https://login.microsoftonline.com": url, PAGES_TENANT: TENANT, PAGES_PRINCIPAL: PRINCIPAL}
        block = BLOCKS[0]
        for theirs, our in ours.items():
            block = block.replace(theirs, our)
        exec(block, names)
    return names


def test_the_application_of_the_page_knows_its_callers(page: dict[str, Any]) -> None:
    now = time.time()
    good: dict[str, Any] = {"aud": ORDERS, "iat": now, "nbf": now, "exp": now + 3600}
    hostile = [token for token in (make() for make, _ in HOSTILE.values()) if token.isascii()]

    async def scenario() -> None:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(page["app"]), base_url="http://orders") as client:

            async def ask(token: str) -> httpx.Response:
                return await client.get("/orders", headers={"authorization": f"Bearer {token}"})

            assert (await ask(mint(said(**good)))).json() == {"for": PRINCIPAL}
            other = await ask(mint(said(**good, oid=SOMEBODY)))
            assert other.status_code == 403
            assert other.json()["detail"].startswith("bound_service_principal_mismatch: ")
            for token in hostile:
                assert (await ask(token)).status_code in (401, 403)
            assert (await client.get("/orders")).status_code in (401, 403)

    asyncio.run(scenario())


def test_the_dependency_of_the_page_is_short() -> None:
    """Ten lines between the route and the verdict."""
    dependency = re.search(r"async def caller.*?\n\n", BLOCKS[0], re.DOTALL)
    assert dependency
    assert len(dependency[0].strip().splitlines()) <= 10


def test_the_facts_of_the_page_are_handed_back(page: dict[str, Any]) -> None:
    asked: list[str] = []

    def look_up(machine: str) -> tuple[str, tuple[str, ...]]:
        asked.append(machine)
        return "westeurope", (PRINCIPAL,)

    names = {**page, "look_up": look_up, "verifier": on_machine(bound_locations=["westeurope"])}
    exec(BLOCKS[1], names)
    assert isinstance(names["verdict_on"](mint(), NOW), Admitted)
    assert asked == [VM]


@pytest.mark.parametrize("now", [float("nan"), float("inf"), float("-inf")])
def test_no_token_is_admitted_at_no_time(now: float) -> None:
    with pytest.raises(ValueError, match="now must be"):
        verifier().verify(mint(), now=now)
