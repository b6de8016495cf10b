"""What clients send that cannot be installed everywhere, request by request, and the answers that their types take.

Each row was read in the client's own source, at the version and in the file that stand beside it. The types are the
client's: a member without a default is one that it fails without.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from attrs import field, frozen

NOTHING: Final = object()
"""No body at all; `None` is sent as null."""


@frozen
class Client:
    """A client: its name, the version that was read, and the headers that it sends beside the token."""

    name: str
    version: str
    headers: dict[str, str] = field(factory=dict)


@frozen
class Recorded:
    """A request of a client, as it goes over the wire. `$name` stands for something that is made for it.

    `takes`: the type that must read the answer.
    """

    client: Client
    source: str
    method: str
    path: str
    body: Any = NOTHING
    status: int = 200
    takes: Any = None
    token: str = "root"


class NoBody(msgspec.Struct):
    """The type of an answer without a body."""


HASHI_VAULT: Final = Client("community.hashi_vault", "7.1.0 with hvac 2.4.0", {"X-Vault-Request": "true"})
VAULTRS: Final = Client("vaultrs", "0.8.0")
SPRING: Final = Client("spring-vault", "4.1.0-RC1")
BAO: Final = Client("bao", "2.6.2", {"X-Vault-Request": "true"})
TERRAFORM: Final = Client("terraform-provider-vault", "5.11.0", {"X-Vault-Request": "true"})


class Auth(msgspec.Struct):
    """`AuthInfo` of vaultrs."""

    client_token: str
    accessor: str
    policies: list[str]
    token_policies: list[str]
    metadata: dict[str, str] | None
    lease_duration: int
    renewable: bool
    entity_id: str
    token_type: str
    orphan: bool


class WrapInfo(msgspec.Struct):
    """`WrapInfo` of vaultrs."""

    token: str
    accessor: str
    ttl: int
    creation_time: str
    creation_path: str


class Envelope(msgspec.Struct):
    """What every answer has; vaultrs is the strictest about it."""

    data: Any
    auth: Auth | None
    lease_id: str
    lease_duration: int
    renewable: bool
    request_id: str
    warnings: list[str] | None
    wrap_info: WrapInfo | None


class Login(Envelope, kw_only=True):
    """The answer to a login, or to the creation of a token."""

    auth: Auth


class Wrapped(Envelope, kw_only=True):
    """A wrapped answer."""

    wrap_info: WrapInfo


class MountConfig(msgspec.Struct):
    """`MountConfigResponse` of vaultrs."""

    default_lease_ttl: int
    force_no_cache: bool
    max_lease_ttl: int


class Mount(msgspec.Struct):
    """`MountResponse` of vaultrs and `MountOutput` of bao."""

    accessor: str
    config: MountConfig
    description: str
    external_entropy_access: bool
    local: bool
    options: dict[str, str] | None
    seal_wrap: bool
    type: str
    uuid: str


class Mounts(Envelope, kw_only=True):
    """The list of mounts."""

    data: dict[str, Mount]


class OneMount(Envelope, kw_only=True):
    """One mount."""

    data: Mount


class TokenFacts(msgspec.Struct):
    """`LookupTokenResponse` of vaultrs."""

    accessor: str
    creation_time: int
    creation_ttl: int
    display_name: str
    entity_id: str
    explicit_max_ttl: int
    id: str
    num_uses: int
    orphan: bool
    path: str
    policies: list[str]
    ttl: int
    expire_time: str | None = None
    meta: dict[str, str] | None = None
    renewable: bool | None = None


class TokenLookup(Envelope, kw_only=True):
    """A token, looked up."""

    data: TokenFacts


class TokenRole(msgspec.Struct):
    """`ReadTokenRoleResponse` of vaultrs."""

    allowed_entity_aliases: list[str] | None
    allowed_policies: list[str]
    disallowed_policies: list[str]
    explicit_max_ttl: int
    name: str
    orphan: bool
    path_suffix: str
    period: int
    renewable: bool
    token_explicit_max_ttl: int
    token_period: int
    token_type: str


class TokenRoleRead(Envelope, kw_only=True):
    """A role of tokens."""

    data: TokenRole


class Keys(msgspec.Struct):
    """The keys of a list."""

    keys: list[str]


class Listed(Envelope, kw_only=True):
    """A list."""

    data: Keys


class Policies(msgspec.Struct):
    """`ListPoliciesResponse` of vaultrs."""

    policies: list[str]


class PolicyList(Envelope, kw_only=True):
    """The names of all policies."""

    data: Policies


class Migration(msgspec.Struct):
    """`RemountResponse` of vaultrs."""

    migration_id: str


class Moved(Envelope, kw_only=True):
    """A mount is being moved."""

    data: Migration


class WrappingFacts(msgspec.Struct):
    """`WrappingLookupResponse` of vaultrs."""

    creation_path: str
    creation_time: str
    creation_ttl: int


class WrappingLookup(Envelope, kw_only=True):
    """A wrapping token, looked up."""

    data: WrappingFacts


class Health(msgspec.Struct):
    """`ReadHealthResponse` of vaultrs."""

    initialized: bool
    sealed: bool
    standby: bool
    performance_standby: bool
    replication_performance_mode: str
    replication_dr_mode: str
    server_time_utc: int
    version: str


class SealStatus(msgspec.Struct):
    """`VaultUnsealStatusImpl` of spring-vault and `SealStatusResponse` of bao."""

    type: str
    initialized: bool
    sealed: bool
    t: int
    n: int
    progress: int
    version: str
    storage_type: str


class Credentials(msgspec.Struct):
    """What credentials are."""

    client_id: str
    client_secret: str


class Leased(Envelope, kw_only=True):
    """Credentials under a lease, which spring-vault renews."""

    data: Credentials
    lease_id: str
    lease_duration: int
    renewable: bool


class Errors(msgspec.Struct):
    """`EndpointError` of vaultrs."""

    errors: list[str]


NEW_TOKEN: Final = {"policies": ["app"], "ttl": "1h"}
VAULTRS_TOKEN: Final = {
    **dict.fromkeys("display_name entity_alias explicit_max_ttl id lease meta no_default_policy".split()),
    **dict.fromkeys("no_parent num_uses period type".split()),
    "renewable": True,
    **NEW_TOKEN,
}
SPRING_TOKEN: Final = {**NEW_TOKEN, "meta": {}, "renewable": True, "display_name": "", "num_uses": 0}
BAO_MOUNT: Final = {
    "type": "azure",
    "description": "",
    "config": {"options": None, "default_lease_ttl": "", "max_lease_ttl": "", "force_no_cache": False},
    "local": False,
    "seal_wrap": False,
    "external_entropy_access": False,
    "options": None,
}
RULES: Final = 'path "cloud/creds/*" { capabilities = ["read"] }'

_AZURE: Final = "plugins/module_utils/_auth_method_azure.py"
_REQUESTS: Final = "vaultrs/src/api/token/requests.rs"
_SYS: Final = "vaultrs/src/api/sys/requests.rs"
_SPRING: Final = "spring-vault-core/src/main/java/org/springframework/vault"
_SPRING_LEASES: Final = f"{_SPRING}/core/lease/LeaseEndpoints.java"
_SPRING_TOKENS: Final = f"{_SPRING}/core/VaultTokenTemplate.java"
_SPRING_SYSTEM: Final = f"{_SPRING}/core/VaultSysTemplate.java"
_SPRING_WRAPPING: Final = f"{_SPRING}/core/VaultWrappingTemplate.java"
_SPRING_LOGIN: Final = f"{_SPRING}/authentication/AzureMsiAuthentication.java"


class StaticRoleFields(msgspec.Struct):
    """`AzureStaticRoleAPIModel` of terraform-provider-vault."""

    application_object_id: str
    ttl: int
    metadata: dict[str, str]


class StaticRole(Envelope, kw_only=True):
    """A static role."""

    data: StaticRoleFields


class StaticCredentialsFields(msgspec.Struct):
    """`AzureStaticCredsAPIModel` of terraform-provider-vault."""

    client_id: str
    client_secret: str
    secret_id: str
    metadata: dict[str, str]
    expiration: str


class StaticCredentials(Envelope, kw_only=True):
    """The credentials of a static role."""

    data: StaticCredentialsFields


_STATIC: Final = "internal/vault/secrets/azure/azure_static_role_resource.go"
_STATIC_CREDS: Final = "internal/vault/secrets/ephemeral/azure_secrets_static_credentials.go"
STATIC_ROLE: Final = {"application_object_id": "$application", "ttl": 31_536_000, "metadata": {"team": "a"}}
REQUESTS: Final = (
    Recorded(HASHI_VAULT, _AZURE, "POST", "auth/cloud/login", {"role": "any", "jwt": "$jwt"}, 200, Login, ""),
    Recorded(HASHI_VAULT, _AZURE, "POST", "auth/cloud/login", {"role": "web", "jwt": "$jwt"}, 400, Errors, ""),
    Recorded(HASHI_VAULT, "plugins/modules/vault_read.py", "GET", "cloud/creds/app", takes=Leased),
    Recorded(HASHI_VAULT, "plugins/modules/vault_list.py", "LIST", "cloud/roles", takes=Listed),
    Recorded(
        HASHI_VAULT,
        "plugins/modules/vault_token_create.py",
        "POST",
        "auth/token/create",
        {**NEW_TOKEN, "no_default_policy": False},
        takes=Login,
    ),
    Recorded(VAULTRS, _REQUESTS, "POST", "auth/token/create", VAULTRS_TOKEN, takes=Login),
    Recorded(VAULTRS, _REQUESTS, "POST", "auth/token/create-orphan", VAULTRS_TOKEN, takes=Login),
    Recorded(VAULTRS, _REQUESTS, "POST", "auth/token/lookup", {"token": "$token"}, takes=TokenLookup),
    Recorded(VAULTRS, _REQUESTS, "GET", "auth/token/lookup-self", NOTHING, takes=TokenLookup),
    Recorded(VAULTRS, _REQUESTS, "GET", "auth/token/lookup-self", NOTHING, takes=TokenLookup, token="$login"),
    Recorded(VAULTRS, _REQUESTS, "POST", "auth/token/lookup-accessor", {"accessor": "$accessor"}, takes=TokenLookup),
    Recorded(VAULTRS, _REQUESTS, "POST", "auth/token/renew", {"token": "$token", "increment": None}, takes=Login),
    Recorded(VAULTRS, _REQUESTS, "POST", "auth/token/renew-self", {"increment": "30m"}, takes=Login, token="$login"),
    Recorded(VAULTRS, _REQUESTS, "POST", "auth/token/renew-accessor", {"accessor": "$accessor", "increment": None}),
    Recorded(VAULTRS, _REQUESTS, "POST", "auth/token/revoke-self", NOTHING, 204, NoBody, "$token"),
    Recorded(VAULTRS, _REQUESTS, "POST", "auth/token/revoke-accessor", {"accessor": "$accessor"}, 204, NoBody),
    Recorded(VAULTRS, _REQUESTS, "LIST", "auth/token/accessors", NOTHING, takes=Listed),
    Recorded(VAULTRS, _REQUESTS, "GET", "auth/token/roles/ci", NOTHING, takes=TokenRoleRead),
    Recorded(VAULTRS, _REQUESTS, "LIST", "auth/token/roles", NOTHING, takes=Listed),
    Recorded(VAULTRS, _SYS, "GET", "sys/mounts", NOTHING, takes=Mounts),
    Recorded(VAULTRS, _SYS, "GET", "sys/mounts/cloud", NOTHING, takes=OneMount),
    Recorded(
        VAULTRS,
        _SYS,
        "POST",
        "sys/mounts/vaultrs",
        {"type": "azure", "description": None, "config": None, "options": None},
        204,
        NoBody,
    ),
    Recorded(VAULTRS, _SYS, "POST", "sys/remount", {"from": "vaultrs", "to": "vaultrs-2"}, takes=Moved),
    Recorded(VAULTRS, _SYS, "DELETE", "sys/mounts/vaultrs-2", NOTHING, 204, NoBody),
    Recorded(VAULTRS, _SYS, "GET", "sys/policy", NOTHING, takes=PolicyList),
    Recorded(VAULTRS, _SYS, "PUT", "sys/policy/vaultrs", {"policy": RULES}, 204, NoBody),
    Recorded(VAULTRS, _SYS, "DELETE", "sys/policy/vaultrs", NOTHING, 204, NoBody),
    Recorded(VAULTRS, _SYS, "POST", "sys/wrapping/lookup", {"token": "$wrapped"}, takes=WrappingLookup),
    Recorded(VAULTRS, _SYS, "POST", "sys/wrapping/unwrap", {"token": "$wrapped"}, takes=Envelope),
    Recorded(VAULTRS, _SYS, "GET", "sys/health", NOTHING, takes=Health, token=""),
    Recorded(VAULTRS, "vaultrs/src/api.rs", "GET", "auth/cloud/role/absent", NOTHING, 404, Errors),
    Recorded(SPRING, _SPRING_LOGIN, "POST", "auth/cloud/login", "$machine", takes=Login, token=""),
    Recorded(SPRING, f"{_SPRING}/core/VaultTemplate.java", "GET", "cloud/creds/app", NOTHING, takes=Leased),
    Recorded(SPRING, _SPRING_LEASES, "PUT", "sys/leases/renew", {"lease_id": "$lease", "increment": "600"}),
    Recorded(SPRING, _SPRING_LEASES, "PUT", "sys/renew", {"lease_id": "$lease", "increment": "600"}),
    Recorded(SPRING, _SPRING_LEASES, "PUT", "sys/leases/revoke", {"lease_id": "$lease"}, 204, NoBody),
    Recorded(SPRING, _SPRING_LEASES, "PUT", "sys/revoke", {"lease_id": "$lease"}, 204, NoBody),
    Recorded(SPRING, _SPRING_LEASES, "PUT", "sys/leases/revoke-prefix/$lease", NOTHING, 204, NoBody),
    Recorded(SPRING, _SPRING_TOKENS, "POST", "auth/token/create", SPRING_TOKEN, takes=Login),
    Recorded(SPRING, _SPRING_TOKENS, "POST", "auth/token/revoke", {"token": "$token"}, 204, NoBody),
    Recorded(SPRING, _SPRING_SYSTEM, "GET", "sys/seal-status", NOTHING, takes=SealStatus, token=""),
    Recorded(SPRING, _SPRING_SYSTEM, "GET", "sys/auth", NOTHING, takes=Mounts),
    Recorded(SPRING, _SPRING_WRAPPING, "POST", "sys/wrapping/unwrap", NOTHING, takes=Envelope, token="$wrapped"),
    Recorded(SPRING, _SPRING_WRAPPING, "POST", "sys/wrapping/rewrap", {"token": "$wrapped"}, takes=Wrapped),
    Recorded(BAO, "api/sys_seal.go", "GET", "sys/seal-status", NOTHING, takes=SealStatus, token=""),
    Recorded(BAO, "api/sys_rotate.go", "POST", "sys/rotate/keyring", NOTHING, 204, NoBody),
    Recorded(BAO, "api/sys_mounts.go", "POST", "sys/mounts/bao", BAO_MOUNT, 204, NoBody),
    Recorded(BAO, "api/sys_mounts.go", "GET", "sys/mounts/bao", NOTHING, takes=OneMount),
    Recorded(BAO, "api/sys_mounts.go", "DELETE", "sys/mounts/bao", NOTHING, 204, NoBody),
    Recorded(BAO, "api/sys_auth.go", "POST", "sys/auth/bao", BAO_MOUNT, 204, NoBody),
    Recorded(BAO, "api/sys_auth.go", "DELETE", "sys/auth/bao", NOTHING, 204, NoBody),
    Recorded(BAO, "api/sys_policy.go", "PUT", "sys/policies/acl/bao", {"policy": RULES}, 204, NoBody),
    Recorded(BAO, "api/sys_policy.go", "LIST", "sys/policies/acl", NOTHING, takes=Listed),
    Recorded(BAO, "api/sys_policy.go", "DELETE", "sys/policies/acl/bao", NOTHING, 204, NoBody),
    Recorded(BAO, "api/sys_leases.go", "PUT", "sys/leases/lookup", {"lease_id": "$lease"}),
    Recorded(
        BAO, "api/sys_leases.go", "PUT", "sys/leases/renew", {"lease_id": "$lease", "increment": 600}, takes=Envelope
    ),
    Recorded(
        BAO, "api/sys_capabilities.go", "POST", "sys/capabilities", {"token": "$token", "path": "cloud/creds/app"}
    ),
    Recorded(BAO, "api/auth_token.go", "PUT", "auth/token/renew-self", {"increment": 600}, takes=Login, token="$login"),
    Recorded(BAO, "api/logical.go", "PUT", "auth/cloud/login", "$machine", takes=Login, token=""),
    Recorded(BAO, "api/logical.go", "LIST", "auth/cloud/role", NOTHING, takes=Listed),
    Recorded(BAO, "api/logical.go", "SCAN", "auth/cloud/role", NOTHING, 405, Errors),
    Recorded(BAO, "api/sys_hastatus.go", "GET", "sys/ha-status", NOTHING),
    Recorded(TERRAFORM, _STATIC, "PUT", "cloud/static-roles/app", STATIC_ROLE, 204, NoBody),
    Recorded(TERRAFORM, _STATIC, "GET", "cloud/static-roles/app", NOTHING, takes=StaticRole),
    Recorded(TERRAFORM, _STATIC_CREDS, "GET", "cloud/static-creds/app", NOTHING, takes=StaticCredentials),
    Recorded(TERRAFORM, _STATIC, "PUT", "cloud/static-roles/app", {**STATIC_ROLE, "metadata": {}}, 204, NoBody),
    Recorded(TERRAFORM, _STATIC, "DELETE", "cloud/static-roles/app", NOTHING, takes=Envelope),
)
"""In order: some rows remove what those before them made."""
