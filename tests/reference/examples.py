"""One request of each route and what the service answers, beside the simulated cloud: what the reference shows."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final, TypeAlias

import msgspec
from attrs import frozen

from cloudid_core import HttpResponse
from cloudid_core.messages import Operation
from cloudid_core.mounts import mount_table
from cloudid_core.routing import Component, Route
from tests.engines import engine_config, grants
from tests.installation import ROOT, Installation, Reply
from tests.logins import login_config, login_form

POLICY: Final = 'path "cloud/creds/web" {\n  capabilities = ["read"]\n}\n'
FOLDER: Final = "5e1f0c3a9b7d4826a1c4e8f20d6b9357"
SHOP: Final = 'path "identity/oidc/token/shop" {\n  capabilities = ["read"]\n}\n'
SCOPE: Final = "https://management.azure.com/.default"
LONGEST: Final = 60
"""Characters of a text that are shown; of a longer one the first `SHOWN`."""
SHOWN: Final = 24
MOST_ELEMENTS: Final = 3
"""Of a list that are shown."""
MOST_MEMBERS: Final = 40

OPERATIONS: Final = {"GET": Operation.READ, "POST": Operation.WRITE, "DELETE": Operation.DELETE}

WITHOUT: Final = frozenset({"init", "metrics", "internal/specs/openapi", "mounts/auth/*path"})
"""Paths below `sys/` of routes without an example: it is a page of its own, or nothing but a refusal."""

Key: TypeAlias = tuple[str, str, Operation, str]
"""Kind and type of a component, operation and path of a route."""


@frozen
class Example:
    """A request and its answer, as they are shown."""

    request: str
    answer: str


_SHORT_LIST: Final = re.compile(r"\[\s+([^\[\]{}]{0,80}?)\s+\]")


def key_of(component: Component, route: Route) -> Key:
    return component.kind, component.type, route.operation, route.path


class _Story(Installation):
    """An installation that notes what is asked: the first request of each route."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.examples: dict[Key, Example] = {}

    def show(self, method: str, path: str, body: object = None, token: str = ROOT, **headers: str) -> Reply:
        component, route = _route_of(self, method, path)
        reply = self.ask(method, path, body, token, **headers)
        self.examples.setdefault(key_of(component, route), Example(request_of(method, path, body), answer_of(reply)))
        return reply


def _route_of(installation: Installation, method: str, path: str) -> tuple[Component, Route]:
    """Which route answers a request."""
    place, _, query = path.partition("?")
    operation = Operation.LIST if method == "LIST" or "list=true" in query else OPERATIONS[method]
    found = installation.perform(mount_table(installation.context.records)).record.route(place)
    assert found is not None, path
    component = installation.context.components.of(found[0])
    assert isinstance(component, Component)
    routed = component.routes.find(found[1].rstrip("/"), operation)
    assert isinstance(routed, tuple), (method, path)
    return component, routed[0]


def request_of(method: str, path: str, body: object) -> str:
    return f"{method} /v1/{_shorter(path)}" + ("" if body is None else f"\n\n{shown(body)}")


def answer_of(reply: Reply) -> str:
    return f"HTTP/1.1 {reply.status}" + ("" if reply.body is None else f"\n\n{shown(_told(reply.body))}")


def _told(body: Any) -> Any:
    """An answer without the members of the envelope that say nothing here."""
    if not isinstance(body, dict) or "request_id" not in body:
        return body
    members = {name: value for name, value in body.items() if value not in (None, "", 0, False)}
    return {name: value for name, value in members.items() if name not in ("request_id", "mount_type")}


def shown(value: object) -> str:
    """JSON for readers: long texts and lists are cut."""
    text = msgspec.json.format(msgspec.json.encode(_abridged(value)), indent=2).decode()
    return _SHORT_LIST.sub(lambda found: "[" + " ".join(found[1].split()) + "]", text)


def _abridged(value: Any) -> Any:
    match value:
        case str():
            return _shorter(value)
        case list():
            return [_abridged(each) for each in value[:MOST_ELEMENTS]] + ["…"] * (len(value) > MOST_ELEMENTS)
        case dict():
            some = list(value)[:MOST_MEMBERS] if len(value) > MOST_MEMBERS else list(value)
            return {name: _abridged(value[name]) for name in some} | ({"…": "…"} if len(some) < len(value) else {})
    return value


