"""Who a mount is to its provider."""

from . import root_credential
from .identity_tokens import IdentityTokens, issuer_of
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
from .signing_keys import MOST_KEYS, SigningKeys, find_signing_keys, first_keys, max_age

__all__ = [
    "MOST_KEYS",
    "IdentityTokens",
    "RootCredential",
    "SecretHolder",
    "SigningKeys",
    "changes_given",
    "client_of",
    "credentials_of",
    "effective_config",
    "find_signing_keys",
    "first_keys",
    "issuer_of",
    "max_age",
    "owner_of",
    "root_credential",
    "rule_problems",
    "with_default_token_ttl",
]
