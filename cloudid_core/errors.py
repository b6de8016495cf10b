"""Failures: one closed tree, split by who has to act.

- `Refused`: the caller asked for something that we do not do. It carries one or more stable codes, each with its HTTP
  status; `Code` is the whole table, and the documentation of error codes is printed from it.
- `HostFailure`: the host could not perform an effect. Hosts raise nothing else; the mapping of their libraries' errors
  to these classes is the host's contract.

Anything else that leaves a program is a bug and is answered with status 500.
No text here ever holds an input value: it may be a secret.
"""

from __future__ import annotations

import re
from enum import Enum
from hashlib import sha256
from typing import Final

from attrs import frozen

REASON_LIMIT: Final = 240


class Code(Enum):
    """Every error code of the API, with its HTTP status and its text. The code is the name in lower case."""

    # The request itself
    MALFORMED_REQUEST = 400, "the request is malformed"
    MALFORMED_PATH = 400, "the path is malformed"
    NAMESPACE_UNKNOWN = 400, "unknown namespace: there is only root"
    MALFORMED_JSON = 400, "failed to decode JSON input"
    BODY_TOO_COMPLEX = 400, "the JSON body is too complex"
    FIELD_INVALID = 400, "field validation failed"
    FIELD_REQUIRED = 400, "a required field is missing"
    FIELDS_EXCLUSIVE = 400, "mutually exclusive fields are both set"
    NAME_INVALID = 400, "the name is not valid"
    PERMISSION_DENIED = 403, "permission denied"
    LOGIN_REQUIRED = 403, "this needs the token of a login: log in, and send the request with that token"
    NOT_FOUND = 404, "nothing here"
    UNSUPPORTED_PATH = 404, "unsupported path"
    NO_HANDLER = 404, "no handler for route"
    UNSUPPORTED_OPERATION = 405, "unsupported operation"
    CLIENT_TOO_SLOW = 408, "the client was too slow"
    BODY_TOO_LARGE = 413, "the request body is too large"
    TARGET_TOO_LONG = 414, "the request target is too long"
    UNSUPPORTED_MEDIA_TYPE = 415, "PATCH needs application/merge-patch+json"
    UNSUPPORTED_CONTENT_ENCODING = 415, "the request body must not be compressed"
    HEAD_TOO_LARGE = 431, "the request head is too large"

    RATE_LIMIT_EXCEEDED = 429, "rate limit quota exceeded"
    LOGINS_THROTTLED = 429, "too many logins from this source had no valid token"
    LEASE_COUNT_EXCEEDED = 429, "lease count quota exceeded"
    WRAPPED_COUNT_EXCEEDED = 429, "too many answers wrapped for this token wait to be unwrapped"

    # The service's own state
    INTERNAL_ERROR = 500, "internal error"
    PROVIDER_REFUSED = 502, "Azure rejected the request or returned an invalid response"
    PROVIDER_PERMISSION_DENIED = 502, "Azure does not permit this operation with the mount's credentials"
    PROVIDER_SECRET_REFUSED = (502, "Azure does not accept the client secret: it is wrong, has expired or was replaced")
    PROVIDER_ASSERTION_REFUSED = 502, "Azure does not accept the identity token of this service"
    PROVIDER_TENANT_UNKNOWN = 502, "the tenant was not found: check tenant_id and environment"
    PROVIDER_APPLICATION_UNKNOWN = (
        502,
        "the app registration was not found in this tenant: check client_id and tenant_id",
    )
    PROVIDER_PRINCIPAL_DISABLED = (
        502,
        "the mount's app registration is disabled, or has no service principal in the tenant",
    )
    PROVIDER_ACCESS_BLOCKED = 502, "a Conditional Access policy of the tenant blocks the mount's app registration"
    PROVIDER_RESOURCE_UNKNOWN = 502, "the resource that the token was requested for was not found in the tenant"
    PROVIDER_SCOPE_MISSING = 502, "the resource group or subscription of a role assignment no longer exists"
    PROVIDER_NOT_REGISTERED = 502, "a resource provider is not registered in the subscription"
    PROVIDER_POLICY_REFUSED = 502, "a policy of the tenant for app registrations forbids this"
    PROVIDER_QUOTA_EXCEEDED = 502, "a quota of Azure is used up"
    PROVIDER_UNREACHABLE = 503, "Azure could not be reached"
    PROVIDER_FAILED = 503, "Azure answered with an error"
    PLATFORM_IDENTITY_UNAVAILABLE = 503, "the mount has no client secret, and this machine has no managed identity"
    CREDENTIAL_UNUSABLE = 503, "the configured credential cannot be used"
    PROVIDER_THROTTLED = 503, "Azure is throttling requests"
    STORE_UNAVAILABLE = 503, "the store could not be reached"
    STORE_CONTENDED = 503, "the store was too busy with concurrent changes"
    COMMIT_UNRESOLVED = 503, "the outcome of a write could not be determined"
    ENTRY_DAMAGED = 503, "an entry of the store is damaged: rewrite or delete it"
    TOO_MANY_CONNECTIONS = 503, "too many connections"
    TOO_MANY_BODIES = 503, "too many large requests are in progress"
    AUDIT_UNAVAILABLE = 503, "the request could not be written to the audit log"
    SEALED = 503, "the service is sealed"
    NOT_INITIALISED = 503, "the service is not initialised"
    DEADLINE_PASSED = 504, "the deadline of the request has passed"

    # Configuration and roles
    CONFIG_MISSING = 400, "the mount is not configured"
    CONFIG_INVALID = 400, "the stored configuration of the mount is not valid: write the field again"
    REFERENCE_NOT_FOUND = 400, "a referenced object does not exist"
    REFERENCE_AMBIGUOUS = 400, "a name matches several objects: use the id"
    ROLE_UNBOUND = (
        400,
        "a role must have at least one bound constraint when creating/updating a role: set a bound_* field, or "
        'bound_service_principal_ids to "*"',
    )
    ROLE_NOT_FOUND = 400, "the role does not exist"
    ROLE_NEWER_THAN_NODE = 403, "the role has a bound constraint that this node does not know: upgrade the node"
    TTL_EXCEEDS_MAX = 400, "the TTL is greater than the maximum TTL"
    ISSUER_MISSING = 400, "identity tokens need an issuer that Azure can reach"
    ROTATION_CONFLICT = 400, "only one of rotation_period and rotation_schedule can be set"
    ROTATION_WINDOW_CONFLICT = (
        400,
        "rotation_window needs rotation_schedule, and cannot be combined with rotation_period",
    )

    # Login
    JWT_MALFORMED = 400, "the JWT is not a signed JSON Web Token"
    LOGIN_REFUSED = 403, "login refused"
    JWT_EXPIRED = 403, "the JWT has expired"
    JWT_NOT_YET_VALID = 403, "the JWT is not valid yet"
    JWT_EXPIRES_TOO_LATE = 403, "the JWT expires later than the role allows"
    JWT_ISSUER_MISMATCH = 403, "the issuer of the JWT is not trusted"
    JWT_AUDIENCE_MISMATCH = 403, "the JWT was issued for a different audience"
    JWT_TENANT_MISMATCH = 403, "the JWT belongs to a different tenant"
    JWT_CLAIM_MISSING = 403, "a claim of the JWT is missing or malformed"
    SOURCE_ADDRESS_REFUSED = 403, "the source address is not allowed"
    BOUND_TOKEN_TYPE_MISMATCH = 403, "the type of the JWT, app or user, is not in the role's bound_token_types"
    BOUND_SERVICE_PRINCIPAL_MISMATCH = 403, "the service principal is not allowed by the role"
    BOUND_GROUP_MISMATCH = 403, "none of the principal's groups is allowed by the role"
    BOUND_SUBSCRIPTION_MISMATCH = 403, "the subscription is not allowed by the role"
    BOUND_RESOURCE_GROUP_MISMATCH = 403, "the resource group is not allowed by the role"
    BOUND_IDENTITY_MISMATCH = 403, "the user-assigned identity is not allowed by the role, or the JWT does not name one"
    BOUND_VM_ID_MISMATCH = 403, "the vmId of the virtual machine is not allowed by the role"
    BOUND_LOCATION_MISMATCH = 403, "the location is not allowed by the role"
    BOUND_SCALE_SET_MISMATCH = 403, "the scale set is not allowed by the role"
    MACHINE_REQUIRED = 400, 'the role binds machines: "subscription_id" and "resource_group_name" are required'
    MACHINE_CLAIM_MISSING = 403, "the JWT does not name a machine: request it for a first-party audience"
    SUBSCRIPTION_MISMATCH = 403, "subscription_id is not the one in the JWT"
    RESOURCE_GROUP_MISMATCH = 403, "resource_group_name is not the one in the JWT"
    VM_NAME_MISMATCH = 403, "vm_name is not the machine in the JWT"
    VMSS_NAME_MISMATCH = 403, "vmss_name is not the scale set of the machine in the JWT"
    RESOURCE_ID_MISMATCH = 403, "resource_id is not the resource in the JWT"
    MACHINE_NOT_FOUND = 403, "Azure does not know the machine"
    MACHINE_IDENTITY_MISMATCH = 403, "the machine does not have the identity in the JWT"
    NO_LONGER_ADMITTED = 403, "the role no longer admits the machine, so its token cannot be renewed"
    GROUPS_UNAVAILABLE = 403, "the groups of the principal could not be determined"

    # Tokens, policies and mounts
    TOKEN_NOT_RENEWABLE = 400, "the token is not renewable"
    TOKEN_PAST_MAX_TTL = 400, "past the max TTL, cannot renew"
    TOKEN_NOT_FOUND = 400, "token not found"
    BATCH_TOKEN_UNSUPPORTED = 400, "batch tokens cannot do this"
    TOKEN_RESTRICTED = 400, "a token with limited uses cannot create tokens"
    TOKEN_USED_UP = 400, "this was the token's last use, so it cannot own a lease"
    TOKEN_SUDO_REQUIRED = 400, "root or sudo privileges are required"
    WRAPPING_TOKEN_INVALID = 400, "wrapping token is not valid or does not exist"
    WRAPPING_NOT_ALLOWED = 400, "the response to this request cannot be wrapped"
    WRAPPED_ANSWER_TOO_LARGE = 400, "the response is too large to be wrapped"
    POLICY_INVALID = 400, "failed to parse the policy"
    POLICY_PROTECTED = 400, "this policy cannot be changed"
    POLICY_NOT_SUBSET = 400, "child policies must be a subset of the parent's"
    ROOT_POLICY_REFUSED = 400, "auth methods cannot create root tokens"
    MOUNT_UNKNOWN_TYPE = 400, "plugin not found in the catalog"
    MOUNT_NOT_FOUND = 400, "no mount at this path"
    MOUNT_PROTECTED = 400, "this mount cannot be changed"
    MOUNT_PATH_IN_USE = 409, "path is already in use"
    FOLDER_UNKNOWN = 400, "no applied folder has claimed this id"
    FOLDER_CLAIMED = 409, "a folder in a different place has claimed this id"
    FOLDER_FULL = 400, "the applied folder has created the maximum number of objects"
    FOLDERS_TOO_MANY = 400, "the maximum number of applied folders is reached"
    NOT_MADE_BY_FOLDER = 409, "the applied folder did not create this object, so it cannot delete it"
    AUDIT_DEVICE_NOT_FOUND = 400, "unknown audit backend: no audit device at this path"
    AUDITED_HEADER_NOT_FOUND = 400, "Could not find header in config"
    AUDIT_DEVICE_UNUSABLE = 400, "the audit device cannot be written to"
    AUDIT_FILE_OUTSIDE = (
        400,
        "the file of an audit device must be in the folder that the server's setting audit_directory "
        "names: give a path below it, or a relative path, without . or .. segments",
    )
    AUDIT_DEVICE_DECLARED = 400, "the audit device is declared in the server's settings: change it there"

    # Leases and the secrets engine
    LEASE_NOT_FOUND = 400, "lease not found"
    LEASE_EXPIRED = 400, "lease expired"
    LEASE_NOT_RENEWABLE = 400, "lease is not renewable"
    REVOCATION_PENDING = 503, "the revocation is not complete yet; it continues in the background"
    LEASES_ALIVE = 409, "leases, roles or pending changes still need this to remove their objects from Azure"
    SELF_TARGET = 403, "a role may not use an app registration that a mount of this service authenticates with"
    APPLICATION_KEPT = 403, "a role may not use an app registration that belongs to another role or to a lease"
    CEILING_EXCEEDED = 403, "a role may not grant more than the configuration of its mount allows"
    ROLE_CHANGE_PENDING = 503, "an earlier change of the role's app registration is still in progress"
    ROLE_WITHOUT_TOKENS = 400, "the role does not issue access tokens, because it has no token_scopes"
    ROLE_GIVES_TOKENS = 400, "the role does not issue a client secret: read static-creds/NAME/token for an access token"
    ROLE_WITHOUT_SECRET = 503, "the role has no client secret yet: read static-roles/NAME for the reason"
    ROLE_PROOF_PENDING = 503, "Azure does not accept the role's new credential yet: try again"
    TOKEN_SCOPE_NOT_ALLOWED = 400, "the scope is not among the role's token_scopes"
    ROOT_SECRET_UNMANAGED = 400, "the mount has no stored client secret, so there is nothing to rotate"
    ROOT_SECRETS_LEFT = 503, "too many earlier client secrets of this mount or static role have not been removed yet"
    ROOT_SECRET_MADE_HERE = 409, "the service rotated the client secret itself, and no one else knows the current one"
    ROOT_SECRET_SHARED = 409, "another mount uses the same client secret"

    @property
    def status(self) -> int:
        return self.value[0]

    @property
    def text(self) -> str:
        return self.value[1]

    @property
    def wire(self) -> str:
        return self.name.lower()


