"""The names of those who can sign in."""

from __future__ import annotations

import pytest

from cloudid_core.secrets_engine.provisioning import SIGN_IN_AUDIENCES, provider_spelling


@pytest.mark.parametrize(
    "ours, theirs",
    [
        ("CloudADMyOrg", "AzureADMyOrg"),
        ("CloudADMultipleOrgs", "AzureADMultipleOrgs"),
        ("CloudADandPersonalVendorAccount", "AzureADandPersonalMicrosoftAccount"),
        ("PersonalVendorAccount", "PersonalMicrosoftAccount"),
    ],
)
def test_both_spellings_of_an_audience_mean_the_same(ours: str, theirs: str) -> None:
    assert provider_spelling(ours) == provider_spelling(theirs) == theirs
    assert {ours, theirs} <= set(SIGN_IN_AUDIENCES)


def test_no_audience_means_the_own_tenant_only() -> None:
    assert provider_spelling("") == "AzureADMyOrg"
