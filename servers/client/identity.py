"""Who this machine is: finds the identity that its platform gives it, and a signed token of it.

The order is that of the vendor's `DefaultAzureCredential`. The first identity that the machine has counts: if it gives
no token, no other is used silently.
"""

from __future__ import annotations

import json
import socket
import time
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from attrs import field, frozen

from cloudid_core.clouds import CLOUDS, DEFAULT_ENVIRONMENT
from cloudid_core.effects import HttpRequest, HttpResponse
from cloudid_core.errors import CloudidError, PlatformTokenUnavailable
from cloudid_core.values import SCALE_SET, USER_ASSIGNED_IDENTITY, VIRTUAL_MACHINE, resource_id, without_tokens
from cloudid_core.values.secret import Secret

from .. import web
from ..machine import METADATA_ADDRESS, Platform, platform_identity
from . import arc

RESOURCE: Final = "https://management.azure.com/"
"""The audience of tokens that name their machine, in the public cloud."""
METADATA_VARIABLE: Final = "AZURE_POD_IDENTITY_AUTHORITY_HOST"
PLATFORM_TIMEOUT: Final = 10.0
LOGIN_TIMEOUT: Final = 30.0
PROBE_TIMEOUT: Final = 2.0
"""Seconds that the metadata service has to accept a connection: elsewhere, its address leads nowhere."""
PAUSES: Final = (1.0, 2.0, 4.0, 8.0)
"""Seconds before each further try, where the platform asks for patience."""
PATIENCE: Final = frozenset({404, 410, 429, *range(500, 600)})
"""Answers upon which a metadata service is asked again, as azure-identity does (`imds.py`)."""
INSTANCE_VERSION: Final = "2021-02-01"
JWT_BEARER: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
LONGEST_REASON: Final = 300
GIVEN: Final = "jwt"
"""The kind of an identity whose token was given, and may be another machine's."""

Place = Mapping[str, str]
"""Fields of a login that say which machine it is."""


class NoToken(CloudidError):
    """An identity that the machine has gives no token. The text holds no secret."""


class NoIdentity(CloudidError):
    """No identity gave a token."""

    def __init__(self, tried: Mapping[str, str]) -> None:
        self.tried = tried
        """What became of each kind of identity."""
        super().__init__("; ".join(f"{kind}: {outcome}" for kind, outcome in tried.items()))


@frozen
class Surroundings:
    """Where the identity is looked for: the environment, and the folder of Arc's keys."""

    variables: Mapping[str, str] = field(repr=False)
    arc_keys: Path = arc.KEYS
    pause: Callable[[float], None] = time.sleep

    def variable(self, name: str) -> str:
        return self.variables.get(name, "")

    @property
    def metadata_address(self) -> str:
        return self.variable(METADATA_VARIABLE).rstrip("/") or METADATA_ADDRESS


@frozen
class Identity:
    """A signed token, and the machine that it is of."""

    kind: str
    jwt: Secret
    place: Place

    def login(self, role: str) -> dict[str, str]:
        """The body of a login."""
        return {"role": role, "jwt": self.jwt.reveal(), **self.place}


@frozen
class Kind:
    """A row of the table of identities."""

    name: str
    doc: str
    variables: tuple[str, ...]
    """What is set in the environment of a machine that has it."""
    ask: Callable[[Surroundings, str, str], Secret]
    """A token for an audience, of the identity with a client id, if that is not empty. Raises `NoToken`."""
    is_here: Callable[[Surroundings], bool] = lambda here: False
    """Whether the machine has it although the variables are not set."""

    def absence(self, here: Surroundings) -> str:
        """Why the machine does not have it; empty if it does."""
        missing = next((name for name in self.variables if not here.variable(name)), "")
        return f"{missing} is not set" if missing and not self.is_here(here) else ""