@frozen
class Problem:
    """One problem of a request. `detail` names fields and rules, never an input value."""

    code: Code
    detail: str = ""

    @property
    def text(self) -> str:
        return f"{self.code.text}: {self.detail}" if self.detail else self.code.text


class CloudidError(Exception):
    """The base of all exceptions that this library raises on purpose."""


def drop_tracebacks(*failures: BaseException | None) -> None:
    """Remove the tracebacks of exceptions that were handled, and of those that led to them.

    A traceback refers to the frames that the exception went through, and a frame that has the exception in a variable
    refers back to it. Such a cycle keeps whatever these frames hold, such as the body of a request, until the garbage
    collector runs, which is rare on a server.
    """
    left = [failure for failure in failures if failure is not None]
    while left:
        failure = left.pop()
        if failure.__traceback__ is None and failure.__context__ is None and failure.__cause__ is None:
            continue
        failure.__traceback__ = None
        left += [each for each in (failure.__context__, failure.__cause__) if each is not None]
        failure.__context__ = failure.__cause__ = None


class Refused(CloudidError):
    """The request is refused. The status is that of the first problem, unless `status` overrides it.

    `allow` are the methods in a 405 response. Empty: all methods that the service supports.
    """

    def __init__(
        self,
        code: Code,
        detail: str = "",
        *more: Problem,
        retry_after: float | None = None,
        status: int = 0,
        allow: str = "",
    ) -> None:
        self.problems: tuple[Problem, ...] = (Problem(code, detail), *more)
        self.retry_after = retry_after
        self.allow = allow
        self.status = status or code.status
        super().__init__("; ".join(problem.text for problem in self.problems))

    @classmethod
    def because(cls, problems: list[Problem]) -> Refused:
        first, *more = problems
        return cls(first.code, first.detail, *more)

    @property
    def code(self) -> Code:
        return self.problems[0].code


