"""What to do about a refusal: the likely cause of each error code, what mends it, and the command that shows more.

The commands print it below a refusal, and the page of refused logins prints the same table.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from attrs import frozen

from cloudid_core.errors import Code

WHY: Final = "cloudid why --role ROLE"
STATUS: Final = "cloudid status"
PERMISSIONS: Final = "GET auth/cloud/permissions"
TOKEN: Final = "GET auth/token/lookup-self"


@frozen
class Cure:
    """A row of the table. `command` is one of `cloudid`, or a request to the service."""

    cause: str
    cure: str
    command: str = WHY


_CLAIM: Final = "The login names another machine than its token does."
_SAY_NOTHING: Final = "Let `cloudid login` fill in the fields, or send those that the token's claim has."

CURES: Final[Mapping[Code, Cure]] = MappingProxyType(
    {
        # Before the token is believed
        Code.JWT_MALFORMED: Cure(
            "What was sent as `jwt` is no JSON web token, or only a part of one.",
            "Send the `access_token` of the metadata service's answer, without quotes and line breaks.",
            "cloudid login --role ROLE",
        ),
        Code.LOGIN_REFUSED: Cure(
            "The token is not signed by a key of the mount's tenant.",
            "Ask for the token in the tenant that `auth/cloud/config` names, or correct `tenant_id` there.",
        ),
        Code.JWT_CLAIM_MISSING: Cure(
            "The token lacks a claim that every token of a workload has: it is one of another kind.",
            "Send an access token of the cloud, not an id token.",
        ),
        Code.JWT_ISSUER_MISMATCH: Cure(
            "The token comes from another tenant, or from another environment of the cloud.",
            "Correct `tenant_id` and `environment` in `auth/cloud/config`.",
        ),
        Code.JWT_AUDIENCE_MISMATCH: Cure(
            "The machine asked for a token of another audience than `resource` in `auth/cloud/config`.",
            "Ask for exactly that audience, with its final slash if it has one: `--resource`.",
        ),
        Code.JWT_TENANT_MISMATCH: Cure(
            "The machine belongs to another tenant.",
            "Mount the method once more for that tenant, and name the mount: `--mount`.",
        ),
        Code.JWT_EXPIRED: Cure(
            "The token is old, or the service's clock is ahead.",
            "Get a new token for each login, and let NTP keep the service's clock.",
            STATUS,
        ),
        Code.JWT_NOT_YET_VALID: Cure(
            "The service's clock is behind by more than `leeway`.", "Let NTP keep the service's clock.", STATUS
        ),
        Code.JWT_EXPIRES_TOO_LATE: Cure(
            "Tokens of managed identities last up to a day, and `max_jwt_exp` of the role is shorter.",
            "Raise `max_jwt_exp` of the role, or set it to 0.",
        ),
        # What the role demands
        Code.ROLE_NOT_FOUND: Cure(
            "The role has another name, or is one of another mount.",
            "Name one of the roles of this mount: `--role`, `--mount`.",
            "LIST auth/cloud/role",
        ),
        Code.ROLE_UNBOUND: Cure(
            "The role is from before roles had to bind something.", "Set one of its `bound_*` lists."
        ),
        Code.SOURCE_ADDRESS_REFUSED: Cure(
            "The login comes from an address outside `token_bound_cidrs`: perhaps that of a proxy.",
            "Add the network to `token_bound_cidrs`, or name the proxy in the server's setting `trusted_proxies`.",
        ),
        Code.BOUND_TOKEN_TYPE_MISMATCH: Cure(
            "The token is a person's, and the role is for workloads, or the other way about.",
            "Log in as a workload, or add `user` to `bound_token_types` of the role.",
        ),
        Code.BOUND_SERVICE_PRINCIPAL_MISMATCH: Cure(
            "The machine uses another identity than those of the role, or the list has client ids, not object ids.",
            "List the object id of the identity's principal, or choose the identity: `--client-id`.",
        ),
        Code.BOUND_GROUP_MISMATCH: Cure(
            "The identity is in none of the role's groups, or joined one after its token was made, up to a day ago.",
            "Put the identity's principal into a group of `bound_group_ids`, and wait for a new token.",
        ),
        Code.BOUND_SUBSCRIPTION_MISMATCH: Cure(
            "The machine is in another subscription.",
            "Add the subscription to `bound_subscription_ids`, or use another role.",
        ),
        Code.BOUND_RESOURCE_GROUP_MISMATCH: Cure(
            "The machine is in another resource group.",
            "Add the group to `bound_resource_groups`, or use another role.",
        ),
        Code.BOUND_IDENTITY_MISMATCH: Cure(
            "The token was given to the machine's own identity or to another one, or is for an audience of one's own.",
            "List the identity's resource id, choose the identity: `--client-id`, or bind its principal instead.",
        ),
        Code.BOUND_VM_ID_MISMATCH: Cure(
            "It is another virtual machine, or was deleted and made anew under its name.",
            "Add what `az vm show --query vmId` says to `bound_vm_ids`, once you know who made it anew.",
        ),
        Code.BOUND_LOCATION_MISMATCH: Cure(
            "The machine is at another location, or the role's list has a misspelt one.",
            "Add the location as `az account list-locations` spells it to `bound_locations`, or use another role.",
        ),
        Code.BOUND_SCALE_SET_MISMATCH: Cure(
            "The machine is in another scale set, or in none.",
            "Add the scale set to `bound_scale_sets`, or use another role.",
        ),
        Code.GROUPS_UNAVAILABLE: Cure(
            "The identity is in more groups than a token carries, and the directory does not know its principal.",
            "Check that the principal still exists, or put it into fewer groups.",
        ),
        # Which machine it is
        Code.MACHINE_REQUIRED: Cure(
            "The role binds machines, and the login does not say which machine it is.",
            "Send `subscription_id` and `resource_group_name`, as `cloudid login` does. For pods, bind principals.",
        ),
        Code.MACHINE_CLAIM_MISSING: Cure(
            "The token names no machine: only those for audiences of the cloud itself do, and never those of pods.",
            "Set `resource` in `auth/cloud/config` to `https://management.azure.com/`, or bind the principal instead.",
        ),
        Code.SUBSCRIPTION_MISMATCH: Cure(_CLAIM, _SAY_NOTHING),
        Code.RESOURCE_GROUP_MISMATCH: Cure(_CLAIM, _SAY_NOTHING),
        Code.VM_NAME_MISMATCH: Cure(_CLAIM, _SAY_NOTHING),
        Code.VMSS_NAME_MISMATCH: Cure(_CLAIM, _SAY_NOTHING),
        Code.RESOURCE_ID_MISMATCH: Cure(_CLAIM, _SAY_NOTHING),
        Code.MACHINE_NOT_FOUND: Cure(
            "The mount's credential may not read the machine, or the machine is gone.",
            "Assign the mount's principal the role Reader at the machine's subscription or resource group.",
            PERMISSIONS,
        ),
        Code.MACHINE_IDENTITY_MISMATCH: Cure(
            "The identity was taken from the machine after its token was made, or has just been given to it.",
            "Check the machine's identities, and get a new token.",
        ),
        # The service and its provider
        Code.CONFIG_MISSING: Cure(
            "The mount is not configured, or `--mount` names another one.",
            "Write `tenant_id` and `resource` to `auth/cloud/config`, or name the mount: `--mount`.",
            "GET auth/cloud/config",
        ),
        Code.PLATFORM_IDENTITY_UNAVAILABLE: Cure(
            "The mount has no client secret, and the machine of the service has no identity.",
            "Write `client_id` and `client_secret` to its configuration, or give the service's machine an identity.",
            PERMISSIONS,
        ),
        Code.CREDENTIAL_UNUSABLE: Cure(
            "What the mount proves itself with cannot be read.", "Do what the text of the error says.", PERMISSIONS
        ),
        Code.PROVIDER_SECRET_REFUSED: Cure(
            "The client secret of the mount is wrong, expired, or its id was written in place of its value.",
            "Write a new `client_secret` to the mount's configuration.",
            PERMISSIONS,
        ),
        Code.PROVIDER_ASSERTION_REFUSED: Cure(
            "The provider has no federated credential with exactly this issuer, subject and audience.",
            "Compare them with those of docs/how-to/workload-identity.md.",
            PERMISSIONS,
        ),
        Code.PROVIDER_PERMISSION_DENIED: Cure(
            "The mount's principal lacks a permission, or has had it for less than some minutes.",
            "Assign what the command shows as missing.",
            PERMISSIONS,
        ),
        Code.PROVIDER_REFUSED: Cure(
            "The provider refuses what the mount asks, for a reason of its own.",
            "Look up the provider's code, which the server's log and the mount's `permissions` tell.",
            PERMISSIONS,
        ),
        Code.PROVIDER_TENANT_UNKNOWN: Cure(
            "The `tenant_id` of the mount is misspelt, or the tenant is in another environment of the cloud.",
            "Correct `tenant_id` and `environment` in the mount's configuration.",
            PERMISSIONS,
        ),
        Code.PROVIDER_UNREACHABLE: Cure(
            "The server cannot reach the cloud: name service, proxy or firewall.",
            "Let the server reach the login service, the resource manager and the directory on port 443.",
            STATUS,
        ),
        Code.PROVIDER_THROTTLED: Cure(
            "The cloud limits the mount's requests.",
            "Try again later, and log in less often: tokens can be renewed.",
            STATUS,
        ),
        Code.SELF_TARGET: Cure(
            "The role points at an application that the service proves itself with.",
            "Use an application of its own for the role.",
            "GET cloud/roles/ROLE",
        ),
        # The client
        Code.PERMISSION_DENIED: Cure(
            "The token is missing, expired or revoked, or its policies do not allow this.",
            "Log in again; if that does not help, a policy of the role must allow the path.",
            TOKEN,
        ),
        Code.NO_HANDLER: Cure("Nothing is mounted at this path.", "Name the mount: `--mount`.", "GET sys/mounts"),
        Code.LOGINS_THROTTLED: Cure(
            "Many logins from this address had no valid signature.", "Mend what sends them, and wait a minute."
        ),
        Code.RATE_LIMIT_EXCEEDED: Cure(
            "A quota of requests is used up.", "Try again later, or raise the quota.", "LIST sys/quotas/rate-limit"
        ),
        Code.LEASE_COUNT_EXCEEDED: Cure(
            "A quota of leases is used up.",
            "Revoke leases that nobody needs, or raise the quota.",
            "LIST sys/quotas/lease-count",
        ),
    }
)
"""Every code that a machine's login can be refused with, and those that clients meet most. Placeholders: `ROLE`."""


def cure_of(code: str) -> Cure | None:
    """The cure of a code as the service answers it."""
    found = Code.__members__.get(code.upper())
    return CURES.get(found) if found else None
