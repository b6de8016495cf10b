"""Settings that a host passes to the core at start, as plain data.

The table of these fields is also the `[service]` table of a server's settings file, and its documentation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from attrs import field, frozen

from .audit import DeclaredDevice
from .clouds import CLOUDS, Cloud, named_clouds
from .forms import BOOLEAN, INTEGER, PRECISE_SECONDS, FieldType, bounded, fields_of, lasting, one_of, setting
from .values import LONGEST_BELIEF, LONGEST_LIFE, Secret, coercion, network
from .version import VERSION


def _issuer(raw: object) -> str:
    text = coercion.text(raw).rstrip("/")
    if text and not re.fullmatch(r"https://[A-Za-z0-9\[][!-~]*", text) and not LOOPBACK.fullmatch(text):
        raise ValueError("must be an https URL; http is only for loopback")
    if re.search(r"[?#@%\s]", text):
        raise ValueError("must be a URL without query, fragment, user or escapes")
    return text


def _version(raw: object) -> str:
    text = coercion.text(raw)
    if len(text) > LONGEST_VERSION or not _VERSION.fullmatch(text):
        raise ValueError("must be a version such as 2.2.0+ent")
    return text


LONGEST_JWT: Final = 1 << 16
"""Maximum size of a login's JWT in bytes, which no setting can exceed."""
LONGEST_VERSION: Final = 64
_VERSION: Final = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?", re.ASCII)
"""https://semver.org, sections 2, 9 and 10."""
API_LEVEL: Final = "2.2.0+ent"
"""The version of Vault whose API cloudid follows."""
LOOPBACK: Final = re.compile(r"http://(localhost|127\.[0-9.]+|\[::1\])(:[0-9]{1,5})?(/[!-~]*)?")
ISSUER: Final = FieldType("https address", _issuer)
API_VERSION: Final = FieldType("version", _version)
NETWORKS: Final = FieldType("list of CIDR blocks", network.networks, list)
"""Networks in their canonical form. Requests never read settings."""


@frozen(kw_only=True)
class Settings:
    """The settings of one service, which are fixed while it runs."""

    master_key: Secret = field(repr=False)
    """64 hexadecimal digits: the AES-256 key that encrypts the key ring."""

    environment: Mapping[str, Secret] = field(factory=dict[str, Secret], repr=False)
    """The environment variables that start with `CLOUD_` or `AZURE_`."""

    node_name: str = ""
    """The name of this node for operators."""

    clouds: Mapping[str, Cloud] = field(factory=lambda: CLOUDS, converter=named_clouds)
    """The endpoints of the environments, in any spelling of their names. The usual ones apply to those left out.

    Raises `ValueError` for an unknown name.
    """

    audit_devices: tuple[DeclaredDevice, ...] = ()
    """The audit devices in the host's own settings."""

    audit_folders: tuple[str, ...] = ()
    """Absolute paths, without a trailing slash, of the folders in which requests may create audit files."""

    publishes_to: str = ""
    """Where the host publishes the issuers' documents, without secrets. Empty: they are read from the service."""

    body_limit: int = setting(
        bounded(INTEGER, 1024, 2**26),
        2**20,
        "Maximum size of a request body with a valid token, in bytes. Without a token it is 64 KiB, or "
        "32 KiB if none is needed.",
    )
    jwt_limit: int = setting(bounded(INTEGER, 512, LONGEST_JWT), 2**14, "Maximum size of a login's JWT, in bytes.")
    request_deadline: float = setting(
        bounded(PRECISE_SECONDS, 0.1, 3600.0), 90.0, "Maximum duration of a request. Clients can set a shorter one."
    )
    request_grace: float = setting(
        bounded(PRECISE_SECONDS, 0.0, 3600.0),
        30.0,
        "How long after its deadline a request's calls may still take effect in Azure.",
    )
    provider_timeout: float = setting(
        bounded(PRECISE_SECONDS, 0.1, 3600.0), 30.0, "Maximum duration of a call to Azure."
    )
    provider_read_rate: int = setting(
        bounded(INTEGER, 0, 10**6),
        25,
        "Reads per second from Azure Resource Manager, for each subscription and for all nodes together. "
        "Bursts may be nine times as large. 0: no limit.",
    )
    leeway: int = setting(
        lasting(300), 60, "Allowed clock skew for `nbf` and `iat` of a JWT. None is allowed for `exp`."
    )
    fact_max_age: int = setting(
        lasting(LONGEST_BELIEF), 60, "How long facts about a machine are reused. 0: always look it up."
    )
    missing_max_age: int = setting(
        lasting(LONGEST_BELIEF), 5, "How long Azure's response that a machine does not exist is reused."
    )
    machine_check: str = setting(one_of("always", "needed"), "always", "When a login looks up the machine in Azure.")
    api_version: str = setting(
        API_VERSION,
        f"{API_LEVEL}.cloudid.{VERSION}",
        "The `version` in `sys/health` and `sys/seal-status`. Clients omit fields that are newer than this version.",
    )
    metrics_access: str = setting(
        one_of("token", "anybody"),
        "token",
        "Who may read `sys/metrics`: callers whose token may read that path, or anyone.",
    )
    redact_client_secret: bool = setting(
        BOOLEAN,
        False,
        "Omit client_secret when the configuration of an auth method is read. Mounts of type `azure` always omit it.",
    )
    verify_credentials: bool = setting(
        BOOLEAN, True, "Test new credentials with a token request before returning them."
    )
    settle_time: int = setting(
        lasting(LONGEST_BELIEF),
        900,
        'How long Azure may take to show a new object in lists. Until then, "not found" proves nothing.',
    )
    default_lease_ttl: int = setting(lasting(LONGEST_LIFE, least=1), 2_764_800, "Default TTL of tokens and leases.")
    max_lease_ttl: int = setting(lasting(LONGEST_LIFE, least=1), 2_764_800, "Maximum TTL of tokens and leases.")
    signature_cache_size: int = setting(bounded(INTEGER, 0, 2**20), 16_384, "Maximum verified JWTs in the cache.")
    fact_cache_size: int = setting(bounded(INTEGER, 0, 2**20), 16_384, "Maximum machines in the cache.")
    source_cache_size: int = setting(
        bounded(INTEGER, 16, 2**20), 16_384, "Maximum source addresses whose requests and failed logins are counted."
    )
    record_cache_size: int = setting(
        bounded(INTEGER, 16, 2**20),
        4_096,
        "Maximum decoded records in the cache, and maximum tokens. Fewer if entries have more than 4 KiB on average.",
    )
    issuer: str = setting(
        ISSUER, "", "Public https URL of this service, from which Azure fetches the keys of identity tokens."
    )
    signing_key_period: int = setting(
        lasting(10**8, least=10),
        86_400,
        "How long a key signs identity tokens. It is published for the same time before that.",
    )
    trusted_proxies: tuple[str, ...] = setting(
        NETWORKS, (), "Proxies (CIDR blocks) whose header X-Forwarded-For is trusted."
    )

    def __attrs_post_init__(self) -> None:
        """Raise `ValueError` for values that a settings file may not have either.

        Hosts without a settings file need this.
        """
        for each in fields_of(Settings):
            if (value := getattr(self, each.name)) != each.default:
                try:
                    kept = each.default if value == "" else each.kind.parse(each.kind.show(value))
                    object.__setattr__(self, each.name, kept)
                except (TypeError, ValueError) as error:
                    raise ValueError(f'"{each.name}" {error}') from None
