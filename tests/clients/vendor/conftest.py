"""A simulated cloud in a process of its own, over TLS, and the public options with which the vendor's SDKs reach it."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from urllib.request import urlopen

import pytest
from attrs import frozen
from azure.identity import ClientSecretCredential


@frozen
class Cloud:
    """The address, what the control API shows of the world, and the options with which SDKs reach it."""

    url: str
    certificate: str
    world: Any

    @property
    def subscription(self) -> str:
        return str(self.world["subscriptions"][0])

    @property
    def credential(self) -> ClientSecretCredential:
        """The credential of the application that may read and change everything."""
        application = self.world["applications"][0]
        return ClientSecretCredential(
            self.world["tenant"],
            application["client_id"],
            application["client_secret"],
            authority=self.url,
            disable_instance_discovery=True,  # otherwise the library asks the vendor's own host first
        )

    @property
    def management(self) -> dict[str, Any]:
        """The options of every management client."""
        return {"base_url": f"{self.url}/arm", "credential_scopes": [f"{self.url}/arm/.default"]}

    def machine(self, name: str) -> Any:
        return next(machine for machine in self.world["machines"] if machine["name"] == name)

    def group(self, name: str) -> str:
        return next(str(group["id"]) for group in self.world["groups"] if group["display_name"] == name)


@pytest.fixture(scope="module")
def cloud() -> Iterator[Cloud]:
    command = [sys.executable, "-m", "cloudid_servers.provider_simulator", "--listen", "127.0.0.1:0", "--tls"]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process,
        pytest.MonkeyPatch.context() as environment,
    ):
        try:
            assert process.stdout
            certificate = process.stdout.readline().removeprefix("certificate: ").strip()
            url = process.stdout.readline().split()[-1]
            environment.setenv("NO_PROXY", "127.0.0.1")
            for variable in ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"):
                environment.setenv(variable, certificate)
            with urlopen(f"{url}/simulator/world", context=ssl.create_default_context(cafile=certificate)) as answer:
                yield Cloud(url, certificate, json.load(answer))
        finally:
            process.terminate()