def find_identity(here: Surroundings, resource: str = RESOURCE, kind: str = "", client_id: str = "") -> Identity:
    """The identity of this machine, with a token for the audience `resource`. Raises `NoIdentity`.

    `kind`: one of `KINDS` by its name; empty: the first that the machine has. `client_id` chooses between several
    identities of the machine; empty: as `AZURE_CLIENT_ID` says.
    """
    tried: dict[str, str] = {}
    for one in KINDS:
        if kind not in ("", one.name):
            continue
        if absence := one.absence(here):
            tried[one.name] = absence
            continue
        try:
            jwt = one.ask(here, resource, client_id or here.variable("AZURE_CLIENT_ID"))
            place = place_of(jwt) or (instance_place(here) if one is VIRTUAL else {})
        except (NoToken, web.Unreachable, arc.ChallengeRefused, PlatformTokenUnavailable) as failure:
            tried[one.name] = str(failure)
            break
        return Identity(one.name, jwt, place)
    raise NoIdentity(tried)


def identity_of_token(jwt: Secret) -> Identity:
    """The identity in a token from elsewhere."""
    return Identity(GIVEN, jwt, place_of(jwt))


def place_of(jwt: Secret) -> Place:
    """The machine that the token itself names, which the service holds it against; empty if it names none."""
    claims = _claims(jwt)
    named = claims.get("xms_az_rid") or claims.get("xms_mirid")
    try:
        machine = resource_id.parse(named)
    except ValueError:
        return {}
    if machine.is_a(USER_ASSIGNED_IDENTITY):
        return {}
    place = {"subscription_id": machine.subscription, "resource_group_name": machine.resource_group}
    if machine.is_a(VIRTUAL_MACHINE):
        return {**place, "vm_name": machine.name}
    if machine.is_a(SCALE_SET):
        return {**place, "vmss_name": machine.name}
    return {**place, "resource_id": str(named)}


def _claims(jwt: Secret) -> dict[str, Any]:
    """What the token says, unverified; empty if it is no token."""
    _, _, rest = jwt.reveal().partition(".")
    payload = rest.partition(".")[0]
    try:
        claims = json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (ValueError, RecursionError):
        return {}
    return claims if isinstance(claims, dict) else {}


def instance_place(here: Surroundings) -> Place:
    """The machine by its metadata service, where its token does not name it: a refusal then says just that."""
    query = urlencode({"api-version": INSTANCE_VERSION})
    request = HttpRequest("GET", f"{here.metadata_address}/metadata/instance?{query}", {"metadata": "true"})
    compute = web.document(_ask_platform(here, request)).get("compute")
    known = compute if isinstance(compute, dict) else {}
    names = {
        "subscription_id": "subscriptionId",
        "resource_group_name": "resourceGroupName",
        "vm_name": "name",
        "vmss_name": "vmScaleSetName",
    }
    return {mine: str(known[theirs]) for mine, theirs in names.items() if known.get(theirs)}


def _by_client_secret(here: Surroundings, resource: str, client_id: str) -> Secret:
    secret = Secret(here.variable("AZURE_CLIENT_SECRET"))
    return _exchange(here, resource, client_id, {"client_secret": secret.reveal()})


def _by_federated_token(here: Surroundings, resource: str, client_id: str) -> Secret:
    assertion = platform_identity.read_file(here.variable("AZURE_FEDERATED_TOKEN_FILE"))
    proof = {"client_assertion_type": JWT_BEARER, "client_assertion": assertion.reveal()}
    return _exchange(here, resource, client_id, proof)


