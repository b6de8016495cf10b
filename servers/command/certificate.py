"""The certificate of a server: what new connections get, and how long it is valid."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from attrs import frozen
from cryptography import x509
from structlog.typing import FilteringBoundLogger

from cloudid_core.metrics import Numbers, put

from ..machine import why_unreadable
from ..processes import Reload
from ..settings import ServerSettings, SettingsError

EXPIRES_SOON: Final = timedelta(days=14)


@frozen
class Validity:
    """From when to when the certificate in a file is valid."""

    path: str
    starts: datetime
    ends: datetime

    @classmethod
    def of(cls, path: str) -> Validity | None:
        """`None`: it cannot be read. OpenSSL takes some forms that the library for certificates does not."""
        try:
            leaf = x509.load_pem_x509_certificates(Path(path).read_bytes())[0]
        except ValueError:
            return None
        return cls(path, leaf.not_valid_before_utc, leaf.not_valid_after_utc)

    @property
    def is_wrong(self) -> bool:
        """Whether clients refuse it now."""
        return not self.starts <= datetime.now(UTC) <= self.ends

    @property
    def needs_somebody(self) -> bool:
        return self.is_wrong or self.ends - datetime.now(UTC) < EXPIRES_SOON

    def __str__(self) -> str:
        """What it is, and what to do about it if it needs an operator."""
        if self.starts > datetime.now(UTC):
            return f"{self.path}, from {_shown(self.starts)}: it is not valid yet, or the clock is wrong"
        return f"{self.path}, until {_shown(self.ends)}" + ": renew it and send SIGHUP" * self.needs_somebody


def _shown(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M} UTC"


NO_PEM: Final = "a file is damaged, or not in PEM form, or does not hold a certificate and its key"
REASONS: Final = {
    "KEY_VALUES_MISMATCH": "the key does not belong to the certificate: set tls_key to the certificate's key",
    "BAD_DECRYPT": "the key is encrypted; store it without a passphrase, readable only by the server's user",
}
"""What OpenSSL's reasons mean, and what to do; all others: `NO_PEM`."""


def tls_context(server: ServerSettings) -> ssl.SSLContext:
    """For new connections. Raises `SettingsError` when certificate or key cannot be used."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        for path in filter(None, (server.tls_certificate, server.tls_key)):
            with open(path, "rb"):  # OpenSSL does not say which of both it could not read
                pass
        context.load_cert_chain(server.tls_certificate, server.tls_key or None)
    except ssl.SSLError as error:
        reason = REASONS.get(error.reason or "", NO_PEM)
        raise SettingsError(f"certificate or key cannot be used: {server.tls_certificate}: {reason}") from None
    except OSError as error:
        raise SettingsError(
            f"certificate or key cannot be used: {error.filename} cannot be read: {why_unreadable(error)}"
        ) from None
    return context


class Certificate:
    """The certificate that new connections get. Reloading replaces it; metrics and the log tell when it ends."""

    def __init__(self, server: ServerSettings, reload: Reload, log: FilteringBoundLogger) -> None:
        """Raises `SettingsError` when certificate or key cannot be used."""
        self.context = tls_context(server)
        self._log = log
        self._look_at(server)
        reload.add(self._replace)

    def put_gauges(self, numbers: Numbers) -> None:
        if self._validity is not None:
            put(numbers, "cloudid_tls_certificate_ends_timestamp_seconds", self._validity.ends.timestamp())

    def _replace(self, server: ServerSettings) -> None:
        if server.tls_certificate:
            new = tls_context(server)  # the first one would keep a certificate with another kind of key
            self.context.sni_callback = lambda connection, name, first: setattr(connection, "context", new)
            self._look_at(server)

    def _look_at(self, server: ServerSettings) -> None:
        self._validity = Validity.of(server.tls_certificate)
        if self._validity is not None and self._validity.needs_somebody:
            self._log.warning("certificate ends soon or is not valid", reason=str(self._validity))
