"""The vendor's identity library signs in with a client secret."""

from __future__ import annotations

import pytest
from azure.core.exceptions import ClientAuthenticationError
from azure.identity import ClientSecretCredential

from .conftest import Cloud
from .sdk import sdk


@pytest.mark.parametrize("path", ["", "/login"])
def test_a_client_secret_gets_a_token_below_either_authority(cloud: Cloud, path: str) -> None:
    application = cloud.world["applications"][0]
    with ClientSecretCredential(
        cloud.world["tenant"],
        application["client_id"],
        application["client_secret"],
        authority=f"{cloud.url}{path}",
        disable_instance_discovery=True,
    ) as credential:
        assert credential.get_token("https://management.azure.com/.default").token.count(".") == 2


def test_a_wrong_secret_is_an_authentication_error_with_its_number(cloud: Cloud) -> None:
    with (
        ClientSecretCredential(
            cloud.world["tenant"],
            cloud.world["applications"][0]["client_id"],
            "wrong",
            authority=cloud.url,
            disable_instance_discovery=True,
        ) as credential,
        pytest.raises(ClientAuthenticationError, match="AADSTS7000215"),
    ):
        credential.get_token("https://management.azure.com/.default")


def test_tests_of_an_sdk_that_is_not_installed_are_skipped_with_the_command_that_installs_it() -> None:
    with pytest.raises(pytest.skip.Exception, match=r"pip install '\.\[vendor-sdks\]'"):
        sdk("azure.mgmt.absent")
