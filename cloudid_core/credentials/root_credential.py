"""The common part of both components' configurations: the root credential, its rotation, and the client."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeVar

from attrs import evolve, frozen

from ..deadline import Deadline
from ..errors import Code, Problem, Refused
from ..forms import (
    BOOLEAN,
    GUID,
    IDENTIFIER,
    SCHEDULE,
    SECRET,
    TENANT,
    TEXT,
    effective,
    fields_of,
    lasting,
    one_of,
    setting,
    source_of,
)
from ..mounts import Mount
from ..provider import SECRET as CLIENT_SECRET
from ..provider import Assertions, Client, Credentials, PlatformIdentity, RetryPolicy, Source, federated_token_file
from ..settings import Settings
from ..store import Found
from ..values import DAY, LONGEST_INTERVAL, LONGEST_SECRET, Schedule, Secret
from .identity_tokens import DEFAULT_LIFETIME, IdentityTokens, Resources
from .signing_keys import LONGEST_TOKEN, SHORTEST_TOKEN

if TYPE_CHECKING:
    from .application_keys import Key

ROOT_PASSWORD_TTL: Final = 182 * DAY
SPARE: Final = DAY
"""Seconds by which a client secret outlives the time to the next rotation, which may be late."""
MINIMUMS: Final[Mapping[str, int]] = {
    "rotation_period": 5,
    "rotation_window": 3600,
    "root_password_ttl": 2 * 3600,
    "max_secret_ttl": 2 * 3600,
}
"""The least values of durations in seconds. 0 is always allowed."""
TEXTS_OF_URLS: Final = (TENANT, GUID, IDENTIFIER)
"""The kinds of texts that become parts of URLs and of forms for the provider."""
AUTH_TYPES: Final[Mapping[str, Source]] = {
    "root_creds": Source.CLIENT_SECRET,
    "plugin_wif": Source.IDENTITY_TOKEN,
    "msi": Source.MANAGED_IDENTITY,
    "aks_wi": Source.FEDERATED_TOKEN_FILE,
}
"""Vault's names for the kinds of credentials of a mount."""
NO_VARIABLES: Final[Mapping[str, Secret]] = {}


class SecretHolder(Protocol):
    """The holder of a secret that rotation replaces: the configuration of a mount, or a static role.

    `secret_lifetime`: validity in seconds of a secret that rotation creates. `target`: client id of the secret's app
    registration, whose object id is `application_object_id`; empty means the one with which the mount authenticates.
    `awaits_secret`: rotation has to create its first secret. `proof`: what rotation creates, one of `PROOFS`.
    """

    @property
    def client_secret(self) -> Secret: ...
    @property
    def rotation_period(self) -> int: ...
    @property
    def rotation_schedule(self) -> str: ...
    @property
    def rotation_window(self) -> int: ...
    @property
    def disable_automated_rotation(self) -> bool: ...
    @property
    def secret_lifetime(self) -> int: ...
    @property
    def target(self) -> str: ...
    @property
    def application_object_id(self) -> str: ...
    @property
    def awaits_secret(self) -> bool: ...
    @property
    def proof(self) -> str: ...
    def holding(self, key: Key) -> SecretHolder:
        """Return the same holder with a different key."""
        ...