def _shorter(text: str) -> str:
    if "\n" in text or " " in text or text.startswith("http"):
        return text
    return re.sub(rf"[\w.+-]{{{LONGEST},}}", lambda found: f"{found[0][:SHOWN]}…", text)


@cache
def examples() -> dict[Key, Example]:
    """An example of each route that does something, in the order of an operator's day."""
    story = _Story()
    for chapter in (_service, _policies, _logins, _engine, _tokens, _leases, _mounts, _audit, _quotas, _wrapping, _end):
        chapter(story)
    return story.examples


def _service(story: _Story) -> None:
    for path in ("health", "seal-status", "leader", "ha-status", "init", "key-status"):
        story.show("GET", f"sys/{path}")
    for path in ("rotate", "rotate/tokens", "rotate/signing-keys"):
        story.show("POST", f"sys/{path}")
    for issuer in ("identity/oidc/plugins", "identity/oidc"):
        for path in ("openid-configuration", "keys"):
            story.show("GET", f"{issuer}/.well-known/{path}", token="")
    story.show("POST", "identity/oidc/key/default/rotate")


def _policies(story: _Story) -> None:
    story.show("POST", "sys/policies/acl/web", {"policy": POLICY})
    story.show("GET", "sys/policies/acl/web")
    story.show("LIST", "sys/policies/acl")
    story.show("POST", "sys/policy/web", {"policy": POLICY})
    story.show("GET", "sys/policy/web")
    story.show("GET", "sys/policy")
    story.show("LIST", "sys/policy")


def _logins(story: _Story) -> None:
    machine = story.scene["machines"][0]
    story.show("POST", "auth/cloud/config", login_config(story))
    story.show("GET", "auth/cloud/config")
    story.show("GET", "auth/cloud/permissions")
    story.show("POST", "auth/cloud/config/applied", {"client_secret": "of-the-application"})
    bounds = {"bound_subscription_ids": [machine["subscription"]], "bound_resource_groups": [machine["resource_group"]]}
    story.show("POST", "auth/cloud/role/dev", {**bounds, "token_policies": ["web"], "token_ttl": "1h"})
    story.show("GET", "auth/cloud/role/dev")
    story.show("LIST", "auth/cloud/role")
    story.must("POST", "sys/policies/acl/web", {"policy": POLICY + SHOP})
    token = story.show("POST", "auth/cloud/login", login_form(story, machine), token="").auth["client_token"]
    template = '{"machine": {{vm_name}}, "place": {"subscription": {{subscription_id}}}}'
    story.show("POST", "identity/oidc/role/shop", {"client_id": "https://shop.example", "template": template})
    story.show("GET", "identity/oidc/role/shop")
    story.show("LIST", "identity/oidc/role")
    story.show("GET", "identity/oidc/token/shop", token=token)
    story.show("DELETE", "identity/oidc/role/shop")
    story.show("POST", "auth/cloud/explain", login_form(story, machine, vm_name="another"))
    story.show("GET", "sys/internal/recent-logins")
    story.show("POST", "auth/cloud/rotate-root")
    story.show("GET", "auth/cloud/rotation")


def _engine(story: _Story) -> None:
    story.show("POST", "cloud/config", engine_config(story))
    story.show("GET", "cloud/config")
    story.show("GET", "cloud/permissions")
    story.show("POST", "cloud/config/applied", {"client_secret": "of-the-application"})
    story.show("POST", "cloud/roles/web", {"azure_roles": grants(story), "ttl": "1h", "max_ttl": "24h"})
    story.show("GET", "cloud/roles/web")
    story.show("LIST", "cloud/roles")
    story.show("GET", "cloud/creds/web")
    tokens = {"persist_app": True, "token_scopes": [SCOPE]}
    story.must("POST", "cloud/roles/tokens", {"azure_roles": grants(story), **tokens})
    story.show("GET", f"cloud/token/tokens?scope={SCOPE}")
    story.show("POST", "cloud/token/tokens", {"scope": SCOPE})
    story.show("GET", "cloud/ceiling")
    application = story.scene["applications"][1]["object_id"]
    story.show("POST", "cloud/static-roles/app", {"application_object_id": application, "token_scopes": [SCOPE]})
    story.show("GET", "cloud/static-creds/app")
    story.show("POST", "cloud/static-creds/app/token", {"scope": SCOPE})
    story.show("POST", "cloud/rotate-role/app", {"force": True})
    story.show("GET", "cloud/static-roles/app")
    story.show("LIST", "cloud/static-roles")
    story.show("GET", "cloud/reconcile")
    story.show("POST", "cloud/reconcile", {"max": 10})
    story.show("POST", "cloud/rotate-root", {"force": True})
    story.show("GET", "cloud/rotation")


