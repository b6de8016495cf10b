"""Resources: who may read them, and how machines, scale sets and identities are shown."""

from __future__ import annotations

import pytest

from ..cloud import BASE, MANAGEMENT, Cloud, read


def error_of(cloud: Cloud, path: str, status: int, **options: str) -> str:
    return str(read(cloud.arm(path, **options), status)["error"]["code"])


def test_a_virtual_machine_shows_its_identities(cloud: Cloud) -> None:
    machine = cloud.machine("vm-both")
    shown = read(cloud.arm(machine["resource_id"]), 200)
    users = shown["identity"]["userAssignedIdentities"].values()
    assert shown["id"] == machine["resource_id"]
    assert shown["location"] == "westus2"
    assert shown["identity"]["type"] == "SystemAssigned, UserAssigned"
    assert [shown["identity"]["principalId"], *(user["principalId"] for user in users)] == machine["principals"]
    assert "instanceView" not in shown["properties"]
    viewed = read(cloud.arm(machine["resource_id"], **{"$expand": "instanceView"}), 200)
    assert viewed["properties"].pop("instanceView")["statuses"]
    assert viewed == shown


def test_a_machine_without_identities_has_no_such_member(cloud: Cloud) -> None:
    assert "identity" not in read(cloud.arm(cloud.machine("vm-bare")["resource_id"]), 200)


def test_the_case_of_paths_is_ignored(cloud: Cloud) -> None:
    own_id = cloud.machine("web")["resource_id"]
    assert read(cloud.arm(own_id.upper()), 200)["id"] == own_id
    assert cloud.arm(own_id.lower()).status == 200


def test_a_uniform_set_shows_principals_and_a_flexible_one_hides_them(cloud: Cloud) -> None:
    uniform = read(cloud.arm(cloud.machine("fleet-uniform")["resource_id"]), 200)
    flexible = read(cloud.arm(cloud.machine("fleet-flexible")["resource_id"]), 200)
    assert uniform["properties"]["orchestrationMode"] == "Uniform"
    assert uniform["identity"]["principalId"] == cloud.machine("fleet-uniform")["principals"][0]
    assert flexible["properties"]["orchestrationMode"] == "Flexible"
    [(identity_id, entry)] = flexible["identity"]["userAssignedIdentities"].items()
    assert entry == {}
    identity = read(cloud.arm(identity_id), 200)
    assert [identity["properties"]["principalId"]] == cloud.machine("fleet-flexible")["principals"]


def test_instances_of_scale_sets_can_be_read(cloud: Cloud) -> None:
    flexible = cloud.machine("fleet-flexible")
    shown = read(cloud.arm(flexible["instance_id"]), 200)
    assert shown["properties"]["virtualMachineScaleSet"]["id"] == flexible["resource_id"]
    uniform = cloud.machine("fleet-uniform")
    assert read(cloud.arm(uniform["instance_id"]), 200)["name"] == "fleet-uniform_0"


def names(cloud: Cloud, path: str) -> list[str]:
    """The names in a list of resources, page by page."""
    return [item["name"] for item in cloud.arm_list(path)]


def test_machines_sets_and_identities_are_listed_by_group_and_subscription(cloud: Cloud) -> None:
    fleets = f"{cloud.subscription}/resourceGroups/fleets/providers/Microsoft.Compute"
    everywhere = f"{cloud.subscription}/providers"
    flexible = cloud.machine("fleet-flexible")["instance_id"].rpartition("/")[2]
    assert names(cloud, f"{fleets}/virtualMachines") == [flexible]
    assert names(cloud, f"{fleets}/virtualMachineScaleSets") == ["fleet-uniform", "fleet-flexible"]
    assert {"web", "web2", "vm-bare", flexible} < set(names(cloud, f"{everywhere}/Microsoft.Compute/virtualMachines"))
    assert names(cloud, f"{everywhere}/Microsoft.ManagedIdentity/userAssignedIdentities") == [
        identity["name"] for identity in cloud.world["identities"]
    ]


def test_resources_of_all_types_are_listed(cloud: Cloud) -> None:
    fleets = names(cloud, f"{cloud.subscription}/resourceGroups/fleets/resources")
    assert {"fleet-uniform", "fleet-flexible"} < set(fleets)
    assert (len(fleets), "0" in fleets) == (3, False)
    everything = names(cloud, f"{cloud.subscription}/resources")
    assert {*fleets, "shop", "worker", "web"} < set(everything)


def test_a_uniform_set_lists_its_instances(cloud: Cloud) -> None:
    cloud.create("second", kind="vmss_uniform", resource_group="fleets", scale_set="fleet-uniform")
    path = cloud.machine("fleet-uniform")["resource_id"]
    instances = cloud.arm_list(f"{path}/virtualMachines")
    assert [instance["name"] for instance in instances] == ["fleet-uniform_0", "fleet-uniform_1"]
    assert instances[0]["id"] == cloud.machine("fleet-uniform")["instance_id"]
    assert cloud.ask_arm("POST", f"{instances[1]['id']}/deallocate").status == 200
    states = [read(cloud.arm(f"{each['id']}/instanceView"), 200)["statuses"][0]["code"] for each in instances]
    assert states == ["PowerState/running", "PowerState/deallocated"]
    assert cloud.arm_list(f"{cloud.machine('fleet-flexible')['resource_id']}/virtualMachines") == []
    assert error_of(cloud, f"{path}-x/virtualMachines", 404) == "ResourceNotFound"


