"""Paths of Vault that are not supported, and why. Error texts and the reference use this table."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_PATHS: Final[Mapping[str, str]] = {
    "cloudid stores nothing for tokens except wrapped responses": "cubbyhole",
    "there are no entities and groups: roles and tokens have policies": (
        "identity/alias identity/entity identity/entity-alias identity/group identity/group-alias "
        "identity/lookup identity/persona"
    ),
    "machines have no second factor": "identity/mfa sys/mfa",
    "cloudid has no browser logins: only logged-in machines get identity tokens": (
        "identity/oidc/assignment identity/oidc/client identity/oidc/provider identity/oidc/scope"
    ),
    'the issuer\'s URL is the setting "issuer"': "identity/oidc/config",
    "verify tokens with the keys at identity/oidc/.well-known/keys": "identity/oidc/introspect",
    "all roles use one key, which is replaced every signing_key_period": "identity/oidc/key",
    "there are no control groups": "sys/config/control-group sys/control-group",
    "web pages of other origins cannot use cloudid": "sys/config/cors",
    'the setting "ui" enables the web page': "sys/config/ui",
    "SIGHUP reloads the log level and the TLS files": "sys/config/reload",
    "see the server's settings file": "sys/config/state",
    "run the server's command init --new-root-token for a new root token": (
        "sys/decode-token sys/generate-recovery-token sys/generate-root sys/generate-root-token"
    ),
    "events are in the log, and are passed to embedding applications": "sys/events",
    "there are none": "sys/experiments",
    "cloudid does not store keys for others": "sys/external-keys sys/managed-keys",
    "see the server's log, or the operating system": (
        "sys/host-info sys/in-flight-req sys/internal/inspect sys/monitor sys/pprof"
    ),
    "cloudid has no licences to count clients for": "sys/internal/counters sys/utilization-report",
    "there are no namespaces: run several services instead": "sys/internal/ui/namespaces sys/namespaces",
    "use sys/capabilities-self with the paths that you need": "sys/internal/ui/resultant-acl",
    "there is nothing to tidy": "sys/leases/tidy",
    "there are no licences": "sys/license",
    "there are no passwords to guess, so no user is locked out": "sys/locked-users",
    "set log_level in the settings, and reload it with SIGHUP": "sys/loggers",
    "there are no plugins: all types of mounts are built in": "sys/plugins",
    "use sys/policies/acl": "sys/policies/detailed",
    "there are only ACL policies: use sys/policies/acl": "sys/policies/egp sys/policies/rgp",
    "Azure generates all secrets": "sys/policies/password",
    "stored data is encrypted, and cannot be read directly": "sys/raw",
    "the server reads the master key at start: replace it with the server's command rekey": (
        "sys/rekey sys/rekey-recovery-key sys/rotate/recovery sys/rotate/root"
    ),
    "several nodes share a store in PostgreSQL or etcd, which has its own replication": "sys/replication",
    "data keys are replaced automatically": "sys/rotate/config sys/rotate/keyring/config",
    "the server reads the master key at start, and no request can seal or unseal it": "sys/seal sys/unseal",
    "all data is encrypted with one key ring": "sys/sealwrap",
    "every node serves all requests, so none has to step down: sys/ha-status lists them": "sys/step-down",
    "use the server's commands backup and copy-store, or the tools of PostgreSQL and etcd": ("sys/storage"),
    "cloudid does not copy secrets to other systems": "sys/sync",
    "cloudid does not hash or generate random data for clients": "sys/tools",
    "see the changelog; sys/health returns the version": "sys/version-history",
    "write a script": "sys/workflows",
    "wrapping tokens are opaque, not signed": "sys/wrapping/pubkey",
}
"""All unsupported paths by reason."""

LEFT_OUT: Final[Mapping[str, str]] = MappingProxyType(
    dict(sorted((path, why) for why, paths in _PATHS.items() for path in paths.split()))
)
"""The reason by path. A path includes everything below it."""


LEFT_OUT_HEADERS: Final[Mapping[str, str]] = MappingProxyType(
    {"x-vault-inline-auth-path": "inline authentication is not offered: log in first"}
)
"""Headers of Vault by which a request without a token authenticates, and what to do instead."""


def reason_of(path: str) -> str:
    """Return why a path is not supported. Empty if Vault does not have it."""
    while path:
        if path in LEFT_OUT:
            return LEFT_OUT[path]
        path = path.rpartition("/")[0]
    return ""
