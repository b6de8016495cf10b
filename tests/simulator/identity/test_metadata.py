"""The metadata service: which identity it chooses, what its tokens claim, and its errors."""

from __future__ import annotations

import pytest

from cloudid_core.effects import HttpResponse

from ..cloud import MANAGEMENT, METADATA, Cloud, claims_of, read


def description_of(cloud: Cloud, machine: str, **query: str) -> str:
    return str(read(cloud.machine_token(machine, **query), 400)["error_description"])


def identity_of(cloud: Cloud, name: str) -> dict[str, str]:
    return next(identity for identity in cloud.world["identities"] if identity["name"] == name)


def claimed(resource_id: str) -> str:
    return resource_id.replace("/resourceGroups/", "/resourcegroups/")


def test_the_answer_has_numbers_as_strings(cloud: Cloud) -> None:
    answer = read(cloud.machine_token("web"), 200)
    claims = claims_of(answer.pop("access_token"))
    assert answer == {
        "client_id": claims["appid"],
        "expires_in": "86400",
        "expires_on": str(claims["exp"]),
        "ext_expires_in": "86400",
        "not_before": str(claims["nbf"]),
        "resource": "https://management.azure.com/",
        "token_type": "Bearer",
    }


def test_a_system_assigned_identity_claims_its_machine(cloud: Cloud) -> None:
    machine = cloud.machine("web")
    claims = cloud.machine_claims("web")
    assert [claims["oid"]] == [claims["sub"]] == machine["principals"]
    assert claims["iss"] == f"https://sts.windows.net/{cloud.world['tenant']}/"
    assert claims["xms_mirid"] == claimed(machine["resource_id"])
    assert "xms_az_rid" not in claims


def test_a_user_assigned_identity_claims_itself_and_the_machine(cloud: Cloud) -> None:
    one, two = cloud.machine_claims("worker-1"), cloud.machine_claims("worker-2")
    assert one["oid"] == two["oid"]
    assert one["xms_mirid"] == two["xms_mirid"] == claimed(identity_of(cloud, "worker")["resource_id"])
    assert one["xms_az_rid"] == claimed(cloud.machine("worker-1")["resource_id"])
    assert two["xms_az_rid"] == claimed(cloud.machine("worker-2")["resource_id"])


def test_a_uniform_instance_claims_its_set_and_a_flexible_one_itself(cloud: Cloud) -> None:
    uniform, flexible = cloud.machine("fleet-uniform"), cloud.machine("fleet-flexible")
    assert cloud.machine_claims("fleet-uniform")["xms_mirid"] == claimed(uniform["resource_id"])
    assert cloud.machine_claims("fleet-flexible")["xms_az_rid"] == claimed(flexible["instance_id"])
    assert flexible["instance_id"].rpartition("/")[2].startswith("fleet-flexible_")


def test_another_resource_claims_itself(cloud: Cloud) -> None:
    assert cloud.machine_claims("shop")["xms_mirid"] == claimed(cloud.machine("shop")["resource_id"])


@pytest.mark.parametrize(
    "resource, named",
    [
        ("https://management.core.windows.net/", True),
        ("https://vault.azure.net", True),
        ("api://my-service", False),
        ("https://service.example", False),
    ],
)
def test_only_tokens_for_the_cloud_itself_name_the_machine(cloud: Cloud, resource: str, named: bool) -> None:
    claims = cloud.machine_claims("web", resource)
    assert claims["aud"] == resource
    assert ("xms_mirid" in claims) is named


@pytest.mark.parametrize(
    "parameter, key", [("client_id", "client_id"), ("object_id", "principal_id"), ("msi_res_id", "resource_id")]
)
def test_an_identity_is_chosen_in_three_ways(cloud: Cloud, parameter: str, key: str) -> None:
    identity = identity_of(cloud, "many-b")
    claims = cloud.machine_claims("vm-many", **{parameter: identity[key].upper()})
    assert claims["oid"] == identity["principal_id"]


def test_by_default_the_system_assigned_identity_is_chosen_or_else_the_only_one(cloud: Cloud) -> None:
    assert cloud.machine_claims("vm-both")["oid"] == cloud.machine("vm-both")["principals"][0]
    assert cloud.machine_claims("vm-user")["oid"] == identity_of(cloud, "vm-user-identity")["principal_id"]


def test_errors_of_identities(cloud: Cloud) -> None:
    assert description_of(cloud, "vm-many").startswith("Multiple user assigned identities exist")
    assert description_of(cloud, "vm-bare") == "Identity not found"
    worker = identity_of(cloud, "worker")
    assert description_of(cloud, "web", client_id=worker["client_id"]) == "Identity not found"
    assert "Only one" in description_of(cloud, "vm-many", client_id="a", object_id="b")
    assert "'resource' is missing" in description_of(cloud, "web", resource="")
    assert read(cloud.machine_token("web", "nonsense"), 400)["error"] == "invalid_resource"


