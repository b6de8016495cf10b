"""Certificates for tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


def self_signed(
    host: str, lasts: timedelta = timedelta(hours=1), *, is_rsa: bool = False, starts: timedelta = timedelta(days=-2)
) -> tuple[bytes, bytes]:
    """A fresh key and its own certificate for a host, which is a name or an address, as PEM."""
    key = rsa.generate_private_key(65537, 2048) if is_rsa else ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + starts)
        .not_valid_after(now + lasts)
        .add_extension(x509.SubjectAlternativeName([_general_name(host)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return pem, certificate.public_bytes(Encoding.PEM)


def write_certificate(folder: Path, host: str, lasts: timedelta = timedelta(hours=1), *, is_rsa: bool = False) -> None:
    """The files `key.pem` and `cert.pem` in a folder, with what `self_signed` makes."""
    key, certificate = self_signed(host, lasts, is_rsa=is_rsa)
    (folder / "key.pem").write_bytes(key)
    (folder / "cert.pem").write_bytes(certificate)


def common_name_of(pem: str) -> str:
    [name] = x509.load_pem_x509_certificate(pem.encode()).subject
    return str(name.value)


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
