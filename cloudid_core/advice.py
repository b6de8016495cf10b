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
PERMISSIONS: Final = "GET MOUNT/permissions"
TOKEN: Final = "GET auth/token/lookup-self"


PLACEHOLDER: Final = re.compile(r"\b(?:MOUNT|ROLE|PATH)\b")


def fill(text: str, names: Mapping[str, str]) -> str:
    """Replace the placeholders of a text by `names`, whose keys are placeholders in lower case."""
    return PLACEHOLDER.sub(lambda found: names.get(found[0].lower()) or found[0], text)


@frozen
class Advice:
    """A row of the table. `command` is a command of `cloudid`, or a request to the service; empty: there is none."""

    cause: str
    fix: str
    command: str = WHY


_CLAIM: Final = "The login names another machine than its token does."
_SAY_NOTHING: Final = "Let `cloudid login` fill in the fields, or send those that the token's claim has."

_COMMON: Final[Mapping[Code, Advice]] = {
    # Before the token is believed
    Code.JWT_MALFORMED: Advice(
        "What was sent as `jwt` is no JSON web token, or only a part of one.",
        "Send the `access_token` of the metadata service's answer, without quotes and line breaks.",
        "cloudid login --role ROLE",
    ),
    Code.LOGIN_REFUSED: Advice(
        "The token is not signed by a key of the mount's tenant.",
        "Ask for the token in the tenant that `MOUNT/config` names, or correct `tenant_id` there.",
    ),
    Code.JWT_CLAIM_MISSING: Advice(
        "The token lacks a claim that every token of a workload has: it is one of another kind.",
        "Send an access token of the cloud, not an id token.",
    ),
    Code.JWT_ISSUER_MISMATCH: Advice(
        "The token comes from another tenant, or from another environment of the cloud.",
        "Correct `tenant_id` and `environment` in `MOUNT/config`.",
    ),
    Code.JWT_AUDIENCE_MISMATCH: Advice(
        "The machine asked for a token of another audience than `resource` in `MOUNT/config`.",
        "Ask for exactly that audience, with its final slash if it has one: `--resource`.",
    ),
    Code.JWT_TENANT_MISMATCH: Advice(
        "The machine belongs to another tenant.",
        "Mount the method once more for that tenant, and name the mount: `--mount`.",
    ),
    Code.JWT_EXPIRED: Advice(
        "The token is old, or the service's clock is ahead.",
        "Get a new token for each login, and let NTP keep the service's clock.",
        STATUS,
    ),
    Code.JWT_NOT_YET_VALID: Advice(
        "The service's clock is behind by more than `leeway`.", "Let NTP keep the service's clock.", STATUS
    ),
    Code.JWT_EXPIRES_TOO_LATE: Advice(
        "Tokens of managed identities last up to a day, and `max_jwt_exp` of the role is shorter.",
        "Raise `max_jwt_exp` of the role, or set it to 0.",
    ),
    # What the role demands
    Code.ROLE_NOT_FOUND: Advice(
        "The role has another name, or is one of another mount.",
        "Name one of the roles of this mount: `--role`, `--mount`. For credentials, list `MOUNT/roles`.",
        "LIST MOUNT/role",
    ),
    Code.ROLE_NEWER_THAN_NODE: Advice(
        "A node of a later version wrote the role, with a bound that this node does not know.",
        "Upgrade this node. Until then, log in and write the role at a node of the later version.",
        "GET sys/health",
    ),
    Code.ROLE_UNBOUND: Advice(
        "No `bound_*` list of the role has an entry, as in roles from before one had to.",
        "Set one of its `bound_*` lists.",
    ),
    Code.SOURCE_ADDRESS_REFUSED: Advice(
        "The login comes from an address outside `token_bound_cidrs`: perhaps that of a proxy.",
        "Add the network to `token_bound_cidrs`, or name the proxy in the server's setting `trusted_proxies`.",
    ),
    Code.BOUND_TOKEN_TYPE_MISMATCH: Advice(
        "The token is a person's, and the role is for workloads, or the other way about.",
        "Log in as a workload, or add `user` to `bound_token_types` of the role.",
    ),
    Code.BOUND_SERVICE_PRINCIPAL_MISMATCH: Advice(
        "The machine uses another identity than those of the role, or the list has client ids, not object ids.",
        "List the object id of the identity's principal, or choose the identity: `--client-id`.",
    ),
    Code.BOUND_GROUP_MISMATCH: Advice(
        "The identity is in none of the role's groups, or joined one after its token was made, up to a day ago.",
        "Put the identity's principal into a group of `bound_group_ids`, and wait for a new token.",
    ),
    Code.BOUND_SUBSCRIPTION_MISMATCH: Advice(
        "The machine is in another subscription.",
        "Add the subscription to `bound_subscription_ids`, or use another role.",
    ),
    Code.BOUND_RESOURCE_GROUP_MISMATCH: Advice(
        "The machine is in another resource group.", "Add the group to `bound_resource_groups`, or use another role."
    ),
    Code.BOUND_IDENTITY_MISMATCH: Advice(
        "The token was given to the machine's own identity or to another one, or is for an audience of one's own.",
        "List the identity's resource id, choose the identity: `--client-id`, or bind its principal instead.",
    ),
    Code.BOUND_VM_ID_MISMATCH: Advice(
        "It is another virtual machine, or was deleted and recreated under its name.",
        "Add what `az vm show --query vmId` says to `bound_vm_ids`, once you know who recreated it.",
    ),
    Code.BOUND_LOCATION_MISMATCH: Advice(
        "The machine is at another location, or the role's list has a misspelt one.",
        "Add the location as `az account list-locations` spells it to `bound_locations`, or use another role.",
    ),
    Code.BOUND_SCALE_SET_MISMATCH: Advice(
        "The machine is in another scale set, or in none.",
        "Add the scale set to `bound_scale_sets`, or use another role.",
    ),
    Code.GROUPS_UNAVAILABLE: Advice(
        "The identity is in more groups than a token carries, and the directory does not know its principal.",
        "Check that the principal still exists, or put it into fewer groups.",
    ),
    # Which machine it is
    Code.MACHINE_REQUIRED: Advice(
        "The role binds machines, and the login does not say which machine it is.",
        "Send `subscription_id` and `resource_group_name`, as `cloudid login` does. For pods, bind principals.",
    ),
    Code.MACHINE_CLAIM_MISSING: Advice(
        "The token names no machine: only those for audiences of the cloud itself do, and never those of pods.",
        "Set `resource` in `MOUNT/config` to `https://management.azure.com/`, or bind the principal instead.",
    ),
    Code.SUBSCRIPTION_MISMATCH: Advice(_CLAIM, _SAY_NOTHING),
    Code.RESOURCE_GROUP_MISMATCH: Advice(_CLAIM, _SAY_NOTHING),
    Code.VM_NAME_MISMATCH: Advice(_CLAIM, _SAY_NOTHING),
    Code.VMSS_NAME_MISMATCH: Advice(_CLAIM, _SAY_NOTHING),
    Code.RESOURCE_ID_MISMATCH: Advice(_CLAIM, _SAY_NOTHING),
    Code.MACHINE_NOT_FOUND: Advice(
        "The mount's credential may not read the machine, or the machine is gone.",
        "Assign the mount's principal the role Reader at the machine's subscription or resource group.",
        PERMISSIONS,
    ),
    Code.MACHINE_IDENTITY_MISMATCH: Advice(
        "The identity was taken from the machine after its token was made, or has just been given to it.",
        "Check the machine's identities, and get a new token.",
    ),
    # The service and its provider
    Code.CONFIG_MISSING: Advice(
        "The mount is not configured, or `--mount` names another one.",
        "Write `tenant_id` to `MOUNT/config`, with `resource` to admit logins or `subscription_id` to lend, "
        "or name the mount: `--mount`.",
        "cloudid connect azure MOUNT",
    ),
    Code.PLATFORM_IDENTITY_UNAVAILABLE: Advice(
        "The mount has no client secret, and the machine of the service has no identity.",
        "Write `client_id` and `client_secret` to its configuration, or give the service's machine an identity.",
        PERMISSIONS,
    ),
    Code.CREDENTIAL_UNUSABLE: Advice(
        "What the mount proves itself with cannot be read.", "Do what the text of the error says.", PERMISSIONS
    ),
    Code.PROVIDER_SECRET_REFUSED: Advice(
        "The mount's client secret is wrong or expired, ends with a line break, or is the secret's id, not its value.",
        "Write a new `client_secret` to the mount's configuration, or correct the variable that the text names.",
        PERMISSIONS,
    ),
    Code.PROVIDER_ASSERTION_REFUSED: Advice(
        "The provider has no federated credential with exactly this issuer, subject and audience.",
        "Compare them with those of docs/how-to/workload-identity.md.",
        PERMISSIONS,
    ),
    Code.PROVIDER_PERMISSION_DENIED: Advice(
        "The mount's principal lacks a permission, or has had it for less than some minutes.",
        "Assign what the command shows as missing.",
        PERMISSIONS,
    ),
    Code.PROVIDER_REFUSED: Advice(
        "The provider refuses what the mount asks, for a reason of its own.",
        "Look up the provider's code, which the server's log and the mount's `permissions` tell.",
        PERMISSIONS,
    ),
    Code.PROVIDER_TENANT_UNKNOWN: Advice(
        "The `tenant_id` of the mount is misspelt, or the tenant is in another environment of the cloud.",
        "Correct `tenant_id` and `environment` in the mount's configuration.",
        PERMISSIONS,
    ),
    Code.PROVIDER_APPLICATION_UNKNOWN: Advice(
        "The `client_id` of the mount is misspelt, or its application is gone, or in another tenant.",
        "Correct `client_id` and `tenant_id` in the mount's configuration.",
        PERMISSIONS,
    ),
    Code.PROVIDER_PRINCIPAL_DISABLED: Advice(
        "The service principal of the mount's application was deleted or never created, or sign-in is disabled.",
        "Run `az ad sp create --id CLIENT_ID`, or enable the application under Enterprise applications.",
        PERMISSIONS,
    ),
    Code.PROVIDER_ACCESS_BLOCKED: Advice(
        "A Conditional Access policy for workload identities blocks the address that the server calls from.",
        "Add the server's address to the policy's named locations, or exclude the application from the policy.",
        PERMISSIONS,
    ),
    Code.PROVIDER_RESOURCE_UNKNOWN: Advice(
        "The resource is misspelt, or its application has no service principal in the tenant.",
        "Correct the scope, or run `az ad sp create --id` with the client id of the resource's application.",
        PERMISSIONS,
    ),
    Code.PROVIDER_SCOPE_MISSING: Advice(
        "A scope in the role's `azure_roles` was deleted, or belongs to another tenant.",
        "Create the resource group again, or write the role with a scope that exists.",
        "GET MOUNT/roles/ROLE",
    ),
    Code.PROVIDER_NOT_REGISTERED: Advice(
        "The subscription has never used the resource provider of a machine's or a scope's resource type.",
        "Run `az provider register --namespace NAMESPACE`: the message in the subscription's activity log names it.",
        PERMISSIONS,
    ),
    Code.PROVIDER_POLICY_REFUSED: Advice(
        "An app management policy limits the lifetime or type of credentials, or requires a reference.",
        "Set `max_secret_ttl` or `service_management_reference` of the mount's configuration as the tenant requires.",
        "GET MOUNT/config",
    ),
    Code.PROVIDER_UNREACHABLE: Advice(
        "The server cannot reach the cloud: name service, proxy or firewall.",
        "Let the server reach the login service, the resource manager and the directory on port 443.",
        STATUS,
    ),
    Code.PROVIDER_THROTTLED: Advice(
        "The cloud limits the mount's requests.",
        "Try again later, and log in less often: tokens can be renewed.",
        STATUS,
    ),
    Code.SELF_TARGET: Advice(
        "The role points at an application that the service proves itself with.",
        "Use an application of its own for the role.",
        "GET MOUNT/roles/ROLE",
    ),
    # The client
    Code.PERMISSION_DENIED: Advice(
        "The token is missing, expired or revoked, its policies do not allow this, or `--mount` names no method.",
        "Log in again; if that does not help, a policy of the role must allow the path.",
        TOKEN,
    ),
    Code.NO_HANDLER: Advice("Nothing is mounted at this path.", "Correct the path, or `--mount`.", "GET sys/mounts"),
    Code.UNSUPPORTED_PATH: Advice(
        "It is misspelt, or a path of other services.", "Correct the path.", "cloudid read MOUNT --help-path"
    ),
    Code.UNSUPPORTED_OPERATION: Advice(
        "The path takes other methods.",
        "Use one that it takes: the header `Allow` has them.",
        "cloudid read PATH --help-path",
    ),
    Code.LOGINS_THROTTLED: Advice(
        "Many logins from this address had no valid token: it was forged, expired or meant for another audience.",
        "Fix what sends them, and wait a minute.",
    ),
    Code.RATE_LIMIT_EXCEEDED: Advice(
        "A quota of requests is used up.", "Try again later, or raise the quota.", "LIST sys/quotas/rate-limit"
    ),
    Code.LEASE_COUNT_EXCEEDED: Advice(
        "A quota of leases is used up.",
        "Revoke leases that nobody needs, or raise the quota.",
        "LIST sys/quotas/lease-count",
    ),
}
"""Every code that a machine's login can be refused with, and those that clients meet most.

Placeholders: `ROLE`, `PATH`, and `MOUNT`, which is `auth/cloud` or `cloud` where nobody chose another."""

