"""Makes the certificate with which a simulator serves over TLS."""

from __future__ import annotations

import datetime
import ssl
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

NAME: Final = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Provider simulator")])
LIFETIME: Final = datetime.timedelta(days=30)
USAGES: Final = {
    **dict.fromkeys(("digital_signature", "key_cert_sign"), True),
    **dict.fromkeys(("crl_sign", "content_commitment", "key_encipherment", "data_encipherment"), False),
    **dict.fromkeys(("key_agreement", "encipher_only", "decipher_only"), False),
}
"""For a server, and to sign its own certificate, which strict clients require of what they trust."""

HOUR: Final = datetime.timedelta(hours=1)


def make_context(host: str, path: Path) -> ssl.SSLContext:
    """A server's context with a new key and a self-signed certificate, which is written to the path as PEM.

    The file serves clients as their bundle of trusted certificates. The key is not kept.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    path.write_bytes(_certificate(key, host).public_bytes(Encoding.PEM))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with TemporaryDirectory() as folder:
        key_path = Path(folder, "key.pem")
        key_path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        context.load_cert_chain(path, key_path)
    return context


def _certificate(key: ec.EllipticCurvePrivateKey, host: str) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    public = key.public_key()
    identifier = x509.SubjectKeyIdentifier.from_public_key(public)
    builder = x509.CertificateBuilder(NAME, NAME, public, x509.random_serial_number(), now - HOUR, now + LIFETIME)
    for extension, critical in (
        (x509.BasicConstraints(ca=True, path_length=0), True),
        (x509.KeyUsage(**USAGES), True),
        (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False),
        (x509.SubjectAlternativeName(_names(host)), False),
        (identifier, False),
        (x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), False),
    ):
        builder = builder.add_extension(extension, critical)
    return builder.sign(key, SHA256())


def _names(host: str) -> list[x509.GeneralName]:
    """The names of the loopback interface, and the host if it has another name."""
    names: list[x509.GeneralName] = [x509.DNSName("localhost")]
    addresses = {ip_address("127.0.0.1"), ip_address("::1")}
    try:
        addresses.add(ip_address(host))
    except ValueError:
        if host != "localhost":
            names.append(x509.DNSName(host))
    return [*names, *(x509.IPAddress(address) for address in sorted(addresses, key=str))]
