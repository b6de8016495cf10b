"""What each token field of a role does to the tokens of its logins."""

from __future__ import annotations

import pytest

from tests.installation import HOME, Installation
from tests.tokens import look_up_self

from .logins import ROLE, configured, form, log_in, machine, refused, token_of

AWAY = "203.0.113.9"


@pytest.fixture
def service() -> Installation:
    return configured()


def works(service: Installation, token: str, address: str = HOME) -> bool:
    return service.ask("GET", "auth/token/lookup-self", token=token, address=address).status == 200


def renewed(service: Installation, token: str, increment: int | str = 0) -> int:
    """The seconds that a renewal grants."""
    reply = service.must("POST", "auth/token/renew-self", {"increment": increment}, token)
    seconds: int = reply.auth["lease_duration"]
    return seconds


@pytest.mark.contract("auth role: token_ttl")
def test_token_ttl(service: Installation) -> None:
    """A token lives for it, and a renewal grants what the role says by then."""
    auth = token_of(service, token_ttl="10m")
    assert auth["lease_duration"] == 600
    service.must("POST", ROLE, {"token_ttl": 900})
    assert renewed(service, auth["client_token"]) == 900
    service.advance(899)
    assert works(service, auth["client_token"])
    service.advance(2)
    assert not works(service, auth["client_token"])


@pytest.mark.contract("auth role: token_max_ttl", "auth role: max_ttl")
@pytest.mark.parametrize("spelling", ["token_max_ttl", "max_ttl"])
def test_token_max_ttl(service: Installation, spelling: str) -> None:
    """No renewal leads past the maximum, counted from the login, that the role has by then."""
    token = token_of(service, token_ttl=600, **{spelling: 1000})["client_token"]
    service.advance(500)
    assert renewed(service, token, 600) == 500
    service.must("POST", ROLE, {spelling: 700})
    assert renewed(service, token, 600) == 200
    service.advance(199)
    assert works(service, token)
    service.advance(2)
    assert not works(service, token)


@pytest.mark.contract("auth role: token_explicit_max_ttl")
def test_token_explicit_max_ttl(service: Installation) -> None:
    """It ends a token even if the role is changed later, and even a periodic one."""
    token = token_of(service, token_ttl=600, token_explicit_max_ttl=900)["client_token"]
    service.must("POST", ROLE, {"token_explicit_max_ttl": 0, "token_max_ttl": 9000})
    service.advance(500)
    assert renewed(service, token, 600) == 400
    periodic = token_of(service, token_period=600, token_max_ttl=0, token_explicit_max_ttl=900)["client_token"]
    service.advance(500)
    assert renewed(service, periodic) == 400


@pytest.mark.contract("auth role: token_period")
def test_token_period(service: Installation) -> None:
    """Each renewal grants the period again, past the maximum too; the increment that is asked for has no effect."""
    service.must("POST", "sys/auth/cloud/tune", {"default_lease_ttl": 800, "max_lease_ttl": 1000})
    token = token_of(service, token_period=600)["client_token"]
    assert look_up_self(service, token)["period"] == 600
    for _ in range(5):
        service.advance(500)
        assert renewed(service, token, 5) == 600
    service.advance(601)
    assert not works(service, token)


@pytest.mark.contract("auth role: token_policies", "auth role: policies")
@pytest.mark.parametrize("spelling", ["token_policies", "policies"])
def test_token_policies(service: Installation, spelling: str) -> None:
    """They decide what a token may do, beside the policy `default`."""
    service.must("PUT", "sys/policies/acl/app", {"policy": 'path "auth/cloud/role/web" { capabilities = ["read"] }'})
    without = token_of(service)
    auth = token_of(service, **{spelling: "app"})
    assert auth["token_policies"] == ["app", "default"]
    assert service.ask("GET", ROLE, token=auth["client_token"]).status == 200
    assert service.ask("DELETE", ROLE, token=auth["client_token"]).status == 403
    assert service.ask("GET", ROLE, token=without["client_token"]).status == 403


@pytest.mark.contract("auth role: token_no_default_policy")
def test_token_no_default_policy(service: Installation) -> None:
    """Without `default`, a token may not even look itself up."""
    assert works(service, token_of(service, token_policies="app")["client_token"])
    auth = token_of(service, token_no_default_policy=True)
    assert auth["token_policies"] == ["app"]
    assert not works(service, auth["client_token"])


@pytest.mark.contract("auth role: token_bound_cidrs")
def test_token_bound_cidrs(service: Installation) -> None:
    """Logins from elsewhere are refused, and so is every use of the token from elsewhere."""
    token = token_of(service, token_bound_cidrs="192.0.2.0/24,::1")["client_token"]
    assert refused(service, form(service, machine(service, "vm")), AWAY) == (403, "source_address_refused")
    assert works(service, token)
    assert works(service, token, "::1")
    assert not works(service, token, AWAY)


@pytest.mark.contract("auth role: token_num_uses", "limit: token_num_uses")
def test_token_num_uses(service: Installation) -> None:
    """A token works that many times, and may not create child tokens."""
    token = token_of(service, token_num_uses=3, token_policies="root-like")["client_token"]
    assert [works(service, token) for _ in range(5)] == [True, True, True, False, False]
    service.must("PUT", "sys/policies/acl/root-like", {"policy": 'path "*" { capabilities = ["update", "sudo"] }'})
    limited = token_of(service)["client_token"]
    assert service.refused("POST", "auth/token/create", {}, limited) == (400, "token_restricted")
    unlimited = token_of(service, token_num_uses=0)["client_token"]
    assert service.ask("POST", "auth/token/create", {}, unlimited).status == 200