@frozen(kw_only=True, slots=False)  # slots and cached properties take a `__getattr__`, which slows all down
class RootCredential:
    """Base class of both configurations."""

    client_id: str = setting(IDENTIFIER, "", "Client id of the app registration.", env="CLIENT_ID")
    client_secret: Secret = setting(
        SECRET,
        Secret(),
        "Client secret of the app registration.",
        env="CLIENT_SECRET",
        excluded_by="identity_token_audience",
    )
    identity_token_audience: str = setting(
        TEXT, "", "Audience of the identity tokens that are used instead of a client secret."
    )
    identity_token_ttl: int = setting(
        lasting(LONGEST_TOKEN), 3600, "Lifetime of these identity tokens, 60 s to 24 h. 0: 1 h."
    )
    root_password_ttl: int = setting(
        lasting(LONGEST_SECRET),
        ROOT_PASSWORD_TTL,
        "Validity of client secrets that rotation creates, at least 2 hours. 0: 182 days.",
    )
    rotation_period: int = setting(
        lasting(LONGEST_SECRET),
        0,
        "Seconds between rotations of the client secret, at least 5. 0: no rotation by period.",
    )
    rotation_schedule: str = setting(SCHEDULE, "", "Schedule of rotations: a five-field cron expression, in UTC.")
    rotation_window: int = setting(
        lasting(LONGEST_INTERVAL),
        0,
        "Seconds that a scheduled rotation may take, including retries, at least 3600. 0: until the next rotation.",
    )
    disable_automated_rotation: bool = setting(BOOLEAN, False, "Rotate only on request.")
    auth_type: str = setting(
        one_of(*AUTH_TYPES),
        "",
        "The expected type of the configured credential: a client secret, an identity token, a managed "
        "identity or the platform's token file. A write is refused if the configuration has a different type.",
        shown_empty=False,
    )
    target: ClassVar[str] = ""
    application_object_id: ClassVar[str] = ""
    awaits_secret: ClassVar[bool] = False
    proof: ClassVar[str] = CLIENT_SECRET
    max_secret_ttl: ClassVar[int] = 0
    """The longest life of a secret or certificate that the service makes for this mount; 0: without limit."""
    applied_hash: str = ""
    """Of the client secret that was applied last: the key of the hash, and the hash."""

    @cached_property
    def missing(self) -> tuple[str, ...]:
        """The required fields that are empty, by the table of the configuration's class."""
        return tuple(field.name for field in fields_of(type(self)) if field.required and not getattr(self, field.name))

    @cached_property
    def malformed(self) -> tuple[str, ...]:
        """The fields whose texts break their grammar: they were stored by a version that was less strict."""
        return tuple(
            field.name
            for field in fields_of(type(self))
            if field.kind in TEXTS_OF_URLS and not field.kind.accepts(getattr(self, field.name))
        )

    @property
    def secret_lifetime(self) -> int:
        """Seconds for which a secret that rotation makes is valid. What was stored without a bound is raised."""
        return self.capped(max(self.root_password_ttl or ROOT_PASSWORD_TTL, MINIMUMS["root_password_ttl"]))

    def capped(self, seconds: int) -> int:
        """Return the validity of a secret or certificate, limited by the configuration."""
        return min(seconds, self.max_secret_ttl or seconds)

    def holding(self, key: Key) -> RootCredential:
        return evolve(self, client_secret=key.secret)

    @property
    def clamped(self) -> tuple[str, ...]:
        """The fields whose stored durations are longer than those that count."""
        return ()

    @property
    def root(self) -> RootCredential:
        """The part that both components share."""
        return self

    @cached_property
    def retry(self) -> RetryPolicy:
        """How patient it is with the provider."""
        return RetryPolicy()


C = TypeVar("C", bound=RootCredential)


class Account(Protocol):
    """A configuration, as far as a client of the provider needs it besides its root credential."""

    @property
    def tenant_id(self) -> str: ...
    @property
    def cloud_name(self) -> str: ...
    @property
    def retry(self) -> RetryPolicy: ...
    @property
    def root(self) -> RootCredential: ...


def effective_config(settings: Settings, form: type[C], found: Found[C] | None) -> C:
    """Return the configuration that takes effect: the stored fields, completed by the environment.

    Refuse with `CONFIG_MISSING` if it is incomplete, or with `CONFIG_INVALID` if a stored value is no longer accepted.
    """
    config = effective(found.record if found else form(), settings.environment)
    if config.missing:
        raise Refused(Code.CONFIG_MISSING)
    if config.malformed:
        raise Refused.because([Problem(Code.CONFIG_INVALID, f'"{name}"') for name in config.malformed])
    return config


def client_of(context: Resources, mount: Mount, config: Account, version: int, deadline: Deadline) -> Client:
    """Return the client for calls to Azure under an effective configuration. `version` is that of the stored one."""
    return Client(
        settings=context.settings,
        caches=context.caches,
        cloud=context.settings.clouds[config.cloud_name],
        tenant=config.tenant_id,
        credentials=credentials_of(context, mount, config.root),
        retry=config.retry,
        owner=owner_of(mount, version),
        mount=mount.path,
        deadline=deadline,
        records=context.records,
    )


