"""A source whose logins fail has to wait; logins with a valid signature do not."""

from __future__ import annotations

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
    ],
)
def test_a_login_that_is_refused_for_its_form_counts(body: object, headers: dict[str, str], code: str) -> None:
    world = Installation()
    machine = configure_logins(world)
    codes = [world.refused("POST", "auth/cloud/login", body, "", **headers)[1] for _ in range(int(ALLOWED) + 1)]
    assert codes == [code] * int(ALLOWED) + ["logins_throttled"]
    world.must("POST", "auth/cloud/login", login_form(world, machine), token="")


def test_a_refusal_after_a_valid_signature_does_not_count() -> None:
    world = Installation()
    machine = configure_logins(world, bound_locations="nowhere")
    good = login_form(world, machine)
    for _ in range(2 * int(ALLOWED)):
        assert failed(world, good) == (403, "bound_location_mismatch")
