"""Who a mount is to its provider."""

from . import root_credential
from .client_certificates import CertificateAssertions, self_signed, thumbprint
from .identity_tokens import IdentityTokens
from .root_credential import (
    RootCredential,
    SecretHolder,
    changes_given,
    client_of,
    credentials_of,
    effective_config,
    owner_of,
    rule_problems,
    with_default_token_ttl,
)
from .signing_keys import (
    ISSUERS,
    LOGINS,
    LONGEST_TOKEN,
    MOST_KEYS,
    PLUGINS,
    SHORTEST_TOKEN,
    Issuer,
    SigningKeys,
    find_signing_keys,
    first_keys,
    max_age,
    signed,
)

__all__ = [
    "ISSUERS",
    "LOGINS",
    "LONGEST_TOKEN",
    "MOST_KEYS",
    "PLUGINS",
    "SHORTEST_TOKEN",
    "CertificateAssertions",
    "IdentityTokens",
    "Issuer",
    "RootCredential",
    "SecretHolder",
    "SigningKeys",
    "changes_given",
    "client_of",
    "credentials_of",
    "effective_config",
    "find_signing_keys",
    "first_keys",
    "max_age",
    "owner_of",
    "root_credential",
    "rule_problems",
    "self_signed",
    "signed",
    "thumbprint",
    "with_default_token_ttl",
]