def _tokens(story: _Story) -> None:
    story.show("POST", "auth/token/roles/ci", {"allowed_policies": ["web"], "token_ttl": "10m"})
    story.show("GET", "auth/token/roles/ci")
    story.show("LIST", "auth/token/roles")
    story.show("POST", "auth/token/create/ci", {"policies": ["web"]})
    story.show("POST", "auth/token/create-orphan", {"policies": ["web"]})
    made = story.show("POST", "auth/token/create", {"policies": ["web"], "ttl": "1h"}).auth
    for path in ("lookup-self", "renew-self"):
        story.show("POST", f"auth/token/{path}", token=made["client_token"])
    story.show("GET", "auth/token/lookup-self", token=made["client_token"])
    story.show("GET", f"auth/token/lookup?token={made['client_token']}")
    token, accessor = {"token": made["client_token"]}, {"accessor": made["accessor"]}
    story.show("POST", "auth/token/lookup", token)
    story.show("POST", "auth/token/lookup-accessor", accessor)
    story.show("POST", "auth/token/renew", token)
    story.show("POST", "auth/token/renew-accessor", accessor)
    story.show("POST", "sys/capabilities-self", {"paths": ["cloud/creds/web"]}, token=made["client_token"])
    story.show("POST", "sys/capabilities", {**token, "paths": ["cloud/creds/web"]})
    story.show("POST", "sys/capabilities-accessor", {**accessor, "paths": ["cloud/creds/web"]})
    story.show("LIST", "auth/token/accessors")
    story.show("POST", "auth/token/revoke-orphan", token)
    for path, named in (("revoke", "token"), ("revoke-accessor", "accessor")):
        made = story.must("POST", "auth/token/create", {"policies": ["web"]}).auth
        value = made["client_token"] if named == "token" else made["accessor"]
        story.show("POST", f"auth/token/{path}", {named: value})
    story.show("POST", "auth/token/revoke-self", token=story.must("POST", "auth/token/create", {}).auth["client_token"])
    story.show("POST", "auth/token/tidy")
    story.show("DELETE", "auth/token/roles/ci")


def _leases(story: _Story) -> None:
    def lease() -> str:
        found: str = story.must("GET", "cloud/creds/web").body["lease_id"]
        return found

    story.show("POST", "sys/leases/lookup", {"lease_id": lease()})
    story.show("LIST", "sys/leases/lookup")
    story.show("LIST", "sys/leases/lookup/cloud/creds/web")
    story.show("POST", "sys/leases/renew", {"lease_id": lease()})
    story.show("POST", f"sys/leases/renew/{lease()}")
    story.show("POST", "sys/renew", {"lease_id": lease()})
    story.show("POST", f"sys/renew/{lease()}")
    story.show("POST", "sys/leases/revoke", {"lease_id": lease()})
    story.show("POST", f"sys/leases/revoke/{lease()}")
    story.show("GET", "sys/leases")
    story.show("GET", "sys/leases/count")
    story.show("POST", "sys/leases/revoke-prefix/cloud/creds/web")
    story.show("POST", "sys/leases/revoke-force/cloud/creds/web")


