"""The vendor's SDK for the directory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from .conftest import Cloud
from .sdk import sdk

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the SDK warns of its own classes

msgraph = sdk("msgraph")
core = sdk("msgraph_core")
authentication = sdk("kiota_authentication_azure.azure_identity_authentication_provider")


def model(name: str) -> Any:
    """The SDK keeps each of its thousands of models in a module of its own."""
    return getattr(sdk(f"msgraph.generated.models.{name}"), name.title().replace("_", ""))


def body(path: str, name: str) -> Any:
    """The class of an action's request body."""
    return getattr(sdk(f"msgraph.generated.{path}.{name}"), name.title().replace("_", ""))


@asynccontextmanager
async def client_of(cloud: Cloud) -> AsyncIterator[Any]:
    """A client of the SDK, configured as its documentation says for another cloud."""
    provider = authentication.AzureIdentityAuthenticationProvider(
        cloud.credential, scopes=[f"{cloud.url}/graph/.default"], allowed_hosts=[urlsplit(cloud.url).hostname]
    )
    async with httpx.AsyncHTTPTransport() as transport:  # the SDK does not close one that it makes itself
        http = core.GraphClientFactory.create_with_default_middleware(client=httpx.AsyncClient(transport=transport))
        adapter = msgraph.GraphRequestAdapter(provider, http)
        adapter.base_url = f"{cloud.url}/graph/v1.0"
        yield msgraph.GraphServiceClient(request_adapter=adapter)


async def live(client: Any, cloud: Cloud) -> None:
    """The life of an application: created, given a password and a membership, deleted, purged."""
    application = await client.applications.post(model("application")(display_name="sdk", unique_name="sdk-key"))
    item = client.applications.by_application_id(application.id)
    principal = await client.service_principals.post(model("service_principal")(app_id=application.app_id))

    add = body("applications.item.add_password", "add_password_post_request_body")
    password = await item.add_password.post(add(password_credential=model("password_credential")(display_name="p")))
    assert len(password.secret_text) == 40
    await item.patch(model("application")(tags=["ours"]))
    found = await client.applications_with_unique_name("sdk-key").get()
    assert (found.id, found.tags, found.password_credentials[0].key_id) == (application.id, ["ours"], password.key_id)
    remove = body("applications.item.remove_password", "remove_password_post_request_body")
    await item.remove_password.post(remove(key_id=password.key_id))

    members = client.groups.by_group_id(cloud.group("web-machines")).members
    reference = f"{cloud.url}/graph/v1.0/directoryObjects/{principal.id}"
    await members.ref.post(model("reference_create")(odata_id=reference))
    assert principal.id in [each.id for each in (await members.graph_service_principal.get()).value]
    by_id = client.directory_objects.by_directory_object_id(principal.id)
    assert (await by_id.get()).app_id == application.app_id
    ask = body("directory_objects.item.get_member_objects", "get_member_objects_post_request_body")
    groups = (await by_id.get_member_objects.post(ask(security_enabled_only=True))).value
    assert set(groups) == {cloud.group("web-machines"), cloud.group("all-machines")}
    await members.by_directory_object_id(principal.id).ref.delete()

    await item.delete()
    deleted = client.directory.deleted_items
    assert application.id in [each.id for each in (await deleted.graph_application.get()).value]
    by_id = deleted.by_directory_object_id(application.id)
    assert (await by_id.graph_application.get()).app_id == application.app_id
    await by_id.delete()
    with pytest.raises(sdk("msgraph.generated.models.o_data_errors.o_data_error").ODataError) as caught:
        await by_id.get()
    assert caught.value.error.code == "Request_ResourceNotFound"


def test_an_application_lives_from_its_creation_to_its_purge(cloud: Cloud) -> None:
    async def run() -> None:
        async with client_of(cloud) as client:
            await live(client, cloud)

    asyncio.run(run())
