"""Machines, as the provider tells of them."""

from __future__ import annotations

from typing import Any

import pytest

from cloudid_core.errors import Code, ProviderProblem
from cloudid_core.provider.compute import AT_ONCE, MOST_IDENTITIES, Machine, find_machine
from cloudid_core.provider.responses import NONSENSE
from cloudid_core.values.resource_id import SCALE_SET, USER_ASSIGNED_IDENTITY, VIRTUAL_MACHINE, parse

from .cloud import ARM, Setting, error, reply

SUBSCRIPTION = "aaaaaaaa-0000-0000-0000-000000000001"


GROUP = f"/subscriptions/{SUBSCRIPTION}/resourceGroups"


def path(kind: str, name: str, group: str = "rg") -> str:
    return f"{GROUP}/{group}/providers/{kind}/{name}"


VM = path(VIRTUAL_MACHINE, "vm")
SET = path(SCALE_SET, "fleet")


def setting_with(document: Any, where: str = VM) -> Setting:
    setting = Setting()
    setting.cloud.script(f"GET {where}", reply(200, document))
    return setting


def find(setting: Setting, where: str = VM) -> Machine | None:
    return setting.world.perform(find_machine(setting.client, parse(where)))


def found(document: Any, where: str = VM) -> Machine:
    machine = find(setting_with(document, where), where)
    assert machine is not None
    return machine


def test_a_virtual_machine_with_all_kinds_of_identity() -> None:
    document = {
        "id": VM,
        "location": "West US 2",
        "identity": {
            "type": "SystemAssigned, UserAssigned",
            "principalId": "P1",
            "userAssignedIdentities": {path(USER_ASSIGNED_IDENTITY, "i"): {"principalId": "P2", "clientId": "C2"}},
        },
        "properties": {"vmId": "ID-1"},
    }
    principals = frozenset({"p1", "p2"})
    assert found(document) == Machine(resource_id=parse(VM), location="westus2", principals=principals, vm_id="id-1")


@pytest.mark.parametrize("properties", [None, {}, {"vmId": None}, {"vmId": ""}])
def test_a_virtual_machine_may_lack_its_id(properties: Any) -> None:
    assert found({"properties": properties}).vm_id == ""


def test_only_virtual_machines_have_such_an_id() -> None:
    assert found({"properties": {"vmId": "id-1"}}, SET).vm_id == ""


def test_the_request_names_the_machine_in_a_known_version() -> None:
    encoded = f"{GROUP}/Gruppe-%C3%A4/providers/Microsoft.Compute/virtualMachines/vm%20%281%29"
    setting = setting_with({}, encoded)
    assert find(setting, path(VIRTUAL_MACHINE, "vm (1)", "Gruppe-ä")) is not None
    assert setting.cloud.requests[-1].url == f"{ARM}{encoded}?api-version=2026-04-01"


@pytest.mark.parametrize("identity", [{}, {"identity": None}, {"identity": {"type": "None"}}])
def test_a_machine_without_identity_has_no_principals(identity: Any) -> None:
    assert found({"location": "westus2", **identity}).principals == frozenset()


@pytest.mark.parametrize("principal", [None, ""])
def test_an_empty_principal_is_none(principal: str | None) -> None:
    assert found({"identity": {"principalId": principal}}).principals == frozenset()


def test_a_machine_without_location_has_an_empty_one() -> None:
    assert found({}).location == ""


def test_a_member_of_a_flexible_set_names_it() -> None:
    assert found({"properties": {"virtualMachineScaleSet": {"id": SET.upper()}}}).scale_set == "FLEET"


@pytest.mark.parametrize("named", ["", "fleet", VM, path("Microsoft.Compute/virtualMachineScaleSetsEvil", "fleet")])
def test_a_set_that_is_no_set_is_nonsense(named: str) -> None:
    with pytest.raises(ProviderProblem) as caught:
        found({"properties": {"virtualMachineScaleSet": {"id": named}}})
    assert caught.value.code == NONSENSE


def test_a_uniform_set_is_a_machine_of_its_own_name() -> None:
    document = {
        "location": "westus2",
        "identity": {"principalId": "p1"},
        "properties": {"orchestrationMode": "Uniform"},
    }
    machine = found(document, SET)
    assert (machine.scale_set, machine.principals) == ("fleet", frozenset({"p1"}))


def flexible(setting: Setting, count: int, group: str = "identities") -> None:
    """A machine whose document names its identities only."""
    names = [path(USER_ASSIGNED_IDENTITY, f"i{number}", group) for number in range(count)]
    setting.cloud.script(
        f"GET {VM}", reply(200, {"identity": {"userAssignedIdentities": {name: {} for name in names}}})
    )
    for number, name in enumerate(names):
        setting.cloud.script(f"GET {name}", reply(200, {"properties": {"principalId": f"P{number}"}}))


def test_identities_that_are_only_named_are_looked_up_where_they_are() -> None:
    """Source: `path_login.go` of hashicorp/vault-plugin-auth-azure: a flexible set's document has no principal ids, and
    an identity may be in another resource group or subscription.
    """
    setting = Setting()
    flexible(setting, AT_ONCE + 3)
    machine = find(setting)
    assert machine is not None
    assert machine.principals == {f"p{number}" for number in range(AT_ONCE + 3)}


