"""The table of Azure's error codes that decide about a refusal. Azure's texts are never repeated."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from ..errors import Code


@frozen(kw_only=True)
class ProviderCode:
    """A row: Azure's code, cloudid's code, and the reason."""

    name: str
    code: Code
    reason: str


_SECRET: Final = Code.PROVIDER_SECRET_REFUSED
_ASSERTION: Final = Code.PROVIDER_ASSERTION_REFUSED
_TENANT: Final = Code.PROVIDER_TENANT_UNKNOWN
_APPLICATION: Final = Code.PROVIDER_APPLICATION_UNKNOWN
_PRINCIPAL: Final = Code.PROVIDER_PRINCIPAL_DISABLED
_ACCESS: Final = Code.PROVIDER_ACCESS_BLOCKED
_RESOURCE: Final = Code.PROVIDER_RESOURCE_UNKNOWN
_SCOPE: Final = Code.PROVIDER_SCOPE_MISSING
_REGISTRATION: Final = Code.PROVIDER_NOT_REGISTERED
_POLICY: Final = Code.PROVIDER_POLICY_REFUSED
_QUOTA: Final = Code.PROVIDER_QUOTA_EXCEEDED

PROVIDER_CODES: Final = tuple(
    ProviderCode(name=name, code=code, reason=reason)
    for name, code, reason in (
        ("AADSTS7000215", _SECRET, "`client_secret` is wrong. Often, it is the secret's id instead of its value"),
        ("AADSTS7000222", _SECRET, "`client_secret` has expired"),
        ("AADSTS90002", _TENANT, "there is no tenant `tenant_id` in this `environment`"),
        ("AADSTS900021", _TENANT, "`tenant_id` is not the id of a tenant"),
        ("AADSTS900023", _TENANT, "`tenant_id` is neither an id nor a domain of a tenant"),
        ("AADSTS700016", _APPLICATION, "the tenant `tenant_id` has no app registration `client_id`"),
        ("AADSTS50027", _ASSERTION, "the identity token is malformed, or its signature is wrong"),
        ("AADSTS50166", _ASSERTION, "Azure could not fetch the documents of `issuer`"),
        ("AADSTS70021", _ASSERTION, "the app registration has no federated identity credential"),
        ("AADSTS700024", _ASSERTION, "the identity token has expired or is not valid yet"),
        ("AADSTS700027", _ASSERTION, "Azure does not know the key of the identity token, or the certificate"),
        ("AADSTS700211", _ASSERTION, "no federated identity credential has this issuer"),
        ("AADSTS700212", _ASSERTION, "no federated identity credential has this audience"),
        ("AADSTS700213", _ASSERTION, "no federated identity credential has this subject"),
        ("AADSTS7002137", _ASSERTION, "the subject of the federated identity credential is a template"),
        (
            "AADSTS7002138",
            _ASSERTION,
            "the subject of the federated identity credential differs in upper and lower case",
        ),
        ("AADSTS7000229", _PRINCIPAL, "the tenant has no service principal for the app registration `client_id`"),
        ("AADSTS7000112", _PRINCIPAL, "the app registration `client_id` is disabled"),
        ("AADSTS53000", _ACCESS, "a Conditional Access policy requires a compliant device"),
        ("AADSTS53003", _ACCESS, "a Conditional Access policy blocks the token"),
        ("AADSTS500011", _RESOURCE, "the tenant has no service principal for the token's resource"),
        ("ResourceGroupNotFound", _SCOPE, "the resource group of a scope was deleted"),
        ("SubscriptionNotFound", _SCOPE, "the subscription of a scope was deleted, or belongs to another tenant"),
        ("MissingSubscriptionRegistration", _REGISTRATION, "a resource provider is not registered in the subscription"),
        (
            "CredentialInvalidLifetimeAsPerAppPolicy",
            _POLICY,
            "the client secret or certificate would be valid for too long",
        ),
        ("CredentialTypeNotAllowedAsPerAppPolicy", _POLICY, "app registrations may not have this type of credential"),
        ("ServiceTreeValueMissing", _POLICY, "app registrations need a `service_management_reference`"),
        ("QuotaExceeded", _QUOTA, "a quota of the subscription is used up"),
        (
            "Directory_QuotaExceeded",
            _QUOTA,
            "the tenant, or one service principal, has reached its maximum of directory objects",
        ),
        (
            "Directory_ResourceSizeExceeded",
            _QUOTA,
            "the object has reached a limit, such as the maximum of client secrets of an app registration",
        ),
        ("RoleAssignmentLimitExceeded", _QUOTA, "the subscription has reached its maximum of role assignments"),
    )
)

CODES_BY_NAME: Final = {row.name: row.code for row in PROVIDER_CODES}

PERMISSION_CODES: Final = frozenset({"", "AuthorizationFailed", "Authorization_RequestDenied", "Forbidden"})
"""The codes of a 403 that reports a missing permission. Any other code is a rule or limit that no role changes."""