def _exchange(here: Surroundings, resource: str, client_id: str, proof: Mapping[str, str]) -> Secret:
    """A token for a proof, from the login service of the tenant."""
    authority = here.variable("AZURE_AUTHORITY_HOST").rstrip("/") or CLOUDS[DEFAULT_ENVIRONMENT].login
    authority = authority if "://" in authority else f"https://{authority}"
    if not web.is_private(authority):
        raise NoToken(
            "AZURE_AUTHORITY_HOST must begin with https://, or the identity's credential would be sent unencrypted"
        )
    form = {"grant_type": "client_credentials", "client_id": client_id, **proof, "scope": f"{resource}/.default"}
    request = HttpRequest(
        "POST",
        f"{authority}/{quote(here.variable('AZURE_TENANT_ID'), safe='')}/oauth2/v2.0/token",
        {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"},
        urlencode(form).encode(),
    )
    return _token_in(web.send(request, LOGIN_TIMEOUT), *proof.values())


def _of_app_service(here: Surroundings, resource: str, client_id: str) -> Secret:
    platform = Platform.of("", here.variables)
    return _token_in(_ask_platform(here, platform.ask(resource, client_id)), platform.identity_header.reveal())


def _of_arc(here: Surroundings, resource: str, client_id: str) -> Secret:
    query = {"api-version": arc.VERSION, "resource": resource} | ({"client_id": client_id} if client_id else {})
    url = f"{here.variable('IDENTITY_ENDPOINT') or arc.ENDPOINT}?{urlencode(query)}"
    headers = {"metadata": "true"}
    challenged = _ask_platform(here, HttpRequest("GET", url, headers))
    if challenged.status != 401:
        raise NoToken(_reason(challenged))
    key = arc.key_of(challenged.headers.get("www-authenticate", ""), here.arc_keys)
    answered = _ask_platform(here, HttpRequest("GET", url, {**headers, "authorization": f"Basic {key.reveal()}"}))
    token = _token_in(answered, key.reveal())
    if client_id and str(web.document(answered).get("client_id", "")).lower() != client_id.lower():
        raise NoToken(
            "the agent returned a token of a different identity than AZURE_CLIENT_ID: older agents know "
            "only the system-assigned identity"
        )
    return token


def _of_virtual_machine(here: Surroundings, resource: str, client_id: str) -> Secret:
    if not here.variable(METADATA_VARIABLE):  # notice at once that there is no metadata service here
        parts = urlsplit(METADATA_ADDRESS)
        try:
            socket.create_connection((parts.hostname, parts.port or 80), PROBE_TIMEOUT).close()
        except OSError:
            raise NoToken(f"no response from {parts.hostname}: this is not an Azure VM") from None
    return _token_in(_ask_platform(here, Platform(here.metadata_address).ask(resource, client_id)))


def _ask_platform(here: Surroundings, request: HttpRequest) -> HttpResponse:
    """Ask a service of the machine's own platform, again where it asks for patience."""
    for pause in PAUSES:
        response = web.send(request, PLATFORM_TIMEOUT, through_proxies=False)
        if response.status not in PATIENCE:
            return response
        here.pause(pause)
    return web.send(request, PLATFORM_TIMEOUT, through_proxies=False)


def _token_in(response: HttpResponse, *secrets: str) -> Secret:
    """The token that was answered. `secrets`: what was sent, which no text repeats. Raises `NoToken`."""
    token = web.document(response).get("access_token")
    if response.status != 200 or not isinstance(token, str) or not token:
        raise NoToken(_reason(response, *secrets))
    return Secret(token)


def _reason(response: HttpResponse, *secrets: str) -> str:
    said = web.document(response)
    text = said.get("error_description") or said.get("error") or said.get("message")
    if not isinstance(text, str):
        return f"it answered {response.status}"
    for secret in filter(None, secrets):
        text = text.replace(secret, Secret.MASK)
    line = " ".join(without_tokens(text).split())
    shown = "".join(letter for letter in line if letter.isprintable())
    return f"it answered {response.status}: {shown[:LONGEST_REASON]}"


VIRTUAL: Final = Kind(
    "vm",
    "a virtual machine, or an instance of a scale set, with its metadata service at 169.254.169.254",
    (),
    _of_virtual_machine,
)
KINDS: Final = (
    Kind(
        "client-secret",
        "a program with a client secret",
        ("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET"),
        _by_client_secret,
    ),
    Kind(
        "aks",
        "a pod with workload identity, which exchanges the token from Kubernetes",
        ("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_FEDERATED_TOKEN_FILE"),
        _by_federated_token,
    ),
    Kind("app-service", "an App Service, or a function", ("IDENTITY_ENDPOINT", "IDENTITY_HEADER"), _of_app_service),
    Kind(
        "arc",
        "a server that Azure Arc manages, with its agent installed",
        ("IDENTITY_ENDPOINT", "IMDS_ENDPOINT"),
        _of_arc,
        lambda here: not here.variable("IDENTITY_ENDPOINT") and arc.AGENT.exists(),
    ),
    VIRTUAL,
)
"""Every identity that a machine can have, in the order in which they are looked for."""
