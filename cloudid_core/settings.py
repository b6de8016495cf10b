"""Settings: everything that a host tells the core at start, as plain data.

The table of these fields is also the `[service]` table of a server's settings file and its documentation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from attrs import Factory, field, frozen

from .audit import DeclaredDevice
from .clouds import CLOUDS, Cloud
from .forms import BOOLEAN, INTEGER, PRECISE_SECONDS, FieldType, bounded, fields_of, lasting, one_of, setting
from .values import LONGEST_BELIEF, LONGEST_LIFE, Secret, coercion, network
from .version import VERSION


def _issuer(raw: object) -> str:
    text = coercion.text(raw).rstrip("/")
    if text and not re.fullmatch(r"https://[A-Za-z0-9\[][!-~]*", text) and not LOOPBACK.fullmatch(text):
        raise ValueError("must be an https address; http is for loopback only")
    if re.search(r"[?#@%\s]", text):
        raise ValueError("must be an address without query, fragment, user or escapes")
    return text


def _version(raw: object) -> str:
    text = coercion.text(raw)
    if len(text) > LONGEST_VERSION or not _VERSION.fullmatch(text):
        raise ValueError("must be a version such as 2.2.0+ent")
    return text


LONGEST_JWT: Final = 1 << 16
"""Bytes of a login JWT that no setting exceeds."""
LONGEST_VERSION: Final = 64
_VERSION: Final = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?", re.ASCII)
"""https://semver.org, sections 2, 9 and 10."""
API_LEVEL: Final = "2.2.0+ent"
"""The version of the existing service whose paths and fields ours follow."""
LOOPBACK: Final = re.compile(r"http://(localhost|127\.[0-9.]+|\[::1\])(:[0-9]{1,5})?(/[!-~]*)?")
ISSUER: Final = FieldType("https address", _issuer)
API_VERSION: Final = FieldType("version", _version)
NETWORKS: Final = FieldType("list of CIDR blocks", network.networks, list)
"""In their normal form: no request reads settings back."""


@frozen(kw_only=True)
class Settings:
    """What holds for one service for as long as it runs."""

    master_key: Secret = field(repr=False)
    """64 hexadecimal digits: the AES-256 key that seals the key ring."""

    environment: Mapping[str, Secret] = field(factory=dict[str, Secret], repr=False)
    """The process environment's variables that start with `CLOUD_` or `AZURE_`."""

    node_name: str = ""
    """What operators know this node by."""

    clouds: Mapping[str, Cloud] = Factory(lambda: CLOUDS)
    """The endpoints of the four environments."""

    audit_devices: tuple[DeclaredDevice, ...] = ()
    """The audit devices that the host's own settings name."""

    audit_folders: tuple[str, ...] = ()
    """Absolute paths, without a slash at the end, of the folders below which requests may have audit files."""

    publishes_to: str = ""
    """Where the host publishes the issuers' documents, without secrets. Empty: others read them at the service."""

    body_limit: int = setting(
        bounded(INTEGER, 1024, 2**26),
        2**20,
        "Largest request body, in bytes, behind a good token. Without: 64 KiB, or 32 KiB where none is needed.",
    )
    jwt_limit: int = setting(bounded(INTEGER, 512, LONGEST_JWT), 2**14, "Largest login JWT, in bytes.")
    request_deadline: float = setting(
        bounded(PRECISE_SECONDS, 0.1, 3600.0), 90.0, "How long one request may take; clients can ask for less."
    )
    request_grace: float = setting(
        bounded(PRECISE_SECONDS, 0.0, 3600.0),
        30.0,
        "How long after its deadline what a request has sent may still be under way at the provider.",
    )
    provider_timeout: float = setting(
        bounded(PRECISE_SECONDS, 0.1, 3600.0), 30.0, "How long one call to the provider may take."
    )
    provider_read_rate: int = setting(
        bounded(INTEGER, 0, 10**6),
        25,
        "Reads a second from the resource manager, for each subscription, that all nodes together may make; nine times "
        "as many at once. 0: no limit.",
    )
    leeway: int = setting(
        lasting(300), 60, "Clock skew that `nbf` and `iat` of a JWT are allowed; `exp` is allowed none."
    )
    fact_max_age: int = setting(
        lasting(LONGEST_BELIEF), 60, "How long facts about a machine may be reused; 0: always ask."
    )
    missing_max_age: int = setting(
        lasting(LONGEST_BELIEF), 5, "How long the provider's answer that a machine is unknown is believed."
    )
    machine_check: str = setting(
        one_of("always", "needed"), "always", "When the provider confirms a machine that a role bounds."
    )
    api_version: str = setting(
        API_VERSION,
        f"{API_LEVEL}.cloudid.{VERSION}",
        "What `sys/health` and `sys/seal-status` answer as `version`: clients leave out fields that it is too old for.",
    )
    metrics_access: str = setting(
        one_of("token", "anybody"), "token", "Who may read `sys/metrics`: whose token may read that path, or anybody."
    )
    redact_client_secret: bool = setting(
        BOOLEAN,
        False,
        "Leave client_secret out when the login configuration is read. Mounts of type `azure` always do.",
    )
    verify_credentials: bool = setting(BOOLEAN, True, "Prove new credentials at the token endpoint before answering.")
    settle_time: int = setting(
        lasting(LONGEST_BELIEF),
        900,
        "Declared time after which the provider's lists and look-ups tell the whole truth.",
    )
    default_lease_ttl: int = setting(lasting(LONGEST_LIFE, least=1), 2_764_800, "Default TTL of tokens and leases.")
    max_lease_ttl: int = setting(lasting(LONGEST_LIFE, least=1), 2_764_800, "Maximum TTL of tokens and leases.")
    signature_cache_size: int = setting(bounded(INTEGER, 0, 2**20), 16_384, "Verified JWTs that are remembered.")
    fact_cache_size: int = setting(bounded(INTEGER, 0, 2**20), 16_384, "Machines whose facts are remembered.")
    source_cache_size: int = setting(
        bounded(INTEGER, 16, 2**20), 16_384, "Source addresses whose requests and failed logins are counted."
    )
    record_cache_size: int = setting(
        bounded(INTEGER, 16, 2**20),
        4_096,
        "Decoded records that are remembered, fewer if their entries have more than 4 KiB on average; as many tokens.",
    )
    issuer: str = setting(
        ISSUER, "", "Public https address of this service, which the provider fetches the keys of identity tokens from."
    )
    signing_key_period: int = setting(
        lasting(10**8, least=10), 86_400, "How long a key signs identity tokens, and is published ahead of that."
    )
    trusted_proxies: tuple[str, ...] = setting(NETWORKS, (), "Proxies (CIDR blocks) whose X-Forwarded-For is believed.")

    def __attrs_post_init__(self) -> None:
        """Raises `ValueError` for what a settings file may not hold either, since a host of one's own has none."""
        for each in fields_of(Settings):
            if (value := getattr(self, each.name)) != each.default:
                try:
                    kept = each.default if value == "" else each.kind.parse(each.kind.show(value))
                    object.__setattr__(self, each.name, kept)
                except (TypeError, ValueError) as error:
                    raise ValueError(f'"{each.name}" {error}') from None
