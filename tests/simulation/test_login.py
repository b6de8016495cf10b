"""Logins while something goes wrong, at every effect; and with the identity of the machine that the service runs on."""

from __future__ import annotations

from cloudid_core.effects import PlatformToken
from cloudid_core.errors import CloudidError
from cloudid_core.testing import Crashed, every_fault
from cloudid_core.values.secret import Secret
from tests.installation import Reply
from tests.logins import configure_logins, identity, login_form

from .recorded import RecordedInstallation

CLEAN = {200, 502, 503, 504}
"""A login that could succeed does, or says that something is not available."""


def configured() -> RecordedInstallation:
    """A method whose role binds a location, so that a login asks the provider."""
    installation = RecordedInstallation()
    configure_logins(installation, bound_locations=installation.scene["machines"][0]["location"])
    return installation


def log_in(installation: RecordedInstallation) -> Reply:
    form = login_form(installation, installation.scene["machines"][0])
    return installation.ask("POST", "auth/cloud/login", form, token="")


def works(installation: RecordedInstallation, reply: Reply) -> bool:
    token = reply.auth["client_token"]
    return installation.ask("GET", "auth/token/lookup-self", token=token).status == 200


def test_whatever_goes_wrong_the_answer_is_clean_and_the_store_sound() -> None:
    """A token that was answered works after a restart, and the next login succeeds."""
    for installation in every_fault(log_in, configured):
        reply = None
        try:
            reply = log_in(installation)
            assert reply.status in CLEAN, reply.body
        except (Crashed, CloudidError):
            pass
        installation.restart()
        if reply is not None and reply.status == 200:
            assert works(installation, reply)
        installation.advance(120)
        assert works(installation, log_in(installation))


def test_the_identity_of_the_services_own_machine() -> None:
    """Without a client secret the provider is asked with the token of the platform that the host runs on."""
    installation = configured()
    installation.cloud("POST", "/simulator/machines", {"name": "home", "kind": "vm", "reader": True})

    def platform(resource: str, client_id: str) -> PlatformToken:
        token = identity(installation, "home", resource)
        return PlatformToken(Secret(token["access_token"]), float(token["expires_on"]))

    installation.must("POST", "auth/cloud/config", {"client_id": "", "client_secret": ""})
    assert log_in(installation).status == 503
    installation.platform = platform
    assert works(installation, log_in(installation))
