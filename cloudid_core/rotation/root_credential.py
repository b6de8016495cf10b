"""What the configurations of both components share: how the service proves itself to the provider, and when that is
rotated; which configuration counts, and the client that it makes.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final, Protocol, TypeVar

from attrs import frozen

from ..api.fields import BOOLEAN, SCHEDULE, SECONDS, SECRET, TEXT, fields_of, setting
from ..errors import Code, Problem, Refused
from ..foundation.caches import Caches
from ..foundation.deadline import Deadline
from ..foundation.environment import effective
from ..mounts.table import Mount
from ..provider.client import Client, Credentials
from ..provider.retry import RetryPolicy
from ..settings import Settings
from ..store.records import Found
from ..values.secret import Secret

MINIMUM_PERIOD: Final = 5
MINIMUM_WINDOW: Final = 3600
ROOT_PASSWORD_TTL: Final = 182 * 24 * 3600


@frozen(kw_only=True)
class RootCredential:
    """Base class of both configurations."""

    client_id: str = setting(TEXT, "", "Client id of the credentials at the provider.", env="CLIENT_ID")
    client_secret: Secret = setting(SECRET, Secret(), "Their client secret.", env="CLIENT_SECRET")
    identity_token_audience: str = setting(TEXT, "", "Audience of identity tokens that stand in for a client secret.")
    identity_token_ttl: int = setting(SECONDS, 3600, "Lifetime of those identity tokens.")
    root_password_ttl: int = setting(SECONDS, ROOT_PASSWORD_TTL, "Validity of a client secret that rotation makes.")
    rotation_period: int = setting(SECONDS, 0, "Seconds between rotations of the client secret; 0: none. At least 5.")
    rotation_schedule: str = setting(SCHEDULE, "", "Five-field cron schedule of rotations, in UTC.")
    rotation_window: int = setting(
        SECONDS, 0, "Seconds in which a scheduled rotation may start; 0: any. At least 3600."
    )
    disable_automated_rotation: bool = setting(BOOLEAN, False, "Rotate only on request.")

    @cached_property
    def missing(self) -> tuple[str, ...]:
        """The required fields that are empty, by the table of the configuration's class."""
        return tuple(field.name for field in fields_of(type(self)) if field.required and not getattr(self, field.name))

    @cached_property
    def credentials(self) -> Credentials:
        """What the service proves itself with."""
        return Credentials(client_id=self.client_id, client_secret=self.client_secret)

    @cached_property
    def retry(self) -> RetryPolicy:
        """How patient it is with the provider."""
        return RetryPolicy()


C = TypeVar("C", bound=RootCredential)


class Account(Protocol):
    """A configuration, as far as a client of the provider needs it."""

    @property
    def tenant_id(self) -> str: ...
    @property
    def cloud_name(self) -> str: ...
    @property
    def credentials(self) -> Credentials: ...
    @property
    def retry(self) -> RetryPolicy: ...


def effective_config(settings: Settings, form: type[C], found: Found[C] | None) -> C:
    """The configuration that counts: what is stored, and the environment; `CONFIG_MISSING` if that is not enough."""
    config = effective(found.record if found else form(), settings.environment)
    if config.missing:
        raise Refused(Code.CONFIG_MISSING)
    return config


def client_of(
    settings: Settings, caches: Caches, mount: Mount, config: Account, version: int, deadline: Deadline
) -> Client:
    """How a mount talks to the provider under a configuration that counts; `version` is that of the stored one."""
    return Client(
        settings=settings,
        caches=caches,
        cloud=settings.clouds[config.cloud_name],
        tenant=config.tenant_id,
        credentials=config.credentials,
        retry=config.retry,
        owner=f"{mount.id}:{version}",
        deadline=deadline,
    )


def check(config: RootCredential) -> None:
    """Refuse a configuration whose merged, effective fields are not enough, or contradict each other."""
    if config.missing:
        raise Refused.because([Problem(Code.FIELD_REQUIRED, f'"{name}"') for name in config.missing])
    problems: list[Problem] = []
    if config.client_secret and config.identity_token_audience:
        problems.append(Problem(Code.FIELDS_EXCLUSIVE, '"client_secret", "identity_token_audience"'))
    if config.rotation_period and config.rotation_schedule:
        problems.append(Problem(Code.ROTATION_CONFLICT))
    if config.rotation_window and (config.rotation_period or not config.rotation_schedule):
        problems.append(Problem(Code.ROTATION_WINDOW_CONFLICT))
    if 0 < config.rotation_period < MINIMUM_PERIOD:
        problems.append(Problem(Code.FIELD_INVALID, f'"rotation_period" must be at least {MINIMUM_PERIOD}'))
    if 0 < config.rotation_window < MINIMUM_WINDOW:
        problems.append(Problem(Code.FIELD_INVALID, f'"rotation_window" must be at least {MINIMUM_WINDOW}'))
    if problems:
        raise Refused.because(problems)