@pytest.mark.parametrize(
    "headers, query, words",
    [
        ({}, {"api-version": "2018-02-01"}, "metadata header"),
        ({"Metadata": "false"}, {"api-version": "2018-02-01"}, "metadata header"),
        ({**METADATA, "X-Forwarded-For": "10.0.0.1"}, {"api-version": "2018-02-01"}, "Forwarded"),
        (METADATA, {}, "'api-version' is missing"),
        (METADATA, {"api-version": "new"}, "not supported"),
    ],
)
@pytest.mark.parametrize("path", ["identity/oauth2/token", "instance"])
def test_errors_of_requests(
    cloud: Cloud, path: str, headers: dict[str, str], query: dict[str, str], words: str
) -> None:
    answer = read(cloud.answer("GET", f"/machines/web/metadata/{path}", headers=headers, query=query).response, 400)
    assert answer["error"] == "invalid_request"
    assert words in answer["error_description"]


def test_an_unknown_machine_has_no_metadata_service(cloud: Cloud) -> None:
    assert cloud.machine_token("nobody").status == 404


def test_a_token_is_issued_again_until_shortly_before_its_expiry(cloud: Cloud) -> None:
    first = read(cloud.machine_token("web"), 200)
    cloud.json("POST", "/simulator/clock", {"advance": 86_000})
    again = read(cloud.machine_token("web"), 200)
    assert again["access_token"] == first["access_token"]
    assert again["expires_in"] == "400"
    cloud.json("POST", "/simulator/clock", {"advance": 200})
    fresh = read(cloud.machine_token("web"), 200)
    assert fresh["access_token"] != first["access_token"]
    assert fresh["expires_in"] == "86400"


def test_a_clock_that_was_set_back_gets_a_valid_token(cloud: Cloud) -> None:
    cloud.machine_token("web")
    now = cloud.json("POST", "/simulator/clock", {"advance": -3600})["now"]
    assert cloud.machine_claims("web")["nbf"] == now


def test_up_to_two_hundred_groups_are_claimed(cloud: Cloud) -> None:
    ids = {group["display_name"]: group["id"] for group in cloud.world["groups"]}
    assert set(cloud.machine_claims("web")["groups"]) == {ids["web-machines"], ids["all-machines"]}
    assert "groups" not in cloud.machine_claims("web2")
    cloud.create("just", groups=[f"group-{number}" for number in range(200)])
    cloud.create("over", groups=[f"group-{number}" for number in range(201)])
    assert len(cloud.machine_claims("just")["groups"]) == 200
    claims = cloud.machine_claims("over")
    assert "groups" not in claims
    assert claims["_claim_sources"][claims["_claim_names"]["groups"]]["endpoint"].endswith("/getMemberObjects")


def test_instance_metadata_describes_the_machine(cloud: Cloud) -> None:
    def compute(machine: str) -> dict[str, str]:
        query = {"api-version": "2021-02-01"}
        path = f"/machines/{machine}/metadata/instance"
        found: dict[str, str] = read(cloud.answer("GET", path, headers=METADATA, query=query).response, 200)["compute"]
        return found

    web, known = compute("web-evil"), cloud.machine("web-evil")
    assert web["name"] == "web"
    assert web["resourceId"] == known["resource_id"]
    assert (web["subscriptionId"], web["resourceGroupName"]) == (known["subscription"], known["resource_group"])
    assert web["vmScaleSetName"] == ""
    assert compute("fleet-uniform")["vmScaleSetName"] == "fleet-uniform"
    assert compute("fleet-uniform")["name"] == "fleet-uniform_0"


def test_a_slash_before_the_query_means_nothing(cloud: Cloud) -> None:
    """The vendor's library for JavaScript puts one there."""
    query = {"api-version": "2018-02-01", "resource": MANAGEMENT}
    path = "/machines/web/metadata/identity/oauth2/token"
    answers = [cloud.answer("GET", asked, headers=METADATA, query=query).response for asked in (path, f"{path}/")]
    assert answers[0].status == 200
    assert answers[0].body == answers[1].body


def platform_token(cloud: Cloud, path: str, **headers: str) -> HttpResponse:
    query = {"api-version": "2019-08-01", "resource": MANAGEMENT}
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return cloud.answer("GET", f"/machines/shop/{path}", headers=sent, query=query).response


def test_app_service_wants_the_header_that_the_platform_gave(cloud: Cloud) -> None:
    secret = cloud.machine("shop")["platform_secret"]
    told = read(platform_token(cloud, "msi/token", x_identity_header=secret), 200)
    assert claims_of(told["access_token"])["xms_mirid"] == claimed(cloud.machine("shop")["resource_id"])
    for headers in ({}, {"x_identity_header": "wrong"}, {"metadata": "true"}):
        assert read(platform_token(cloud, "msi/token", **headers), 401)["error"] == "unauthorized"


def test_arc_wants_the_key_in_the_file_that_it_names(cloud: Cloud) -> None:
    machine = cloud.machine("shop")
    challenge = platform_token(cloud, "arc/token", metadata="true")
    assert challenge.status == 401
    assert challenge.headers["www-authenticate"] == f"Basic realm={machine['arc_key_file']}"
    assert machine["arc_key_file"] == "/var/opt/azcmagent/tokens/shop.key"
    right, wrong = f"Basic {machine['platform_secret']}", "Basic wrong"
    assert platform_token(cloud, "arc/token", metadata="true", authorization=right).status == 200
    assert platform_token(cloud, "arc/token", metadata="true", authorization=wrong).status == 401
    assert platform_token(cloud, "arc/token", authorization=right).status == 400
    assert cloud.create("edge", arc_key_file="/tmp/edge.key")["arc_key_file"] == "/tmp/edge.key"
