"""Identity tokens."""

from __future__ import annotations

import jwt
import pytest
from attrs import evolve

from cloudid_core.credentials.identity_tokens import IdentityTokens
from cloudid_core.errors import Code, Refused
from cloudid_core.mounts import mount_table
from tests.installation import Installation
from tests.tokens import identity_token

ISSUER = "https://id.test"


def test_the_claims_of_a_token() -> None:
    world = Installation(issuer=ISSUER)
    text = identity_token(world, "auth/cloud", "api://exchange", 600)
    jwks = jwt.PyJWKSet.from_dict(world.must("GET", "identity/oidc/plugins/.well-known/keys", token="").body)
    key = jwks[jwt.get_unverified_header(text)["kid"]]
    claims = jwt.decode(
        text,
        key,
        ["RS256"],
        options={"verify_aud": False, "verify_exp": False, "verify_iat": False, "verify_nbf": False},
    )
    mount = world.mount("auth/cloud")
    now = int(world.clock)
    assert len(claims.pop("jti")) == 32
    assert claims == {
        "iss": f"{ISSUER}/v1/identity/oidc/plugins",
        "sub": f"plugin-identity:root:auth:{mount.accessor}",
        "aud": ["api://exchange"],
        "iat": now,
        "nbf": now,
        "exp": now + 600,
    }


@pytest.mark.parametrize("stored, lifetime", [(0, 3600), (5, 60), (600, 600), (10**6, 86_400)])
def test_a_lifetime_has_a_default_and_bounds(stored: int, lifetime: int) -> None:
    claims = jwt.decode(
        identity_token(Installation(issuer=ISSUER), lifetime=stored), options={"verify_signature": False}
    )
    assert claims["exp"] - claims["iat"] == lifetime


def test_a_subject_stays_with_its_mount_when_that_is_moved() -> None:
    world = Installation()
    mount = world.mount("cloud")
    subjects = {
        IdentityTokens.of(world.context, each, "a", 600).subject for each in (mount, evolve(mount, path="other"))
    }
    assert subjects == {f"plugin-identity:root:secret:{mount.accessor}"}


def test_without_an_issuer_there_is_no_token() -> None:
    with pytest.raises(Refused) as refused:
        identity_token(Installation(issuer=""))
    assert refused.value.code is Code.CREDENTIAL_UNUSABLE
    assert "issuer" in str(refused.value)


def test_what_distinguishes_the_tokens_of_a_mount() -> None:
    world = Installation(issuer=ISSUER)
    tokens = [
        IdentityTokens.of(world.context, mount, audience, 600)
        for mount in world.perform(mount_table(world.context.records)).record.live
        for audience in ("a", "b")
    ]
    assert len({each.identity for each in tokens}) == len(tokens)
