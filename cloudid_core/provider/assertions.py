"""Client assertions: signed statements that stand in for a client secret (RFC 7523), and where they come from."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final, Protocol

from attrs import field, frozen

from ..effects import ReadFederatedToken
from ..errors import Code, PlatformTokenUnavailable, Refused
from ..values import Secret

FILE_VARIABLES: Final = ("CLOUD_FEDERATED_TOKEN_FILE", "AZURE_FEDERATED_TOKEN_FILE")
"""The variables that name the file of the container platform; the first that is set counts."""


class Source(Enum):
    """What a mount, or the application of a role, proves itself with."""

    CLIENT_SECRET = "client_secret"
    IDENTITY_TOKEN = "identity_token"
    CERTIFICATE = "certificate"
    FEDERATED_TOKEN_FILE = "federated_token_file"
    MANAGED_IDENTITY = "managed_identity"


class Assertions(Protocol):
    """Makes the assertions of one mount."""

    @property
    def source(self) -> Source: ...

    @property
    def identity(self) -> str:
        """All that distinguishes its assertions from those of others, but for their time. Not secret."""
        ...

    async def make(self) -> Secret:
        """An assertion that is valid now. Refuses with `CREDENTIAL_UNUSABLE`, which names what is configured."""
        ...


@frozen
class FederatedTokenFile:
    """The token that a container platform writes into a file, and renews. `variable` names the file."""

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
    """The file that the process environment names, if it names one."""
    named = ((variable, environment.get(variable)) for variable in FILE_VARIABLES)
    return next((FederatedTokenFile(variable, path.reveal()) for variable, path in named if path), None)
