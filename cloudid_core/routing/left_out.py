"""Paths of existing services that are left out, and why: whoever asks for one is told, and the reference lists them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_MASTER_KEY: Final = "the master key comes from the host, and no request opens or closes the service"
_MASTER_KEY_CHANGE: Final = "the master key comes from the host: the server's command rekey changes it"
_ROOT_TOKEN: Final = "the server's command init --new-root-token makes a root token"  # is no token
_STORE: Final = "the store is SQLite or PostgreSQL: the server's commands backup and copy-store, or the database's own"
_NODES: Final = "every node answers by itself, and none has to step down: sys/ha-status lists them"
_PLUGINS: Final = "there are no plugins: what can be mounted is built in"
_PROCESS: Final = "what a process does is a matter of its host and its log"
_COUNTERS: Final = "nothing is counted for licences"
_NAMESPACES: Final = "there are no namespaces: run a service for each"
_ENTITIES: Final = "there are no entities and groups: policies come with roles and tokens"
_PEOPLE: Final = "nobody logs in through a browser: tokens are for machines that are logged in"
_PAGES: Final = "there are no web pages"
_KEYS: Final = "keys are kept for nobody else"

LEFT_OUT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "cubbyhole": "nothing is kept for tokens but wrapped answers",
        "identity/alias": _ENTITIES,
        "identity/entity": _ENTITIES,
        "identity/entity-alias": _ENTITIES,
        "identity/group": _ENTITIES,
        "identity/group-alias": _ENTITIES,
        "identity/lookup": _ENTITIES,
        "identity/mfa": "there is no second factor for machines",
        "identity/oidc/assignment": _PEOPLE,
        "identity/oidc/client": _PEOPLE,
        "identity/oidc/config": 'the issuer\'s address is the setting "issuer"',
        "identity/oidc/introspect": "a token is verified with the keys at identity/oidc/.well-known/keys",
        "identity/oidc/key": "there is one key for all roles, which is replaced every signing_key_period",
        "identity/oidc/provider": _PEOPLE,
        "identity/oidc/scope": _PEOPLE,
        "identity/persona": _ENTITIES,
        "sys/config/control-group": "there are no control groups",
        "sys/config/cors": _PAGES,
        "sys/config/reload": "SIGHUP reloads the log level and the TLS files",
        "sys/config/state": "the settings are the host's: its settings file has them",
        "sys/config/ui": _PAGES,
        "sys/control-group": "there are no control groups",
        "sys/decode-token": _ROOT_TOKEN,
        "sys/events": "events are in the log, and a host of your own gets them",
        "sys/experiments": "there are none",
        "sys/external-keys": _KEYS,
        "sys/generate-recovery-token": _ROOT_TOKEN,
        "sys/generate-root": _ROOT_TOKEN,
        "sys/generate-root-token": _ROOT_TOKEN,
        "sys/host-info": _PROCESS,
        "sys/in-flight-req": _PROCESS,
        "sys/internal/counters": _COUNTERS,
        "sys/internal/inspect": _PROCESS,
        "sys/internal/ui/namespaces": _NAMESPACES,
        "sys/internal/ui/resultant-acl": "ask sys/capabilities-self about the paths that matter",
        "sys/leases/tidy": "nothing is left to tidy: leases have no indexes that could be left over",
        "sys/license": "there are no licences",
        "sys/locked-users": "there are no passwords to guess, and nobody is locked out",
        "sys/loggers": "log_level in the settings, which SIGHUP reloads",
        "sys/managed-keys": _KEYS,
        "sys/mfa": "there is no second factor for machines",
        "sys/monitor": _PROCESS,
        "sys/namespaces": _NAMESPACES,
        "sys/plugins": _PLUGINS,
        "sys/policies/detailed": "sys/policies/acl has all that there is",
        "sys/policies/egp": "there are policies of paths only: sys/policies/acl",
        "sys/policies/password": "the cloud makes the secrets, and none is made here",
        "sys/policies/rgp": "there are policies of paths only: sys/policies/acl",
        "sys/pprof": _PROCESS,
        "sys/raw": "what is stored is sealed, and only read by what it was written for",
        "sys/rekey": _MASTER_KEY_CHANGE,
        "sys/rekey-recovery-key": _MASTER_KEY_CHANGE,
        "sys/replication": "several nodes share a PostgreSQL database, which replicates itself",
        "sys/rotate/config": "a data key is replaced by itself long before it is worn out",
        "sys/rotate/keyring/config": "a data key is replaced by itself long before it is worn out",
        "sys/rotate/recovery": _MASTER_KEY_CHANGE,
        "sys/rotate/root": _MASTER_KEY_CHANGE,
        "sys/seal": _MASTER_KEY,
        "sys/sealwrap": "everything is sealed under one key ring",
        "sys/step-down": _NODES,
        "sys/storage": _STORE,
        "sys/sync": "secrets are handed out here, and copied nowhere",
        "sys/tools": "nothing is hashed or drawn for clients",
        "sys/unseal": _MASTER_KEY,
        "sys/utilization-report": _COUNTERS,
        "sys/version-history": "the changelog says what changed; sys/health tells the version",
        "sys/workflows": "write a script",
        "sys/wrapping/pubkey": "wrapping tokens are opaque, not signed",
    }
)
"""By path the reason. A path stands for itself and for all that is below it."""


def reason_of(path: str) -> str:
    """Why a path is left out; empty when it is not one that an existing service has."""
    while path:
        if path in LEFT_OUT:
            return LEFT_OUT[path]
        path = path.rpartition("/")[0]
    return ""
