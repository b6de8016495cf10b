"""Clients with a JWT or Kubernetes login: the requests of the page's tables, as those clients send them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import hcl2
import httpx
import pytest

from tests.servers.client_site import RESOURCE, Site, client_site
from tests.servers.running import SERVERS
from tests.servers.story import identity
from tests.waiting import PATIENT

from .blocks import ROOT, blocks_of

PAGE: Final = "docs/how-to/jwt-clients.md"
ROWS: Final = re.findall(r"^\| ([^|]+) \| .* \| `(\w+) /v1/([^`]+)` \|$", (ROOT / PAGE).read_text(), re.MULTILINE)
LOGINS: Final = [row for row in ROWS if row[2].endswith("/login")]
WITH_TOKEN: Final = [row for row in ROWS if row not in LOGINS]
HEADERS: Final = {"X-Vault-Request": "true", "Content-Type": "application/json"}


@pytest.fixture(scope="module", params=SERVERS)
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    with client_site(request.param) as site:
        site.ask("POST", "sys/auth/azure", {"type": "azure"})
        world = site.world
        config = {name: world["applications"][0][name] for name in ("client_id", "client_secret")}
        config |= {"tenant_id": world["tenant"], "resource": RESOURCE}
        site.ask("POST", "auth/azure/config", config)
        site.ask("POST", "auth/azure/role/web", {"bound_service_principal_ids": "*"})
        site.ask("POST", "auth/azure/role/machine", {"bound_resource_groups": "prod"})
        yield site


def log_in(site: Site, method: str, path: str, role: str, jwt: str) -> httpx.Response:
    return httpx.request(method, f"{site.url}/v1/{path}", json={"role": role, "jwt": jwt}, headers=HEADERS, **PATIENT)


@pytest.mark.parametrize(("client", "method", "path"), LOGINS)
def test_a_client_of_the_page_logs_in(site: Site, client: str, method: str, path: str) -> None:
    answer = log_in(site, method, path, "web", identity(site.cloud.url, "web", resource=RESOURCE))
    assert answer.status_code == 200, f"{client}: {answer.text}"
    assert answer.json()["auth"]["client_token"]


def test_the_token_of_a_pod_itself_is_refused(site: Site) -> None:
    answer = log_in(site, "PUT", "auth/azure/login", "web", site.cluster.token(1.0))
    assert answer.json()["codes"] == ["login_refused"]


def test_a_role_that_binds_machines_is_refused(site: Site) -> None:
    answer = log_in(site, "PUT", "auth/azure/login", "machine", identity(site.cloud.url, "web", resource=RESOURCE))
    assert answer.json()["codes"] == ["machine_required"]


@pytest.mark.parametrize(("client", "method", "path"), WITH_TOKEN)
def test_clients_that_only_take_a_token_use_these_paths(site: Site, client: str, method: str, path: str) -> None:
    created: Any = site.ask("POST", "auth/token/create", {"policies": ["root"], "ttl": "1h"})
    headers = HEADERS | {"X-Vault-Token": created["auth"]["client_token"]}
    answer = httpx.request(method, f"{site.url}/v1/{path}", headers=headers, **PATIENT)
    assert answer.status_code == 200, f"{client}: {answer.text}"
    site.end_loans()


def test_the_agent_of_the_page_logs_in_as_its_row_says() -> None:
    [file] = [block.text for block in blocks_of(PAGE) if block.marks.get("file") == "agent.hcl"]
    assert 'mount_path = "auth/azure"' in file
    assert hcl2.loads(file)["auto_auth"]