def _mounts(story: _Story) -> None:
    for kind, type_name in (("auth", "auth"), ("mounts", "secret")):
        story.show("POST", f"sys/{kind}/second", {"type": "cloud", "description": f"a second {type_name} mount"})
        story.show("GET", f"sys/{kind}")
        story.show("GET", f"sys/{kind}/second")
        story.show("POST", f"sys/{kind}/second/tune", {"default_lease_ttl": "30m"})
        story.show("GET", f"sys/{kind}/second/tune")
    story.show("GET", "sys/mounts/auth/second")
    story.show("GET", "sys/mounts/auth/second/tune")
    story.show("POST", "sys/mounts/auth/second/tune", {"default_lease_ttl": "30m"})
    story.show("DELETE", "second/config")
    moved = story.show("POST", "sys/remount", {"from": "second", "to": "third"})
    story.show("GET", f"sys/remount/status/{moved.data['migration_id']}")
    story.show("GET", "sys/internal/ui/mounts")
    story.show("GET", "sys/internal/ui/mounts/third")
    story.show("DELETE", "sys/mounts/third")
    story.show("DELETE", "sys/auth/second")


def _audit(story: _Story) -> None:
    story.show("POST", "sys/audit/main", {"type": "file", "options": {"file_path": "/var/log/audit.log"}})
    story.show("GET", "sys/audit")
    story.show("POST", "sys/audit-hash/main", {"input": "hello"})
    story.show("POST", "sys/config/auditing/request-headers/X-Forwarded-For", {"hmac": True})
    story.show("GET", "sys/config/auditing/request-headers/X-Forwarded-For")
    story.show("GET", "sys/config/auditing/request-headers")
    story.show("DELETE", "sys/config/auditing/request-headers/X-Forwarded-For")
    story.show("DELETE", "sys/audit/main")


def _quotas(story: _Story) -> None:
    story.show("POST", "sys/quotas/rate-limit/logins", {"path": "auth/cloud/login", "rate": 100, "interval": "1s"})
    story.show("POST", "sys/quotas/lease-count/web", {"path": "cloud", "max_leases": 1000})
    for kind, name in (("rate-limit", "logins"), ("lease-count", "web")):
        story.show("GET", f"sys/quotas/{kind}/{name}")
        story.show("LIST", f"sys/quotas/{kind}")
        story.show("DELETE", f"sys/quotas/{kind}/{name}")
    story.show("POST", "sys/quotas/config", {"rate_limit_exempt_paths": ["sys/health"]})
    story.show("GET", "sys/quotas/config")
    story.show("POST", f"sys/applied/{FOLDER}", {"path": "/srv/shop", "host": "build"})
    story.show("GET", f"sys/applied/{FOLDER}")
    story.show("LIST", "sys/applied")
    story.show("DELETE", f"sys/applied/{FOLDER}")


def _wrapping(story: _Story) -> None:
    wrapped = story.show("POST", "sys/wrapping/wrap", {"answer": 42}, x_vault_wrap_ttl="5m").body["wrap_info"]
    story.show("POST", "sys/wrapping/lookup", {"token": wrapped["token"]})
    again = story.show("POST", "sys/wrapping/rewrap", {"token": wrapped["token"]}).body["wrap_info"]
    story.show("POST", "sys/wrapping/unwrap", {"token": again["token"]})


def _end(story: _Story) -> None:
    """A mount that is disabled while its provider is away stays until all is gone."""
    story.must("GET", "cloud/creds/web")
    story.provider = lambda request: HttpResponse(503, {}, b"")
    story.show("DELETE", "cloud/roles/tokens")
    story.show("DELETE", "cloud/static-roles/app?remove_secret=true")
    accessor = story.must("GET", "sys/mounts/cloud").data["accessor"]
    story.show("DELETE", "auth/cloud/role/dev")
    story.show("DELETE", "auth/cloud/config")
    story.must("DELETE", "sys/mounts/cloud?sync=false")
    story.show("LIST", "sys/retiring")
    story.show("GET", f"sys/retiring/{accessor}")
    story.show("GET", f"sys/retiring/{accessor}/config")
    story.show("POST", f"sys/retiring/{accessor}/config", {"client_id": story.scene["applications"][0]["client_id"]})
    story.show("DELETE", f"sys/retiring/{accessor}?force=true")
    story.show("DELETE", "sys/policies/acl/web")
    story.show("DELETE", "sys/policy/web")
