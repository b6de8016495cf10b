"""Discovery."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from msgspec.structs import replace

from cloudid_core.clouds import CLOUDS
from cloudid_core.errors import ProviderProblem, ProviderUnreachable
from cloudid_core.provider import discovery
from cloudid_core.provider.discovery import MOST_KEYS, Published, discover
from cloudid_core.provider.responses import NONSENSE

from .cloud import CLOUD, LOGIN, TENANT, Reply, Setting, error, reply, unreachable
from .keys import V1, V1_ISSUER, V1_KEYS, V2, V2_ISSUER, V2_KEYS, encode, jwk, numbers, publish


def read(setting: Setting, tenant: str = TENANT) -> Published:
    return setting.world.perform(discover(CLOUD, tenant, setting.client.budget))


def published(*keys: dict[str, Any]) -> Setting:
    setting = Setting()
    publish(setting, *keys)
    return setting


def refused(setting: Setting, tenant: str = TENANT) -> ProviderProblem:
    with pytest.raises(ProviderProblem) as caught:
        read(setting, tenant)
    return caught.value


def test_a_tenant_publishes_its_id_both_issuers_and_its_keys() -> None:
    found = read(published(jwk("k1"), jwk("k2")))
    assert found.tenant_id == TENANT
    assert found.issuers == {V1_ISSUER, V2_ISSUER}
    assert {kid: key.public_numbers() for kid, key in found.keys.items()} == {"k1": numbers("k1"), "k2": numbers("k2")}


def test_a_domain_takes_its_id_from_the_issuers() -> None:
    setting = Setting()
    publish(setting, jwk("k1"), tenant="contoso.test")
    assert read(setting, "contoso.test").tenant_id == TENANT


def test_a_tenant_with_odd_letters_stays_one_segment() -> None:
    problem = refused(Setting(), "a/../b?c")
    assert problem.status == 404


def test_keys_of_both_versions_are_united() -> None:
    setting = published()
    setting.cloud.script(f"GET {V1_KEYS}", reply(200, {"keys": [jwk("k1")]}))
    setting.cloud.script(f"GET {V2_KEYS}", reply(200, {"keys": [jwk("k2")]}))
    assert set(read(setting).keys) == {"k1", "k2"}


def test_one_address_of_keys_is_fetched_once() -> None:
    setting = published(jwk("k1"))
    setting.cloud.script(f"GET /{TENANT}{V1}", reply(200, {"issuer": V1_ISSUER, "jwks_uri": f"{LOGIN}{V2_KEYS}"}))
    _ = read(setting)
    assert len(setting.cloud.asked(V2_KEYS)) == 1
    assert len(setting.cloud.requests) == 3


@pytest.mark.parametrize("missing, issuer", [(V1, V2_ISSUER), (V2, V1_ISSUER)])
@pytest.mark.parametrize("status", [400, 404])
def test_a_version_that_is_not_offered_is_left_out(missing: str, issuer: str, status: int) -> None:
    setting = published(jwk("k1"))
    setting.cloud.script(f"GET /{TENANT}{missing}", error(status))
    assert read(setting).issuers == {issuer}


@pytest.mark.parametrize("failing", [f"/{TENANT}{V1}", f"/{TENANT}{V2}", V1_KEYS, V2_KEYS])
@pytest.mark.parametrize("trouble", [error(500), error(403), error(302), unreachable(), reply(200, [])])
def test_half_of_what_is_published_is_not_enough(failing: str, trouble: Reply) -> None:
    """Otherwise the tokens of one version would be refused until the next refresh."""
    setting = published(jwk("k1"))
    setting.cloud.script(f"GET {failing}", trouble)
    with pytest.raises((ProviderProblem, ProviderUnreachable)):
        read(setting)


def test_an_unknown_tenant_has_the_providers_code() -> None:
    setting = Setting()
    for version in (V1, V2):
        setting.cloud.script(f"GET /{TENANT}{version}", reply(400, {"error": "invalid_tenant", "error_codes": [90002]}))
    assert refused(setting).code == "AADSTS90002"


@pytest.mark.parametrize(
    "address", ["https://evil.test/keys", "http://login.test/keys", "https://login.test:8443/keys", "/keys", ""]
)
def test_keys_come_from_the_login_host_only(address: str) -> None:
    setting = published(jwk("k1"))
    setting.cloud.script(f"GET /{TENANT}{V1}", reply(200, {"issuer": V1_ISSUER, "jwks_uri": address}))
    assert refused(setting).code == NONSENSE
    assert len(setting.cloud.requests) == 2


@pytest.mark.parametrize(
    "issuer",
    [
        "",
        "https://sts.windows.net/{tenantid}/",
        "https://sts.windows.net/99999999-2222-3333-4444-555555555555/",
        f"https://sts.windows.net/{TENANT}/other",
        f"https://sts.windows.net/{TENANT}/\n",
        f"{TENANT}",
        f"https://{'a' * 600}/{TENANT}/",
    ],
)
def test_an_issuer_that_does_not_name_the_tenant_is_nonsense(issuer: str) -> None:
    setting = published(jwk("k1"))
    setting.cloud.script(f"GET /{TENANT}{V1}", reply(200, {"issuer": issuer, "jwks_uri": f"{LOGIN}{V1_KEYS}"}))
    assert refused(setting).code == NONSENSE


def test_a_domain_whose_issuers_name_no_tenant_is_nonsense() -> None:
    """So speaks the endpoint that all tenants share."""
    setting = published(jwk("k1"))
    document = {"issuer": "https://sts.windows.net/{tenantid}/", "jwks_uri": f"{LOGIN}{V1_KEYS}"}
    for version in (V1, V2):
        setting.cloud.script(f"GET /common{version}", reply(200, document))
    assert refused(setting, "common").code == NONSENSE


EC = ec.generate_private_key(ec.SECP256R1()).public_key().public_numbers()
EC_KEY = {"kty": "EC", "use": "sig", "kid": "bad", "crv": "P-256", "x": encode(EC.x), "y": encode(EC.y)}


@pytest.mark.parametrize(
    "unusable",
    [
        EC_KEY,
        {"kty": "oct", "kid": "bad", "k": "c2VjcmV0"},
        jwk("bad", use="enc"),
        jwk("bad", 1024),
        jwk("bad", n=encode(2**8200 + 1)),
        jwk("bad", n="A" * 5000),
        jwk("bad", n="***"),
        jwk("bad", n=None),
        jwk("bad", e=""),
        jwk("bad", e=encode(2)),
        jwk("bad", e=encode(2**40 + 1)),
        jwk("bad", kid=None),
        jwk("bad", kid=""),
        jwk("bad", kid="x" * 600),
    ],
    ids=range(14),
)
def test_keys_that_cannot_be_used_are_left_out(unusable: dict[str, Any]) -> None:
    assert set(read(published(unusable, jwk("good"))).keys) == {"good"}
    assert refused(published(unusable)).code == NONSENSE


@pytest.mark.parametrize("other", [EC_KEY, jwk("bad", alg="RS512"), jwk("bad", use="enc"), jwk("bad", 1024)])
def test_a_key_that_cannot_be_used_hides_none_with_its_id(other: dict[str, Any]) -> None:
    """RFC 7517 section 4.5: keys of other kinds may have one id."""
    same = {**other, "kid": "k1"}
    for both in ((same, jwk("k1")), (jwk("k1"), same)):
        assert read(published(*both)).keys["k1"].public_numbers() == numbers("k1")


def test_use_may_be_missing_and_the_thumbprint_stands_in_for_the_id() -> None:
    assert set(read(published(jwk("k1", use=None, kid=None, x5t="print"))).keys) == {"print"}


V2_TEMPLATE = V2_ISSUER.replace(TENANT, "{tenantid}")
PERSONAL_ACCOUNTS = V2_ISSUER.replace(TENANT, "9188040d-6c67-4c5b-b112-36a304b66dad")


@pytest.mark.parametrize(
    "said",
    [
        {"alg": "RS256"},
        {"key_ops": ["verify"]},
        {"key_ops": ["sign", "verify"]},
        {"issuer": V2_TEMPLATE},
        {"issuer": V2_ISSUER},
        {"issuer": V1_ISSUER},
        {"alg": "RS256", "key_ops": ["verify"], "issuer": V2_TEMPLATE, "cloud_instance_name": "login.test"},
    ],
)
def test_a_key_that_says_it_verifies_this_tenants_tokens_is_used(said: dict[str, Any]) -> None:
    """Source: "Access tokens in the Microsoft identity platform", section on the issuer of a signing key, whose example
    of a keys document has templates, other tenants' issuers, and keys of both versions under v2 issuers.
    """
    assert set(read(published(jwk("good", **said))).keys) == {"good"}


@pytest.mark.parametrize(
    "said",
    [
        {"alg": "RS512"},
        {"alg": "RSA-OAEP"},
        {"alg": ""},
        {"alg": 5},
        {"key_ops": ["encrypt"]},
        {"key_ops": []},
        {"key_ops": "verify"},
        {"issuer": PERSONAL_ACCOUNTS},
        {"issuer": "https://evil.test/{tenantid}/v2.0"},
        {"issuer": "{tenantid}"},
        {"issuer": ""},
        {"n": 5},
        {"kid": ["bad"]},
    ],
)
def test_a_key_that_says_another_algorithm_purpose_or_issuer_is_left_out(said: dict[str, Any]) -> None:
    """Source: as above; the keys document that all tenants share also lists the keys of personal accounts."""
    assert set(read(published(jwk("bad", **said), jwk("good"))).keys) == {"good"}


def test_the_issuer_of_a_key_is_completed_with_the_id_behind_a_domain() -> None:
    setting = Setting()
    publish(setting, jwk("k1", issuer=V2_TEMPLATE), tenant="contoso.test")
    assert set(read(setting, "contoso.test").keys) == {"k1"}


CHINA = CLOUDS["CloudChinaCloud"]


def test_keys_may_be_on_another_host_of_the_environment() -> None:
    """Source: a tenant's document as quoted in smallstep/certificates pull request 1309, with keys at
    login.partner.microsoftonline.cn.
    """
    setting = published()
    keys = "https://login.partner.microsoftonline.cn/common/discovery/keys"
    for version, issuer in ((V1, V1_ISSUER), (V2, V2_ISSUER)):
        setting.cloud.script(f"GET /{TENANT}{version}", reply(200, {"issuer": issuer, "jwks_uri": keys}))
    setting.cloud.script("GET /common/discovery/keys", reply(200, {"keys": [jwk("k1")]}))
    found = setting.world.perform(discover(CHINA, TENANT, setting.client.budget))
    assert set(found.keys) == {"k1"}
    assert setting.cloud.requests[0].url.startswith("https://login.chinacloudapi.cn/")
    assert setting.cloud.requests[-1].url == keys


def test_an_overridden_environment_has_its_own_origin_only() -> None:
    setting = published()
    keys = "https://login.partner.microsoftonline.cn/common/discovery/keys"
    setting.cloud.script(f"GET /{TENANT}{V1}", reply(200, {"issuer": V1_ISSUER, "jwks_uri": keys}))
    overridden = replace(CHINA, login=LOGIN)
    assert overridden.logins == (LOGIN,)
    with pytest.raises(ProviderProblem) as caught:
        setting.world.perform(discover(overridden, TENANT, setting.client.budget))
    assert caught.value.code == NONSENSE
    assert len(setting.cloud.requests) == 2


@pytest.mark.parametrize("name", CLOUDS)
def test_no_environment_shares_a_login_host_with_another(name: str) -> None:
    others = {login for other, cloud in CLOUDS.items() if other != name for login in cloud.logins}
    assert others.isdisjoint(CLOUDS[name].logins)


def test_too_many_keys_are_nonsense() -> None:
    assert refused(published(*[jwk("k1")] * (MOST_KEYS + 1))).code == NONSENSE


def test_other_requests_go_on_between_the_keys_of_a_document(monkeypatch: pytest.MonkeyPatch) -> None:
    """To import a hundred of the largest keys takes a sixth of a second."""
    imported, given_way_at = [0], [0]
    import_key = discovery._import

    def count_import(key: discovery._Key) -> object:
        imported[0] += 1
        return import_key(key)

    async def give_way() -> None:
        given_way_at.append(imported[0])

    monkeypatch.setattr(discovery, "_import", count_import)
    monkeypatch.setattr("cloudid_core.effects.give_way", give_way)
    _ = read(published(*[jwk("k1")] * MOST_KEYS))
    longest = max(after - before for before, after in pairwise([*given_way_at, imported[0]]))
    assert (longest, imported[0] >= MOST_KEYS) == (16, True)
