"""Who can sign in to an application: the names of this interface and those of the provider."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_PROVIDER_SPELLINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "CloudADMyOrg": "AzureADMyOrg",
        "CloudADMultipleOrgs": "AzureADMultipleOrgs",
        "CloudADandPersonalVendorAccount": "AzureADandPersonalMicrosoftAccount",
        "PersonalVendorAccount": "PersonalMicrosoftAccount",
    }
)
SIGN_IN_AUDIENCES: Final = (*_PROVIDER_SPELLINGS, *_PROVIDER_SPELLINGS.values())
"""Both spellings are accepted, and read back as written."""


def provider_spelling(audience: str) -> str:
    """An audience as the provider knows it; the empty one leaves it to the provider."""
    return _PROVIDER_SPELLINGS.get(audience, audience)
