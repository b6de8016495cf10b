"""The vendor's SDK works with an access token that the service has handed out for a role's application."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from attrs import frozen
from azure.core.credentials import AccessToken
from azure.core.exceptions import ClientAuthenticationError

from tests.servers.running import SERVERS, Running
from tests.servers.story import ROOT
from tests.waiting import PATIENT

from .conftest import Cloud
from .sdk import sdk

subscriptions_sdk = sdk("azure.mgmt.resource.subscriptions")


@frozen
class Lent:
    """A credential that has one token, as the SDK asks for it."""

    token: str
    ends_at: int

    def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        return AccessToken(self.token, self.ends_at)


@pytest.mark.parametrize("proof", ["certificate", "secret"])
def test_a_token_of_a_role_lists_subscriptions(cloud: Cloud, proof: str) -> None:
    arguments = ("--dev", "--listen", "127.0.0.1:0", "--root-token", ROOT, "--provider", cloud.url)
    with (
        Running(f"cloudid_servers.{SERVERS[0]}", *arguments) as server,
        httpx.Client(**PATIENT, base_url=f"{server.url}/v1", headers={"X-Vault-Token": ROOT}) as client,
    ):
        root = cloud.world["applications"][0]
        config = {name: root[name] for name in ("client_id", "client_secret")}
        config |= {"tenant_id": cloud.world["tenant"], "subscription_id": cloud.subscription}
        client.post("/cloud/config", json=config).raise_for_status()
        grants = [{"role_name": "Reader", "scope": f"/subscriptions/{cloud.subscription}"}]
        role = {"azure_roles": grants, "persist_app": True, "token_scopes": f"{cloud.url}/arm/.default", "proof": proof}
        client.post("/cloud/roles/web", json=role).raise_for_status()
        lent = client.get("/cloud/token/web").raise_for_status().json()["data"]
        assert listed(cloud, Lent(lent["access_token"], lent["expires_in"])) == [cloud.subscription]
        with pytest.raises(ClientAuthenticationError):
            listed(cloud, Lent(lent["access_token"][:-8] + "AAAAAAAA", lent["expires_in"]))


def listed(cloud: Cloud, credential: Lent) -> list[str]:
    with subscriptions_sdk.SubscriptionClient(credential, **cloud.management) as client:
        return [one.subscription_id for one in client.subscriptions.list()]
