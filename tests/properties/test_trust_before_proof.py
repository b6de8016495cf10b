"""Nothing of a login depends on its role until the mount has accepted the token.

Azure signs the tokens of all tenants with the same keys. Random tokens that are verified and still wrong, in issuer,
tenant, audience, time or several of them, are sent under roles that exist and roles that do not: response, effects,
events, audit entries, metrics and recent logins are the same for all roles and name none.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

import jwt
import msgspec
import pytest

from cloudid_core.effects import Record
from cloudid_core.metrics import Tally
from tests.installation import Installation
from tests.logins import LOGIN, configure_logins, login_form

CASES: Final = 24
STRANGE_TENANT: Final = "7e7a0000-0000-4000-8000-0000000000ff"
ROLES: Final[dict[str, dict[str, object]]] = {
    "exists-warm": {},
    "exists-cold": {},
    "exists-elsewhere": {"token_bound_cidrs": "10.9.8.0/24"},
    "exists-for-persons": {"bound_token_types": "user"},
    "exists-for-a-moment": {"max_jwt_exp": 1},
    "exists-in-nowhere": {"bound_locations": "nowhere", "bound_group_ids": "nobody"},
}
ABSENT: Final = ("absent", "exists-no-more")
YEARS: Final = 6 * 365 * 86_400
WRONG: Final[dict[str, tuple[Any, ...]]] = {
    "iss": (f"https://sts.windows.net/{STRANGE_TENANT}/", "https://evil.example", "x" * 3000),
    "tid": (STRANGE_TENANT, "x"),
    "aud": ("https://evil.example", ["https://evil.example", "b"]),
    "exp": (1, -YEARS),
    "nbf": (YEARS,),
}
CODES: Final = {
    "iss": "jwt_issuer_mismatch",
    "tid": "jwt_tenant_mismatch",
    "aud": "jwt_audience_mismatch",
    "exp": "jwt_expired",
    "nbf": "jwt_not_yet_valid",
}
"""By the claim, in the order of the checks."""


def world_of_roles() -> Installation:
    world = Installation()
    machine = configure_logins(world)
    for name, fields in ROLES.items():
        world.must("POST", f"auth/cloud/role/{name}", {"bound_subscription_ids": machine["subscription"], **fields})
    world.must("POST", "auth/cloud/role/exists-no-more", {"bound_subscription_ids": machine["subscription"]})
    world.must("DELETE", "auth/cloud/role/exists-no-more")
    world.must("PUT", "sys/audit/file", {"type": "file", "options": {"file_path": "/var/log/audit.log"}})
    return world


def wrong_token(world: Installation, form: dict[str, Any], chance: Random) -> tuple[str, str]:
    """A token that the simulated cloud signs although claims are wrong, and the code of its refusal."""
    claims = jwt.decode(form["jwt"], options={"verify_signature": False})
    wrong = [name for name in CODES if chance.random() < 0.3] or [chance.choice(sorted(CODES))]
    for name in wrong:
        value = chance.choice(WRONG[name])
        claims[name] = max(value + world.clock, 0) if isinstance(value, int) else value
    if "exp" in wrong and chance.random() < 0.5:
        claims["exp"] = 0
    token: str = world.cloud("POST", "/simulator/tokens", {"claims": claims})["token"]
    return token, CODES[wrong[0]]


def unproven_token(form: dict[str, Any], kind: str) -> tuple[str, str]:
    head, claims, signature = form["jwt"].split(".")
    flipped = ("B" if signature[0] == "A" else "A") + signature[1:]
    return {
        "forged": (f"{head}.{claims}.{flipped}", "login_refused"),
        "malformed": ("x.y.z", "jwt_malformed"),
        "too long": ("x" * 20_000, "field_invalid"),
    }[kind]


def seen_of(original: Installation, body: dict[str, Any], warm: dict[str, Any]) -> tuple[Any, str]:
    """All that a login leaves behind in a copy of the world, and its code."""
    world = original.copy()
    for form in (warm, {**warm, "role": "exists-for-persons"}):
        world.ask("POST", LOGIN, form, "")
    world.events.clear()
    start = len(world.trace)
    reply = world.ask("POST", LOGIN, body, "")
    effects = [repr(effect) for _, effect in world.trace[start:] if not isinstance(effect, Record)]
    tally, entries, events = Tally(), [], []
    for event in world.events:
        tally(event, world.clock)
        for text in event.audit.texts if event.audit is not None else ():
            assert body["role"].encode() not in text
            entry = msgspec.json.decode(text)
            assert "decision" not in entry
            entry["request"]["data"].pop("role")  # a keyed hash of what the caller sent
            entries.append(entry)
        events.append(msgspec.to_builtins(msgspec.structs.replace(event, audit=None)))
    caches = world.context.caches
    remembered = [sorted(base.roles) for base in caches.login_mounts.values()]
    recent = world.must("GET", "sys/internal/recent-logins").data
    left = {
        "response": (reply.status, dict(reply.response.headers), reply.body),
        "effects": effects,
        "events": events,
        "entries": entries,
        "numbers": tally.numbers,
        "recent": recent,
        "throttle": repr(caches.failed_logins.values()),
        "cached roles": remembered,
    }
    assert len(recent["unaccepted"]) == 1
    for part in ("response", "effects", "events", "entries", "numbers", "throttle"):
        assert body["role"] not in repr(left[part]), part
    assert body["role"] not in repr(recent["unaccepted"])
    return left, reply.code


def assert_same_for_all_roles(world: Installation, form: dict[str, Any], token: str, code: str) -> None:
    warm = {**form, "role": "exists-warm"}
    of_roles = {}
    for role in (*ROLES, *ABSENT):
        of_roles[role], found = seen_of(world, {**form, "role": role, "jwt": token}, warm)
        assert found == code, role
    expected = of_roles["absent"]
    for role, left in of_roles.items():
        assert left == expected, role


@pytest.mark.parametrize("seed", range(4))
def test_a_verified_token_that_is_not_accepted_leaves_the_same_under_every_role(seed: int) -> None:
    world, chance = world_of_roles(), Random(seed)
    form = login_form(world, world.scene["machines"][0])
    for _ in range(CASES // 4):
        token, code = wrong_token(world, form, chance)
        assert_same_for_all_roles(world, form, token, code)


@pytest.mark.parametrize(
    "claim, value", [("iss", "https://evil.example"), ("tid", STRANGE_TENANT), ("aud", "x"), ("exp", 1), ("nbf", 1e11)]
)
def test_a_token_that_is_not_accepted_stays_in_no_cache_and_displaces_no_other(claim: str, value: object) -> None:
    world = Installation(signature_cache_size=2)
    form = login_form(world, configure_logins(world))
    world.must("POST", LOGIN, form, "")
    caches = world.context.caches
    remembered = (caches.signatures, caches.groups, caches.collections)
    caches.groups.size = caches.collections.size = 2
    before = [list(cache) for cache in remembered]
    assert [len(keys) for keys in before] == [1, 1, 1]
    said = jwt.decode(form["jwt"], options={"verify_signature": False})
    for number in range(5):
        place = f"/subscriptions/{STRANGE_TENANT}/resourcegroups/strange-{number}/providers/Microsoft.Compute"
        strange = {"xms_mirid": f"{place}/virtualMachines/vm", "groups": [f"strange-{number}"], claim: value}
        token = world.cloud("POST", "/simulator/tokens", {"claims": {**said, **strange}})["token"]
        assert world.refused("POST", LOGIN, {**form, "jwt": token}, "") == (403, CODES[claim])
        assert [list(cache) for cache in remembered] == before


@pytest.mark.parametrize("kind", ["forged", "malformed", "too long"])
def test_a_token_that_is_not_verified_leaves_the_same_under_every_role(kind: str) -> None:
    world = world_of_roles()
    form = login_form(world, world.scene["machines"][0])
    assert_same_for_all_roles(world, form, *unproven_token(form, kind))
