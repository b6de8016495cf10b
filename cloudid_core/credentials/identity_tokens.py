"""Identity tokens: what the service says of a mount, signed, for the provider to believe (RFC 7519)."""

from __future__ import annotations

from typing import Final

import jwt
from attrs import field, frozen

from ..effects import Now, RandomBytes
from ..errors import Code, Refused
from ..mounts import Mount
from ..provider import Source
from ..settings import Settings
from ..store import Records
from ..values import Secret
from .signing_keys import LONGEST_TOKEN, SHORTEST_TOKEN, find_signing_keys

PATH: Final = "/v1/identity/oidc/plugins"
"""Where the documents of the issuer are, below the service's public address."""
DEFAULT_LIFETIME: Final = 3600
LIFETIME_FOR_APPLICATIONS: Final = 600
EXCHANGE: Final = "api://AzureADTokenExchange"
"""The audience that the provider recommends."""


def issuer_of(settings: Settings) -> str:
    """The issuer that tokens name; empty while the service does not know its public address."""
    return f"{settings.issuer}{PATH}" if settings.issuer else ""


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
    records: Records = field(eq=False, repr=False)
    source: Source = field(default=Source.IDENTITY_TOKEN, init=False)

    @classmethod
    def of(cls, settings: Settings, records: Records, mount: Mount, audience: str, lifetime: int) -> IdentityTokens:
        within_bounds = max(SHORTEST_TOKEN, min(lifetime or DEFAULT_LIFETIME, LONGEST_TOKEN))
        return cls(
            issuer=issuer_of(settings),
            subject=subject_of(mount),
            audience=audience,
            lifetime=within_bounds,
            records=records,
        )

    @classmethod
    def for_application(cls, settings: Settings, records: Records, mount: Mount, proof_id: str) -> IdentityTokens:
        """Those that stand in for the secret of a role's application. An id is never used again."""
        return cls(
            issuer=issuer_of(settings),
            subject=f"plugin-identity:app:{mount.accessor}:{proof_id}",
            audience=EXCHANGE,
            lifetime=LIFETIME_FOR_APPLICATIONS,
            records=records,
        )

    @property
    def identity(self) -> str:
        return f"{self.issuer} {self.subject} {self.audience}"

    async def make(self) -> Secret:
        """A token that is valid from now on. Refuses with `CREDENTIAL_UNUSABLE`."""
        found = await find_signing_keys(self.records)
        if not self.issuer or found is None:
            raise Refused(Code.CREDENTIAL_UNUSABLE, 'identity_token_audience: the setting "issuer" is not set')
        token_id = (await RandomBytes(16)).hex()
        now = await Now()
        key = found.record.signing_at(now)
        claims = {
            "iss": self.issuer,
            "sub": self.subject,
            "aud": [self.audience],
            "iat": int(now),
            "nbf": int(now),
            "exp": int(now) + self.lifetime,
            "jti": token_id,
        }
        return Secret(jwt.encode(claims, key.loaded, algorithm="RS256", headers={"kid": key.kid}))
