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
        ("QuotaExceeded", _QUOTA, "a quota of the subscription is used up"),
        ("Directory_QuotaExceeded", _QUOTA, "the directory, or what one principal may make in it, is full"),
        ("RoleAssignmentLimitExceeded", _QUOTA, "the subscription has as many role assignments as it may"),
    )
)

CODES_BY_NAME: Final = {row.name: row.code for row in PROVIDER_CODES}
