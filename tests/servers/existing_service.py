"""An existing service, such as somebody moves from: it only answers reads."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Final

SUBSCRIPTION: Final = "3c1d4ad4-5b2f-4c8e-9a0e-0a6f0a7f0003"
CONFIG: Final[dict[str, Any]] = {
    "tenant_id": "3c1d4ad4-5b2f-4c8e-9a0e-0a6f0a7f0001",
    "client_id": "3c1d4ad4-5b2f-4c8e-9a0e-0a6f0a7f0002",
    "environment": "AzurePublicCloud",
    "root_password_ttl": 15_724_800,
    "identity_token_audience": "",
    "identity_token_ttl": 0,
    "rotation_window": 0.0,
    "rotation_period": 86_400.0,
    "rotation_schedule": "",
    "rotation_policy": "strict",
    "disable_automated_rotation": False,
}
NOBODYS: Final[dict[str, Any]] = {
    "sys/auth": {
        "token/": {"type": "token"},
        "azure/": {"type": "azure", "description": "VMs", "config": {"default_lease_ttl": 0, "max_lease_ttl": 7200}},
        "approle/": {"type": "approle"},
        "../x/": {"type": "azure"},
    },
    "sys/mounts": {
        "sys/": {"type": "system"},
        "cubbyhole/": {"type": "cubbyhole"},
        "identity/": {"type": "identity"},
        "azure/": {"type": "azure", "options": None, "config": {}},
        "kv/": {"type": "kv", "options": {"version": "2"}},
    },
    "auth/azure/config": {**CONFIG, "resource": "https://x", "max_retries": 5, "retry_delay": 4_000_000_000},
    "auth/azure/role?list": {"keys": ["web"]},
    "auth/azure/role/web": {
        "bound_service_principal_ids": ["a"],
        "bound_locations": [],
        "token_ttl": 3600,
        "token_policies": ["web"],
        "token_type": "default",
        "alias_metadata": {"team": "x"},
    },
    "azure/config": {**CONFIG, "subscription_id": SUBSCRIPTION},
    "azure/roles?list": {"keys": ["reader"]},
    "azure/roles/reader": {
        "azure_roles": [{"role_name": "Reader", "role_id": "/x/y", "scope": f"/subscriptions/{SUBSCRIPTION}"}],
        "azure_groups": [],
        "application_object_id": "made-for-it",
        "persist_app": True,
        "ttl": 60,
    },
    "sys/policies/acl?list": {"keys": ["default", "root", "web", "odd"]},
    "sys/policies/acl/default": {"policy": 'path "cubbyhole/*" { capabilities = ["read"] }'},
    "sys/policies/acl/web": {"policy": 'path "azure/creds/reader" { capabilities = ["read"] }'},
    "sys/policies/acl/odd": {"policy": 'path "x" { capabilities = ["read"] mfa_methods = ["m"] }'},
    "sys/quotas/config": {"rate_limit_exempt_paths": []},
}
"""What an existing service answers, as the sources and documents of such services have it, in a tenant that is none."""


@contextmanager
def existing_service(renamed: Mapping[str, str] | None = None) -> Iterator[str]:
    """Its address. `renamed`: ids that are others there."""
    answers = json.dumps(NOBODYS)
    for old, new in (renamed or {}).items():
        answers = answers.replace(old, new)
    known = json.loads(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, _, query = self.path.removeprefix("/v1/").partition("?")
            data = known.get(f"{path}?list" if query else path)
            self.send_response(404 if data is None else 200)
            self.end_headers()
            self.wfile.write(json.dumps({"errors": []} if data is None else {"data": data}).encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