_OTHERS: Final[Mapping[Code, tuple[str, str]]] = {
    # The request itself
    Code.MALFORMED_REQUEST: (
        "The client does not send HTTP as its standard has it.",
        "Use a usual client; the text says what is wrong.",
    ),
    Code.MALFORMED_PATH: (
        "The path has empty segments, dots, or letters that must be encoded.",
        "Write it as the reference has it.",
    ),
    Code.NAMESPACE_UNKNOWN: ("The client sets a namespace: `VAULT_NAMESPACE`.", "Unset it: there are no namespaces."),
    Code.MALFORMED_JSON: ("The body is no JSON, or is cut off.", "Send one JSON object."),
    Code.BODY_TOO_COMPLEX: ("The body is nested too deep, or has too many values.", "Send less at once."),
    Code.FIELD_INVALID: ("The value has another type, or is out of its bounds.", "See the field in the reference."),
    Code.FIELD_REQUIRED: ("A field is missing, or empty.", "Send the field that the text names."),
    Code.FIELDS_EXCLUSIVE: ("Two fields contradict each other.", "Leave one of them out."),
    Code.NAME_INVALID: ("The name is too long, or has letters that are not allowed.", "Choose another name."),
    Code.NOT_FOUND: ("Nothing has this name, or it has been deleted.", "List what is there: `cloudid list PATH`."),
    Code.CLIENT_TOO_SLOW: (
        "The request took longer than `head_timeout` or `body_timeout`.",
        "Fix the network, or raise the setting.",
    ),
    Code.BODY_TOO_LARGE: ("The body is longer than `body_limit`, or than its route takes.", "Send less, or raise it."),
    Code.TARGET_TOO_LONG: ("The path with its query is too long.", "Send the parameters in the body."),
    Code.UNSUPPORTED_MEDIA_TYPE: (
        "The `Content-Type` is another one.",
        "Patch with `cloudid patch`, or send this type.",
    ),
    Code.UNSUPPORTED_CONTENT_ENCODING: (
        "The request has a `Content-Encoding`.",
        "Send the body without compression.",
    ),
    Code.HEAD_TOO_LARGE: ("Cookies or headers of a proxy are too long.", "Send fewer headers."),
    Code.WRAPPED_COUNT_EXCEEDED: ("Many answers that were wrapped wait.", "Unwrap them, or wrap for shorter."),
    # The service's own state
    Code.INTERNAL_ERROR: ("A bug of the service.", "Report it with the log's lines of the request."),
    Code.PROVIDER_QUOTA_EXCEEDED: (
        "The tenant, the subscription or an application is full.",
        "Remove unused objects, secrets and role assignments, deleted objects too.",
    ),
    Code.PROVIDER_FAILED: (
        "The cloud has a failure of its own.",
        "Try again; look at the provider's own page if it lasts.",
    ),
    Code.STORE_UNAVAILABLE: ("The database is away, or the disk is full.", "Fix what the server's log names."),
    Code.STORE_CONTENDED: ("Many requests change the same at once.", "Try again, and let fewer change it."),
    Code.COMMIT_UNRESOLVED: (
        "The connection to the database broke amid a write.",
        "Read what is there, and try again.",
    ),
    Code.ENTRY_DAMAGED: ("It was changed outside of the service.", "Rewrite it, delete it, or restore a backup."),
    Code.TOO_MANY_CONNECTIONS: ("There are `connection_limit` clients.", "Close idle ones, add nodes, or raise it."),
    Code.TOO_MANY_BODIES: ("Large bodies at once need more than `body_memory`.", "Try again, or raise it."),
    Code.AUDIT_UNAVAILABLE: ("No audit device could write.", "Fix the device that the log names, or enable another."),
    Code.SEALED: ("The store was made with another master key.", "Start the server with the right key file."),
    Code.NOT_INITIALISED: ("The store is new, or another one.", "Run `cloudid init`, or correct the setting `store`."),
    Code.DEADLINE_PASSED: (
        "Provider or store took longer than `request_deadline`.",
        "Try again: what was begun is undone.",
    ),
    # Configuration and roles
    Code.CONFIG_INVALID: (
        "It was written before a rule became stricter.",
        "Rewrite the fields that the text names.",
    ),
    Code.REFERENCE_NOT_FOUND: (
        "It is misspelt or deleted, or hidden from the mount's principal.",
        "Correct what the text names.",
    ),
    Code.REFERENCE_AMBIGUOUS: ("Several objects have this display name.", "Give the id."),
    Code.TTL_EXCEEDS_MAX: (
        "A default is longer than its maximum.",
        "Lower the first field of the text, or raise the second.",
    ),
    Code.ISSUER_MISSING: (
        "The setting `issuer` is empty, or no https address.",
        "Set it to where the provider finds us.",
    ),
    Code.ROTATION_CONFLICT: ("A period and a schedule are set.", "Empty one of them."),
    Code.ROTATION_WINDOW_CONFLICT: (
        "A window is set without a schedule.",
        "Set `rotation_schedule`, or the window to 0.",
    ),
    Code.NO_LONGER_ADMITTED: ("Machine or role have changed; the text has the check.", "Fix that, and log in again."),
    # Tokens, policies and mounts
    Code.TOKEN_NOT_RENEWABLE: ("The token was made so, or has no end.", "Log in again."),
    Code.TOKEN_PAST_MAX_TTL: (
        "The token has lived as long as it may.",
        "Log in again, or raise the maximum of role or mount.",
    ),
    Code.TOKEN_NOT_FOUND: ("The token has ended, or its accessor is mistyped.", "Look at `LIST auth/token/accessors`."),
    Code.BATCH_TOKEN_UNSUPPORTED: ("Batch tokens are not stored.", "Use a service token: `token_type`."),
    Code.TOKEN_RESTRICTED: ("The token has `num_uses`.", "Use a token without it."),
    Code.TOKEN_USED_UP: ("A lease ends with its token, and this was the last use.", "Give the token one use more."),
    Code.TOKEN_SUDO_REQUIRED: (
        "Only `sudo` at the path allows this.",
        "Leave out what the text names, or have it granted.",
    ),
    Code.WRAPPING_TOKEN_INVALID: (
        "It was unwrapped already, or is too old.",
        "Repeat the request; if you did not unwrap it, someone else read the answer.",
    ),
    Code.WRAPPING_NOT_ALLOWED: ("A header `X-Vault-Wrap-TTL` came without a token.", "Leave it out."),
    Code.WRAPPED_ANSWER_TOO_LARGE: ("The answer is longer than 256 KiB.", "Ask for less, or without wrapping."),
    Code.POLICY_INVALID: ("The text breaks a rule of the policy language.", "Fix what the error names."),
    Code.POLICY_PROTECTED: ("Nobody changes `root`, or deletes what is built in.", "Write another policy."),
    Code.POLICY_NOT_SUBSET: ("Its parent or token role lacks a policy.", "Ask for fewer, or have the parent get them."),
    Code.ROOT_POLICY_REFUSED: ("The policies have `root`.", "List another: root tokens come from root tokens alone."),
    Code.MOUNT_UNKNOWN_TYPE: ("The type is one of another service.", "Use `cloud`, or its other name `azure`."),
    Code.MOUNT_NOT_FOUND: (
        "The path is misspelt, or its mount is gone.",
        "Look at `cloudid read sys/mounts` and `sys/auth`.",
    ),
    Code.MOUNT_PROTECTED: ("Built-in mounts stay where they are.", "Choose another mount."),
    Code.MOUNT_PATH_IN_USE: (
        "A mount is at this path, above it or below it.",
        "Choose another path, or move that mount.",
    ),
    Code.FOLDER_UNKNOWN: (
        "The request carries the id of a folder that was never applied here, or was forgotten.",
        "Run `cloudid apply`, which claims the id.",
    ),
    Code.FOLDER_CLAIMED: (
        "The folder was moved, or it is a copy that has the same id.",
        "Moved: run `cloudid apply --adopt`. A copy: remove its file `.cloudid-folder`, so that it gets its own id.",
    ),
    Code.FOLDER_FULL: ("One folder has made 10,000 objects.", "Divide the folder into several."),
    Code.FOLDERS_TOO_MANY: (
        "Folders that are no longer applied still have records.",
        "Look at `cloudid list sys/applied`, and delete the records of folders that are gone.",
    ),
    Code.NOT_MADE_BY_FOLDER: (
        "Another writer made the object, or made it again after the folder had.",
        "Delete it without the folder if it is to go.",
    ),
    Code.AUDIT_DEVICE_NOT_FOUND: ("No audit device has this path.", "Look at `cloudid read sys/audit`."),
    Code.AUDITED_HEADER_NOT_FOUND: (
        "Audit does not record this header.",
        "Look at `sys/config/auditing/request-headers`.",
    ),
    Code.AUDIT_DEVICE_UNUSABLE: (
        "The file or socket cannot be written.",
        "Fix what the message names, and enable it again.",
    ),
    Code.AUDIT_FILE_OUTSIDE: (
        "The file is elsewhere.",
        "Name one below `audit_directory`, or declare it in the settings.",
    ),
    Code.AUDIT_DEVICE_DECLARED: ("The settings file declares the device.", "Change it there, and send SIGHUP."),
    # Leases and the secrets engine
    Code.LEASE_NOT_FOUND: ("The lease has ended, or its id is mistyped.", "Ask for new credentials."),
    Code.LEASE_EXPIRED: ("The lease or its token has ended.", "Ask for new credentials, and renew earlier."),
    Code.LEASE_NOT_RENEWABLE: (
        "Its role is gone or no longer keeps its application, or the lease has lived as long as it may.",
        "Request new credentials.",
    ),
    Code.REVOCATION_PENDING: (
        "The provider did not remove all; the next code says why.",
        "Wait; see `cloudid status`.",
    ),
    Code.LEASES_ALIVE: (
        "What they have at the provider goes only with this.",
        "Revoke them, or use `force`, and it stays there.",
    ),
    Code.CEILING_EXCEEDED: (
        "It is more than the mount's `allowed_…` allow.",
        "Ask for less, or change the mount's configuration.",
    ),
    Code.ROLE_CHANGE_PENDING: ("A write or a rotation was interrupted.", "Try again after `Retry-After`."),
    Code.ROLE_WITHOUT_TOKENS: ("The role lends credentials alone.", "Set its `token_scopes`, or read `creds/ROLE`."),
    Code.ROLE_GIVES_TOKENS: ("Its `proof` is no secret.", "Ask `static-creds/ROLE/token`, or set `proof` to `secret`."),
    Code.ROLE_WITHOUT_SECRET: (
        "Its first secret could not be made yet.",
        "Read `static-roles/ROLE`: it has the last error.",
    ),
    Code.TOKEN_SCOPE_NOT_ALLOWED: (
        "The scope is misspelt, or is not the role's.",
        "Ask for one of its `token_scopes`.",
    ),
    Code.ROOT_SECRET_UNMANAGED: (
        "It comes from elsewhere, or there is none.",
        "Rotate it there, or configure one here.",
    ),
    Code.ROOT_SECRETS_LEFT: (
        "Many rotations by `force` within an overlap, or the principal cannot remove secrets.",
        "Come again after `Retry-After`, or grant what `permissions` shows.",
    ),
    Code.ROOT_SECRET_MADE_HERE: (
        "Files have an older secret than rotation.",
        "Leave it out, or send `replace_root_secret`.",
    ),
    Code.ROLE_PROOF_PENDING: ("It is new, and the provider learns of it slowly.", "Ask again after `Retry-After`."),
    Code.LOGIN_REQUIRED: ("The token is not that of a login.", "Use the token that the machine's login gave."),
    Code.ROOT_SECRET_SHARED: ("Two mounts have one secret.", "Give each one of its own, or send `force`."),
}

