"""The four Azure environments and their endpoints."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec


class Cloud(msgspec.Struct, frozen=True, cache_hash=True):
    """The endpoints of one environment. Only `resource_audience` ends in a slash."""

    login: str
    resource_manager: str
    resource_audience: str
    directory: str

    @property
    def logins(self) -> tuple[str, ...]:
        """Return all names of the login host: a tenant's documents may use any of them.

        An overridden host has one name.
        """
        return next((names for names in LOGIN_HOSTS if self.login in names), (self.login,))

    @property
    def resource_scope(self) -> str:
        """Return the OAuth scope of Azure Resource Manager. In the public cloud it has a double slash."""
        return f"{self.resource_audience}/.default"

    @property
    def directory_scope(self) -> str:
        return f"{self.directory}/.default"


LOGIN_HOSTS: Final = (
    (
        "https://login.microsoftonline.com",
        "https://login.windows.net",
        "https://login.microsoft.com",
        "https://sts.windows.net",
    ),
    ("https://login.microsoftonline.us", "https://login.usgovcloudapi.net"),
    ("https://login.chinacloudapi.cn", "https://login.partner.microsoftonline.cn"),
    ("https://login.microsoftonline.de",),
)
"""The names of each environment's login host. Source: `aliases` in Azure's instance discovery document."""

CLOUDS: Final[Mapping[str, Cloud]] = MappingProxyType(
    {
        "CloudPublicCloud": Cloud(
            login="https://login.microsoftonline.com",
            resource_manager="https://management.azure.com",
            resource_audience="https://management.core.windows.net/",
            directory="https://graph.microsoft.com",
        ),
        "CloudUSGovernmentCloud": Cloud(
            login="https://login.microsoftonline.us",
            resource_manager="https://management.usgovcloudapi.net",
            resource_audience="https://management.core.usgovcloudapi.net",
            directory="https://graph.microsoft.us",
        ),
        "CloudChinaCloud": Cloud(
            login="https://login.chinacloudapi.cn",
            resource_manager="https://management.chinacloudapi.cn",
            resource_audience="https://management.core.chinacloudapi.cn",
            directory="https://microsoftgraph.chinacloudapi.cn",
        ),
        "CloudGermanCloud": Cloud(
            login="https://login.microsoftonline.de",
            resource_manager="https://management.microsoftazure.de",
            resource_audience="https://management.core.cloudapi.de",
            directory="https://graph.microsoft.de",
        ),
    }
)
DEFAULT_ENVIRONMENT: Final = "CloudPublicCloud"


def environment_name(text: str) -> str:
    """Return the table's name of an environment for any spelling: case is ignored, and `Azure…` stands for `Cloud…`.

    Raises `ValueError` if there is no such environment.
    """
    folded = text.lower()
    if folded.startswith("azure"):
        folded = "cloud" + folded.removeprefix("azure")
    for name in CLOUDS:
        if name.lower() == folded:
            return name
    raise ValueError("must be one of " + ", ".join(CLOUDS))


def named_clouds(clouds: Mapping[str, Cloud]) -> Mapping[str, Cloud]:
    """Return the endpoints of every environment: those given, in any spelling of their names, and the usual ones.

    Raises `ValueError` if a name is unknown.
    """
    if clouds is CLOUDS:
        return clouds
    try:
        return {**CLOUDS, **{environment_name(name): cloud for name, cloud in clouds.items()}}
    except ValueError as error:
        raise ValueError(f'"clouds" {error}') from None
