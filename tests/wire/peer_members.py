"""The members that the answers of the existing services always have, by what is asked: typed clients of those fail
where one is missing. What they leave out when it is empty is not here."""

from __future__ import annotations

from typing import Final

from attrs import frozen


@frozen(kw_only=True)
class Answer:
    """An answer to compare: the request, where in its body the members are, and their names."""

    row: str
    """The route: the component's kind and type, the operation and the route's path."""
    method: str = "GET"
    path: str
    body: dict[str, object] | None = None
    at: tuple[str, ...] = ("data",)
    """The members on the way to those that are compared."""
    members: str


ENVELOPE: Final = "request_id lease_id renewable lease_duration data wrap_info warnings auth mount_type"
AUTH: Final = (
    "client_token accessor policies token_policies metadata lease_duration renewable entity_id token_type orphan "
    "mfa_requirement num_uses"
)
WRAP: Final = "token accessor ttl creation_time creation_path"
STATE: Final = "initialized sealed version cluster_name cluster_id"
MOUNT: Final = (
    "type description accessor local seal_wrap external_entropy_access options uuid plugin_version "
    "running_plugin_version running_sha256 deprecation_status config"
)
MOUNT_CONFIG: Final = "default_lease_ttl max_lease_ttl force_no_cache"
TOKEN: Final = (
    "id accessor policies path meta display_name num_uses orphan creation_time creation_ttl expire_time ttl "
    "explicit_max_ttl entity_id type"
)
TOKEN_ROLE: Final = (
    "name period token_period explicit_max_ttl token_explicit_max_ttl allowed_policies allowed_policies_glob "
    "disallowed_policies disallowed_policies_glob orphan path_suffix renewable token_type allowed_entity_aliases "
    "token_no_default_policy"
)
ROTATION: Final = (
    "identity_token_audience identity_token_ttl root_password_ttl rotation_period rotation_schedule rotation_window "
    "disable_automated_rotation"
)
LOGIN_ROLE: Final = (
    "bound_service_principal_ids bound_group_ids bound_subscription_ids bound_resource_groups bound_locations "
    "bound_scale_sets token_bound_cidrs token_explicit_max_ttl token_max_ttl token_no_default_policy token_num_uses "
    "token_period token_policies token_ttl token_type"
)
ENGINE_ROLE: Final = (
    "azure_roles azure_groups application_object_id ttl max_ttl explicit_max_ttl permanently_delete persist_app "
    "sign_in_audience tags"
)
CREATED: Final = Answer(
    row="auth token update create", method="POST", path="auth/token/create", at=("auth",), members=AUTH
)

