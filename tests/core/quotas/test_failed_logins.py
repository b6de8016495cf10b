"""A source whose logins fail has to wait; logins with a valid token do not."""

from __future__ import annotations

import jwt
import pytest

from cloudid_core.quotas.rate_limit import ALLOWED, INTERVAL
from tests.installation import HOME, Installation, Refusal
from tests.logins import configure_logins, login_form


def failed(world: Installation, body: dict[str, object], address: str = HOME) -> Refusal:
    return world.refused("POST", "auth/cloud/login", body, token="", address=address)


def test_a_source_whose_logins_fail_is_slowed_and_a_good_login_from_it_is_not() -> None:
    world = Installation()
    machine = configure_logins(world)
    good = login_form(world, machine)
    header, claims, signature = str(good["jwt"]).split(".")
    forged = {**good, "jwt": f"{header}.{claims}.{'B' if signature[0] == 'A' else 'A'}{signature[1:]}"}
    for _ in range(int(ALLOWED)):
        assert failed(world, forged) == (403, "login_refused")
    throttled = world.ask("POST", "auth/cloud/login", forged, token="")
    assert (throttled.status, throttled.codes) == (429, ["logins_throttled"])
    assert int(throttled.response.headers["retry-after"]) >= 1
    assert failed(world, {**good, "jwt": "junk"}) == (429, "logins_throttled")
    for _ in range(3):
        world.must("POST", "auth/cloud/login", good, token="")
    assert failed(world, forged, "192.0.2.99") == (403, "login_refused")
    world.advance(INTERVAL)
    assert failed(world, forged) == (403, "login_refused")


@pytest.mark.parametrize(
    "body, headers, code",
    [
        ({}, {}, "field_required"),
        ({"role": []}, {}, "field_invalid"),
        ([], {}, "malformed_json"),
        ("x" * 40_000, {}, "body_too_large"),
        ({}, {"x_vault_wrap_ttl": "soon"}, "malformed_request"),
        ({"role": "!!", "jwt": "x.y.z"}, {}, "field_invalid"),
        ({"role": "dev", "jwt": "x.y.z", "subscription_id": "!!"}, {}, "field_invalid"),
        ({"role": "dev", "jwt": "x" * 20_000}, {}, "field_invalid"),
    ],
)
def test_a_login_that_is_refused_for_its_form_counts(body: object, headers: dict[str, str], code: str) -> None:
    world = Installation()
    machine = configure_logins(world)
    codes = [world.refused("POST", "auth/cloud/login", body, "", **headers)[1] for _ in range(int(ALLOWED) + 1)]
    assert codes == [code] * int(ALLOWED) + ["logins_throttled"]
    world.must("POST", "auth/cloud/login", login_form(world, machine), token="")


@pytest.mark.parametrize(
    "claims, code",
    [
        ({"iss": "https://sts.windows.net/other/"}, "jwt_issuer_mismatch"),
        ({"tid": "other"}, "jwt_tenant_mismatch"),
        ({"aud": "https://elsewhere.example"}, "jwt_audience_mismatch"),
        ({"exp": 1}, "jwt_expired"),
        ({"oid": None}, "jwt_claim_missing"),
    ],
)
def test_a_verified_token_that_is_not_accepted_counts_whichever_role_it_names(
    claims: dict[str, object], code: str
) -> None:
    world = Installation()
    valid = login_form(world, configure_logins(world))
    said = {**jwt.decode(str(valid["jwt"]), options={"verify_signature": False}), **claims}
    token = world.cloud("POST", "/simulator/tokens", {"claims": said})["token"]
    for number in range(int(ALLOWED)):
        role = f"guess-{number}" if number % 2 else "dev"
        assert failed(world, {**valid, "jwt": token, "role": role}) == (403, code)
    assert failed(world, {**valid, "jwt": token}) == (429, "logins_throttled")
    world.must("POST", "auth/cloud/login", valid, token="")


def test_a_throttled_source_gets_the_same_refusal_for_every_form() -> None:
    world = Installation()
    valid = login_form(world, configure_logins(world))
    for _ in range(int(ALLOWED)):
        assert failed(world, {**valid, "jwt": "x.y.z"}) == (400, "jwt_malformed")
    bodies: list[dict[str, object]] = [{}, {"role": "!!", "jwt": "x.y.z"}, {**valid, "role": "!!"}]
    for body in (*bodies, {**valid, "jwt": "x.y.z"}):
        assert failed(world, body) == (429, "logins_throttled")


def test_failures_of_the_provider_do_not_count() -> None:
    world = Installation()
    valid = login_form(world, configure_logins(world))
    world.fail("login")
    assert {failed(world, valid)[0] for _ in range(2)} <= {502, 503}
    assert not world.context.caches.failed_logins.values()


def test_a_refusal_of_an_accepted_token_does_not_count() -> None:
    world = Installation()
    machine = configure_logins(world, bound_locations="nowhere")
    valid = login_form(world, machine)
    for number in range(2 * int(ALLOWED)):
        assert failed(world, valid) == (403, "bound_location_mismatch")
        assert failed(world, {**valid, "role": f"absent-{number}"}) == (400, "role_not_found")