@pytest.mark.contract("auth role: token_type")
def test_token_type(service: Installation) -> None:
    """A batch token has no accessor and is not renewable; `default` is what the mount is tuned to."""
    auth = token_of(service, token_type="service")
    assert (auth["token_type"], auth["renewable"], auth["accessor"] != "") == ("service", True, True)
    auth = token_of(service, token_type="batch")
    assert (auth["token_type"], auth["renewable"], auth["accessor"]) == ("batch", False, "")
    assert works(service, auth["client_token"])
    assert token_of(service, token_type="default")["token_type"] == "service"
    service.must("POST", "sys/auth/cloud/tune", {"token_type": "default-batch"})
    assert token_of(service)["token_type"] == "batch"
    assert token_of(service, token_type="service")["token_type"] == "service"


@pytest.mark.contract("auth role: max_jwt_exp")
def test_max_jwt_exp(service: Installation) -> None:
    """A JWT may expire exactly so many seconds from now, and not a second later; 0 is no limit."""
    fields = form(service, machine(service, "vm"))
    for limit, status in ((0, 200), (86_400, 200), (86_399, 403)):
        service.must("POST", ROLE, {"max_jwt_exp": limit})
        assert log_in(service, fields).status == status
    assert refused(service, fields) == (403, "jwt_expires_too_late")


@pytest.mark.contract("auth role: name")
def test_a_role_is_found_by_its_name(service: Installation) -> None:
    """Case does not matter. A deleted role admits no login, and its tokens cannot be renewed."""
    token = token_of(service, token_ttl=600)["client_token"]
    assert log_in(service, form(service, machine(service, "vm"), role="WEB")).status == 200
    service.must("DELETE", ROLE)
    assert refused(service, form(service, machine(service, "vm"))) == (400, "role_not_found")
    assert service.ask("POST", "auth/token/renew-self", {}, token).status == 400


def test_a_role_with_only_a_maximum_causes_no_warning(service: Installation) -> None:
    """No TTL was asked for, so none was cut short."""
    service.must("POST", ROLE, {"token_max_ttl": 60})
    reply = log_in(service, form(service, machine(service, "vm")))
    assert (reply.auth["lease_duration"], reply.body["warnings"]) == (60, None)


def test_a_jwt_that_is_too_long_is_refused_as_too_long(service: Installation) -> None:
    """Exactly 16 KiB are read; a byte more is not."""
    fields = form(service, machine(service, "vm"))
    for size, code in ((16_384, "jwt_malformed"), (16_385, "field_invalid")):
        assert refused(service, {**fields, "jwt": "x" * size}) == (400, code)


@pytest.mark.contract(
    "auth role: token_ttl",
    "auth role: token_max_ttl",
    "auth role: token_policies",
    "auth role: token_bound_cidrs",
    "auth role: token_explicit_max_ttl",
    "auth role: token_no_default_policy",
    "auth role: token_num_uses",
    "auth role: token_period",
    "auth role: token_type",
    "limit: token_num_uses",
)
def test_tokens_of_a_role_without_token_fields(service: Installation) -> None:
    """The mount's lifetimes and type, the policy `default` alone, from everywhere, and for any number of uses."""
    service.must("POST", "sys/auth/cloud/tune", {"default_lease_ttl": 800, "max_lease_ttl": 1000})
    auth = token_of(service)
    token = auth["client_token"]
    assert (auth["lease_duration"], auth["renewable"], auth["token_type"]) == (800, True, "service")
    assert auth["token_policies"] == ["default"]
    assert all(works(service, token, address) for address in [HOME, AWAY] * 50)
    service.advance(700)
    assert renewed(service, token, 800) == 300
    service.advance(299)
    assert works(service, token)
    service.advance(2)
    assert not works(service, token)


@pytest.mark.contract("auth role: token_type of the mount")
@pytest.mark.parametrize(
    ("mount", "by_role"),
    [
        ("default-service", {"": "service", "default": "service", "service": "service", "batch": "batch"}),
        ("default-batch", {"": "batch", "default": "batch", "service": "service", "batch": "batch"}),
        ("service", {"": "service", "default": "service", "service": "service", "batch": "service"}),
        ("batch", {"": "batch", "default": "batch", "service": "batch", "batch": "batch"}),
    ],
)
def test_the_token_type_of_the_mount(service: Installation, mount: str, by_role: dict[str, str]) -> None:
    """`default-service`, unless it is tuned: what roles give that choose none. A type without `default-` is forced."""
    assert service.must("GET", "sys/auth/cloud/tune").data["token_type"] == "default-service"
    service.must("POST", "sys/auth/cloud/tune", {"token_type": mount})
    assert {chosen: token_of(service, token_type=chosen)["token_type"] for chosen in by_role} == by_role
    assert service.refused("POST", ROLE, {"token_type": "default-service"}) == (400, "field_invalid")


@pytest.mark.contract("auth role: token_type of roles of the token store")
@pytest.mark.parametrize(
    ("token_type", "by_request"),
    [
        ("default", {"": "service", "service": "service", "batch": "batch"}),
        ("default-service", {"": "service", "service": "service", "batch": "batch"}),
        ("default-batch", {"": "batch", "service": "service", "batch": "batch"}),
        ("service", {"": "service", "service": "service", "batch": "service"}),
        ("batch", {"": "batch", "service": "batch", "batch": "batch"}),
    ],
)
def test_the_token_type_of_roles_of_the_token_store(
    service: Installation, token_type: str, by_request: dict[str, str]
) -> None:
    """With `default-` it is what requests get that choose none, without it what all of them get."""
    service.must("POST", "auth/token/roles/web", {"token_type": token_type, "allowed_policies": "app"})
    create = "auth/token/create/web"
    given = {type_: service.must("POST", create, {"type": type_}).auth["token_type"] for type_ in by_request}
    assert given == by_request
