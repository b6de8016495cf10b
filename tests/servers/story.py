"""The story that both servers tell: requests of an operator and of machines, in order, over real sockets."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import httpx
from attrs import field, frozen

from tests.waiting import PATIENT

RESOURCE: Final = "https://management.azure.com/"
ROOT: Final = "canary-of-a-root-token"


@frozen
class Step:
    """One request, and the status that it must have."""

    status: int
    method: str
    path: str
    body: Any = field(default=None, repr=False)
    token: str = ROOT
    takes_token: bool = False
    """The answer holds a token, which stands for `$token` in later steps."""


def identity(simulator: str, machine: str, **query: str) -> str:
    """The signed identity of a machine, from its metadata service."""
    answer = httpx.get(
        f"{simulator}/machines/{machine}/metadata/identity/oauth2/token",
        params={"api-version": "2018-02-01", "resource": RESOURCE, **query},
        headers={"Metadata": "true"},
        **PATIENT,
    )
    answer.raise_for_status()
    token: str = answer.json()["access_token"]
    return token


def story(simulator: str) -> Iterator[Step]:
    """Config, role, logins of every kind of machine, refusals, the life of a token."""
    world = httpx.get(f"{simulator}/simulator/world", **PATIENT).json()
    application = world["applications"][0]
    config = {"tenant_id": world["tenant"], "resource": RESOURCE, "client_id": application["client_id"]}
    yield Step(200, "GET", "sys/seal-status", token="")
    yield Step(200, "GET", "sys/leader", token="")
    yield Step(404, "GET", "auth/cloud/config")
    yield Step(400, "POST", "auth/cloud/config", {"resource": RESOURCE})
    yield Step(204, "POST", "auth/cloud/config", {**config, "client_secret": application["client_secret"]})
    yield Step(200, "GET", "auth/cloud/config")
    yield Step(404, "LIST", "auth/cloud/role")
    yield Step(400, "POST", "auth/cloud/role/all", {"token_ttl": "1h"})
    role = {"bound_subscription_ids": world["subscriptions"], "token_ttl": "1h", "token_policies": "app,db"}
    yield Step(204, "PUT", "auth/cloud/role/All", role)
    yield Step(200, "POST", "auth/cloud/role/all", {"token_tll": "2h"})
    yield Step(200, "GET", "auth/cloud/role/all")
    yield Step(200, "LIST", "auth/cloud/role")
    yield Step(200, "GET", "auth/cloud/role?list=true")
    yield Step(404, "GET", "auth/cloud/role/nobody")
    for machine in world["machines"]:
        form = login_form(simulator, machine)
        if form is not None:
            yield Step(200, "POST", "auth/cloud/login", form, token="")
            yield Step(403, "POST", "auth/cloud/login", {**form, "resource_group_name": "other"}, token="")
    machine = world["machines"][0]
    form = login_form(simulator, machine) or {}
    yield Step(400, "POST", "auth/cloud/login", {**form, "role": "nobody"}, token="")
    yield Step(400, "POST", "auth/cloud/login", {**form, "jwt": "nonsense"}, token="")
    yield Step(400, "POST", "auth/cloud/login", {"role": "all"}, token="")
    yield Step(403, "POST", "auth/cloud/login", {**form, "jwt": form["jwt"][:-8] + "AAAAAAAA"}, token="")
    yield Step(200, "PUT", "auth/cloud/login", form, token="", takes_token=True)
    yield Step(200, "GET", "auth/token/lookup-self", token="$token")
    yield Step(200, "PUT", "auth/token/renew-self", {"increment": 600}, token="$token")
    yield Step(403, "GET", "auth/cloud/config", token="$token")
    yield Step(204, "POST", "auth/token/revoke-self", token="$token")
    yield Step(403, "GET", "auth/token/lookup-self", token="$token")
    yield Step(403, "GET", "auth/cloud/config", token="")
    yield Step(403, "GET", "nowhere", token="")
    yield Step(404, "GET", "nowhere")
    yield Step(405, "DELETE", "auth/cloud/login")
    yield Step(204, "DELETE", "auth/cloud/role/all")
    yield Step(204, "DELETE", "auth/cloud/role/all")
    yield Step(204, "DELETE", "auth/cloud/config")


def login_form(simulator: str, machine: dict[str, Any]) -> dict[str, str] | None:
    """The login of a machine; `None` for one that has to choose between several identities."""
    query = {}
    identities = machine.get("identities") or {}
    if isinstance(identities, dict) and not identities.get("system_assigned", True):
        chosen = identities.get("user_assigned") or []
        query = {"msi_res_id": chosen[0]["id"]} if len(chosen) > 1 and isinstance(chosen[0], dict) else {}
    try:
        jwt = identity(simulator, machine["name"], **query)
    except httpx.HTTPStatusError:
        return None
    form = {
        "role": "all",
        "jwt": jwt,
        "subscription_id": machine["subscription"],
        "resource_group_name": machine["resource_group"],
    }
    name = machine["resource_id"].rpartition("/")[2]
    match machine["kind"]:
        case "vm":
            return {**form, "vm_name": name}
        case "resource":
            return {**form, "resource_id": machine["resource_id"]}
        case _:
            return {**form, "vmss_name": name}


CHANGING: Final = re.compile(
    r'"(request_id|client_token|accessor|id|issue_time|expire_time|last_renewal|active_time)": ?"[^"]*"'
    r'|"(node_id|background_node_id|cluster_name|cluster_id)": ?"[^"]*"'
    r'|"(creation_time|last_renewal_time|ttl|server_time_utc)": ?\d+'
    r'|"store_latency_ms": ?\d+'
    r"|(?<=\ndate: )[^\r]*"
)
"""What two servers may answer differently: random values and times."""


def tell(url: str, simulator: str) -> list[tuple[Step, int, str]]:
    """Tell the story to a server; for each step its status and all of its answer that must be the same everywhere."""
    told: list[tuple[Step, int, str]] = []
    token = ""
    with httpx.Client(**PATIENT) as client:
        for step in story(simulator):
            headers = {"X-Service-Token": token if step.token == "$token" else step.token} if step.token else {}
            content = None if step.body is None else json.dumps(step.body)
            target = httpx.URL(f"{url}/v1/").copy_with(raw_path=f"/v1/{step.path}".encode())
            answer = client.request(step.method, target, headers=headers, content=content)
            if step.takes_token:
                token = answer.json()["auth"]["client_token"]
            head = "".join(f"\n{name.lower()}: {value}" for name, value in answer.headers.items())
            told.append((step, answer.status_code, CHANGING.sub("…", f"{head}\r\n\n{answer.text}")))
    return told
