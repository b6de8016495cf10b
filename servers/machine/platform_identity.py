"""Platform tokens: the identity that the host's own machine can ask for, or that its container platform gives it.

A virtual machine asks its metadata service; an application service finds another address in
`IDENTITY_ENDPOINT` and `IDENTITY_HEADER` of its environment.
A container platform writes a token into a file, and renews it there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

from attrs import field, frozen

from cloudid_core.effects import HttpRequest, HttpResponse, PlatformToken
from cloudid_core.errors import PlatformTokenUnavailable
from cloudid_core.values.secret import Secret

METADATA_ADDRESS: Final = "http://169.254.169.254"
LARGEST_TOKEN: Final = 2**14
"""Largest federated token, in bytes."""
TIMEOUT: Final = 10.0
"""Seconds that the platform has to answer."""


@frozen
class Platform:
    """Where this machine asks for tokens."""

    metadata_address: str = METADATA_ADDRESS
    identity_endpoint: str = ""
    identity_header: Secret = field(factory=Secret)

    @classmethod
    def of(cls, metadata_address: str, environment: Mapping[str, str]) -> Platform:
        """What the settings and the process environment say."""
        header = Secret(environment.get("IDENTITY_HEADER", ""))
        return cls(metadata_address, environment.get("IDENTITY_ENDPOINT", "") if header else "", header)

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where requests for tokens go. They never leave the machine, so they never go through a proxy."""
        return tuple(address for address in (self.metadata_address, self.identity_endpoint) if address)

    def ask(self, resource: str, client_id: str) -> HttpRequest:
        if self.identity_endpoint:
            address, version = self.identity_endpoint, "2019-08-01"
            headers = {"x-identity-header": self.identity_header.reveal()}
        else:
            address, version = f"{self.metadata_address}/metadata/identity/oauth2/token", "2018-02-01"
            headers = {"metadata": "true"}
        query = {"api-version": version, "resource": resource} | ({"client_id": client_id} if client_id else {})
        return HttpRequest("GET", f"{address}?{urlencode(query)}", headers)


def read_file(path: str) -> Secret:
    """The token in a file that the container platform keeps fresh. Raises `PlatformTokenUnavailable`."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(LARGEST_TOKEN + 1)
        text = content.decode("ascii").strip()
    except (OSError, ValueError):
        raise PlatformTokenUnavailable("the federated token file cannot be read") from None
    if not text or len(content) > LARGEST_TOKEN:
        raise PlatformTokenUnavailable("the federated token file is empty")
    return Secret(text)


def read(response: HttpResponse) -> PlatformToken:
    """The token in an answer; numbers may come as texts. Raises `PlatformTokenUnavailable`."""
    if response.status != 200:
        raise PlatformTokenUnavailable(f"the platform answered with status {response.status}", status=response.status)
    try:
        answer = json.loads(response.body)
        return PlatformToken(Secret(str(answer["access_token"])), float(answer["expires_on"]))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        raise PlatformTokenUnavailable("the platform's response is malformed") from None
