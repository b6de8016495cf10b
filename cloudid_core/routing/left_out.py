"""Paths of existing services that are left out, and why: whoever asks for one is told, and the reference lists them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_PATHS: Final[Mapping[str, str]] = {
    "nothing is kept for tokens but wrapped answers": "cubbyhole",
    "there are no entities and groups: policies come with roles and tokens": (
        "identity/alias identity/entity identity/entity-alias identity/group identity/group-alias "
        "identity/lookup identity/persona"
    ),
    "there is no second factor for machines": "identity/mfa sys/mfa",
    "nobody logs in through a browser: tokens are for machines that are logged in": (
        "identity/oidc/assignment identity/oidc/client identity/oidc/provider identity/oidc/scope"
    ),
    'the issuer\'s address is the setting "issuer"': "identity/oidc/config",
    "a token is verified with the keys at identity/oidc/.well-known/keys": "identity/oidc/introspect",
    "there is one key for all roles, which is replaced every signing_key_period": "identity/oidc/key",
    "there are no control groups": "sys/config/control-group sys/control-group",
    "pages of other origins cannot use the service": "sys/config/cors",
    'the setting "ui" turns the page for people on': "sys/config/ui",
    "SIGHUP reloads the log level and the TLS files": "sys/config/reload",
    "the settings are the host's: its settings file has them": "sys/config/state",
    "the server's command init --new-root-token makes a root token": (
        "sys/decode-token sys/generate-recovery-token sys/generate-root sys/generate-root-token"
    ),
    "events are in the log, and a host of your own gets them": "sys/events",
    "there are none": "sys/experiments",
    "keys are kept for nobody else": "sys/external-keys sys/managed-keys",
    "what a process does is a matter of its host and its log": (
        "sys/host-info sys/in-flight-req sys/internal/inspect sys/monitor sys/pprof"
    ),
    "nothing is counted for licences": "sys/internal/counters sys/utilization-report",
    "there are no namespaces: run a service for each": "sys/internal/ui/namespaces sys/namespaces",
    "ask sys/capabilities-self about the paths that matter": "sys/internal/ui/resultant-acl",
    "nothing is left to tidy: leases have no indexes that could be left over": "sys/leases/tidy",
    "there are no licences": "sys/license",
    "there are no passwords to guess, and nobody is locked out": "sys/locked-users",
    "log_level in the settings, which SIGHUP reloads": "sys/loggers",
    "there are no plugins: what can be mounted is built in": "sys/plugins",
    "sys/policies/acl has all that there is": "sys/policies/detailed",
    "there are policies of paths only: sys/policies/acl": "sys/policies/egp sys/policies/rgp",
    "the cloud makes the secrets, and none is made here": "sys/policies/password",
    "what is stored is sealed, and only read by what it was written for": "sys/raw",
    "the master key comes from the host: the server's command rekey changes it": (
        "sys/rekey sys/rekey-recovery-key sys/rotate/recovery sys/rotate/root"
    ),
    "several nodes share a store in PostgreSQL or etcd, which replicates itself": "sys/replication",
    "a data key is replaced by itself long before it is worn out": "sys/rotate/config sys/rotate/keyring/config",
    "the master key comes from the host, and no request opens or closes the service": "sys/seal sys/unseal",
    "everything is sealed under one key ring": "sys/sealwrap",
    "every node answers by itself, and none has to step down: sys/ha-status lists them": "sys/step-down",
    "the store is SQLite, PostgreSQL or etcd: the server's commands backup and copy-store, or the database's own": (
        "sys/storage"
    ),
    "secrets are handed out here, and copied nowhere": "sys/sync",
    "nothing is hashed or drawn for clients": "sys/tools",
    "the changelog says what changed; sys/health tells the version": "sys/version-history",
    "write a script": "sys/workflows",
    "wrapping tokens are opaque, not signed": "sys/wrapping/pubkey",
}
"""By the reason all paths that it is for."""

LEFT_OUT: Final[Mapping[str, str]] = MappingProxyType(
    dict(sorted((path, why) for why, paths in _PATHS.items() for path in paths.split()))
)
"""By path the reason. A path stands for itself and for all that is below it."""


LEFT_OUT_HEADERS: Final[Mapping[str, str]] = MappingProxyType(
    {"x-vault-inline-auth-path": "inline authentication is not offered: log in first"}
)
"""Headers of existing services by which a request without a token proves its caller, and what to do instead."""


def reason_of(path: str) -> str:
    """Why a path is left out; empty when it is not one that an existing service has."""
    while path:
        if path in LEFT_OUT:
            return LEFT_OUT[path]
        path = path.rpartition("/")[0]
    return ""