ANSWERS: Final = (
    Answer(
        row="secret system read health",
        path="sys/health",
        at=(),
        members=f"{STATE} standby replication_performance_mode replication_dr_mode server_time_utc",
    ),
    Answer(
        row="secret system read seal-status",
        path="sys/seal-status",
        at=(),
        members=f"{STATE} type t n progress nonce build_date migration recovery_seal storage_type",
    ),
    Answer(
        row="secret system read leader",
        path="sys/leader",
        at=(),
        members="ha_enabled is_self active_time leader_address leader_cluster_address performance_standby "
        "performance_standby_last_remote_wal",
    ),
    Answer(row="secret system read init", path="sys/init", at=(), members="initialized"),
    Answer(
        row="secret system read ha-status",
        path="sys/ha-status",
        at=("data", "nodes", "0"),
        members="hostname api_address cluster_address active_node last_echo version",
    ),
    Answer(row="secret system read key-status", path="sys/key-status", members="term install_time encryptions"),
    Answer(row="secret system read policies/acl/*name", path="sys/policies/acl/default", members="name policy"),
    Answer(row="secret system list policies/acl", method="LIST", path="sys/policies/acl", members="keys"),
    Answer(row="secret system read policy", path="sys/policy", members="keys policies"),
    Answer(row="secret system list policy", method="LIST", path="sys/policy", members="keys policies"),
    Answer(row="secret system read policy/*name", path="sys/policy/default", members="name rules"),
    Answer(row="secret system read auth", path="sys/auth", at=("data", "cloud/"), members=MOUNT),
    Answer(row="secret system read mounts", path="sys/mounts", at=("data", "cloud/"), members=MOUNT),
    Answer(row="secret system read auth/*path", path="sys/auth/cloud", members=MOUNT),
    Answer(row="secret system read mounts/auth/*path", path="sys/mounts/auth/cloud", members=MOUNT),
    Answer(row="secret system read mounts/*path", path="sys/mounts/cloud", members=MOUNT),
    Answer(
        row="secret system read mounts/*path",
        path="sys/mounts/cloud",
        at=("data", "config"),
        members=MOUNT_CONFIG,
    ),
    Answer(
        row="secret system read auth/*path/tune",
        path="sys/auth/cloud/tune",
        members=f"{MOUNT_CONFIG} description token_type",
    ),
    Answer(
        row="secret system read mounts/auth/*path/tune",
        path="sys/mounts/auth/cloud/tune",
        members=f"{MOUNT_CONFIG} description token_type",
    ),
    Answer(
        row="secret system read mounts/*path/tune",
        path="sys/mounts/cloud/tune",
        members=f"{MOUNT_CONFIG} description",
    ),
    Answer(row="secret system read internal/ui/mounts", path="sys/internal/ui/mounts", members="auth secret"),
    Answer(
        row="secret system read internal/ui/mounts",
        path="sys/internal/ui/mounts",
        at=("data", "secret", "cloud/"),
        members="type description options",
    ),
    Answer(
        row="secret system read internal/ui/mounts/*path",
        path="sys/internal/ui/mounts/cloud/creds",
        members=f"path {MOUNT}",
    ),
    Answer(
        row="secret system read internal/specs/openapi",
        path="sys/internal/specs/openapi",
        at=(),
        members="openapi info paths components",
    ),
    Answer(
        row="secret system read audit",
        path="sys/audit",
        at=("data", "file/"),
        members="path type description options local",
    ),
    Answer(
        row="secret system update audit-hash/*path",
        method="POST",
        path="sys/audit-hash/file",
        body={"input": "x"},
        members="hash",
    ),
    Answer(
        row="secret system read config/auditing/request-headers",
        path="sys/config/auditing/request-headers",
        members="headers",
    ),
    Answer(
        row="secret system read config/auditing/request-headers/:header",
        path="sys/config/auditing/request-headers/X-Trace",
        at=("data", "X-Trace"),
        members="hmac",
    ),
    Answer(
        row="secret system read quotas/rate-limit/:name",
        path="sys/quotas/rate-limit/web",
        members="type name path role rate interval block_interval",
    ),
    Answer(
        row="secret system read quotas/lease-count/:name",
        path="sys/quotas/lease-count/web",
        members="type name path role max_leases",
    ),
    Answer(
        row="secret system read quotas/config",
        path="sys/quotas/config",
        members="enable_rate_limit_audit_logging enable_rate_limit_response_headers rate_limit_exempt_paths",
    ),
    Answer(
        row="secret system update leases/lookup",
        method="PUT",
        path="sys/leases/lookup",
        body={"lease_id": "LEASE"},
        members="id issue_time expire_time last_renewal renewable ttl",
    ),
    Answer(row="secret system read leases/count", path="sys/leases/count", members="lease_count counts"),
    Answer(row="secret system read leases", path="sys/leases", members="lease_count leases"),
    Answer(
        row="secret system update capabilities-self",
        method="POST",
        path="sys/capabilities-self",
        body={"paths": ["sys/mounts"]},
        members="capabilities sys/mounts",
    ),
    Answer(row="auth token read lookup-self", path="auth/token/lookup-self", members=TOKEN),
    Answer(row="auth token read lookup", path="auth/token/lookup", members=TOKEN),
    Answer(row="auth token read roles/:name", path="auth/token/roles/web", members=TOKEN_ROLE),
    Answer(
        row="secret identity read oidc/role/:name",
        path="identity/oidc/role/web",
        members="client_id key template ttl",
    ),
    CREATED,
    Answer(row=CREATED.row, method="POST", path=CREATED.path, at=(), members=ENVELOPE),
    Answer(
        row="auth cloud read config",
        path="auth/other/config",
        members="tenant_id resource environment client_id max_retries retry_delay max_retry_delay " + ROTATION,
    ),
    Answer(row="auth cloud read role/:name", path="auth/other/role/web", members=LOGIN_ROLE),
    Answer(
        row="secret cloud read config",
        path="cloud/config",
        members=f"subscription_id tenant_id client_id environment {ROTATION}",
    ),
    Answer(row="secret cloud read roles/:name", path="cloud/roles/web", members=ENGINE_ROLE),
    Answer(row="secret cloud read creds/:name", path="cloud/creds/web", members="client_id client_secret"),
    Answer(
        row="secret cloud read static-roles/:name",
        path="cloud/static-roles/app",
        members="application_object_id ttl rotation_period metadata",
    ),
    Answer(
        row="secret cloud read static-creds/:name",
        path="cloud/static-creds/app",
        members="client_id client_secret secret_id expiration metadata",
    ),
)

OURS: Final = {
    "secret system read remount/status/:id": "a move is done when the answer to it comes",
    "secret system read applied/:name": "the existing services have no such path",
    "secret system read metrics": "a host shows them: tests/servers/metrics compares the members",
    "secret system read internal/recent-logins": "the existing services have no such path",
    "secret system read retiring/:accessor": "the existing services have no such path",
    "secret system read retiring/:accessor/config": "the existing services have no such path",
    "secret identity read oidc/plugins/.well-known/openid-configuration": "RFC 8414 and OpenID Connect Discovery",
    "secret identity read oidc/plugins/.well-known/keys": "RFC 7517",
    "secret identity read oidc/.well-known/openid-configuration": "RFC 8414 and OpenID Connect Discovery",
    "secret identity read oidc/.well-known/keys": "RFC 7517",
    "secret identity read oidc/token/:name": "not for this token: tests/core/issuer compares the members",
    "auth cloud read permissions": "the existing services have no such path",
    "auth cloud read rotation": "the existing services have no such path",
    "secret cloud read ceiling": "the existing services have no such path",
    "secret cloud read token/:name": "the existing services have no such path",
    "secret cloud read reconcile": "the existing services have no such path",
    "secret cloud read permissions": "the existing services have no such path",
    "secret cloud read rotation": "the existing services have no such path",
}
"""Reads that are not compared, and why."""