_SHOWN_BY: Final[Mapping[Code, str]] = {
    Code.STORE_UNAVAILABLE: STATUS,
    Code.AUDIT_UNAVAILABLE: STATUS,
    Code.SEALED: STATUS,
    Code.NOT_INITIALISED: STATUS,
    Code.REVOCATION_PENDING: STATUS,
    Code.PROVIDER_FAILED: STATUS,
    Code.PROVIDER_QUOTA_EXCEEDED: PERMISSIONS,
    Code.CONFIG_INVALID: "GET MOUNT/config",
    Code.CEILING_EXCEEDED: "GET MOUNT/ceiling",
    Code.ROOT_SECRET_SHARED: "GET MOUNT/rotation",
    Code.ROOT_SECRETS_LEFT: "GET MOUNT/rotation",
    Code.ROLE_WITHOUT_SECRET: "GET MOUNT/static-roles/ROLE",
    Code.ROLE_WITHOUT_TOKENS: "GET MOUNT/roles/ROLE",
    Code.TOKEN_SCOPE_NOT_ALLOWED: "GET MOUNT/roles/ROLE",
    Code.TOKEN_PAST_MAX_TTL: TOKEN,
    Code.TOKEN_NOT_RENEWABLE: TOKEN,
    Code.TOKEN_RESTRICTED: TOKEN,
    Code.TOKEN_NOT_FOUND: "LIST auth/token/accessors",
    Code.MOUNT_NOT_FOUND: "GET sys/mounts",
    Code.MOUNT_PATH_IN_USE: "GET sys/mounts",
    Code.AUDIT_DEVICE_NOT_FOUND: "GET sys/audit",
    Code.AUDIT_DEVICE_UNUSABLE: "GET sys/audit",
    Code.AUDITED_HEADER_NOT_FOUND: "GET sys/config/auditing/request-headers",
    Code.FOLDERS_TOO_MANY: "LIST sys/applied",
}
"""What shows more of a code of `_OTHERS`, where a request does."""

ADVICE: Final[Mapping[Code, Advice]] = {
    **_COMMON,
    **{code: Advice(cause, fix, _SHOWN_BY.get(code, "")) for code, (cause, fix) in _OTHERS.items()},
}

_BY_WIRE: Final = {code.wire: advice for code, advice in ADVICE.items()}


def advice_on(codes: Iterable[str]) -> Advice | None:
    """Return the advice on the first of these codes that the table has; codes are as the service answers them."""
    return next((_BY_WIRE[code] for code in codes if code in _BY_WIRE), None)