class EntryDamaged(Refused):
    """An entry of the store cannot be decrypted or decoded. It can be overwritten or deleted at its `version`.

    The text names the entry by a digest of its key, because the caller may not be allowed to see the key.
    """

    def __init__(self, key: str, version: int) -> None:
        self.key = key
        self.version = version
        self.digest = sha256(key.encode()).hexdigest()[:16]
        super().__init__(Code.ENTRY_DAMAGED, f"entry {self.digest}")


class ProviderProblem(CloudidError):
    """Azure answered with an error. Callers decide by status and code, never by the message.

    `retry_after` is the pause that Azure requested, in seconds. `hint` names a field or a variable that is known to be
    wrong. `client_request_id` is the client's id of the request.
    """

    hint = ""

    def __init__(
        self,
        status: int,
        code: str,
        request_id: str = "",
        retry_after: float | None = None,
        client_request_id: str = "",
    ) -> None:
        self.status = status
        self.code = code
        self.request_id = request_id
        self.retry_after = retry_after
        self.client_request_id = client_request_id
        ours = f", client request {client_request_id}" if client_request_id else ""
        super().__init__(f"the provider answered {status} {code} (request {request_id or 'unknown'}{ours})")


_ANSWERED: Final = re.compile(r"(the provider answered [0-9]+) [^()]* \(request [^()]*\)")
_UNREACHED: Final = "the provider gave no answer"
_UNREACHED_FOR: Final = re.compile(rf"({_UNREACHED}) \(.*", re.DOTALL)


