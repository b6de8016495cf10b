"""Logins while something goes wrong, at every effect; and with the identity of the machine that the service runs on."""

from __future__ import annotations

from contextlib import suppress

import pytest

from cloudid_core.effects import PlatformToken
from cloudid_core.errors import CloudidError
from cloudid_core.testing import Crashed, every_fault
from cloudid_core.values.secret import Secret
from tests.installation import Installation, Reply
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


class Renewing(Installation):
    """A token whose renewals are checked, when what the provider said of the machine is old."""

    token = ""

    def renew(self) -> Reply:
        return self.ask("POST", "auth/token/renew-self", {}, token=self.token)


def renewing(is_gone: bool) -> Renewing:
    installation = Renewing()
    machine = configure_logins(installation, recheck_on_renewal=True)
    form = login_form(installation, machine)
    installation.token = installation.must("POST", "auth/cloud/login", form, token="").auth["client_token"]
    if is_gone:
        installation.cloud("DELETE", f"/simulator/machines/{machine['name']}")
    installation.advance(120)
    return installation


@pytest.mark.parametrize("is_gone", [False, True])
def test_whatever_goes_wrong_at_a_checked_renewal_only_what_is_gone_is_refused(is_gone: bool) -> None:
    """The token works to its end in any case."""
    for installation in every_fault(Renewing.renew, lambda: renewing(is_gone)):
        with suppress(Crashed, CloudidError):
            assert installation.renew().status in CLEAN | {403 * is_gone}
        installation.restart()
        installation.advance(6)
        assert installation.renew().status == (403 if is_gone else 200)
        assert installation.ask("GET", "auth/token/lookup-self", token=installation.token).status == 200


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
