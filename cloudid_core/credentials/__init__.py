"""The credentials with which a mount authenticates to Azure."""

from . import root_credential
from .application_keys import Key, Wanted, make_key, present
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
