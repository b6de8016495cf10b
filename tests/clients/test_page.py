"""What `docs/reference/clients.md` says differs for existing clients: each point is tried as it stands there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.contract.logins import ROLE, configured, form, log_in, machine
from tests.engines import SecretsEngine, configured_engine
from tests.logins import RESOURCE

PAGE: Final = (Path(__file__).parents[2] / "docs" / "reference" / "clients.md").read_text()
DIFFERENCES: Final = tuple(
    " ".join(point.split())
    for point in re.findall(r"^- (.+(?:\n  .+)*)", PAGE, re.MULTILINE)
    if "left-out.md" not in point
)
"""The points of the page; those that lead to the reference are tried where that is made."""

TRIED: Final[dict[str, tuple[tuple[str, str, Any, int, str], ...]]] = {
    "Credentials and tokens of a missing role": (("GET", "cloud/creds/absent", None, 400, "role"),),
    "Deleting a missing role": (("DELETE", "cloud/roles/absent", None, 404, "the role does not exist"),),
    "A role of a secrets engine needs": (
        ("POST", "cloud/roles/web", {"azure_groups": [{"group_name": "web-machines"}]}, 400, "azure_roles"),
    ),
    "A path with a double slash": (("GET", "cloud//config", None, 400, "empty"),),
    "A path with an encoded slash": (("POST", "sys/leases/revoke/cloud%2Fcreds%2Freader%2F1", None, 400, "slash"),),
    "A login role without bounds": (
        ("POST", "auth/cloud/role/all", {}, 400, "must have at least one bound constraint"),
    ),
    "A role of a secrets engine must not use": (
        ("POST", "cloud/roles/web", {"application_object_id": "$root"}, 403, ""),
    ),
    "There are no other engines": (
        ("POST", "sys/mounts/kv", {"type": "kv"}, 400, "plugin not found in the catalog"),
        ("POST", "sys/auth/approle", {"type": "approle"}, 400, "plugin not found in the catalog"),
        ("GET", "secret/data/app", None, 404, "no handler for route"),
        ("POST", "auth/approle/login", {"role_id": "app"}, 404, "no handler for route"),
    ),
    "Requests cannot seal or initialize a server": (
        ("PUT", "sys/seal", None, 404, "unsupported path"),
        ("PUT", "sys/unseal", {"key": "x"}, 404, "unsupported path"),
        ("PUT", "sys/init", {"secret_shares": 1}, 400, "already initialised"),
    ),
}
"""Requests by how their point begins, with status and a part of the text."""

ELSEWHERE: Final = ("People can log in only with a role",)
"""Points that the tests of logins try, which make the tokens of persons."""


def requests() -> Iterator[tuple[str, str, Any, int, str]]:
    for tried in TRIED.values():
        yield from tried


@pytest.fixture(scope="module")
def engine() -> SecretsEngine:
    return configured_engine()


@pytest.mark.parametrize("method, path, body, status, text", list(requests()))
def test_what_differs_is_refused_as_the_page_says(
    engine: SecretsEngine, method: str, path: str, body: Any, status: int, text: str
) -> None:
    if body and body.get("application_object_id"):
        body = {"application_object_id": engine.scene["applications"][0]["object_id"]}
    reply = engine.ask(method, path, body)
    assert reply.status == status
    assert text in str(reply.body["errors"])


def test_every_point_of_the_page_is_tried() -> None:
    """And each that is tried is on the page, with its status."""
    begins = (*TRIED, *ELSEWHERE)
    assert [point for point in DIFFERENCES if not point.startswith(begins)] == []
    for begin, tried in TRIED.items():
        (point,) = (point for point in DIFFERENCES if point.startswith(begin) and not _is_longer(point, begin))
        assert all(str(status) in point or "refused" in point for _, _, _, status, _ in tried)


def _is_longer(point: str, begin: str) -> bool:
    """Whether another beginning says more of the point."""
    return any(point.startswith(other) for other in TRIED if other != begin and other.startswith(begin))


def test_role_and_token_alone_are_enough_unless_the_role_binds_machines() -> None:
    world = configured()
    token = {name: value for name, value in form(world, machine(world, "vm")).items() if name in ("role", "jwt")}
    refused = log_in(world, token)
    assert (refused.status, refused.codes) == (400, ["machine_required"])
    assert "subscription_id" in str(refused.body["errors"])
    world.must("POST", ROLE, {"bound_subscription_ids": [], "bound_service_principal_ids": "*"})
    assert log_in(world, token).status == 200


def test_the_page_names_the_audience_that_the_simulated_machines_ask_for() -> None:
    assert f"`{RESOURCE}`" in PAGE
