"""Members of applications, principals and groups that have no effect here: their values if a client gives none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..engine.requests import Json
from ..engine.shapes import NOTHING, Members, Shape

_INFO: Final = dict.fromkeys(("logoUrl", "marketingUrl", "privacyStatementUrl", "supportUrl", "termsOfServiceUrl"))
_PUBLISHER: Final = dict.fromkeys(("displayName", "verifiedPublisherId", "addedDateTime"))
_IMPLICIT: Final = {"enableAccessTokenIssuance": False, "enableIdTokenIssuance": False}

APPLICATION: Final[Mapping[str, Any]] = {
    "applicationTemplateId": None,
    "disabledByMicrosoftStatus": None,
    "description": None,
    "groupMembershipClaims": None,
    "identifierUris": [],
    "isDeviceOnlyAuthSupported": None,
    "isFallbackPublicClient": None,
    "notes": None,
    "tokenEncryptionKeyId": None,
    "samlMetadataUrl": None,
    "defaultRedirectUri": None,
    "certification": None,
    "optionalClaims": None,
    "servicePrincipalLockConfiguration": None,
    "requestSignatureVerification": None,
    "addIns": [],
    "api": {
        "acceptMappedClaims": None,
        "knownClientApplications": [],
        "requestedAccessTokenVersion": 2,
        "oauth2PermissionScopes": [],
        "preAuthorizedApplications": [],
    },
    "appRoles": [],
    "info": _INFO,
    "parentalControlSettings": {"countriesBlockedForMinors": [], "legalAgeGroupRule": "Allow"},
    "publicClient": {"redirectUris": []},
    "requiredResourceAccess": [],
    "verifiedPublisher": _PUBLISHER,
    "web": {
        "homePageUrl": None,
        "logoutUrl": None,
        "redirectUris": [],
        "implicitGrantSettings": _IMPLICIT,
        "redirectUriSettings": [],
    },
    "spa": {"redirectUris": []},
}
PRINCIPAL: Final[Mapping[str, Any]] = {
    "accountEnabled": True,
    "alternativeNames": [],
    "appDescription": None,
    "applicationTemplateId": None,
    "appRoleAssignmentRequired": False,
    "description": None,
    "disabledByMicrosoftStatus": None,
    "homepage": None,
    "loginUrl": None,
    "logoutUrl": None,
    "notes": None,
    "notificationEmailAddresses": [],
    "preferredSingleSignOnMode": None,
    "preferredTokenSigningKeyThumbprint": None,
    "replyUrls": [],
    "tokenEncryptionKeyId": None,
    "samlSingleSignOnSettings": None,
    "addIns": [],
    "info": _INFO,
    "keyCredentials": [],
    "oauth2PermissionScopes": [],
    "resourceSpecificApplicationPermissions": [],
    "verifiedPublisher": _PUBLISHER,
}
GROUP: Final[Mapping[str, Any]] = {
    "classification": None,
    "creationOptions": [],
    "expirationDateTime": None,
    "groupTypes": [],
    "isAssignableToRole": None,
    "mail": None,
    "mailEnabled": False,
    "membershipRule": None,
    "membershipRuleProcessingState": None,
    "onPremisesDomainName": None,
    "onPremisesLastSyncDateTime": None,
    "onPremisesNetBiosName": None,
    "onPremisesSamAccountName": None,
    "onPremisesSecurityIdentifier": None,
    "onPremisesSyncEnabled": None,
    "preferredDataLocation": None,
    "preferredLanguage": None,
    "proxyAddresses": [],
    "resourceBehaviorOptions": [],
    "resourceProvisioningOptions": [],
    "securityEnabled": True,
    "theme": None,
    "visibility": None,
    "onPremisesProvisioningErrors": [],
}
ANYTHING: Final = (str, bool, int, list, dict, NOTHING)


def shown(defaults: Mapping[str, Any]) -> Members:
    """The members, of an object that has those that were given as `others`."""
    return {name: _member(name, value) for name, value in defaults.items()}


def _member(name: str, default: Any) -> Any:
    def show(item: Any) -> Any:
        given = item.others.get(name, default)
        return {**default, **given} if type(default) is type(given) is dict else given

    return show


def shape(defaults: Mapping[str, Any]) -> Shape:
    """The members in a body: of a member that is a list, an object or a switch, only these."""
    kinds = (bool, list, dict)
    return {name: (type(each),) if type(each) in kinds else ANYTHING for name, each in defaults.items()}


def others(body: Json, defaults: Mapping[str, Any]) -> Json:
    """Take these members out of a body."""
    return {name: body.pop(name) for name in tuple(body) if name in defaults}
