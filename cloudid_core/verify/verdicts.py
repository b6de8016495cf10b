"""Verdicts: the outcomes of a verification, the identity of a caller, and facts that no token holds."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum
from typing import Any, Final, TypeAlias

from attrs import field, frozen

from ..effects import Instant


class RefusalCode(Enum):
    """Why a token is refused: the status for an HTTP answer, and a text that repeats nothing of the token.

    Status 401 is about the token, so that the caller may get another one; 403 is about the caller; 503 is about the
    keys of the tenant, and no verdict on the token. A name that the service has too means the same there.
    """

    TOKEN_TOO_LONG = 401, "the token is longer than 16 KiB"
    JWT_MALFORMED = 401, "the token is not a signed JSON web token"
    ALGORITHM_NOT_ALLOWED = 401, "the token is not signed with RS256, or does not name a key"
    KEY_UNKNOWN = 401, "the token is signed with a key that the tenant does not have"
    SIGNATURE_INVALID = 401, "the signature of the token is not valid"
    JWT_CLAIM_MISSING = 401, "a claim of the token is missing or malformed"
    JWT_ISSUER_MISMATCH = 401, "the issuer of the token is not trusted"
    JWT_TENANT_MISMATCH = 401, "the token belongs to a different tenant"
    JWT_AUDIENCE_MISMATCH = 401, "the token was issued for a different audience"
    JWT_EXPIRED = 401, "the token has expired"
    JWT_NOT_YET_VALID = 401, "the token is not valid yet"
    JWT_EXPIRES_TOO_LATE = 401, "the token is valid for longer than allowed"
    BOUND_TOKEN_TYPE_MISMATCH = 403, "tokens of this type are not allowed"
    APPLICATION_ROLE_MISSING = 403, "the token lacks a required application role"
    BOUND_SERVICE_PRINCIPAL_MISMATCH = 403, "the service principal is not allowed"
    BOUND_GROUP_MISMATCH = 403, "the principal is not in an allowed group"
    BOUND_SUBSCRIPTION_MISMATCH = 403, "the subscription is not allowed"
    BOUND_RESOURCE_GROUP_MISMATCH = 403, "the resource group is not allowed"
    BOUND_IDENTITY_MISMATCH = 403, "the user-assigned identity is not allowed, or the token does not name one"
    BOUND_VM_ID_MISMATCH = 403, "the vmId of the virtual machine is not allowed"
    BOUND_LOCATION_MISMATCH = 403, "the location is not allowed"
    BOUND_SCALE_SET_MISMATCH = 403, "the scale set is not allowed"
    MACHINE_CLAIM_MISSING = 403, "the token does not name a machine: request it for a first-party audience"
    MACHINE_NOT_FOUND = 403, "Azure does not know the machine"
    MACHINE_IDENTITY_MISMATCH = 403, "the machine does not have the identity of the token"
    GROUPS_UNAVAILABLE = 403, "the groups of the principal could not be determined"
    KEYS_UNAVAILABLE = 503, "the signing keys of the tenant could not be fetched"

    @property
    def status(self) -> int:
        return self.value[0]

    @property
    def text(self) -> str:
        return self.value[1]

    @property
    def wire(self) -> str:
        """The name in lower case, for answers and logs."""
        return self.name.lower()


@frozen(kw_only=True)
class Identity:
    """The caller, as a verified token names it. Ids are in lower case except where noted."""

    tenant_id: str
    principal_id: str
    app_id: str
    """As it is written; empty when the token names none."""
    token_type: str
    """`app`: a workload that acts for itself; `user`: a person."""
    groups: frozenset[str]
    """Ids of the groups that the token lists."""
    roles: frozenset[str]
    """Application roles: the claim `roles`, as it is written."""
    machine_id: str
    """Resource id of the machine as it is written; empty when the token names none."""
    expires_at: Instant
    """When the token expires, in seconds since the epoch."""
    claims: Mapping[str, Any] = field(eq=False, repr=False)
    """All claims of the token, read-only."""


@frozen
class Admitted:
    """The signature, audience, tenant and times are right, and every bound is met."""

    identity: Identity


@frozen
class Refused:
    """The token is not admitted, because of the first check that failed."""

    code: RefusalCode
    unknown_kid: str = ""
    """The id of the key that the token names, if the key set lacks it. A newer key set may have it."""
    claim: str = ""
    """The claim that is missing or malformed, with `JWT_CLAIM_MISSING`."""
    expected: Any = field(default=None, eq=False)
    """What the check compares with; never set before the signature is verified."""
    found: Any = field(default=None, eq=False, repr=False)
    """What the token or the facts say instead; never set before the signature is verified. Log it, do not answer it."""

    @property
    def reason(self) -> str:
        """A sentence for the caller. It repeats nothing of the token."""
        return f"{self.code.text}: {self.claim}" if self.claim else self.code.text

    @property
    def status(self) -> int:
        """The status of an HTTP answer: 401 (get another token), 403 (not allowed) or 503 (try again)."""
        return self.code.status

    @property
    def challenge(self) -> str:
        """The value of `WWW-Authenticate` (RFC 6750, section 3) with status 401 or 403; otherwise empty."""
        errors = {401: "invalid_token", 403: "insufficient_scope"}
        if self.status not in errors:
            return ""
        return f'Bearer error="{errors[self.status]}", error_description="{self.reason}"'

    @property
    def headers(self) -> dict[str, str]:
        """The headers of an HTTP answer: the challenge, or when to try again."""
        return {"WWW-Authenticate": self.challenge} if self.challenge else {"Retry-After": "30"}

    @property
    def lacks_key(self) -> bool:
        """Return whether newer keys of the tenant could change the verdict."""
        return self.code in (RefusalCode.KEY_UNKNOWN, RefusalCode.KEYS_UNAVAILABLE)


@frozen
class NeedsFacts:
    """The token is right as far as it goes, but a bound depends on facts that only Azure knows. No one is admitted yet.

    Fetch the facts, and call `Verifier.verify` again with them.
    """

    identity: Identity
    machine: bool
    """Location, scale set, `vmId` and identities of the machine `identity.machine_id` are needed."""
    groups: bool
    """The groups of the principal are needed: there are more than the token can list."""


Verdict: TypeAlias = Admitted | Refused | NeedsFacts


class NotGiven(Enum):
    """Stands for a fact that was not fetched."""

    NOT_GIVEN = "not given"


@frozen(kw_only=True)
class MachineFacts:
    """What Azure says about a machine."""

    location: str = ""
    principals: Collection[str] = ()
    """Object ids of the machine's identities. The identity of the token must be one of them."""
    scale_set: str | None = None
    """Name of the scale set; `None`: the machine is in none."""
    vm_id: str | None = None
    """The `vmId` of a virtual machine."""


@frozen(kw_only=True)
class Facts:
    """What Azure says beyond the token. `None`: it does not know the machine, or cannot list the groups."""

    machine: MachineFacts | NotGiven | None = NotGiven.NOT_GIVEN
    groups: Collection[str] | NotGiven | None = NotGiven.NOT_GIVEN


NO_FACTS: Final = Facts()