def test_the_system_assigned_identity_of_a_resource_can_be_read(cloud: Cloud) -> None:
    default = "/providers/Microsoft.ManagedIdentity/identities/default"
    web = cloud.machine("web")
    shown = read(cloud.arm(f"{web['resource_id']}{default}"), 200)
    assert [shown["properties"]["principalId"]] == web["principals"]
    assert error_of(cloud, f"{cloud.machine('vm-bare')['resource_id']}{default}", 404) == "ResourceNotFound"


def test_another_resource_shows_the_display_name_of_its_location(cloud: Cloud) -> None:
    site = cloud.machine("shop")
    shown = read(cloud.arm(site["resource_id"], version="2022-03-01"), 200)
    assert (shown["location"], site["location"]) == ("West Europe", "westeurope")
    assert shown["identity"]["principalId"] == site["principals"][0]
    assert error_of(cloud, site["resource_id"], 400, version="2019-01-01") == "NoRegisteredProviderFound"


def test_identities_are_listed_in_pages(cloud: Cloud) -> None:
    path = f"/subscriptions/{cloud.world['subscriptions'][0]}/resourceGroups/identities/providers"
    found = []
    answer = read(cloud.arm(f"{path}/Microsoft.ManagedIdentity/userAssignedIdentities"), 200)
    while True:
        found += [item["name"] for item in answer["value"]]
        if "nextLink" not in answer:
            break
        path, _, query = answer["nextLink"].removeprefix(f"{BASE}/arm").partition("?")
        assert "api-version=" in query
        answer = read(cloud.arm(path, **{"$skiptoken": query.rpartition("=")[2]}), 200)
    assert found == [identity["name"] for identity in cloud.world["identities"]]
    assert len(found) > 3


def test_each_missing_thing_has_a_code_of_its_own(cloud: Cloud) -> None:
    web = cloud.machine("web")["resource_id"]
    assert error_of(cloud, web + "x", 404) == "ResourceNotFound"
    assert error_of(cloud, web.replace("/prod/", "/nowhere/"), 404) == "ResourceGroupNotFound"
    assert error_of(cloud, f"/subscriptions/{cloud.world['tenant']}", 404) == "SubscriptionNotFound"


def test_a_version_is_required(cloud: Cloud) -> None:
    web = cloud.machine("web")["resource_id"]
    headers = {"Authorization": f"Bearer {cloud.access_token()}"}
    missing = cloud.answer("GET", f"/arm{web}", headers=headers).response
    assert read(missing, 400)["error"]["code"] == "MissingApiVersionParameter"
    assert error_of(cloud, web, 400, version="latest") == "InvalidApiVersionParameter"


def test_tokens_are_checked(cloud: Cloud) -> None:
    web = cloud.machine("web")["resource_id"]
    good = cloud.access_token()
    missing = cloud.ask("GET", f"/arm{web}", query={"api-version": "2022-11-01"})
    assert read(missing, 401)["error"]["code"] == "AuthenticationFailed"
    assert missing.headers["www-authenticate"].startswith("Bearer ")
    assert error_of(cloud, web, 401, token="x.y.z") == "InvalidAuthenticationToken"
    assert error_of(cloud, web, 401, token=good[:-8] + "AAAAAAAA") == "InvalidAuthenticationToken"
    other = cloud.access_token(scope="https://graph.microsoft.com/.default")
    assert error_of(cloud, web, 401, token=other) == "InvalidAuthenticationTokenAudience"
    cloud.json("POST", "/simulator/clock", {"advance": 3600})
    assert error_of(cloud, web, 401, token=good) == "ExpiredAuthenticationToken"


@pytest.mark.parametrize("claims", [{}, {"exp": "soon"}, {"exp": 2**40, "aud": MANAGEMENT, "oid": ["x"]}])
def test_unusual_claims_of_a_signed_token_are_refused(cloud: Cloud, claims: dict[str, object]) -> None:
    token = cloud.json("POST", "/simulator/tokens", {"claims": claims})["token"]
    assert cloud.arm(cloud.machine("web")["resource_id"], token=token).status in (401, 403)


def test_only_readers_read(cloud: Cloud) -> None:
    web = cloud.machine("web")["resource_id"]
    other = cloud.world["applications"][1]
    token = cloud.access_token(client_id=other["client_id"], client_secret=other["client_secret"])
    assert error_of(cloud, web, 403, token=token) == "AuthorizationFailed"
    cloud.create("reader", reader=True)
    token = read(cloud.machine_token("reader"), 200)["access_token"]
    assert cloud.arm(web, token=token).status == 200


def test_a_token_outlives_the_removal_of_its_key(cloud: Cloud) -> None:
    token = cloud.access_token()
    cloud.json("POST", "/simulator/keys/rotate", {"remove_old": True})
    assert cloud.arm(cloud.machine("web")["resource_id"], token=token).status == 200


def test_answers_have_the_remaining_quota(cloud: Cloud) -> None:
    cloud.behave(throttle={"arm_reads": [3, 0.001]})
    answers = [cloud.arm(cloud.machine("web")["resource_id"]) for _ in range(4)]
    assert all("x-ms-request-id" in answer.headers for answer in answers)
    left = [answer.headers["x-ms-ratelimit-remaining-subscription-reads"] for answer in answers]
    assert (left, answers[-1].status) == (["2", "1", "0", "0"], 429)
    counted = cloud.json("GET", "/simulator/requests")
    assert counted["arm_reads"] == {"admitted": 3, "throttled": 1}


def test_pages_of_lists_are_as_long_as_the_behaviour_says(cloud: Cloud) -> None:
    where = f"{cloud.subscription}/providers"
    short = read(cloud.arm(where), 200)
    cloud.behave(page_size=100)
    whole = read(cloud.arm(where), 200)
    assert ("nextLink" in short, "nextLink" in whole) == (True, False)
    assert len(short["value"]) < len(whole["value"])
