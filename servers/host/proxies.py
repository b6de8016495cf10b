"""Proxies: choose the proxy for a call to the provider."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit
from urllib.request import (  # type: ignore[attr-defined]  # typeshed does not know the second one
    getproxies_environment,
    proxy_bypass_environment,
)

from attrs import field, frozen

from ..machine import is_loopback
from ..settings import ServerSettings, SettingsError, http_address

DIRECT: Final = "direct"
_ADDRESS: Final = re.compile(r"https?://(?:[!-.0-~]+@)?[\w.\-\[\]:]+:[0-9]{1,5}/?", re.ASCII)


@frozen
class Proxies:
    """The proxy for each scheme, and the hosts that are called without one. `no` has the form of `NO_PROXY`."""

    by_scheme: Mapping[str, str] = field(factory=dict, repr=False)
    no: str = ""
    direct_hosts: frozenset[str] = frozenset()

    @classmethod
    def of(cls, server: ServerSettings, direct_addresses: Iterable[str]) -> Proxies:
        """Read the setting, or else the environment of the process. Raises `SettingsError`.

        `direct_addresses` are URLs that are always called directly, such as the machine's own metadata service.
        """
        environment = getproxies_environment()
        hosts = frozenset(urlsplit(address).hostname or "" for address in direct_addresses)
        setting = server.provider_proxy.reveal()
        if setting == DIRECT:
            return cls()
        if setting:
            by_scheme = {"http": setting, "https": setting}
        else:
            usual = environment.get("all", "")
            by_scheme = {scheme: environment.get(scheme, usual) for scheme in ("http", "https")}
        for scheme, proxy in by_scheme.items():
            if proxy and not _is_usable(proxy):
                source = '[server] "provider_proxy"' if setting else f"the environment variable {scheme.upper()}_PROXY"
                raise SettingsError(f"{source} must be like http://HOST:PORT")
        return cls({scheme: proxy for scheme, proxy in by_scheme.items() if proxy}, environment.get("no", ""), hosts)

    def proxy_of(self, url: str) -> str | None:
        """Return the proxy for this URL, or `None` for a direct call. Loopback addresses have no proxy."""
        parts = urlsplit(url)
        host = parts.hostname or ""
        proxy = self.by_scheme.get(parts.scheme)
        if proxy is None or host in self.direct_hosts or is_loopback(host):
            return None
        return None if proxy_bypass_environment(parts.netloc.rpartition("@")[2], {"no": self.no}) else proxy


NO_PROXIES: Final = Proxies()


def _is_usable(proxy: str) -> bool:
    with suppress(ValueError):
        return _ADDRESS.fullmatch(http_address(proxy)) is not None
    return False
