"""The provider's own codes that decide what a refusal says, as one table. Its texts are never repeated."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from ..errors import Code


@frozen(kw_only=True)
class ProviderCode:
    """A row: the provider's code, ours, and why the provider says it."""

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
        ("AADSTS7000215", _SECRET, "`client_secret` is wrong; often it is the id of the secret in place of its value"),
        ("AADSTS7000222", _SECRET, "`client_secret` has expired"),
        ("AADSTS90002", _TENANT, "there is no tenant `tenant_id` in this `environment`"),
        ("AADSTS900021", _TENANT, "`tenant_id` is no id of a tenant"),
        ("AADSTS900023", _TENANT, "`tenant_id` is neither an id nor a domain of a tenant"),
        ("AADSTS700016", _APPLICATION, "there is no application `client_id` in the tenant `tenant_id`"),
        ("AADSTS50027", _ASSERTION, "the identity token is malformed, or its signature is wrong"),
        ("AADSTS50166", _ASSERTION, "the provider could not fetch the documents of `issuer`"),
        ("AADSTS70021", _ASSERTION, "the application has no federated identity credential"),
        ("AADSTS700024", _ASSERTION, "the identity token is expired or not valid yet"),
        ("AADSTS700027", _ASSERTION, "the provider does not know the key of the identity token, or the certificate"),
        ("AADSTS700211", _ASSERTION, "no federated identity credential has this issuer"),
        ("AADSTS700212", _ASSERTION, "no federated identity credential has this audience"),
        ("AADSTS700213", _ASSERTION, "no federated identity credential has this subject"),
        ("AADSTS7002137", _ASSERTION, "the subject of the federated identity credential is a template"),
        ("AADSTS7002138", _ASSERTION, "the subject of the federated identity credential differs by case only"),
        ("AADSTS7000229", _PRINCIPAL, "the tenant has no service principal for the application `client_id`"),
        ("AADSTS7000112", _PRINCIPAL, "the application `client_id` is disabled"),
        ("AADSTS53000", _ACCESS, "a Conditional Access policy requires a compliant device"),
        ("AADSTS53003", _ACCESS, "a Conditional Access policy blocks the token"),
        ("AADSTS500011", _RESOURCE, "the tenant has no service principal for the resource of the token"),
        ("ResourceGroupNotFound", _SCOPE, "the resource group of a scope is gone"),
        ("SubscriptionNotFound", _SCOPE, "the subscription of a scope is gone, or belongs to another tenant"),
        ("MissingSubscriptionRegistration", _REGISTRATION, "a resource provider is not registered in the subscription"),
        ("CredentialInvalidLifetimeAsPerAppPolicy", _POLICY, "the secret or certificate would live too long"),
        ("CredentialTypeNotAllowedAsPerAppPolicy", _POLICY, "app registrations may not get this type of credential"),
        ("ServiceTreeValueMissing", _POLICY, "app registrations need a `service_management_reference`"),
        ("QuotaExceeded", _QUOTA, "a quota of the subscription is used up"),
        ("Directory_QuotaExceeded", _QUOTA, "the directory, or what one principal may make in it, is full"),
        ("Directory_ResourceSizeExceeded", _QUOTA, "the object is full: an application has as many secrets as it may"),
        ("RoleAssignmentLimitExceeded", _QUOTA, "the subscription has as many role assignments as it may"),
    )
)

CODES_BY_NAME: Final = {row.name: row.code for row in PROVIDER_CODES}

PERMISSION_CODES: Final = frozenset({"", "AuthorizationFailed", "Authorization_RequestDenied", "Forbidden"})
"""The codes of a 403 that reports a missing permission. Any other code is a rule or a limit, which no role lifts."""