def changes_given(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that a write changes. The mask that earlier versions returned for a secret is not one."""
    return {name: value for name, value in given.items() if value != Secret(Secret.MASK)}


def owner_of(mount: Mount, version: int) -> str:
    """Return the owner, in every cache, of what belongs to a mount under one version of its configuration."""
    return f"{mount.id}:{version}"


def credentials_of(context: Resources, mount: Mount, config: RootCredential) -> Credentials:
    """Return how a mount authenticates: with the configured credential, otherwise with the platform's.

    An identity token goes before a client secret, which can stand beside it only by the environment.
    """
    assertions: Assertions | None = None
    if config.identity_token_audience:
        assertions = IdentityTokens.of(context, mount, config.identity_token_audience, config.identity_token_ttl)
    elif not config.client_secret:
        assertions = federated_token_file(context.settings.environment)
    return Credentials(
        client_id=config.client_id,
        client_secret=config.client_secret,
        assertions=assertions,
        platform=PlatformIdentity(context.records, mount.id),
    )


def check(stored: RootCredential, environment: Mapping[str, Secret] = NO_VARIABLES) -> None:
    """Refuse a configuration whose merged, effective fields are not enough, or contradict each other."""
    config = effective(stored, environment)
    if config.missing:
        raise Refused.because([Problem(Code.FIELD_REQUIRED, f'"{name}"') for name in config.missing])
    problems: list[Problem] = []
    if config.client_secret and config.identity_token_audience:
        both = f'{source_of(stored, "client_secret", environment)}, "identity_token_audience"'
        problems.append(Problem(Code.FIELDS_EXCLUSIVE, f'{both}: in the same request, clear the stored one with ""'))
    problems += [*rule_problems(config), *_out_of_bounds(config)]
    if config.auth_type and AUTH_TYPES[config.auth_type] is not (source := _source(config, environment)):
        problems.append(Problem(Code.FIELD_INVALID, f'"auth_type" must match the configuration: {source.value}'))
    if problems:
        raise Refused.because(problems)


def _source(config: RootCredential, environment: Mapping[str, Secret]) -> Source:
    """Return the kind of credential of a mount, as `credentials_of` chooses it."""
    if config.identity_token_audience:
        return Source.IDENTITY_TOKEN
    if config.client_secret:
        return Source.CLIENT_SECRET
    return Source.FEDERATED_TOKEN_FILE if federated_token_file(environment) else Source.MANAGED_IDENTITY


def rule_problems(holder: SecretHolder) -> Iterator[Problem]:
    """Yield the problems of the fields that define when a secret is rotated."""
    if holder.rotation_period and holder.rotation_schedule:
        detail = 'in the same request, clear the stored one: "rotation_period" with 0, "rotation_schedule" with ""'
        yield Problem(Code.ROTATION_CONFLICT, detail)
    if holder.rotation_window and (holder.rotation_period or not holder.rotation_schedule):
        yield Problem(Code.ROTATION_WINDOW_CONFLICT)
    for name, least in MINIMUMS.items():
        if 0 < getattr(holder, name, 0) < least:
            yield Problem(Code.FIELD_INVALID, f'"{name}" must be at least {least}')


def _out_of_bounds(config: RootCredential) -> Iterator[Problem]:
    if config.identity_token_ttl and not SHORTEST_TOKEN <= config.identity_token_ttl <= LONGEST_TOKEN:
        text = f"must be 0, or between {SHORTEST_TOKEN} and {LONGEST_TOKEN}"
        yield Problem(Code.FIELD_INVALID, f'"identity_token_ttl" {text}')
    ttl = config.root_password_ttl or ROOT_PASSWORD_TTL
    limit = '"root_password_ttl"' if config.capped(ttl) == ttl else '"max_secret_ttl"'
    if config.rotation_period and config.rotation_period + SPARE > config.capped(ttl):
        yield Problem(Code.FIELD_INVALID, f'"rotation_period" plus one day must not exceed {limit}')
    if config.rotation_schedule and Schedule.parse(config.rotation_schedule).longest_gap() + SPARE > config.capped(ttl):
        detail = f'the longest interval of "rotation_schedule" plus one day must not exceed {limit}'
        yield Problem(Code.FIELD_INVALID, detail)


def with_default_token_ttl(config: C) -> C:
    """Return the configuration to store: a lifetime of 0 is replaced by the default, which reads return."""
    return config if config.identity_token_ttl else evolve(config, identity_token_ttl=DEFAULT_LIFETIME)
