"""Secrets that got into audit files, logs and errors: one server that tells all it can, and all that it is told."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from itertools import cycle
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx
import pytest
from attrs import define, field

from cloudid_core.auth_method.config import Config as AuthConfig
from cloudid_core.auth_method.form import LoginForm
from cloudid_core.auth_method.roles import Role as AuthRole
from cloudid_core.forms.fields import spellings_of
from cloudid_core.secrets_engine.config import Config as EngineConfig
from cloudid_core.secrets_engine.roles import Role as EngineRole
from cloudid_core.token_store.create import CreateForm
from tests.incidents.spellings import spellings, told
from tests.servers.audit.test_devices import TOKEN, Service, furnish, serving
from tests.servers.audit.test_secrets import HIDDEN, secrets_in
from tests.servers.collector import Collector, collector, traceparent
from tests.waiting import PATIENT

CANARY: Final = 'c4n4ry~S3cr3t."\\/+é of mine'
"""Each spelling of it is another text."""

NAME: Final = "C4n4ryThatIsTheNameOfAMember"
SECRETS: Final = HIDDEN - {"accessor", "wrapped_accessor"}
"""Accessors stand clear in logs, and in entries of devices that are to show them."""

TO_COPY: Final = b"  export CLOUDID_"
"""How the one line begins that tells the root token on purpose, once."""

DEVICES: Final = {"plain": {}, "clear": {"hmac_accessor": "false", "elide_list_responses": "true"}}


@define
class Told:
    """A server at level debug with two audit files. It keeps every secret that is sent or answered."""

    service: Service
    folder: Path
    cloud: str
    collected: Collector
    secrets: set[str] = field(factory=lambda: {CANARY, NAME, TOKEN}, repr=False)
    asked: int = 0

    def send(self, method: str, path: str, content: bytes | None, *, status: int | None = None, **headers: str) -> Any:
        self.asked += 1  # each comes from a source of its own: failed logins of one are slowed
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        named["x-forwarded-for"] = f"198.51.{self.asked // 250}.{self.asked % 250}"
        answer = self.service.http.request(method, path, content=content, headers=named)
        assert status is None or answer.status_code == status, (method, path, answer.text)
        if answer.status_code >= 400:
            assert told((CANARY, NAME), answer.content) == [], "an error that repeats what was sent"
        found = json.loads(answer.content) if answer.content else None
        self.secrets |= set(secrets_in(found, names=SECRETS))
        return found

    def ask(self, method: str, path: str, body: Any = None, *, status: int = 200, **headers: str) -> Any:
        self.secrets |= set(secrets_in(body, names=SECRETS))
        return self.send(method, path, None if body is None else json.dumps(body).encode(), status=status, **headers)

    def world(self) -> Any:
        """What the cloud shows of itself: the secrets of its applications are those that it has now."""
        world = httpx.get(f"{self.cloud}/simulator/world", **PATIENT).json()
        self.secrets |= set(secrets_in(world["applications"], names=SECRETS))
        return world

    def texts(self) -> dict[str, bytes]:
        files = {name: (self.folder / f"{name}.log").read_bytes() for name in DEVICES}
        lines = self.service.running.log().encode().splitlines()
        return {**files, "log": b"\n".join(line for line in lines if not line.startswith(TO_COPY))}

    def spans(self) -> bytes:
        """All that was exported, once the span of a last request is."""
        trace = f"{self.asked:032x}"
        self.send("GET", "sys/health", None, status=None, **traceparent(trace))
        self.collected.trace(trace)
        return b"\n".join(self.collected.bodies)

    def leaks(self) -> dict[str, list[str]]:
        texts = {**self.texts(), "spans": self.spans()}
        return {name: found for name, text in texts.items() if (found := told(self.secrets, text))}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    folder = tmp_path_factory.mktemp("told")
    settings = folder / "cloudid.toml"
    settings.write_text(
        '[server]\nlog_level = "debug"\ntracing = true\ntrust_trace_headers = true\n'
        '[service]\ntrusted_proxies = ["127.0.0.1"]\n'
    )
    with (
        collector() as collected,
        serving("trio_server", "--settings", str(settings), environment=collected.environment) as service,
    ):
        shown = next(line for line in service.running.introduction if line.startswith("provider simulator: "))
        for name, options in DEVICES.items():
            assert service.enable(name, file_path=str(folder / f"{name}.log"), **options).status_code == 204
        yield Told(service, folder, shown.removeprefix("provider simulator: "), collected)


def test_a_secret_is_found_however_it_is_written() -> None:
    """Otherwise the tests below would prove nothing."""
    data = CANARY.encode()
    for text in (
        data,
        json.dumps({"a": CANARY}).encode(),
        json.dumps({"a": CANARY}, ensure_ascii=False).encode(),
        quote(CANARY).encode(),
        quote(CANARY, safe="").encode(),
        data.hex().encode(),
        *(b64encode(b"a" * before + data + b"b" * after) for before in range(4) for after in range(4)),
        *(urlsafe_b64encode(b"a" * before + data + b"b" * after) for before in range(4) for after in range(4)),
    ):
        assert told([CANARY], b"before " + text + b" after") == [CANARY]
    assert told([CANARY], b"c4n4ry of another") == []
    assert min(map(len, spellings(CANARY))) > 20


def malformed() -> Iterator[bytes]:
    """Bodies that are no JSON objects, each with the canary."""
    secret, plain = json.dumps(CANARY).encode(), CANARY.encode()
    yield from (plain, secret, b"[" + secret + b"]", b"client_secret=" + quote(CANARY).encode(), plain + b"\0")
    for value in (secret[:-1], plain, secret + secret, secret + b",", b'"\\x' + plain + b'"', secret[:-1] + b'\xff"'):
        yield b'{"client_secret": ' + value + b"}"
    yield b'{"client_secret": ' + secret
    yield b'{"client_secret": ' + secret + b"} " + plain
    yield b"{" + secret + b"}"
    yield b'{"a": ' + b"[" * 40 + secret + b"]" * 40 + b"}"
    yield b"{'client_secret': '" + plain + b"'}"
    yield b"<client_secret>" + plain + b"</client_secret>"


MISTYPED: Final[tuple[Any, ...]] = (
    CANARY,
    [CANARY],
    [[CANARY]],
    {CANARY: CANARY},
    {"a": {"b": [CANARY]}},
    [1, {"a": CANARY}],
    {NAME: True},
    f"{CANARY},{CANARY}",
    f"a={CANARY}",
)
FORMS: Final[Mapping[str, type]] = {
    "auth/cloud/config": AuthConfig,
    "auth/cloud/role/web": AuthRole,
    "auth/cloud/login": LoginForm,
    "cloud/config": EngineConfig,
    "cloud/roles/web": EngineRole,
    "auth/token/create": CreateForm,
}


@pytest.mark.parametrize("path", FORMS)
def test_no_body_that_cannot_be_understood_is_repeated_anywhere(server: Told, path: str) -> None:
    """Vault CVE-2025-4166: the secrets in a body that did not parse stood in the error, in the log, in the audit.

    Malformed bodies; and in all fields, then in each, what is of another type than the field takes.
    """
    for content in malformed():
        server.send("POST", path, content, status=400)
        server.send("PUT", path, content, status=400, content_type="application/x-www-form-urlencoded")
    names = spellings_of(FORMS[path])
    for value in MISTYPED:
        server.send("POST", path, json.dumps(dict.fromkeys(names, value)).encode())
    for name, value in zip(names, cycle(MISTYPED)):
        server.send("POST", path, json.dumps({name: value}).encode())
    server.send("POST", path, json.dumps({NAME: 1, CANARY: {NAME: CANARY}}).encode())
    assert server.leaks() == {}
    assert [name for name, text in server.texts().items() if path.encode() not in text] == [], "all is on record"


def test_nothing_that_is_answered_is_told_on(server: Told) -> None:
    """OpenBao CVE-2025-62513 and CVE-2025-62705, Vault CVE-2024-8365: parts of answers stood clear in the audit.

    Credentials, what is wrapped and unwrapped, rotated, read back; of all the texts and of what they are read from.
    """
    ask = server.ask
    for path in ("auth/cloud/config", "auth/cloud/role/web", "cloud/config"):
        ask("DELETE", f"{path}?force=true", status=200 if path.startswith("auth/") else 204)
    login = furnish(server.service, server.cloud)
    application, other = server.world()["applications"][:2]
    root = {name: application[name] for name in ("client_id", "client_secret")}
    root |= {"tenant_id": server.world()["tenant"], "subscription_id": server.world()["subscriptions"][0]}
    ask("POST", "cloud/config", root, status=204)
    ask("POST", "cloud/roles/web", {"application_object_id": other["object_id"], "ttl": "1h"}, status=204)

    assert ask("GET", "auth/cloud/config")["data"]["client_secret"] == root["client_secret"]
    ask("GET", "cloud/config")
    token = ask("POST", "auth/cloud/login", login)["auth"]["client_token"]
    made = [
        ask("POST", "auth/token/create", body)["auth"]
        for body in ({"type": "batch", "policies": "default"}, {"id": "c4n4ry-chosen"})
    ]
    wrapped = [
        ask("POST", "auth/cloud/login", login, x_vault_wrap_ttl="300"),
        ask("GET", "auth/cloud/config", x_vault_wrap_ttl="300"),
        ask("GET", "cloud/creds/web", x_vault_wrap_ttl="300"),
        ask("POST", "auth/token/create", {}, x_vault_wrap_ttl="300"),
        ask("POST", "sys/wrapping/wrap", {"a": CANARY, CANARY: [{"b": CANARY}]}, x_vault_wrap_ttl="300"),
    ]
    for each in wrapped:
        again = ask("POST", "sys/wrapping/rewrap", {"token": each["wrap_info"]["token"]})["wrap_info"]["token"]
        ask("POST", "sys/wrapping/lookup", {"token": again})
        ask("POST", "sys/wrapping/unwrap", {"token": again})
        ask("POST", "sys/wrapping/unwrap", {"token": again}, status=400)
    lease = ask("GET", "cloud/creds/web")
    ask("PUT", "sys/leases/lookup", {"lease_id": lease["lease_id"]})
    ask("PUT", "sys/leases/revoke", {"lease_id": lease["lease_id"]}, status=204)
    for mount in ("auth/cloud", "cloud"):
        server.send("POST", f"{mount}/rotate-root", b'{"force": true}')
        server.world()
        ask("GET", f"{mount}/rotation")
        ask("GET", f"{mount}/config")
    ask("PUT", "sys/audit-hash/plain", {"input": CANARY})
    ask("POST", "auth/token/lookup", {"token": token})
    ask("POST", "auth/token/lookup", {"token": made[0]["client_token"]}, x_service_token=token, status=403)
    ask("POST", "auth/token/renew", {"token": token})
    ask("POST", "auth/token/revoke", {"token": token}, status=204)
    ask("GET", "auth/token/lookup-self", x_service_token=token, status=403)
    ask("GET", f"auth/token/lookup-self?token={quote(CANARY, safe='')}")
    ask("GET", "identity/oidc/plugins/.well-known/keys")

    secrets = server.secrets
    assert {root["client_secret"], lease["data"]["client_secret"], login["jwt"], token, TOKEN} <= secrets
    assert len(secrets) > 20
    assert server.leaks() == {}
