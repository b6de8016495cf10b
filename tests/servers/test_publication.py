"""A private server whose issuers' documents are published, and a service elsewhere that verifies with these alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import jwt
import pytest

from cloudid_core.effects import HttpRequest, HttpResponse
from cloudid_core.testing.conformance import Scripted
from cloudid_servers.provider_simulator import Simulator, start
from tests.hosts.opened import serving
from tests.hosts.shelf import CREDENTIAL, HEADER, QUERY, Shelf
from tests.waiting import PATIENT, wait_until

from .running import SERVERS, Running
from .story import RESOURCE

pytestmark = [pytest.mark.one_server, pytest.mark.parametrize("server", SERVERS)]
ROOT: Final = "root-of-publication"
AUDIENCE: Final = "https://shop.example"


def ask(server: Running, method: str, path: str, body: Any = None, token: str = ROOT) -> Any:
    headers = {"x-service-token": token} if token else {}
    answer = httpx.request(method, f"{server.url}/v1/{path}", json=body, headers=headers, **PATIENT)
    return answer.json() if answer.content else {}


@contextmanager
def private(server: str, folder: Path, issuer: str, publish_to: str) -> Iterator[tuple[Running, str]]:
    """A server that publishes, and the token of a machine that is logged in."""
    settings = folder / f"{server}.toml"
    (folder / "credential").write_text(CREDENTIAL)
    settings.write_text(
        f'[server]\npublish_to = "{publish_to}"\npublish_credential_file = "credential"\n'
        f'[service]\nissuer = "{issuer}"\n'
    )
    with start(Simulator()) as cloud:
        arguments = ("--dev", "--listen", "127.0.0.1:0", "--root-token", ROOT, "--provider", cloud.url)
        with Running(f"cloudid_servers.{server}", *arguments, "--settings", str(settings)) as running:
            world = httpx.get(f"{cloud.url}/simulator/world", **PATIENT).json()
            machine, application = world["machines"][0], world["applications"][0]
            proof = {name: application[name] for name in ("client_id", "client_secret")}
            ask(running, "POST", "auth/cloud/config", {"tenant_id": world["tenant"], "resource": RESOURCE, **proof})
            rule = 'path "identity/oidc/token/*" { capabilities = ["read"] }'
            ask(running, "POST", "sys/policies/acl/asks", {"policy": rule})
            bounds = {"bound_service_principal_ids": machine["principals"], "token_policies": "asks"}
            ask(running, "POST", "auth/cloud/role/web", bounds)
            ask(running, "POST", "identity/oidc/role/shop", {"client_id": AUDIENCE})
            metadata = f"{cloud.url}/machines/{machine['name']}/metadata/identity/oauth2/token"
            query = {"api-version": "2018-02-01", "resource": RESOURCE}
            identity = httpx.get(metadata, params=query, headers={"metadata": "true"}, **PATIENT).json()
            login = {"role": "web", "jwt": identity["access_token"]}
            token = ask(running, "POST", "auth/cloud/login", login, "")["auth"]["client_token"]
            yield running, token


def verified(server: Running, token: str, issuer: str) -> Any:
    """What a service elsewhere reads in a machine's token; nothing while no key is published."""
    given = ask(server, "GET", "identity/oidc/token/shop", token=token)
    if given.get("codes") == ["credential_unusable"]:
        return None
    address = f"{issuer}/v1/identity/oidc"
    described = httpx.get(f"{address}/.well-known/openid-configuration", **PATIENT).json()
    key = jwt.PyJWKClient(described["jwks_uri"]).get_signing_key_from_jwt(given["data"]["token"])
    return jwt.decode(given["data"]["token"], key, ["RS256"], issuer=described["issuer"], audience=AUDIENCE)


def test_documents_in_a_folder_are_those_that_others_verify_with(server: str, tmp_path: Path) -> None:
    folder = tmp_path / "www"
    folder.mkdir()

    def web_server(request: HttpRequest) -> Scripted:
        file = folder / request.url.partition("://")[2].partition("/")[2]
        return Scripted(HttpResponse(200, {}, file.read_bytes()) if file.is_file() else HttpResponse(404))

    with serving(web_server) as issuer, private(server, tmp_path, issuer, "www") as (running, token):
        claims = wait_until(lambda: verified(running, token, issuer))
        assert claims["role"] == "web"
        before = len(httpx.get(f"{issuer}/v1/identity/oidc/.well-known/keys", **PATIENT).json()["keys"])
        ask(running, "POST", "identity/oidc/key/default/rotate")
        keys = f"{issuer}/v1/identity/oidc/.well-known/keys"
        wait_until(lambda: len(httpx.get(keys, **PATIENT).json()["keys"]) == before + 1)


def test_an_address_that_refuses_is_told_and_used_once_it_is_mended(server: str, tmp_path: Path) -> None:
    shelf = Shelf()
    shelf.status = 403
    with serving(shelf) as issuer, private(server, tmp_path, issuer, issuer) as (running, token):
        wait_until(lambda: "PUT was answered with status 403" in running.log())
        assert verified(running, token, issuer) is None
        shelf.status = 0
        assert wait_until(lambda: verified(running, token, issuer))["role"] == "web"
        assert {path.rpartition("/")[2] for path in shelf.documents} == {"openid-configuration", "keys"}
        _, log = running.stop()
    for secret in (HEADER, QUERY[1:], "s3cret"):
        assert secret not in log
