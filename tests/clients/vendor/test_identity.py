"""The vendor's identity library signs in with a client secret, and with a certificate."""

from __future__ import annotations

import base64
import json
import ssl
import time
from urllib.request import Request, urlopen

import pytest
from azure.core.exceptions import ClientAuthenticationError
from azure.identity import CertificateCredential, ClientSecretCredential

from cloudid_core.credentials.application_keys import self_signed
from cloudid_core.testing.rsa_keys import private_key_pem
from cloudid_core.values import Secret

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


def test_a_certificate_gets_a_token(cloud: Cloud) -> None:
    """The library decides how the assertion is signed, and by which thumbprint the certificate is named."""
    key, now = private_key_pem("key 0 of a world"), int(time.time())
    der = self_signed(Secret(key), 1, now - 60, now + 600)
    application, entry = cloud.world["applications"][0], {"type": "AsymmetricX509Cert", "usage": "Verify"}
    url = f"{cloud.url}/graph/v1.0/applications/{application['object_id']}"
    token = cloud.credential.get_token("https://graph.microsoft.com/.default").token
    body = json.dumps({"keyCredentials": [{**entry, "key": base64.b64encode(der).decode()}]}).encode()
    with urlopen(Request(url, body, {"authorization": f"Bearer {token}"}, method="PATCH")) as answer:
        assert answer.status == 204
    with CertificateCredential(
        cloud.world["tenant"],
        application["client_id"],
        certificate_data=key.encode() + ssl.DER_cert_to_PEM_cert(der).encode(),
        authority=f"{cloud.url}/login",
        disable_instance_discovery=True,
    ) as credential:
        assert credential.get_token("https://management.azure.com/.default").token.count(".") == 2
