"""The core sends what Azure's own SDKs send for the same operation: method, path, query, API version and body."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from attrs import frozen
from azure.core.credentials import AccessToken
from azure.core.pipeline.transport import HttpTransport

from cloudid_core.effects import HttpRequest, Program
from cloudid_core.errors import CloudidError
from cloudid_core.provider import (
    Description,
    add_federated_credential,
    applications_by_client_id,
    assign,
    assignment_path,
    change_audience,
    ensure_application,
    ensure_principal,
    find_by_id,
    is_assigned,
    make_password,
)
from cloudid_core.provider.api_versions import DEFAULT, KNOWN, PROVIDERS
from cloudid_core.provider.applications import delete_application, purge, remove_password
from cloudid_core.provider.assignments import assignments_of, definitions_by_name, unassign
from cloudid_core.provider.client import Client
from cloudid_core.provider.compute import find_machine
from cloudid_core.provider.granted import actions_at
from cloudid_core.provider.groups import add_member, groups_by_name, member_groups_of, remove_member
from cloudid_core.provider.memberships import Api, add_app_role, add_directory_role
from cloudid_core.provider.principals import delete_principal
from cloudid_core.values import resource_id
from tests.core.provider.cloud import ARM, GRAPH, START, Setting, reply

from .sdk import sdk

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the SDK warns of its own classes

compute = sdk("azure.mgmt.compute")
authorization = sdk("azure.mgmt.authorization")
models = sdk("azure.mgmt.authorization.models")
identities = sdk("azure.mgmt.msi")
resources = sdk("azure.mgmt.resource.resources")
msgraph = sdk("msgraph")
base = sdk("kiota_abstractions.base_request_configuration")

ONE: Final = "11111111-1111-4111-8111-111111111111"
TWO: Final = "22222222-2222-4222-8222-222222222222"
SUBSCRIPTION: Final = f"/subscriptions/{ONE}"
GROUP: Final = f"{SUBSCRIPTION}/resourceGroups/g"
VM: Final = f"{GROUP}/providers/Microsoft.Compute/virtualMachines/m"
SET: Final = f"{GROUP}/providers/Microsoft.Compute/virtualMachineScaleSets/s"
IDENTITY: Final = f"{GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/i"
READER: Final = f"{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/{TWO}"

Core: TypeAlias = Callable[[Client], Program[Any]]


@frozen
class Sent:
    """A request as it is compared."""

    method: str
    path: str
    query: dict[str, str]
    body: Any

    @classmethod
    def of(cls, method: str, url: str, body: bytes | str | None) -> Sent:
        parts = urlsplit(url)
        query = dict(parse_qsl(parts.query))
        return cls(method, unquote(parts.path).replace("/resourcegroups/", "/resourceGroups/"), query, _json(body))


def _json(body: bytes | str | None) -> Any:
    return json.loads(body) if body else None


class _Stopped(Exception):
    """The request is known, and not sent."""


class _Recording(HttpTransport[Any, Any]):
    """Notes requests instead of sending them."""

    def __init__(self) -> None:
        self.requests: list[Any] = []

    def open(self) -> None:
        pass

    def close(self) -> None:
        pass

    def __enter__(self) -> _Recording:
        return self

    def __exit__(self, *args: object) -> None:
        pass

    def send(self, request: Any, **kwargs: Any) -> Any:
        self.requests.append(request)
        raise _Stopped


class _Credential:
    def get_token(self, *scopes: str, **kwargs: Any) -> AccessToken:
        return AccessToken("token", 1 << 40)


def management(client: Any, operation: Callable[[Any], Any]) -> Sent:
    """What an SDK for Azure Resource Manager sends."""
    transport = _Recording()
    with suppress(_Stopped):
        answer = operation(client(_Credential(), ONE, transport=transport, base_url=ARM))
        next(iter(answer))  # a list asks once it is read
    [request] = transport.requests
    assert "x-ms-client-request-id" in request.headers
    body = getattr(request, "content", None) or getattr(request, "body", None)
    return Sent.of(request.method, request.url, body)


def graph(operation: Callable[[Any], Any]) -> Sent:
    """What the SDK for Microsoft Graph sends."""
    client = msgraph.GraphServiceClient(credentials=_Credential(), scopes=[f"{GRAPH}/.default"])
    client.request_adapter.base_url = f"{GRAPH}/v1.0"
    request = operation(client)
    request.path_parameters["baseurl"] = f"{GRAPH}/v1.0"
    return Sent.of(request.http_method.value, request.url, request.content)


def core(work: Core, wanted: Sent) -> list[Sent]:
    """What the core sends for the same; the first answers have no meaning for it."""
    setting = Setting()
    setting.cloud.script(f"GET {wanted.path}", reply(200, {"value": []}))
    setting.cloud.script(
        f"{wanted.method} {wanted.path}", reply(200, {"value": []}), reply(404, {"error": {"code": "x"}})
    )
    with suppress(CloudidError):
        setting.world.perform(work(setting.client))
    return [_sent(each) for each in setting.cloud.requests]


def _sent(request: HttpRequest) -> Sent:
    if not urlsplit(request.url).path.endswith("/token"):
        assert {"client-request-id", "x-ms-client-request-id", "authorization"} <= request.headers.keys()
        return Sent.of(request.method, request.url, request.body)
    return Sent.of(request.method, request.url, None)


def filtered(builder: Any, condition: str) -> Any:
    """The request of a list with a filter."""
    parameters = next(getattr(builder, name) for name in dir(builder) if name.endswith("GetQueryParameters"))
    configuration = base.RequestConfiguration(query_parameters=parameters(filter=condition))
    return builder.to_get_request_information(configuration)


def model(name: str, /, **fields: Any) -> Any:
    """An object of the SDK for Microsoft Graph."""
    return getattr(sdk(f"msgraph.generated.models.{name}"), name.title().replace("_", ""))(**fields)


def action(path: str, name: str, /, **fields: Any) -> Any:
    """The body of an action."""
    return getattr(sdk(f"msgraph.generated.{path}.{name}"), name.title().replace("_", ""))(**fields)


def _assignment(client: Any) -> Any:
    wanted = models.RoleAssignmentCreateParameters(
        role_definition_id=READER, principal_id=TWO, principal_type="ServicePrincipal"
    )
    return client.role_assignments.create(GROUP, ONE, wanted)


PATH: Final = assignment_path(GROUP, ONE)
MANAGEMENT: Final[dict[str, tuple[Core, Any, Callable[[Any], Any]]]] = {
    "a virtual machine": (
        lambda c: find_machine(c, resource_id.parse(VM)),
        compute.ComputeManagementClient,
        lambda s: s.virtual_machines.get("g", "m"),
    ),
    "a scale set": (
        lambda c: find_machine(c, resource_id.parse(SET)),
        compute.ComputeManagementClient,
        lambda s: s.virtual_machine_scale_sets.get("g", "s"),
    ),
    "an instance of a scale set": (
        lambda c: find_machine(c, resource_id.parse(f"{SET}/virtualMachines/0")),
        compute.ComputeManagementClient,
        lambda s: s.virtual_machine_scale_set_vms.get("g", "s", "0"),
    ),
    "an identity": (
        lambda c: find_machine(c, resource_id.parse(IDENTITY)),
        identities.ManagedServiceIdentityClient,
        lambda s: s.user_assigned_identities.get("g", "i"),
    ),
    "a role assignment that is made": (
        lambda c: assign(c, PATH, READER, TWO),
        authorization.AuthorizationManagementClient,
        _assignment,
    ),
    "a role assignment that is read": (
        lambda c: is_assigned(c, PATH),
        authorization.AuthorizationManagementClient,
        lambda s: s.role_assignments.get(GROUP, ONE),
    ),
    "a role assignment that is deleted": (
        lambda c: unassign(c, PATH),
        authorization.AuthorizationManagementClient,
        lambda s: s.role_assignments.delete(GROUP, ONE),
    ),
    "the role assignments of a principal": (
        lambda c: assignments_of(c, PATH, TWO),
        authorization.AuthorizationManagementClient,
        lambda s: s.role_assignments.list_for_scope(GROUP, filter=f"principalId eq '{TWO}'"),
    ),
    "role definitions of a name": (
        lambda c: definitions_by_name(c, GROUP, "Reader"),
        authorization.AuthorizationManagementClient,
        lambda s: s.role_definitions.list(GROUP, filter="roleName eq 'Reader'"),
    ),
    "permissions": (
        lambda c: actions_at(c, GROUP),
        authorization.AuthorizationManagementClient,
        lambda s: s.permissions.list_for_resource_group("g"),
    ),
}


@pytest.mark.parametrize("name", MANAGEMENT)
def test_azure_resource_manager_gets_what_its_sdk_sends(name: str) -> None:
    work, client, operation = MANAGEMENT[name]
    wanted = management(client, operation)
    assert wanted in core(work, wanted)


def test_types_are_listed_with_the_version_of_the_sdk() -> None:
    wanted = management(resources.ResourceManagementClient, lambda s: s.providers.get("Microsoft.Web"))
    assert wanted.query == {"api-version": PROVIDERS}
    assert max(KNOWN.values()) > DEFAULT


def _password(client: Client) -> Program[Any]:
    return make_password(client, ONE, name="n", starts_at=START, ends_at=START + 60)


def _roles(client: Any) -> Any:
    return client.role_management.directory.role_assignments


def _members(client: Any) -> Any:
    return client.groups.by_group_id(ONE).members


DIRECTORY: Final[dict[str, tuple[Core, Callable[[Any], Any]]]] = {
    "applications of a client id": (
        lambda c: applications_by_client_id(c, ONE),
        lambda s: filtered(s.applications, f"appId eq '{ONE}'"),
    ),
    "an application": (
        lambda c: find_by_id(c, "applications", ONE, Api),
        lambda s: s.applications.by_application_id(ONE).to_get_request_information(),
    ),
    "an upsert of an application": (
        lambda c: ensure_application(c, "n", Description(tags=("t",))),
        lambda s: s.applications_with_unique_name("n").to_patch_request_information(
            model("application", display_name="n", sign_in_audience="AzureADMyOrg", tags=["t"])
        ),
    ),
    "an audience": (
        lambda c: change_audience(c, ONE, "AzureADMyOrg"),
        lambda s: s.applications.by_application_id(ONE).to_patch_request_information(
            model("application", sign_in_audience="AzureADMyOrg")
        ),
    ),
    "an application that is deleted": (
        lambda c: delete_application(c, ONE),
        lambda s: s.applications.by_application_id(ONE).to_delete_request_information(),
    ),
    "an application that is purged": (
        lambda c: purge(c, ONE),
        lambda s: s.directory.deleted_items.by_directory_object_id(ONE).to_delete_request_information(),
    ),
    "a password that is removed": (
        lambda c: remove_password(c, ONE, TWO),
        lambda s: s.applications.by_application_id(ONE).remove_password.to_post_request_information(
            action("applications.item.remove_password", "remove_password_post_request_body", key_id=TWO)
        ),
    ),
    "a federated credential": (
        lambda c: add_federated_credential(c, ONE, name="n", issuer="https://i", subject="s", audience="a"),
        lambda s: s.applications.by_application_id(ONE).federated_identity_credentials.to_post_request_information(
            model("federated_identity_credential", name="n", issuer="https://i", subject="s", audiences=["a"])
        ),
    ),
    "an upsert of a principal": (
        lambda c: ensure_principal(c, ONE),
        lambda s: s.service_principals_with_app_id(ONE).to_patch_request_information(
            model("service_principal", app_id=ONE)
        ),
    ),
    "a principal that is deleted": (
        lambda c: delete_principal(c, ONE),
        lambda s: s.service_principals.by_service_principal_id(ONE).to_delete_request_information(),
    ),
    "groups of a name": (
        lambda c: groups_by_name(c, "it's"),
        lambda s: filtered(s.groups, "displayName eq 'it''s'"),
    ),
    "a member of a group": (
        lambda c: add_member(c, ONE, TWO),
        lambda s: _members(s).ref.to_post_request_information(
            model("reference_create", odata_id=f"{GRAPH}/v1.0/directoryObjects/{TWO}")
        ),
    ),
    "a member that is removed": (
        lambda c: remove_member(c, ONE, TWO),
        lambda s: _members(s).by_directory_object_id(TWO).ref.to_delete_request_information(),
    ),
    "the groups of a principal": (
        lambda c: member_groups_of(c, TWO),
        lambda s: s.directory_objects.by_directory_object_id(TWO).get_member_groups.to_post_request_information(
            action(
                "directory_objects.item.get_member_groups",
                "get_member_groups_post_request_body",
                security_enabled_only=False,
            )
        ),
    ),
    "a directory role": (
        lambda c: add_directory_role(c, ONE, TWO),
        lambda s: _roles(s).to_post_request_information(
            model("unified_role_assignment", role_definition_id=ONE, principal_id=TWO, directory_scope_id="/")
        ),
    ),
    "an app role": (
        lambda c: add_app_role(c, f"{ONE}/{TWO}", TWO),
        lambda s: s.service_principals.by_service_principal_id(ONE).app_role_assigned_to.to_post_request_information(
            model("app_role_assignment", principal_id=TWO, resource_id=ONE, app_role_id=TWO)
        ),
    ),
}


@pytest.mark.parametrize("name", DIRECTORY)
def test_microsoft_graph_gets_what_its_sdk_sends(name: str) -> None:
    """But for the type annotation that the SDK adds to some bodies."""
    work, operation = DIRECTORY[name]
    wanted = graph(operation)
    if isinstance(wanted.body, dict):
        wanted.body.pop("@odata.type", None)
    assert wanted in core(work, wanted)


def test_a_password_is_asked_for_as_the_sdk_does() -> None:
    """The times differ by how they are written."""
    add = action(
        "applications.item.add_password",
        "add_password_post_request_body",
        password_credential=model("password_credential", display_name="n"),
    )
    wanted = graph(lambda s: s.applications.by_application_id(ONE).add_password.to_post_request_information(add))
    [sent] = [each for each in core(_password, wanted) if each.path == wanted.path][:1]
    credential = sent.body["passwordCredential"]
    assert credential.keys() == {"displayName", "startDateTime", "endDateTime"}
    assert (sent.method, credential["displayName"]) == (wanted.method, wanted.body["passwordCredential"]["displayName"])
