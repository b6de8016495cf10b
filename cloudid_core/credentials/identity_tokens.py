"""Identity tokens: what the service says of a mount, signed, for the provider to believe (RFC 7519)."""

from __future__ import annotations

from typing import Final

from attrs import field, frozen

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
"""The audience that the provider recommends."""


def subject_of(mount: Mount) -> str:
    """Whom tokens of a mount are about. It never changes: an accessor stays with its mount."""
    return f"plugin-identity:root:{mount.kind}:{mount.accessor}"


@frozen(kw_only=True)
class IdentityTokens:
    """The identity tokens of a mount, as its client assertions."""

    issuer: str
    subject: str
    audience: str
    lifetime: int
    """Seconds."""
    place: str
    """Where its issuer's documents are published; empty: at the service itself."""
    records: Records = field(eq=False, repr=False)
    source: Source = field(default=Source.IDENTITY_TOKEN, init=False)

    @classmethod
    def of(cls, settings: Settings, records: Records, mount: Mount, audience: str, lifetime: int) -> IdentityTokens:
        within_bounds = max(SHORTEST_TOKEN, min(lifetime or DEFAULT_LIFETIME, LONGEST_TOKEN))
        return cls(
            issuer=PLUGINS.address(settings),
            subject=subject_of(mount),
            audience=audience,
            lifetime=within_bounds,
            place=settings.publishes_to,
            records=records,
        )

    @classmethod
    def for_application(cls, settings: Settings, records: Records, mount: Mount, proof_id: str) -> IdentityTokens:
        """Those that stand in for the secret of a role's application. An id is never used again."""
        return cls(
            issuer=PLUGINS.address(settings),
            subject=f"plugin-identity:app:{mount.accessor}:{proof_id}",
            audience=EXCHANGE,
            lifetime=LIFETIME_FOR_APPLICATIONS,
            place=settings.publishes_to,
            records=records,
        )

    @property
    def identity(self) -> str:
        return f"{self.issuer} {self.subject} {self.audience}"

    def make(self) -> Program[Secret]:
        """A token that is valid from now on. Refuses with `CREDENTIAL_UNUSABLE`."""
        claims = {"iss": self.issuer, "sub": self.subject, "aud": [self.audience]}
        return signed(self.records, PLUGINS, claims, self.lifetime, self.place)
