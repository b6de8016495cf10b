"""Resource providers, their types and API versions."""

from __future__ import annotations

from ..cloud import Cloud, code_of, read


def test_a_resource_provider_lists_versions_newest_first(cloud: Cloud) -> None:
    path = f"/subscriptions/{cloud.world['subscriptions'][0]}/providers"
    [site] = read(cloud.arm(f"{path}/microsoft.web"), 200)["resourceTypes"]
    assert site["resourceType"] == "sites"
    assert site["apiVersions"] == sorted(site["apiVersions"], reverse=True)
    assert code_of(cloud.arm(f"{path}/Microsoft.Nothing"), 404) == "InvalidResourceNamespace"


def test_a_type_may_list_no_versions(cloud: Cloud) -> None:
    shown = read(cloud.arm(f"{cloud.subscription}/providers/Microsoft.HybridCompute"), 200)
    operations, machines = shown["resourceTypes"]
    assert (operations["apiVersions"], machines["apiVersions"][0]) == ([], "2024-07-31-preview")


def test_all_providers_are_listed(cloud: Cloud) -> None:
    listed = cloud.arm_list(f"{cloud.subscription}/providers")
    assert [each["namespace"] for each in listed] == [each["namespace"] for each in cloud.arm_list("/providers")]
    assert {"Microsoft.Compute", "Microsoft.Web"} < {each["namespace"] for each in listed}
    assert read(cloud.arm("/providers/Microsoft.Web"), 200)["id"] == "/providers/Microsoft.Web"
