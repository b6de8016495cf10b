"""The likely cause of each error code, its fix, and the command that shows more.

The reference, the terminal, the page, and the log all take cause and fix from this table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from attrs import frozen

from .errors import Code

WHY: Final = "cloudid why --role ROLE"
STATUS: Final = "cloudid status"
PERMISSIONS: Final = "cloudid read MOUNT/permissions"
TOKEN: Final = "cloudid read auth/token/lookup-self"


PLACEHOLDER: Final = re.compile(r"\b(?:MOUNT|ROLE|PATH)\b")


def fill(text: str, names: Mapping[str, str]) -> str:
    """Replace the placeholders in a text with `names`, whose keys are placeholders in lower case."""
    return PLACEHOLDER.sub(lambda found: names.get(found[0].lower()) or found[0], text)


@frozen
class Advice:
    """A row of the table. `command` is a `cloudid` command, or empty."""

    cause: str
    fix: str
    command: str = ""


_OTHER_MACHINE: Final = Advice(
    "The login names a different machine than its token does.",
    "Let `cloudid login` fill in the fields, or send the names that the token's claim has.",
    WHY,
)

ADVICE: Final[Mapping[Code, Advice]] = {
    # Before the mount accepts the token
    Code.JWT_MALFORMED: Advice(
        "The value of `jwt` is not a JSON web token, or it is cut off.",
        "Send the `access_token` from the metadata service's answer, without quotes or line breaks.",
        "cloudid login --role ROLE",
    ),
    Code.LOGIN_REFUSED: Advice(
        "The token is not signed by a key of the tenant that the mount is configured for.",
        "Request the token in the tenant that `MOUNT/config` names, or correct `tenant_id` there.",
        WHY,
    ),
    Code.JWT_CLAIM_MISSING: Advice(
        "The token lacks a claim that every access token of a workload has.",
        "Send an access token. ID tokens are not accepted.",
        WHY,
    ),
    Code.JWT_ISSUER_MISMATCH: Advice(
        "The token was issued in another tenant or another Azure environment.",
        "Correct `tenant_id` and `environment` in `MOUNT/config`.",
        WHY,
    ),
    Code.JWT_AUDIENCE_MISMATCH: Advice(
        "The token was requested for an audience that differs from `resource` in `MOUNT/config`.",
        "Request exactly that audience with `--resource`, including a trailing slash if it has one.",
        WHY,
    ),
    Code.JWT_TENANT_MISMATCH: Advice(
        "The machine belongs to another tenant.",
        "Mount the authentication method again for that tenant, and name the mount with `--mount`.",
        WHY,
    ),
    Code.JWT_EXPIRED: Advice(
        "The token has expired, or the server's clock is ahead.",
        "Request a new token for each login. Synchronise the server's clock with NTP.",
        STATUS,
    ),
    Code.JWT_NOT_YET_VALID: Advice(
        "The server's clock is behind by more than `leeway`.",
        "Synchronise the server's clock with NTP.",
        STATUS,
    ),
    Code.JWT_EXPIRES_TOO_LATE: Advice(
        "Tokens of managed identities are valid for up to a day, which is longer than the role's `max_jwt_exp`.",
        "Raise `max_jwt_exp` of the role, or set it to 0.",
        WHY,
    ),
    # The role's bounds
    Code.ROLE_NOT_FOUND: Advice(
        "The mount has no role of this name.",
        "Name an existing role with `--role`, or another mount with `--mount`. For credentials, list `MOUNT/roles`.",
        "cloudid list MOUNT/role",
    ),
    Code.ROLE_NEWER_THAN_NODE: Advice(
        "A node of a later version wrote the role with a bound that this node does not know.",
        "Upgrade this node. Until then, log in and write the role on a node of the later version.",
        "cloudid read sys/health",
    ),
    Code.ROLE_UNBOUND: Advice(
        "The role has no bound constraint. It was created before one was required.",
        "Set at least one `bound_*` list of the role.",
        WHY,
    ),
    Code.SOURCE_ADDRESS_REFUSED: Advice(
        "The login comes from an address outside `token_bound_cidrs`, perhaps a proxy's.",
        "Add the network to `token_bound_cidrs`, or add the proxy to the server setting `trusted_proxies`.",
        WHY,
    ),
    Code.BOUND_TOKEN_TYPE_MISMATCH: Advice(
        "The token belongs to a user, but the role is for workloads, or the reverse.",
        "Log in as a workload, or add `user` to `bound_token_types` of the role.",
        WHY,
    ),
    Code.BOUND_SERVICE_PRINCIPAL_MISMATCH: Advice(
        "The machine used an identity that the role does not list, or the list has client ids instead of object ids.",
        "Add the object id of the identity's service principal to the role, or choose another identity with "
        "`--client-id`.",
        WHY,
    ),
    Code.BOUND_GROUP_MISMATCH: Advice(
        "The identity is not in a group of the role, or it joined after its token was issued (up to a day ago).",
        "Add the service principal to a group in `bound_group_ids`, and wait for a new token.",
        WHY,
    ),
    Code.BOUND_SUBSCRIPTION_MISMATCH: Advice(
        "The machine is in another subscription.",
        "Add the subscription to `bound_subscription_ids`, or use another role.",
        WHY,
    ),
    Code.BOUND_RESOURCE_GROUP_MISMATCH: Advice(
        "The machine is in another resource group.",
        "Add the group to `bound_resource_groups`, or use another role.",
        WHY,
    ),
    Code.BOUND_IDENTITY_MISMATCH: Advice(
        "The token belongs to another identity, or it was requested for an audience whose tokens do not name "
        "the identity.",
        "Add the identity's resource id to the role, choose the identity with `--client-id`, or bind its "
        "service principal.",
        WHY,
    ),
    Code.BOUND_VM_ID_MISMATCH: Advice(
        "This is a different virtual machine, or it was deleted and recreated under the same name.",
        "Find out who recreated it, then add the output of `az vm show --query vmId` to `bound_vm_ids`.",
        WHY,
    ),
    Code.BOUND_LOCATION_MISMATCH: Advice(
        "The machine is in another location, or the location is misspelled in the role.",
        "Add the location as `az account list-locations` spells it to `bound_locations`, or use another role.",
        WHY,
    ),
    Code.BOUND_SCALE_SET_MISMATCH: Advice(
        "The machine is in another scale set, or in none.",
        "Add the scale set to `bound_scale_sets`, or use another role.",
        WHY,
    ),
    Code.GROUPS_UNAVAILABLE: Advice(
        "The identity is in more groups than a token carries, and Microsoft Graph does not know its service principal.",
        "Check that the service principal exists, or reduce the number of its groups.",
        WHY,
    ),
    # The machine
    Code.MACHINE_REQUIRED: Advice(
        "The role restricts machines, but the login does not name its machine.",
        "Send `subscription_id` and `resource_group_name`, as `cloudid login` does. For pods, bind service principals.",
        WHY,
    ),
    Code.MACHINE_CLAIM_MISSING: Advice(
        "The token does not name a machine. Only tokens for Azure's own audiences do, and those of pods never do.",
        "Set `resource` in `MOUNT/config` to `https://management.azure.com/`, or bind the service principal.",
        WHY,
    ),
    Code.SUBSCRIPTION_MISMATCH: _OTHER_MACHINE,
    Code.RESOURCE_GROUP_MISMATCH: _OTHER_MACHINE,
    Code.VM_NAME_MISMATCH: _OTHER_MACHINE,
    Code.VMSS_NAME_MISMATCH: _OTHER_MACHINE,
    Code.RESOURCE_ID_MISMATCH: _OTHER_MACHINE,
    Code.MACHINE_NOT_FOUND: Advice(
        "The machine no longer exists, or the mount's credential may not read it.",
        "Assign the Reader role at the machine's subscription or resource group to the mount's service principal.",
        PERMISSIONS,
    ),
    Code.MACHINE_IDENTITY_MISMATCH: Advice(
        "The identity was removed from the machine after the token was issued, or was assigned a moment ago.",
        "Check the identities of the machine, then request a new token.",
        WHY,
    ),
    # Azure
    Code.CONFIG_MISSING: Advice(
        "The mount is not configured, or `--mount` names the wrong mount.",
        "Write `tenant_id` to `MOUNT/config`, with `resource` for logins or `subscription_id` for "
        "credentials, or correct `--mount`.",
        "cloudid connect azure MOUNT",
    ),
    Code.PLATFORM_IDENTITY_UNAVAILABLE: Advice(
        "The mount has no client secret, and the server's machine has no managed identity.",
        "Write `client_id` and `client_secret` to the configuration, or assign an identity to the server's machine.",
        PERMISSIONS,
    ),
    Code.CREDENTIAL_UNUSABLE: Advice(
        "The mount's credential cannot be read.",
        "Fix what the error message names.",
        PERMISSIONS,
    ),
    Code.PROVIDER_SECRET_REFUSED: Advice(
        "The mount's client secret is wrong or expired, ends with a line break, or is the secret's id, not its value.",
        "Write a new `client_secret` to the mount's configuration, or correct the variable that the message names.",
        PERMISSIONS,
    ),
    Code.PROVIDER_ASSERTION_REFUSED: Advice(
        "The app registration has no federated credential with exactly this issuer, subject and audience.",
        "Compare them with those in docs/how-to/workload-identity.md.",
        PERMISSIONS,
    ),
    Code.PROVIDER_PERMISSION_DENIED: Advice(
        "The mount's service principal lacks a permission, or got it only minutes ago.",
        "Grant the permissions that `cloudid read MOUNT/permissions` shows as missing.",
        PERMISSIONS,
    ),
    Code.PROVIDER_REFUSED: Advice(
        "Azure rejected the request for a reason of its own.",
        "Look up Azure's error code, which the server's log and the mount's `permissions` show.",
        PERMISSIONS,
    ),
    Code.PROVIDER_TENANT_UNKNOWN: Advice(
        "The mount's `tenant_id` is misspelled, or the tenant is in another Azure environment.",
        "Correct `tenant_id` and `environment` in the mount's configuration.",
        PERMISSIONS,
    ),
    Code.PROVIDER_APPLICATION_UNKNOWN: Advice(
        "The mount's `client_id` is misspelled, or the app registration was deleted or is in another tenant.",
        "Correct `client_id` and `tenant_id` in the mount's configuration.",
        PERMISSIONS,
    ),
    Code.PROVIDER_PRINCIPAL_DISABLED: Advice(
        "The service principal of the mount's app registration was deleted or never created, or its sign-in "
        "is disabled.",
        "Run `az ad sp create --id CLIENT_ID`, or enable the application under Enterprise applications.",
        PERMISSIONS,
    ),
    Code.PROVIDER_ACCESS_BLOCKED: Advice(
        "A Conditional Access policy for workload identities blocks the server's address.",
        "Add the address to the policy's named locations, or exclude the application from the policy.",
        PERMISSIONS,
    ),
    Code.PROVIDER_RESOURCE_UNKNOWN: Advice(
        "The resource is misspelled, or its application has no service principal in the tenant.",
        "Correct the scope, or run `az ad sp create --id` with the client id of the resource's application.",
        PERMISSIONS,
    ),
    Code.PROVIDER_SCOPE_MISSING: Advice(
        "A scope in the role's `azure_roles` was deleted, or belongs to another tenant.",
        "Recreate the resource group, or write the role with a scope that exists.",
        "cloudid read MOUNT/roles/ROLE",
    ),
    Code.PROVIDER_NOT_REGISTERED: Advice(
        "The subscription has never used the resource provider of this resource type.",
        "Run `az provider register --namespace NAMESPACE`. The subscription's activity log names the namespace.",
        PERMISSIONS,
    ),
    Code.PROVIDER_POLICY_REFUSED: Advice(
        "An app management policy limits the lifetime or type of credentials, or requires a reference.",
        "Set `max_secret_ttl` or `service_management_reference` in the mount's configuration as the tenant requires.",
        "cloudid read MOUNT/config",
    ),
    Code.PROVIDER_UNREACHABLE: Advice(
        "The server cannot reach Azure because of its DNS, a proxy or a firewall.",
        "Allow the server to reach the login endpoint, Azure Resource Manager and Microsoft Graph on port 443.",
        STATUS,
    ),
    Code.PROVIDER_THROTTLED: Advice(
        "Azure limits the rate of the mount's requests.",
        "Try again later. Log in less often: tokens can be renewed.",
        STATUS,
    ),
    Code.PROVIDER_QUOTA_EXCEEDED: Advice(
        "A quota of the tenant, the subscription or an app registration is used up.",
        "Remove unused objects, secrets and role assignments, including deleted objects.",
        PERMISSIONS,
    ),
    Code.PROVIDER_FAILED: Advice(
        "Azure has an internal failure.",
        "Try again. If it continues, check Azure's status page.",
        STATUS,
    ),
    Code.SELF_TARGET: Advice(
        "The role names an app registration that the service itself authenticates with.",
        "Use a separate app registration for the role.",
        "cloudid read MOUNT/roles/ROLE",
    ),
    # The client
    Code.PERMISSION_DENIED: Advice(
        "The token is missing, expired or revoked, its policies do not allow the request, or `--mount` is wrong.",
        "Log in again. If that does not help, let a policy of the token allow the path: "
        "`cloudid write sys/policies/acl/NAME policy=@FILE`.",
        TOKEN,
    ),
    Code.NO_HANDLER: Advice(
        "Nothing is mounted at this path.", "Correct the path, or `--mount`.", "cloudid read sys/mounts"
    ),
    Code.UNSUPPORTED_PATH: Advice(
        "The path is misspelled, or only other services have it.",
        "Correct the path.",
        "cloudid read MOUNT --help-path",
    ),
    Code.UNSUPPORTED_OPERATION: Advice(
        "The path does not support this method.",
        "Use a method that the `Allow` header lists.",
        "cloudid read PATH --help-path",
    ),
    Code.LOGINS_THROTTLED: Advice(
        "Many logins from this address had no valid token: the tokens were forged, expired or meant for "
        "another audience.",
        "Fix the client that sends them, then wait a minute.",
        WHY,
    ),
    Code.RATE_LIMIT_EXCEEDED: Advice(
        "A rate limit quota is used up.",
        "Try again later, or raise the quota: `cloudid list sys/quotas/rate-limit`, then "
        "`cloudid write sys/quotas/rate-limit/NAME rate=RATE`.",
        "cloudid list sys/quotas/rate-limit",
    ),
    Code.LEASE_COUNT_EXCEEDED: Advice(
        "A lease count quota is used up.",
        "Revoke unused leases, or raise the quota.",
        "cloudid list sys/quotas/lease-count",
    ),
    # The request
    Code.MALFORMED_REQUEST: Advice(
        "The client sent invalid HTTP.",
        "Use a standard HTTP client. The message says what is wrong.",
    ),
    Code.MALFORMED_PATH: Advice(
        "The path has empty segments, dots, or characters that must be encoded.",
        "Write the path as the reference shows it.",
    ),
    Code.NAMESPACE_UNKNOWN: Advice(
        "The client sets a namespace with `VAULT_NAMESPACE`.",
        "Unset the variable. cloudid has no namespaces.",
    ),
    Code.MALFORMED_JSON: Advice("The body is not JSON, or it is cut off.", "Send one JSON object."),
    Code.BODY_TOO_COMPLEX: Advice("The body is nested too deeply, or it has too many values.", "Split the request."),
    Code.FIELD_INVALID: Advice(
        "The value has the wrong type, or is out of range.",
        "Look up the field in the reference.",
    ),
    Code.FIELD_REQUIRED: Advice("A field is missing or empty.", "Send the field that the message names."),
    Code.FIELDS_EXCLUSIVE: Advice("Two fields contradict each other.", "Remove one of them."),
    Code.NAME_INVALID: Advice("The name is too long, or has characters that are not allowed.", "Choose another name."),
    Code.NOT_FOUND: Advice(
        "No object has this name, or it was deleted.",
        "List the existing objects with `cloudid list PATH`.",
    ),
    Code.CLIENT_TOO_SLOW: Advice(
        "The request took longer than `head_timeout` or `body_timeout`.",
        "Fix the network, or raise the setting.",
    ),
    Code.BODY_TOO_LARGE: Advice(
        "The body is longer than `body_limit`, or than the path accepts.",
        "Send less, or raise `body_limit`.",
    ),
    Code.TARGET_TOO_LONG: Advice("The path and query are too long.", "Send the parameters in the body."),
    Code.UNSUPPORTED_MEDIA_TYPE: Advice(
        "The `Content-Type` is not supported.",
        "Use `cloudid patch`, or send the type that the message names.",
    ),
    Code.UNSUPPORTED_CONTENT_ENCODING: Advice(
        "The request has a `Content-Encoding`.",
        "Send the body without compression.",
    ),
    Code.HEAD_TOO_LARGE: Advice("Cookies or headers added by a proxy are too long.", "Send fewer headers."),
    Code.WRAPPED_COUNT_EXCEEDED: Advice(
        "Too many wrapped answers have not been unwrapped.",
        "Unwrap them, or use a shorter wrapping TTL.",
    ),
    # The service
    Code.INTERNAL_ERROR: Advice("The service has a bug.", "Report it with the log lines of the request."),
    Code.STORE_UNAVAILABLE: Advice(
        "The database cannot be reached, or the disk is full.",
        "Fix what the server's log names.",
        STATUS,
    ),
    Code.STORE_CONTENDED: Advice(
        "Many requests change the same entry at the same time.",
        "Try again, and send fewer changes in parallel.",
    ),
    Code.COMMIT_UNRESOLVED: Advice(
        "The connection to the database broke during a write.",
        "Read the entry to see whether it was written, then try again.",
    ),
    Code.ENTRY_DAMAGED: Advice(
        "The entry was changed outside of the service.",
        "Rewrite or delete it, or restore a backup.",
    ),
    Code.TOO_MANY_CONNECTIONS: Advice(
        "The server has reached `connection_limit`.",
        "Close idle connections, add nodes, or raise the limit.",
    ),
    Code.TOO_MANY_BODIES: Advice(
        "Large request bodies together need more than `body_memory`.",
        "Try again, or raise the limit.",
    ),
    Code.AUDIT_UNAVAILABLE: Advice(
        "No audit device could record the request.",
        "Fix the device that the log names, or enable another one.",
        STATUS,
    ),
    Code.SEALED: Advice(
        "The store was created with another master key.",
        "Start the server with the right key file, which the setting `key_file` names.",
        STATUS,
    ),
    Code.NOT_INITIALISED: Advice(
        "The store is new, or the setting names the wrong one.",
        "Run `cloudid init`, or correct the setting `store`.",
        STATUS,
    ),
    Code.DEADLINE_PASSED: Advice(
        "Azure or the store took longer than `request_deadline`.",
        "Try again. Everything that was started is undone.",
    ),
    # Configuration and roles
    Code.CONFIG_INVALID: Advice(
        "The configuration was written before a rule became stricter.",
        "Rewrite the fields that the message names.",
        "cloudid read MOUNT/config",
    ),
    Code.REFERENCE_NOT_FOUND: Advice(
        "The object is misspelled or deleted, or the mount's service principal may not see it.",
        "Correct the value that the message names.",
    ),
    Code.REFERENCE_AMBIGUOUS: Advice("Several objects have this display name.", "Use the id."),
    Code.TTL_EXCEEDS_MAX: Advice(
        "A default is longer than its maximum.",
        "Lower the first field that the message names, or raise the second.",
    ),
    Code.ISSUER_MISSING: Advice(
        "The setting `issuer` is empty, or is not an https URL.",
        "Set it to the URL where Azure can fetch the documents.",
    ),
    Code.ROTATION_CONFLICT: Advice("Both a period and a schedule are set.", "Remove one of them."),
    Code.ROTATION_WINDOW_CONFLICT: Advice(
        "A window is set without a schedule.",
        "Set `rotation_schedule`, or set the window to 0.",
    ),
    Code.NO_LONGER_ADMITTED: Advice(
        "The machine or the role has changed. The message names the check that failed.",
        "Fix the cause, then log in again.",
    ),
    # Tokens, policies and mounts
    Code.TOKEN_NOT_RENEWABLE: Advice(
        "The token was created as not renewable, or it never expires.",
        "Log in again.",
        TOKEN,
    ),
    Code.TOKEN_PAST_MAX_TTL: Advice(
        "The token has reached its maximum lifetime.",
        "Log in again, or raise the maximum of the role or mount.",
        TOKEN,
    ),
    Code.TOKEN_NOT_FOUND: Advice(
        "The token has ended, or the accessor is mistyped.",
        "List the accessors with `cloudid list auth/token/accessors`.",
        "cloudid list auth/token/accessors",
    ),
    Code.BATCH_TOKEN_UNSUPPORTED: Advice(
        "Batch tokens are not stored, so this is not possible with them.",
        "Use a service token (`token_type`).",
    ),
    Code.TOKEN_RESTRICTED: Advice(
        "The token has a limited number of uses (`num_uses`).",
        "Use a token without that limit.",
        TOKEN,
    ),
    Code.TOKEN_USED_UP: Advice(
        "This was the token's last use, so it cannot own a lease.",
        "Create the token with one more use.",
    ),
    Code.TOKEN_SUDO_REQUIRED: Advice(
        "This needs the capability `sudo` on the path.",
        "Remove the field that the message names, or get `sudo` on the path.",
    ),
    Code.WRAPPING_TOKEN_INVALID: Advice(
        "The token was already unwrapped, or it has expired.",
        "Repeat the request. If you did not unwrap it, someone else has read the answer.",
    ),
    Code.WRAPPING_NOT_ALLOWED: Advice(
        "The header `X-Vault-Wrap-TTL` came without a valid token, or for an answer that is never wrapped.",
        "Remove the header.",
    ),
    Code.WRAPPED_ANSWER_TOO_LARGE: Advice(
        "The answer is longer than 256 KiB.",
        "Request less, or do not wrap the answer.",
    ),
    Code.POLICY_INVALID: Advice("The text breaks a rule of the policy language.", "Fix what the message names."),
    Code.POLICY_PROTECTED: Advice(
        "The policy `root` cannot be changed, and built-in policies cannot be deleted.",
        "Write another policy.",
    ),
    Code.POLICY_NOT_SUBSET: Advice(
        "The parent token or the token role lacks a policy.",
        "Request fewer policies, or use a parent that has them.",
    ),
    Code.ROOT_POLICY_REFUSED: Advice(
        "The policies include `root`.",
        "Choose other policies. Only a root token creates root tokens.",
    ),
    Code.MOUNT_UNKNOWN_TYPE: Advice("The type exists only in other services.", "Use `cloud`, or its alias `azure`."),
    Code.MOUNT_NOT_FOUND: Advice(
        "The path is misspelled, or the mount was removed.",
        "List the mounts with `cloudid read sys/mounts` and `cloudid read sys/auth`.",
        "cloudid read sys/mounts",
    ),
    Code.MOUNT_PROTECTED: Advice("Built-in mounts cannot be moved or disabled.", "Choose another mount."),
    Code.MOUNT_PATH_IN_USE: Advice(
        "Another mount is at this path, above it or below it.",
        "Choose another path, or move that mount.",
        "cloudid read sys/mounts",
    ),
    Code.FOLDER_UNKNOWN: Advice(
        "The request names a folder id that was never applied here, or was removed.",
        "Run `cloudid apply`, which claims the id.",
    ),
    Code.FOLDER_CLAIMED: Advice(
        "The folder was moved, or it is a copy with the same id.",
        "After a move, run `cloudid apply --adopt`. In a copy, remove the file `.cloudid-folder`, so that it "
        "gets its own id.",
    ),
    Code.FOLDER_FULL: Advice("One folder has created 10,000 objects.", "Split the folder."),
    Code.FOLDERS_TOO_MANY: Advice(
        "Folders that are no longer applied still have records.",
        "List them with `cloudid list sys/applied`, and delete the records of folders that no longer exist.",
        "cloudid list sys/applied",
    ),
    Code.NOT_MADE_BY_FOLDER: Advice(
        "The object was created by another client, or recreated after the folder had created it.",
        "To remove it, delete it directly.",
    ),
    Code.AUDIT_DEVICE_NOT_FOUND: Advice(
        "No audit device has this path.",
        "List the devices with `cloudid read sys/audit`.",
        "cloudid read sys/audit",
    ),
    Code.AUDITED_HEADER_NOT_FOUND: Advice(
        "The audit log does not record this header.",
        "List the headers with `cloudid read sys/config/auditing/request-headers`.",
        "cloudid read sys/config/auditing/request-headers",
    ),
    Code.AUDIT_DEVICE_UNUSABLE: Advice(
        "The file or socket cannot be written.",
        "Fix what the message names, then enable the device again, or start the server again.",
        "cloudid read sys/audit",
    ),
    Code.AUDIT_FILE_OUTSIDE: Advice(
        "The file is outside of the allowed directory.",
        "Choose a file below `audit_directory`, or declare the device in the settings.",
    ),
    Code.AUDIT_DEVICE_DECLARED: Advice(
        "The device is declared in the settings file.",
        "Change it there, then send SIGHUP.",
    ),
    # Leases and the secrets engine
    Code.LEASE_NOT_FOUND: Advice("The lease has ended, or the id is mistyped.", "Request new credentials."),
    Code.LEASE_EXPIRED: Advice(
        "The lease or its token has expired.",
        "Request new credentials, and renew them earlier.",
    ),
    Code.LEASE_NOT_RENEWABLE: Advice(
        "The role was deleted or no longer names the app registration, or the lease reached its maximum lifetime.",
        "Request new credentials.",
    ),
    Code.REVOCATION_PENDING: Advice(
        "Azure has not removed everything yet. The next code says why.",
        "Wait, and check `cloudid status`.",
        STATUS,
    ),
    Code.LEASES_ALIVE: Advice(
        "Objects in Azure can be removed only while this exists.",
        "Revoke the leases, or use `force`, which leaves the objects in Azure.",
    ),
    Code.APPLICATION_KEPT: Advice(
        "The role names an app registration that the service created for a lease or for a role with `persist_app`.",
        "Use an app registration of your own, or request credentials of the role that keeps this one.",
        "cloudid list MOUNT/roles",
    ),
    Code.CEILING_EXCEEDED: Advice(
        "The role asks for more than the mount's `allowed_…` fields or `deny_privileged_roles` permit.",
        "Request less, or write `MOUNT/config` with a wider field, such as `deny_privileged_roles=false`.",
        "cloudid read MOUNT/ceiling",
    ),
    Code.ROLE_CHANGE_PENDING: Advice(
        "A write or a rotation was interrupted.",
        "Try again after the time in `Retry-After`.",
    ),
    Code.ROLE_WITHOUT_TOKENS: Advice(
        "The role issues client secrets only.",
        "Set `token_scopes` of the role, or read `creds/ROLE`.",
        "cloudid read MOUNT/roles/ROLE",
    ),
    Code.ROLE_GIVES_TOKENS: Advice(
        "The role's `proof` is not a client secret.",
        "Read `static-creds/ROLE/token`, or set `proof` to `secret`.",
    ),
    Code.ROLE_WITHOUT_SECRET: Advice(
        "The first secret of the role could not be created yet.",
        "Read `static-roles/ROLE`, which shows the last error.",
        "cloudid read MOUNT/static-roles/ROLE",
    ),
    Code.TOKEN_SCOPE_NOT_ALLOWED: Advice(
        "The scope is misspelled, or the role does not allow it.",
        "Request one of the role's `token_scopes`.",
        "cloudid read MOUNT/roles/ROLE",
    ),
    Code.ROOT_SECRET_UNMANAGED: Advice(
        "The root secret comes from the environment, or there is none.",
        "Rotate it at its source, or configure one here.",
    ),
    Code.ROOT_SECRETS_LEFT: Advice(
        "There were many forced rotations within one overlap, or the service principal may not remove secrets.",
        "Try again after the time in `Retry-After`, or grant what `permissions` shows as missing.",
        "cloudid read MOUNT/rotation",
    ),
    Code.ROOT_SECRET_MADE_HERE: Advice(
        "The files contain an older secret than the one that rotation created.",
        "Remove it from the files, or send `replace_root_secret`.",
    ),
    Code.ROLE_PROOF_PENDING: Advice(
        "The credential is new, and Azure does not accept it everywhere yet.",
        "Try again after the time in `Retry-After`.",
    ),
    Code.LOGIN_REQUIRED: Advice("The token was not issued by a login.", "Use the token from the machine's login."),
    Code.ROOT_SECRET_SHARED: Advice(
        "Two mounts use the same secret.",
        "Configure a separate secret for each mount, or send `force`.",
        "cloudid read MOUNT/rotation",
    ),
}
"""A row for each code.

Placeholders are `ROLE`, `PATH` and `MOUNT`. `MOUNT` is `auth/cloud` or `cloud` unless the request names a different
mount.
"""

_BY_WIRE: Final = {code.wire: advice for code, advice in ADVICE.items()}


def advice_on(codes: Iterable[str]) -> Advice | None:
    """Return the advice for the first of these codes that is in the table. Codes are in the form of the API."""
    return next((_BY_WIRE[code] for code in codes if code in _BY_WIRE), None)
