"""Groups, their members, and the groups of a principal."""

from __future__ import annotations

import json
from urllib.parse import parse_qsl, urlsplit

import pytest

from cloudid_core.errors import ProviderProblem
from cloudid_core.provider.groups import (
    Group,
    add_member,
    find_group,
    groups_by_name,
    member_groups_of,
    remove_member,
)
from cloudid_core.provider.responses import NONSENSE

from .cloud import GRAPH, Reply, Setting, error, form_of, reply, unreachable

ABSENT = error(404, "Request_ResourceNotFound")
MEMBERS = "/v1.0/groups/G-1/members/$ref"
MEMBER = "/v1.0/groups/G-1/members/p-1/$ref"


def test_a_group_is_found_by_its_id() -> None:
    setting = Setting()
    setting.cloud.script("GET /v1.0/groups/G-1", reply(200, {"id": "G-1", "displayName": "Ops"}), ABSENT)
    found = [setting.world.perform(find_group(setting.client, "G-1")) for _ in range(2)]
    assert found == [Group("G-1", "Ops"), None]


def test_all_groups_of_a_name_are_found() -> None:
    setting = Setting()
    groups = [{"id": "1", "displayName": "Ops' own"}, {"id": "2", "displayName": "ops' OWN"}]
    setting.cloud.script("GET /v1.0/groups", reply(200, {"value": groups}))
    found = setting.world.perform(groups_by_name(setting.client, "Ops' own"))
    assert found == [Group("1", "Ops' own"), Group("2", "ops' OWN")]
    query = dict(parse_qsl(urlsplit(setting.cloud.requests[-1].url).query))
    assert query == {"$filter": "displayName eq 'Ops'' own'"}


def add(setting: Setting, *replies: Reply) -> None:
    setting.cloud.script(f"POST {MEMBERS}", *replies)
    setting.world.perform(add_member(setting.client, "G-1", "p-1"))


LINK = reply(200, {"@odata.id": f"{GRAPH}/v2/tenant/directoryObjects/p-1/Microsoft.DirectoryServices.ServicePrincipal"})


def test_a_member_is_named_by_its_address_in_the_same_directory() -> None:
    setting = Setting()
    add(setting, reply(204))
    assert json.loads(setting.cloud.requests[-1].body) == {"@odata.id": f"{GRAPH}/v1.0/directoryObjects/p-1"}


def test_a_member_already_is_a_success() -> None:
    """So is one whose first answer was lost. The group is asked, which takes the permission that adding takes.

    Sources: Azure/azure-docs-powershell-azuread issue 167 and pnp/pnpframework pull request 139 for status and code;
    "Add members" and "List members" of the directory for permissions; `GroupsClient.GetMember` of manicminer/hamilton
    for the question.
    """
    setting = Setting()
    setting.cloud.script(f"GET {MEMBER}", LINK)
    add(setting, unreachable(), error(400, "Request_BadRequest"))
    assert not [path for path in setting.cloud.paths if "getMemberGroups" in path]


def test_the_problem_that_prevents_a_membership_is_raised() -> None:
    setting = Setting()
    setting.cloud.script(f"GET {MEMBER}", ABSENT)
    with pytest.raises(ProviderProblem) as caught:
        add(setting, error(400, "Request_BadRequest"))
    assert caught.value.code == "Request_BadRequest"


def test_a_principal_that_does_not_show_yet_is_no_member() -> None:
    """Sources: microsoftgraph/microsoft-graph-docs-contrib issue 5090; `addGroupMemberships` of
    hashicorp/vault-plugin-secrets-azure tries again.
    """
    with pytest.raises(ProviderProblem) as caught:
        add(Setting(), ABSENT)
    assert caught.value.status == 404


@pytest.mark.parametrize("answer, removed", [(reply(204), True), (ABSENT, False)])
def test_removal_tells_whether_it_was_a_member(answer: Reply, removed: bool) -> None:
    setting = Setting()
    setting.cloud.script(f"DELETE {MEMBER}", answer)
    assert setting.world.perform(remove_member(setting.client, "G-1", "p-1")) is removed


GONE = error(400, "Request_BadRequest")


def test_a_membership_that_has_just_ended_is_gone() -> None:
    """Source: `GroupsClient.RemoveMembers` of manicminer/hamilton: "One or more removed object references do not
    exist" with status 400, although the member was listed before.
    """
    setting = Setting()
    setting.cloud.script(f"DELETE {MEMBER}", GONE)
    setting.cloud.script(f"GET {MEMBER}", ABSENT)
    assert not setting.world.perform(remove_member(setting.client, "G-1", "p-1"))


def test_a_member_that_cannot_be_removed_is_a_problem() -> None:
    setting = Setting()
    setting.cloud.script(f"DELETE {MEMBER}", GONE)
    setting.cloud.script(f"GET {MEMBER}", LINK)
    with pytest.raises(ProviderProblem):
        setting.world.perform(remove_member(setting.client, "G-1", "p-1"))


GROUPS_OF = "/v1.0/directoryObjects/p1/getMemberGroups"


def ask(setting: Setting, principal: str = "p1") -> frozenset[str] | None:
    return setting.world.perform(member_groups_of(setting.client, principal))


def test_the_groups_of_a_principal() -> None:
    setting = Setting()
    setting.cloud.script(f"POST {GROUPS_OF}", reply(200, {"value": ["G1", "g2"]}))
    assert ask(setting) == frozenset({"g1", "g2"})
    token_request, request = setting.cloud.requests
    assert form_of(token_request)["scope"] == "https://graph.test/.default"
    assert json.loads(request.body) == {"securityEnabledOnly": False}


def test_the_question_may_be_repeated() -> None:
    setting = Setting()
    setting.cloud.script(f"POST {GROUPS_OF}", error(500), reply(200, {"value": []}))
    assert ask(setting) == frozenset()


def test_the_groups_of_an_unknown_principal_are_none() -> None:
    """Source: "directoryObject: getMemberGroups" and "Microsoft Graph error responses": the principal was deleted."""
    setting = Setting()
    setting.cloud.script(f"POST {GROUPS_OF}", error(404, "Request_ResourceNotFound"))
    assert ask(setting) is None


def test_a_denied_question_is_a_problem() -> None:
    setting = Setting()
    setting.cloud.script(f"POST {GROUPS_OF}", error(403, "Authorization_RequestDenied"))
    with pytest.raises(ProviderProblem) as caught:
        ask(setting)
    assert caught.value.code == "Authorization_RequestDenied"


def test_a_principal_stays_one_segment() -> None:
    setting = Setting()
    assert ask(setting, "../groups?x") is None
    assert setting.cloud.paths[-1] == "/v1.0/directoryObjects/..%2Fgroups%3Fx/getMemberGroups"


def test_a_part_of_the_groups_is_no_answer() -> None:
    """Who is not in the part is not therefore in no other: a login would be refused for a group that it is in."""
    setting = Setting()
    setting.cloud.script(f"POST {GROUPS_OF}", reply(200, {"value": ["g1"], "@odata.nextLink": "https://graph.test/x"}))
    with pytest.raises(ProviderProblem) as caught:
        ask(setting)
    assert caught.value.code == NONSENSE
