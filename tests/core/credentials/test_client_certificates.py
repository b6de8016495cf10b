"""Client certificates and the assertions of their keys."""

from __future__ import annotations

from datetime import UTC, datetime

import jwt
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from cloudid_core.credentials.application_keys import CertificateAssertions, self_signed, thumbprint
from cloudid_core.effects import GenerateKey
from cloudid_core.testing import World
from cloudid_core.values import Secret

START = 1_800_000_000.0


def test_an_assertion_is_signed_by_the_key_of_the_certificate_that_it_names() -> None:
    world = World(start=START)
    private = world.perform(key())
    der = self_signed(private, 7, START - 300, START + 60)
    certificate = x509.load_der_x509_certificate(der)
    certificate.verify_directly_issued_by(certificate)
    assert certificate.serial_number == 7
    ends = datetime.fromtimestamp(START + 60, UTC)
    assert (certificate.not_valid_before_utc.timestamp(), certificate.not_valid_after_utc) == (START - 300, ends)
    assertions = CertificateAssertions(client_id="c", audience="a", thumbprint=thumbprint(der), private=private)
    text = world.perform(assertions.make()).reveal()
    header = jwt.get_unverified_header(text)
    assert (header["alg"], header["x5t#S256"]) == ("PS256", thumbprint(der))
    public = certificate.public_key()
    assert isinstance(public, RSAPublicKey)
    claims = jwt.decode(
        text,
        public,
        ["PS256"],
        options={"verify_aud": False, "verify_exp": False, "verify_nbf": False, "verify_iat": False},
    )
    assert (claims["iss"], claims["sub"], claims["exp"] - claims["iat"]) == ("c", "c", 600)
    assert claims["aud"] == "a"
    assert private.reveal() not in f"{assertions!r}"


async def key() -> Secret:
    return await GenerateKey()