def test_an_identity_without_entry_is_looked_up_too() -> None:
    name = path(USER_ASSIGNED_IDENTITY, "i")
    setting = setting_with({"identity": {"userAssignedIdentities": {name: None}}})
    setting.cloud.script(f"GET {name}", reply(200, {"properties": {"principalId": "p"}}))
    machine = find(setting)
    assert machine is not None
    assert machine.principals == {"p"}


def test_an_identity_that_is_gone_has_no_principal() -> None:
    setting = Setting()
    flexible(setting, 2)
    setting.cloud.script(f"GET {path(USER_ASSIGNED_IDENTITY, 'i1', 'identities')}", error(404, "ResourceNotFound"))
    machine = find(setting)
    assert machine is not None
    assert machine.principals == {"p0"}


@pytest.mark.parametrize(
    "answer, refusal",
    [
        (error(403, "AuthorizationFailed"), Code.PROVIDER_PERMISSION_DENIED),
        (error(503, "ServiceUnavailable"), Code.PROVIDER_FAILED),
        (reply(200, []), Code.PROVIDER_REFUSED),
    ],
)
def test_an_identity_that_cannot_be_read_leaves_the_others(answer: Any, refusal: Code) -> None:
    """Identities often are in a resource group of their own, which the service may not read."""
    setting = Setting()
    flexible(setting, 2)
    setting.cloud.script(f"GET {path(USER_ASSIGNED_IDENTITY, 'i1', 'identities')}", answer)
    machine = find(setting)
    assert machine is not None
    assert (machine.principals, machine.unread) == (frozenset({"p0"}), refusal)


def test_too_many_identities_are_nonsense() -> None:
    setting = Setting()
    flexible(setting, MOST_IDENTITIES + 1)
    with pytest.raises(ProviderProblem):
        find(setting)
    assert len(setting.cloud.asked(VM)) == 1


@pytest.mark.parametrize(
    "name", ["", "i", VM, "/subscriptions/x", path(USER_ASSIGNED_IDENTITY, "a?b"), "//evil.test/x"]
)
def test_an_identity_of_an_odd_name_is_not_asked_for(name: str) -> None:
    setting = setting_with({"identity": {"principalId": "p", "userAssignedIdentities": {name: {}}}})
    machine = find(setting)
    assert machine is not None
    assert (machine.principals, machine.unread) == (frozenset({"p"}), Code.PROVIDER_REFUSED)
    assert len(setting.cloud.requests) == 2


NOT_FOUND = (
    "ResourceNotFound",
    "ResourceGroupNotFound",
    "SubscriptionNotFound",
    "NotFound",
    "ParentResourceNotFound",
    "InvalidResourceType",
    "InvalidResourceNamespace",
    "",
)


@pytest.mark.parametrize("where", [VM, SET])
@pytest.mark.parametrize("code", NOT_FOUND)
def test_a_machine_that_the_provider_does_not_know_is_none(code: str, where: str) -> None:
    """Sources: "Resolve errors for parent resources", whose code is `ParentResourceNotFound`; the README of
    Azure.ResourceManager.Communication in Azure/azure-sdk-for-net, with 404 and `InvalidResourceType`. No list of the
    codes is complete.
    """
    setting = Setting()
    setting.cloud.script(f"GET {where}", error(404, code) if code else reply(404))
    assert find(setting, where) is None


@pytest.mark.parametrize("answer", [error(403, "ResourceNotFound"), error(409, "NotFound"), error(400)])
def test_any_other_failure_says_nothing_about_the_machine(answer: Any) -> None:
    setting = Setting()
    setting.cloud.script(f"GET {VM}", answer)
    with pytest.raises(ProviderProblem):
        find(setting)


@pytest.mark.parametrize(
    "document",
    [
        [],
        {"location": 7},
        {"identity": "p1"},
        {"identity": {"principalId": ["p1"]}},
        {"identity": {"userAssignedIdentities": ["x"]}},
        {"properties": {"virtualMachineScaleSet": "fleet"}},
    ],
)
def test_a_document_of_another_shape_is_nonsense(document: Any) -> None:
    with pytest.raises(ProviderProblem) as caught:
        found(document)
    assert caught.value.code == NONSENSE


SITE = path("Microsoft.Web/sites", "shop")
WEB = f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Web"


def test_any_resource_is_asked_for_in_a_version_that_its_type_has() -> None:
    setting = setting_with({"location": "West Europe", "identity": {"principalId": "p1"}, "properties": 7}, SITE)
    types = [{"resourceType": "sites", "apiVersions": ["2023-01-01"]}]
    setting.cloud.script(f"GET {WEB}", reply(200, {"resourceTypes": types}))
    expected = Machine(resource_id=parse(SITE), location="westeurope", principals=frozenset({"p1"}))
    assert find(setting, SITE) == expected
    assert setting.cloud.requests[-1].url.endswith("/shop?api-version=2023-01-01")


def test_a_resource_in_an_unknown_subscription_is_none() -> None:
    setting = Setting()
    setting.cloud.script(f"GET {WEB}", error(404, "SubscriptionNotFound"))
    assert find(setting, SITE) is None
