"""A property-based tester reads the document of the interface and finds nothing that is not in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from cloudid_servers.provider_simulator import Simulator, start
from tests.servers.running import SERVERS, Running
from tests.servers.story import RESOURCE
from tests.waiting import PATIENT

schemathesis = pytest.importorskip("schemathesis")
from schemathesis import checks  # noqa: E402  # only where it is installed
from schemathesis.core.failures import FailureGroup  # noqa: E402

pytestmark = pytest.mark.tools

EXAMPLES: Final = 8
PATH: Final = "/v1/sys/internal/specs/openapi"
HEAD: Final = (
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
)
LAST: Final = ("/sys/quotas", "/sys/audit")
"""What keeps others from being tried: a quota refuses them, and without a device that works nothing is answered."""

KNOWN: Final = {"name": "web", "role": "web", "header": "X-Trace", "prefix": "cloud/creds"}
"""Values of path parameters that lead to something; any other value leads to nothing."""


@pytest.fixture(scope="module", params=[SERVERS[0], pytest.param(SERVERS[1], marks=pytest.mark.long)])
def server(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a server with a configured engine and method beside a simulated cloud."""
    with start(Simulator()) as cloud:
        arguments = ("--dev", "--listen", "127.0.0.1:0", "--root-token", "root", "--provider", cloud.url)
        with Running(f"cloudid_servers.{request.param}", *arguments) as running:
            furnish(running.url, cloud.url)
            yield running.url


def furnish(url: str, cloud: str) -> None:
    world = httpx.get(f"{cloud}/simulator/world", **PATIENT).json()
    application = world["applications"][0]
    credential = {name: application[name] for name in ("client_id", "client_secret")} | {"tenant_id": world["tenant"]}
    bound = {"bound_subscription_ids": world["subscriptions"]}
    for path, body in (
        ("auth/cloud/config", {**credential, "resource": RESOURCE}),
        ("auth/cloud/role/web", bound),
        ("cloud/config", {**credential, "subscription_id": world["subscriptions"][0]}),
        ("auth/token/roles/web", {}),
        ("sys/policies/acl/web", {"policy": ""}),
    ):
        answer = httpx.post(f"{url}/v1/{path}", json=body, headers={"X-Vault-Token": "root"}, **PATIENT)
        assert answer.status_code in (200, 204), (path, answer.text)


def token_of_its_own(url: str) -> str:
    """A token that may do everything, and that an operation may end."""
    answer = httpx.post(
        f"{url}/v1/auth/token/create", json={"policies": ["root"]}, headers={"X-Vault-Token": "root"}, **PATIENT
    )
    token: str = answer.json()["auth"]["client_token"]
    return token


def operations(url: str) -> list[Any]:
    """All operations of the document, those at the end that keep others from being tried."""
    document = httpx.get(f"{url}{PATH}", headers={"X-Vault-Token": "root"}, **PATIENT).json()
    found = [result.ok() for result in schemathesis.openapi.from_dict(document).get_all_operations()]
    assert len(found) == sum(len(item.keys() - {"parameters"}) for item in document["paths"].values())
    return sorted(
        found, key=lambda each: next((1 + at for at, path in enumerate(LAST) if each.path.startswith(path)), 0)
    )


def try_out(url: str, operation: Any, more: Mapping[str, str]) -> None:
    """Send requests that an operation allows, and compare each answer with what it says."""
    headers = {"X-Vault-Token": token_of_its_own(url), **more}

    @settings(
        max_examples=EXAMPLES,
        phases=[Phase.generate],
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(), is_known=st.booleans())
    def every_answer_is_documented(case: Any, is_known: bool) -> None:
        if is_known and operation.method != "delete":
            for name in case.path_parameters.keys() & KNOWN.keys():
                case.path_parameters[name] = KNOWN[name]
        response = case.call(base_url=f"{url}/v1", headers=headers, timeout=PATIENT["timeout"])
        assert response.status_code != 500 or operation.path == "/sys/health"  # which answers what it is asked for
        case.validate_response(
            response, checks=[*HEAD, *([checks.response_schema_conformance] if response.content else [])]
        )

    every_answer_is_documented()


def undocumented(url: str, tried: list[Any], **headers: str) -> list[str]:
    """What some operations answer that the document does not have."""
    wrong = []
    for operation in tried:
        try:
            try_out(url, operation, headers)
        except FailureGroup as failures:
            wrong.append(str(failures))
    return wrong


def test_no_answer_is_undocumented(server: str) -> None:
    """No status, no member, no header, and no refusal without its code, at any route."""
    wrong = undocumented(server, operations(server))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", [SERVERS[0], pytest.param(SERVERS[1], marks=pytest.mark.long)])
def test_neither_is_one_while_the_provider_is_gone(name: str) -> None:
    """Each route that asks the provider is tried with little time."""
    with start(Simulator()) as cloud:
        arguments = ("--dev", "--listen", "127.0.0.1:0", "--root-token", "root", "--provider", cloud.url)
        with Running(f"cloudid_servers.{name}", *arguments) as running:
            furnish(running.url, cloud.url)
            cloud.close()
            asking = [each for each in operations(running.url) if "502" in each.definition.raw["responses"]]
            assert len(asking) > 10
            wrong = undocumented(running.url, asking, **{"X-Service-Deadline": "0.3"})
    assert not wrong, "\n".join(wrong)