def without_provider_code(reason: str) -> str:
    """Return a reason without Azure's error code and the host that could not be reached.

    It is for callers who may not see them.
    """
    return _UNREACHED_FOR.sub(r"\1", _ANSWERED.sub(r"\1", reason))


class ProviderAmbiguous(CloudidError):
    """The outcome of a change in Azure is unknown: look the object up before repeating the change.

    `answered`: Azure did respond, with an error or an invalid response.
    """

    def __init__(self, reason: str, *, answered: bool) -> None:
        self.answered = answered
        super().__init__(reason)


class HostFailure(CloudidError):
    """The host could not perform an effect."""


class Conflict(HostFailure):
    """An entry was not at the version that a commit expected; nothing was written."""


class OutcomeUnknown(HostFailure):
    """A commit may or may not have been written, and this no longer changes: read again."""


class StoreFailed(HostFailure):
    """The store could not be read, or a commit was definitely not written."""


class ProviderUnreachable(HostFailure):
    """Azure did not respond. `sent` is whether the request may have reached it.

    `reason` is the host that was called and why it did not respond. It contains no secret.
    """

    def __init__(self, reason: str, *, sent: bool) -> None:
        self.sent = sent
        super().__init__(reason)


class PlatformTokenUnavailable(HostFailure):
    """The host's platform has no identity token.

    `status` is the status of the platform's response, or `NO_ANSWER`. `None`: a retry is useless, because there is no
    platform or its response is malformed.
    """

    NO_ANSWER: Final = 0

    def __init__(self, reason: str, *, status: int | None = None) -> None:
        self.status = status
        super().__init__(reason)


class PublicationFailed(HostFailure):
    """A published document could not be read or written. The reason contains no secret."""


class RecordFailed(HostFailure):
    """The audit record could not be written.

    The reason contains no secret, because it is shown to the caller who enables a device.
    """


class TimeIsUp(HostFailure):
    """A program inside `Within` took too long and was closed."""


def reason_of(failure: CloudidError) -> str:
    """Return the part of a failure that may be stored and shown.

    For a host's failure this is only its type, because its text comes from a library. Only if Azure did not respond,
    the text is included, because hosts use a fixed set of texts for that.
    """
    if isinstance(failure, ProviderUnreachable):
        return f"{_UNREACHED} ({failure})"[:REASON_LIMIT]
    return type(failure).__name__ if isinstance(failure, HostFailure) else str(failure)[:REASON_LIMIT]
