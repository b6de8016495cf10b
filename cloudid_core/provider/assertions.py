"""Client assertions: signed statements that replace a client secret (RFC 7523), and their sources."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final, Protocol

from attrs import field, frozen

from ..effects import ReadFederatedToken
from ..errors import Code, PlatformTokenUnavailable, Refused
from ..values import Secret

FILE_VARIABLES: Final = ("CLOUD_FEDERATED_TOKEN_FILE", "AZURE_FEDERATED_TOKEN_FILE")
"""The variables that name the container platform's token file. The first one that is set is used."""


class Source(Enum):
    """The kinds of credentials of a mount, or of a role's app registration."""

    CLIENT_SECRET = "client_secret"
    IDENTITY_TOKEN = "identity_token"
    CERTIFICATE = "certificate"
    FEDERATED_TOKEN_FILE = "federated_token_file"
    MANAGED_IDENTITY = "managed_identity"


class Assertions(Protocol):
    """Create the assertions of one mount."""

    @property
    def source(self) -> Source: ...

    @property
    def identity(self) -> str:
        """Return everything that distinguishes its assertions from others, except their time. Not secret."""
        ...

    async def make(self) -> Secret:
        """Create an assertion that is valid now.

        Refuse with `CREDENTIAL_UNUSABLE`, which names the configured credential.
        """
        ...


@frozen
class FederatedTokenFile:
    """The token that a container platform writes to a file and renews. `variable` names the file."""

    variable: str
    path: str
    source: Source = field(default=Source.FEDERATED_TOKEN_FILE, init=False)

    @property
    def identity(self) -> str:
        return self.path

    async def make(self) -> Secret:
        try:
            return await ReadFederatedToken(self.path)
        except PlatformTokenUnavailable as failure:
            raise Refused(Code.CREDENTIAL_UNUSABLE, f"{self.variable}: {failure}") from None


def federated_token_file(environment: Mapping[str, Secret]) -> FederatedTokenFile | None:
    """Return the file that the environment variables name, if they name one."""
    named = ((variable, environment.get(variable)) for variable in FILE_VARIABLES)
    return next((FederatedTokenFile(variable, path.reveal()) for variable, path in named if path), None)
