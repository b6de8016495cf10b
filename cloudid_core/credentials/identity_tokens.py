"""Identity tokens: signed statements about a mount that Azure trusts (RFC 7519)."""

from __future__ import annotations

from typing import Final, Protocol

from attrs import field, frozen

from ..caches import Caches
from ..effects import Program
from ..mounts import Mount
from ..provider import Source
from ..settings import Settings
from ..store import Records
from ..values import Secret
from .signing_keys import LONGEST_TOKEN, PLUGINS, SHORTEST_TOKEN, signed

DEFAULT_LIFETIME: Final = 3600
LIFETIME_FOR_APPLICATIONS: Final = 600
EXCHANGE: Final = "api://AzureADTokenExchange"
"""The audience that Azure recommends."""


class Resources(Protocol):
    """The parts of a context that mounts need to authenticate."""

    @property
    def settings(self) -> Settings: ...
    @property
    def caches(self) -> Caches: ...
    @property
    def records(self) -> Records: ...


@frozen(kw_only=True)
class IdentityTokens:
    """The identity tokens of a mount, used as its client assertions."""

    issuer: str
    subject: str
    audience: str
    lifetime: int
    """Seconds."""
    place: str
    """Where its issuer's documents are published. Empty: at the service itself."""
    records: Records = field(eq=False, repr=False)
    source: Source = field(default=Source.IDENTITY_TOKEN, init=False)

    @classmethod
    def of(cls, resources: Resources, mount: Mount, audience: str, lifetime: int) -> IdentityTokens:
        """Return the tokens of a mount itself. Their subject never changes, because a mount keeps its accessor."""
        within_bounds = max(SHORTEST_TOKEN, min(lifetime or DEFAULT_LIFETIME, LONGEST_TOKEN))
        return cls._about(f"plugin-identity:root:{mount.kind}:{mount.accessor}", resources, audience, within_bounds)

    @classmethod
    def for_application(cls, resources: Resources, mount: Mount, proof_id: str) -> IdentityTokens:
        """Return the tokens that replace the client secret of a role's app registration. An id is never reused."""
        subject = f"plugin-identity:app:{mount.accessor}:{proof_id}"
        return cls._about(subject, resources, EXCHANGE, LIFETIME_FOR_APPLICATIONS)

    @classmethod
    def _about(cls, subject: str, resources: Resources, audience: str, lifetime: int) -> IdentityTokens:
        return cls(
            issuer=PLUGINS.address(resources.settings),
            subject=subject,
            audience=audience,
            lifetime=lifetime,
            place=resources.settings.publishes_to,
            records=resources.records,
        )

    @property
    def identity(self) -> str:
        return f"{self.issuer} {self.subject} {self.audience}"

    def make(self) -> Program[Secret]:
        """Create a token that is valid from now on. Refuse with `CREDENTIAL_UNUSABLE`."""
        claims = {"iss": self.issuer, "sub": self.subject, "aud": [self.audience]}
        return signed(self.records, PLUGINS, claims, self.lifetime, self.place)
