"""The situation of each exchange of the tables: how a simulated cloud is brought to answer in that way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from .simulated import (
    ABSENT,
    AUTHORIZATION,
    EXCHANGE,
    FEDERATED,
    ISSUER,
    NEW,
    READER,
    SUBJECT,
    Answer,
    Cloud,
    certificate,
)

Situation: TypeAlias = Callable[[Cloud], Answer]

UNREACHABLE: Final = "http://127.0.0.1:1"
UPSERT: Final = {"prefer": "create-if-missing"}
IDENTITIES: Final = "/providers/Microsoft.ManagedIdentity/userAssignedIdentities"
COMPUTE: Final = "/providers/Microsoft.Compute"
ROLES: Final = "/roleManagement/directory"


def _expired_secret(cloud: Cloud) -> Answer:
    cloud.ask("POST", "/simulator/clock", {"advance": 200 * 86_400})
    return cloud.sign_in()


def _without_principal(cloud: Cloud) -> Answer:
    made = cloud.new_application()
    secret = cloud.graph("POST", f"/applications/{made['id']}/addPassword", {"passwordCredential": {}}).body
    return cloud.sign_in(client_id=made["appId"], client_secret=secret["secretText"])


def _assertion(cloud: Cloud, issuer: str = ISSUER, **claims: Any) -> Answer:
    cloud.federate(issuer)
    return cloud.assert_identity({"iss": ISSUER, "sub": SUBJECT, "aud": EXCHANGE, **claims})


def _old_token(cloud: Cloud, method: str, tenant: str) -> Answer:
    form = {"grant_type": "client_credentials", "resource": "https://management.azure.com/"}
    proof = {name: cloud.service[name] for name in ("client_id", "client_secret")}
    return cloud.ask(method, f"/login/{tenant}/oauth2/token", {**form, **proof})


TOKENS: Final[Mapping[str, Situation]] = {
    "POST login /{}/oauth2/v2.0/token 200": lambda c: c.sign_in(),
    "POST login /{}/oauth2/v2.0/token 401 AADSTS7000218": lambda c: c.sign_in(client_secret=None),
    "POST login /{}/oauth2/v2.0/token 401 AADSTS7000215": lambda c: c.sign_in(client_secret="wrong"),
    "POST login /{}/oauth2/v2.0/token 401 AADSTS7000222": _expired_secret,
    "POST login /{}/oauth2/v2.0/token 401 AADSTS7000229": _without_principal,
    "POST login /{}/oauth2/v2.0/token 400 AADSTS700016": lambda c: c.sign_in(client_id=ABSENT),
    "POST login /{}/oauth2/v2.0/token 400 AADSTS90002": lambda c: c.sign_in(tenant=ABSENT),
    "POST login /{}/oauth2/v2.0/token 401 AADSTS50027": lambda c: c.sign_in(
        client_secret=None,
        client_assertion_type="urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        client_assertion="x",
    ),
    "POST login /{}/oauth2/v2.0/token 401 AADSTS50166": lambda c: _assertion(c, UNREACHABLE, iss=UNREACHABLE),
    "POST login /{}/oauth2/v2.0/token 401 AADSTS70021": lambda c: c.assert_identity({"iss": ISSUER, "sub": "s"}),
    "POST login /{}/oauth2/v2.0/token 401 AADSTS700024": lambda c: _assertion(c, exp=1),
    "POST login /{}/oauth2/v2.0/token 401 AADSTS700027": lambda c: c.assert_identity(
        {"iss": c.service["client_id"], "sub": c.service["client_id"]}, {"x5t": "x"}
    ),
    "POST login /{}/oauth2/v2.0/token 401 AADSTS700211": lambda c: _assertion(c, iss="https://other.example"),
    "POST login /{}/oauth2/v2.0/token 401 AADSTS700212": lambda c: _assertion(c, aud="other"),
    "POST login /{}/oauth2/v2.0/token 401 AADSTS700213": lambda c: _assertion(c, sub="other"),
    "POST login /{}/oauth2/v2.0/token 401 AADSTS7002137": lambda c: _assertion(c, sub="/eid1/c/pub/t/x"),
    "POST login /{}/oauth2/v2.0/token 401 AADSTS7002138": lambda c: _assertion(c, sub=SUBJECT.upper()),
    "GET login /{}/v2.0/.well-known/openid-configuration 200": lambda c: c.ask(
        "GET", f"/login/{c.tenant}/v2.0/.well-known/openid-configuration"
    ),
    "GET login /{}/.well-known/openid-configuration 200": lambda c: c.ask(
        "GET", f"/login/{c.tenant}/.well-known/openid-configuration"
    ),
    "GET login /{}/discovery/v2.0/keys 200": lambda c: c.ask("GET", f"/login/{c.tenant}/discovery/v2.0/keys"),
    "GET login /{}/discovery/keys 200": lambda c: c.ask("GET", "/login/common/discovery/keys"),
    "POST login /{}/oauth2/token 200": lambda c: _old_token(c, "POST", c.tenant),
    "GET login /{}/oauth2/token 200": lambda c: _old_token(c, "GET", c.tenant),
    "GET login /{}/oauth2/token 400 AADSTS90002": lambda c: _old_token(c, "GET", ABSENT),
}


def _named(cloud: Cloud, **headers: str) -> Answer:
    body = {"displayName": "Display name", "signInAudience": "AzureADMyOrg"}
    return cloud.graph("PATCH", "/applications(uniqueName='app-1')", body, **headers)


def _then(first: Callable[[Cloud], Any], situation: Situation) -> Situation:
    """Do something before."""

    def both(cloud: Cloud) -> Answer:
        first(cloud)
        return situation(cloud)

    return both


def _app(cloud: Cloud, suffix: str = "") -> str:
    return f"/applications/{cloud.application['id']}{suffix}"


def _deleted(cloud: Cloud) -> Answer:
    cloud.graph("DELETE", _app(cloud))
    return cloud.graph("DELETE", f"/directory/deletedItems/{cloud.application['id']}")


def _two_passwords(cloud: Cloud) -> Answer:
    cloud.ask("POST", "/simulator/behaviour", {"write_conflict": 60})
    cloud.graph("POST", _app(cloud, "/addPassword"), {"passwordCredential": {}})
    return cloud.graph("POST", _app(cloud, "/addPassword"), {"passwordCredential": {}})


def _sent_back(cloud: Cloud, **changes: Any) -> Answer:
    """Send back what the list shows, changed."""
    shown = cloud.application["keyCredentials"][0]
    return cloud.graph("PATCH", _app(cloud), {"keyCredentials": [{**shown, **changes}]})


APPLICATIONS: Final[Mapping[str, Situation]] = {
    "GET graph /v1.0/applications?$filter=tags/any(t:t eq '{}') 200": lambda c: c.graph(
        "GET", "/applications?$filter=tags/any(t:t eq 'made')"
    ),
    "GET graph /v1.0/applications?$filter=tags/any(t:startswith(t,'{}')) 200": lambda c: c.graph(
        "GET", "/applications?$filter=tags/any(t:startswith(t,'ma'))"
    ),
    "GET graph /v1.0/applications?$filter=startswith(displayName,'{}') 200": _then(
        _app, lambda c: c.graph("GET", "/applications?$filter=startswith(displayName,'made')")
    ),
    "GET graph /v1.0/applications?$filter=appId eq '{}' 200": lambda c: c.graph(
        "GET", f"/applications?$filter=appId eq '{c.application['appId']}'"
    ),
    "GET graph /v1.0/applications?$filter=appId eq '{}'&$select=Id 200": lambda c: c.graph(
        "GET", f"/applications?$filter=appId eq '{c.application['appId']}'&$select=Id"
    ),
    "GET graph /v1.0/applications?$filter=displayName eq '{}' 200": lambda c: c.graph(
        "GET", f"/applications?$filter=displayName eq '{c.application['displayName']}'"
    ),
    "GET graph /v1.0/applications/{}?$select=Id 200": lambda c: c.graph("GET", _app(c, "?$select=Id")),
    "GET graph /v1.0/applications/{} 200": lambda c: c.graph("GET", _app(c)),
    "GET graph /v1.0/applications/{} 404 Request_ResourceNotFound": lambda c: c.graph("GET", f"/applications/{ABSENT}"),
    "POST graph /v1.0/applications 201": lambda c: c.graph(
        "POST",
        "/applications",
        {
            "displayName": "x",
            "keyCredentials": [certificate(keyId=NEW)],
            "web": {"homePageUrl": "https://x.example", "redirectUris": ["https://x.example/r"]},
        },
    ),
    "POST graph /v1.0/applications 400 Request_BadRequest": lambda c: c.graph(
        "POST", "/applications", {"displayName": "x", "passwordCredentials": [{"secretText": "x"}]}
    ),
    "PATCH graph /v1.0/applications/{} 204": lambda c: c.graph("PATCH", _app(c), {"signInAudience": "AzureADMyOrg"}),
    "PATCH graph /v1.0/applications(uniqueName='{}') 201": lambda c: _named(c, **UPSERT),
    "PATCH graph /v1.0/applications(uniqueName='{}') 204": lambda c: (_named(c, **UPSERT), _named(c, **UPSERT))[1],
    "GET graph /v1.0/applications(uniqueName='{}') 200": _then(
        lambda c: _named(c, **UPSERT), lambda c: c.graph("GET", "/applications(uniqueName='app-1')")
    ),
    "GET graph /v1.0/applications(uniqueName='{}') 404 Request_ResourceNotFound": lambda c: c.graph(
        "GET", "/applications(uniqueName='absent')"
    ),
    "DELETE graph /v1.0/applications/{} 204": lambda c: c.graph("DELETE", _app(c)),
    "DELETE graph /v1.0/applications/{} 404 Request_ResourceNotFound": lambda c: c.graph(
        "DELETE", f"/applications/{ABSENT}"
    ),
    "DELETE graph /v1.0/directory/deletedItems/{} 204": _deleted,
    "DELETE graph /v1.0/directory/deletedItems/{} 404 Request_ResourceNotFound": lambda c: c.graph(
        "DELETE", f"/directory/deletedItems/{ABSENT}"
    ),
    "PATCH graph /v1.0/applications/{} 400 Request_BadRequest": lambda c: _sent_back(c, customKeyIdentifier=None),
    "POST graph /v1.0/applications/{}/addPassword 200": lambda c: c.graph(
        "POST", _app(c, "/addPassword"), {"passwordCredential": {"displayName": "x"}}
    ),
    "POST graph /v1.0/applications/{}/microsoft.graph.addPassword 200": lambda c: c.graph(
        "POST",
        _app(c, "/microsoft.graph.addPassword"),
        {"passwordCredential": {"keyId": NEW, "startDateTime": "2024-01-01T00:00:00+08:00"}},
    ),
    "POST graph /v1.0/applications/{}/addPassword 409 Directory_ConcurrencyViolation": _two_passwords,
    "POST graph /v1.0/applications/{}/addPassword 404 Request_ResourceNotFound": lambda c: c.graph(
        "POST", f"/applications/{ABSENT}/addPassword", {"passwordCredential": {}}
    ),
    "POST graph /v1.0/applications/{}/removePassword 204": lambda c: c.graph(
        "POST", _app(c, "/removePassword"), {"keyId": c.application["passwordCredentials"][0]["keyId"]}
    ),
    "POST graph /v1.0/applications/{}/removePassword 400 Request_BadRequest": lambda c: c.graph(
        "POST", _app(c, "/removePassword"), {"keyId": ABSENT}
    ),
    "POST graph /v1.0/applications/{}/removePassword 404 Request_ResourceNotFound": lambda c: c.graph(
        "POST", f"/applications/{ABSENT}/removePassword", {"keyId": ABSENT}
    ),
}


def _federated(cloud: Cloud, method: str, body: Any = None, *, suffix: bool = True) -> Answer:
    path = _app(cloud, "/federatedIdentityCredentials")
    made = cloud.graph("POST", path, FEDERATED)
    return cloud.graph(method, f"{path}/{made.body['id']}" if suffix else path, body)


FEDERATED_CREDENTIALS: Final[Mapping[str, Situation]] = {
    "POST graph /v1.0/applications/{}/federatedIdentityCredentials 201": lambda c: c.graph(
        "POST", _app(c, "/federatedIdentityCredentials"), FEDERATED
    ),
    "POST graph /v1.0/applications/{}/federatedIdentityCredentials 409 Request_MultipleObjectsWithSameKeyValue": (
        lambda c: _federated(c, "POST", {**FEDERATED, "subject": "other"}, suffix=False)
    ),
    "GET graph /v1.0/applications/{}/federatedIdentityCredentials 200": lambda c: _federated(c, "GET", suffix=False),
    "GET graph /v1.0/applications/{}/federatedIdentityCredentials 404 Request_ResourceNotFound": lambda c: c.graph(
        "GET", f"/applications/{ABSENT}/federatedIdentityCredentials"
    ),
    "GET graph /v1.0/applications/{}/federatedIdentityCredentials/{} 200": lambda c: _federated(c, "GET"),
    "PATCH graph /v1.0/applications/{}/federatedIdentityCredentials/{} 204": lambda c: _federated(
        c, "PATCH", {"subject": "other"}
    ),
    "DELETE graph /v1.0/applications/{}/federatedIdentityCredentials/{} 204": lambda c: _federated(c, "DELETE"),
    "DELETE graph /v1.0/applications/{}/federatedIdentityCredentials/{} 404 Request_ResourceNotFound": lambda c: (
        c.graph("DELETE", _app(c, f"/federatedIdentityCredentials/{ABSENT}"))
    ),
}


def _too_early(cloud: Cloud) -> Answer:
    """Create principals before their applications have spread, until the answer is the one of the three that it is."""
    cloud.ask("POST", "/simulator/behaviour", {"delays": {"writes": 60}})
    for _ in range(50):
        made = cloud.new_application()
        answer = cloud.graph("POST", "/servicePrincipals", {"appId": made["appId"]})
        if answer.status == 403:
            break
    return answer


def _principal(cloud: Cloud, method: str, body: Any = None, **headers: str) -> Answer:
    return cloud.graph(method, f"/servicePrincipals(appId='{cloud.application['appId']}')", body, **headers)


def _made(cloud: Cloud) -> Any:
    return cloud.principal


PRINCIPALS: Final[Mapping[str, Situation]] = {
    "GET graph /v1.0/servicePrincipals?$filter=tags/any(t:t eq '{}') 200": lambda c: c.graph(
        "GET", "/servicePrincipals?$filter=tags/any(t:t eq 'made')"
    ),
    "GET graph /v1.0/servicePrincipals?$filter=tags/any(t:startswith(t,'{}')) 200": lambda c: c.graph(
        "GET", "/servicePrincipals?$filter=tags/any(t:startswith(t,'ma'))"
    ),
    "GET graph /v1.0/servicePrincipals?$filter=displayName eq '{}' 200": lambda c: c.graph(
        "GET", f"/servicePrincipals?$filter=displayName eq '{c.principal['displayName']}'"
    ),
    "GET graph /v1.0/servicePrincipals?$filter=startswith(displayName,'{}') 200": lambda c: c.graph(
        "GET", f"/servicePrincipals?$filter=startswith(displayName,'{c.principal['displayName'][:4]}')"
    ),
    "GET graph /v1.0/servicePrincipals?$filter=appId eq '{}' 200": lambda c: c.graph(
        "GET", f"/servicePrincipals?$filter=appId eq '{c.principal['appId']}'"
    ),
    "GET graph /v1.0/servicePrincipals?$filter=servicePrincipalNames/any(c:c eq '{}') 200": lambda c: c.graph(
        "GET", f"/servicePrincipals?$filter=servicePrincipalNames/any(c:c eq '{c.principal['appId']}')"
    ),
    "POST graph /v1.0/servicePrincipals 201": lambda c: c.graph(
        "POST", "/servicePrincipals", {"appId": c.application["appId"], "accountEnabled": True}
    ),
    "POST graph /v1.0/servicePrincipals 409 Request_MultipleObjectsWithSameKeyValue": lambda c: c.graph(
        "POST", "/servicePrincipals", {"appId": c.principal["appId"]}
    ),
    "POST graph /v1.0/servicePrincipals 403 Authorization_RequestDenied": _too_early,
    "POST graph /v1.0/servicePrincipals 400 Request_BadRequest": lambda c: c.graph(
        "POST", "/servicePrincipals", {"appId": ABSENT}
    ),
    "PATCH graph /v1.0/servicePrincipals(appId='{}') 201": lambda c: _principal(
        c, "PATCH", {"displayName": "x"}, **UPSERT
    ),
    "PATCH graph /v1.0/servicePrincipals(appId='{}') 204": _then(
        _made, lambda c: _principal(c, "PATCH", {"displayName": "x"}, **UPSERT)
    ),
    "GET graph /v1.0/servicePrincipals(appId='{}') 200": _then(_made, lambda c: _principal(c, "GET")),
    "GET graph /v1.0/servicePrincipals(appId='{}') 404 Request_ResourceNotFound": lambda c: _principal(c, "GET"),
    "GET graph /v1.0/servicePrincipals/{} 200": lambda c: c.graph("GET", f"/servicePrincipals/{c.api['id']}"),
    "GET graph /v1.0/servicePrincipals/{} 404 Request_ResourceNotFound": lambda c: c.graph(
        "GET", f"/servicePrincipals/{ABSENT}"
    ),
    "DELETE graph /v1.0/servicePrincipals/{} 204": lambda c: c.graph(
        "DELETE", f"/servicePrincipals/{c.principal['id']}"
    ),
    "DELETE graph /v1.0/servicePrincipals/{} 404 Request_ResourceNotFound": lambda c: c.graph(
        "DELETE", f"/servicePrincipals/{ABSENT}"
    ),
}


def _groups(cloud: Cloud, condition: str) -> Answer:
    return cloud.graph("GET", f"/groups?$filter={condition}")


def _new_group(cloud: Cloud) -> Answer:
    named = {"displayName": "made", "mailNickname": "made", "description": "d"}
    return cloud.graph("POST", "/groups", {**named, "mailEnabled": False, "securityEnabled": True})


def _ids(cloud: Cloud, object_id: str, name: str, body: Any) -> Answer:
    return cloud.graph("POST", f"/directoryObjects/{object_id}/{name}", body)


ALL_GROUPS: Final = {"securityEnabledOnly": False}
GROUPS: Final[Mapping[str, Situation]] = {
    "GET graph /v1.0/groups?$filter=displayName eq '{}' and mailNickname eq '{}' 200": _then(
        _new_group, lambda c: _groups(c, "displayName eq 'made' and mailNickname eq 'made'")
    ),
    "GET graph /v1.0/groups?$filter=startswith(displayName,'{}') 200": lambda c: _groups(
        c, "startswith(displayName,'web')"
    ),
    "GET graph /v1.0/groups?$filter=displayName eq '{}' 200": lambda c: _groups(c, "displayName eq 'web-machines'"),
    "POST graph /v1.0/groups 201": _new_group,
    "GET graph /v1.0/groups/{} 200": lambda c: c.graph("GET", f"/groups/{c.group}"),
    "GET graph /v1.0/groups/{} 404 Request_ResourceNotFound": lambda c: c.graph("GET", f"/groups/{ABSENT}"),
    "DELETE graph /v1.0/groups/{} 204": lambda c: c.graph("DELETE", f"/groups/{c.group}"),
    "GET graph /v1.0/groups/{}/members 200": _then(
        lambda c: c.member, lambda c: c.graph("GET", f"/groups/{c.group}/members")
    ),
    "POST graph /v1.0/groups/{}/members/$ref 204": lambda c: c.graph(
        "POST", f"/groups/{c.group}/members/$ref", c.link(c.principal["id"])
    ),
    "POST graph /v1.0/groups/{}/members/$ref 400 Request_BadRequest": lambda c: c.graph(
        "POST", f"/groups/{c.group}/members/$ref", c.link(c.member)
    ),
    "POST graph /v1.0/groups/{}/members/$ref 404 Request_ResourceNotFound": lambda c: c.graph(
        "POST", f"/groups/{ABSENT}/members/$ref", c.link(c.principal["id"])
    ),
    "DELETE graph /v1.0/groups/{}/members/{}/$ref 204": lambda c: c.graph(
        "DELETE", f"/groups/{c.group}/members/{c.member}/$ref"
    ),
    "DELETE graph /v1.0/groups/{}/members/{}/$ref 404 Request_ResourceNotFound": lambda c: c.graph(
        "DELETE", f"/groups/{c.group}/members/{ABSENT}/$ref"
    ),
    "GET graph /v1.0/groups/{}/members/{}/$ref 200": lambda c: c.graph(
        "GET", f"/groups/{c.group}/members/{c.member}/$ref"
    ),
    "GET graph /v1.0/groups/{}/members/{}/$ref 404 Request_ResourceNotFound": lambda c: c.graph(
        "GET", f"/groups/{c.group}/members/{ABSENT}/$ref"
    ),
    "POST graph /v1.0/groups/{}/getMemberGroups 200": lambda c: c.graph(
        "POST", f"/groups/{c.world['groups'][1]['id']}/getMemberGroups", ALL_GROUPS
    ),
    "POST graph /v1.0/directoryObjects/{}/getMemberGroups 200": lambda c: _ids(
        c, c.member, "getMemberGroups", ALL_GROUPS
    ),
    "POST graph /v1.0/directoryObjects/{}/getMemberGroups 404 Request_ResourceNotFound": lambda c: _ids(
        c, ABSENT, "getMemberGroups", ALL_GROUPS
    ),
    "POST graph /v1.0/directoryObjects/{}/checkMemberGroups 200": lambda c: _ids(
        c, c.member, "checkMemberGroups", {"groupIds": [c.group]}
    ),
}


def _granted(cloud: Cloud, path: str, body: Mapping[str, str]) -> Answer:
    return cloud.graph("POST", path, body)


def _app_role(cloud: Cloud, **changes: str) -> Answer:
    return _granted(cloud, f"/servicePrincipals/{cloud.api['id']}/appRoleAssignedTo", {**cloud.app_role, **changes})


def _directory_role(cloud: Cloud, **changes: str) -> Answer:
    return _granted(cloud, f"{ROLES}/roleAssignments", {**cloud.directory_role, **changes})


ASSIGNED_TO: Final = "graph /v1.0/servicePrincipals/{}/appRoleAssignedTo"
DIRECTORY_ROLES: Final = "graph /v1.0/roleManagement/directory"
GRANTS: Final[Mapping[str, Situation]] = {
    f"POST {ASSIGNED_TO} 201": _app_role,
    f"POST {ASSIGNED_TO} 400 Request_BadRequest": lambda c: _app_role(c, principalId=ABSENT),
    f"DELETE {ASSIGNED_TO}/{{}} 204": lambda c: c.graph(
        "DELETE", f"/servicePrincipals/{c.api['id']}/appRoleAssignedTo/{_app_role(c).body['id']}"
    ),
    f"DELETE {ASSIGNED_TO}/{{}} 404 Request_ResourceNotFound": lambda c: c.graph(
        "DELETE", f"/servicePrincipals/{c.api['id']}/appRoleAssignedTo/absent"
    ),
    "GET graph /v1.0/servicePrincipals/{}/appRoleAssignments 200": _then(
        _app_role, lambda c: c.graph("GET", f"/servicePrincipals/{c.principal['id']}/appRoleAssignments")
    ),
    "GET graph /v1.0/servicePrincipals/{}/appRoleAssignments 404 Request_ResourceNotFound": lambda c: c.graph(
        "GET", f"/servicePrincipals/{ABSENT}/appRoleAssignments"
    ),
    f"GET {DIRECTORY_ROLES}/roleDefinitions/{{}} 200": lambda c: c.graph(
        "GET", f"{ROLES}/roleDefinitions/{c.directory_role['roleDefinitionId']}"
    ),
    f"GET {DIRECTORY_ROLES}/roleDefinitions/{{}} 404 Request_ResourceNotFound": lambda c: c.graph(
        "GET", f"{ROLES}/roleDefinitions/{ABSENT}"
    ),
    f"GET {DIRECTORY_ROLES}/roleDefinitions?$filter=displayName eq '{{}}' 200": lambda c: c.graph(
        "GET", f"{ROLES}/roleDefinitions?$filter=displayName eq 'Directory Readers'"
    ),
    f"POST {DIRECTORY_ROLES}/roleAssignments 201": _directory_role,
    f"POST {DIRECTORY_ROLES}/roleAssignments 400 Request_BadRequest": _then(_directory_role, _directory_role),
    f"POST {DIRECTORY_ROLES}/roleAssignments 404 Request_ResourceNotFound": lambda c: _directory_role(
        c, principalId=ABSENT
    ),
    f"GET {DIRECTORY_ROLES}/roleAssignments?$filter=principalId eq '{{}}' 200": _then(
        _directory_role,
        lambda c: c.graph("GET", f"{ROLES}/roleAssignments?$filter=principalId eq '{c.principal['id']}'"),
    ),
    f"DELETE {DIRECTORY_ROLES}/roleAssignments/{{}} 204": lambda c: c.graph(
        "DELETE", f"{ROLES}/roleAssignments/{_directory_role(c).body['id']}"
    ),
    f"DELETE {DIRECTORY_ROLES}/roleAssignments/{{}} 404 Request_ResourceNotFound": lambda c: c.graph(
        "DELETE", f"{ROLES}/roleAssignments/absent"
    ),
}


def _assigned(cloud: Cloud, method: str, name: str = NEW, body: Any = None) -> Answer:
    return cloud.arm(method, f"{cloud.scope}{AUTHORIZATION}/roleAssignments/{name}", body)


def _assign(cloud: Cloud, name: str = NEW, **changes: str) -> Answer:
    body = {"properties": {**cloud.assignment["properties"], **changes}}
    return _assigned(cloud, "PUT", name, body)


def _definitions(cloud: Cloud, suffix: str, scope: str = "") -> Answer:
    return cloud.arm("GET", f"{scope or cloud.scope}{AUTHORIZATION}/roleDefinitions{suffix}")


ASSIGNMENTS: Final = "arm {scope}/providers/Microsoft.Authorization/roleAssignments"
DEFINITIONS: Final = "arm {scope}/providers/Microsoft.Authorization/roleDefinitions"
AUTHORIZATIONS: Final[Mapping[str, Situation]] = {
    f"PUT {ASSIGNMENTS}/{{}} 201": _assign,
    f"PUT {ASSIGNMENTS}/{{}} 200": _then(_assign, _assign),
    f"PUT {ASSIGNMENTS}/{{}} 400 PrincipalNotFound": lambda c: _assign(c, principalId=ABSENT),
    f"PUT {ASSIGNMENTS}/{{}} 409 RoleAssignmentExists": _then(_assign, lambda c: _assign(c, ABSENT)),
    f"GET {ASSIGNMENTS} 200": _then(_assign, lambda c: c.arm("GET", f"{c.scope}{AUTHORIZATION}/roleAssignments")),
    f"GET {ASSIGNMENTS}?$filter=principalId eq '{{}}' 200": _then(
        _assign,
        lambda c: c.arm(
            "GET", f"{c.scope}{AUTHORIZATION}/roleAssignments?$filter=principalId eq '{c.principal['id']}'"
        ),
    ),
    f"GET {ASSIGNMENTS}/{{}} 200": _then(_assign, lambda c: _assigned(c, "GET")),
    f"GET {ASSIGNMENTS}/{{}} 404 RoleAssignmentNotFound": lambda c: _assigned(c, "GET", ABSENT),
    f"DELETE {ASSIGNMENTS}/{{}} 200": _then(_assign, lambda c: _assigned(c, "DELETE")),
    f"DELETE {ASSIGNMENTS}/{{}} 204": lambda c: _assigned(c, "DELETE", ABSENT),
    f"GET {DEFINITIONS}?$filter=roleName eq '{{}}' 200": lambda c: _definitions(c, "?$filter=roleName eq 'Reader'"),
    f"GET {DEFINITIONS}?$filter=roleName eq '{{}}' 404 ResourceGroupNotFound": lambda c: _definitions(
        c, "?$filter=roleName eq 'Reader'", f"/subscriptions/{c.subscription}/resourceGroups/absent"
    ),
    f"GET {DEFINITIONS} 200": lambda c: _definitions(c, "", f"/subscriptions/{c.subscription}"),
    f"GET {DEFINITIONS}/{{}} 200": lambda c: _definitions(c, f"/{READER}"),
    f"GET {DEFINITIONS}/{{}} 404 RoleDefinitionDoesNotExist": lambda c: _definitions(c, f"/{ABSENT}"),
    f"PUT {DEFINITIONS}/{{}} 201": lambda c: c.arm(
        "PUT", f"/subscriptions/{c.subscription}{AUTHORIZATION}/roleDefinitions/{NEW}", c.definition
    ),
    "GET arm {scope}/providers/Microsoft.Authorization/permissions 200": lambda c: c.arm(
        "GET", f"{c.scope}{AUTHORIZATION}/permissions"
    ),
}


def _in_subscription(cloud: Cloud, path: str = "") -> Answer:
    return cloud.arm("GET", f"/subscriptions/{cloud.subscription}{path}")


def _listed(cloud: Cloud, path: str) -> Answer:
    """The folder that a resource is in."""
    return cloud.arm("GET", path.rpartition("/")[0])


GROUP: Final = "arm /subscriptions/{}/resourceGroups/{}"
MACHINE: Final = f"GET {GROUP}{COMPUTE}/virtualMachines"
SCALE_SET: Final = f"GET {GROUP}{COMPUTE}/virtualMachineScaleSets/{{}}"
RESOURCES: Final[Mapping[str, Situation]] = {
    f"{MACHINE}/{{}} 200": lambda c: c.arm("GET", c.machine()["resource_id"]),
    f"{MACHINE}/{{}} 404 ResourceNotFound": lambda c: c.arm("GET", f"{c.machine()['resource_id']}-absent"),
    f"{MACHINE} 200": lambda c: _listed(c, c.machine()["resource_id"]),
    "GET arm /subscriptions/{}/providers/Microsoft.Compute/virtualMachines 200": lambda c: _in_subscription(
        c, f"{COMPUTE}/virtualMachines"
    ),
    f"{SCALE_SET} 200": lambda c: c.arm("GET", c.machine("fleet-uniform")["resource_id"]),
    f"{SCALE_SET}/virtualMachines 200": lambda c: _listed(c, c.machine("fleet-uniform")["instance_id"]),
    f"{SCALE_SET}/virtualMachines/{{}} 200": lambda c: c.arm("GET", c.machine("fleet-uniform")["instance_id"]),
    f"{SCALE_SET}/virtualMachines/{{}}?$expand=instanceView 200": lambda c: c.arm(
        "GET", f"{c.machine('fleet-uniform')['instance_id']}?$expand=instanceView"
    ),
    "GET arm /subscriptions/{}/providers/Microsoft.Compute/virtualMachineScaleSets 200": lambda c: _in_subscription(
        c, f"{COMPUTE}/virtualMachineScaleSets"
    ),
    f"GET {GROUP}{IDENTITIES}/{{}} 200": lambda c: c.arm("GET", c.identity),
    f"GET {GROUP}{IDENTITIES}/{{}} 404 ResourceNotFound": lambda c: c.arm("GET", f"{c.identity}-absent"),
    f"GET {GROUP}{IDENTITIES} 200": lambda c: _listed(c, c.identity),
    f"GET {GROUP} 200": lambda c: c.arm("GET", c.scope),
    f"GET {GROUP}/providers/{{}}/{{}}/{{}} 200": lambda c: c.arm("GET", c.machine("shop")["resource_id"]),
    "GET arm /subscriptions/{}/providers/{} 200": lambda c: _in_subscription(c, "/providers/Microsoft.Web"),
    "GET arm /subscriptions 200": lambda c: c.arm("GET", "/subscriptions"),
    "GET arm /subscriptions 401 ExpiredAuthenticationToken": lambda c: c.arm(
        "GET", "/subscriptions", None, c.expired()
    ),
    "GET arm /subscriptions/{} 200": _in_subscription,
    "ANY arm /{} 404 ResourceGroupNotFound": lambda c: _in_subscription(
        c, "/resourceGroups/absent/providers/Microsoft.Web/sites/x"
    ),
    "ANY arm /{} 404 ResourceNotFound": lambda c: c.arm("GET", f"{c.scope}/providers/Microsoft.Web/sites/absent"),
    "ANY arm /{} 404 InvalidResourceType": lambda c: c.arm("GET", f"{c.scope}/providers/Microsoft.Nothing/things/x"),
    "ANY arm /{} 403 AuthorizationFailed": lambda c: c.arm(
        "GET", c.scope, None, c.stranger("https://management.azure.com/.default")
    ),
}

SITUATIONS: Final[Mapping[str, Situation]] = {
    **TOKENS,
    **APPLICATIONS,
    **FEDERATED_CREDENTIALS,
    **PRINCIPALS,
    **GROUPS,
    **GRANTS,
    **AUTHORIZATIONS,
    **RESOURCES,
}

NOT_SIMULATED: Final[Mapping[str, str]] = {
    "POST login /{}/oauth2/v2.0/token 400 AADSTS50107": "an assertion in SAML",
    "GET arm /providers/Microsoft.Management/operationResults/create/managementGroups/mgmt_grp000003 400 BadRequest": (
        "the creation of management groups"
    ),
    f"{MACHINE}/{{}} 404 NotFound": "a machine that is being created",
    **{
        f"{method} {GROUP}{IDENTITIES}/{{}}{suffix} {status}": "identities are made by the control API"
        for suffix, answers in {
            "": (("PUT", 201), ("PUT", 200), ("DELETE", 200)),
            "/federatedIdentityCredentials": (("GET", 200),),
            "/federatedIdentityCredentials/{}": (("PUT", 201), ("PUT", 200), ("GET", 200), ("DELETE", 200)),
        }.items()
        for method, status in answers
    },
    **{
        f"ANY arm /{{}} {answer}": "calls of providers that the product does not use"
        for answer in (
            "409 OperationNotAllowed",
            "504 GatewayTimeout",
            "500 InternalServerError",
            "409 MissingSubscriptionRegistration",
            "404 NotFound",
            "409 QuotaExceeded",
            "429 429",
            "403 LinkedAuthorizationFailed",
            "404 ResourceTypeNotSupported",
            "404 ParentResourceNotFound",
            "400 InvalidResourceGroup",
        )
    },
}
"""Exchanges that the simulated cloud has no part in, and why. Those of errors are replayed to the service."""
