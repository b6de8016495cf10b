"""Patience with objects that were just made."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cloudid_core.deadline import Deadline
from cloudid_core.effects import Now, Sleep
from cloudid_core.errors import ProviderAmbiguous, ProviderProblem
from cloudid_core.provider.propagation import FRESH, GRACE, FreshObject, is_transient, retry_while_propagating

from .cloud import START, Setting

NOT_THERE = ProviderProblem(404, "Request_ResourceNotFound")


class Attempt:
    """Fails so many times, or for ever, with an error; then answers how often it was made."""

    def __init__(self, error: Exception, failures: float = float("inf"), seconds: float = 0) -> None:
        self.error = error
        self.failures = failures
        self.seconds = seconds
        self.made = 0
        self.last_at = 0.0

    async def __call__(self) -> int:
        self.made += 1
        self.last_at = await Now()
        await Sleep(self.seconds)
        if self.made <= self.failures:
            raise self.error
        return self.made


def patient(
    setting: Setting, attempt: Attempt, family: FreshObject = FreshObject.APPLICATION, made_at: float = START
) -> int:
    return setting.world.perform(retry_while_propagating(setting.client, attempt, family=family, made_at=made_at))


@pytest.mark.parametrize("family, error", [(family, error) for family, errors in FRESH.items() for error in errors])
def test_errors_of_the_table_pass(family: FreshObject, error: tuple[int, str]) -> None:
    """Each was seen by others who use an object right after they have made it.

    Sources: `createSP`, `assignRoles` and `addGroupMemberships` of hashicorp/vault-plugin-secrets-azure (403 with
    `Authorization_RequestDenied`, `PrincipalNotFound`, `Request_ResourceNotFound`); the retries of a new service
    principal in hashicorp/terraform-provider-azuread (400 and 403); "Troubleshoot ClientSecretCredential" of the
    vendor's Java library (AADSTS7000215, AADSTS700016); "Missing Service Principal in the Tenant" of the vendor's
    library for Teams (401 with AADSTS7000229).
    """
    assert patient(Setting(), Attempt(ProviderProblem(*error), failures=2), family) == 3


@pytest.mark.parametrize("family", FreshObject)
@pytest.mark.parametrize(
    "error",
    [(500, "Request_ResourceNotFound"), (403, "AuthorizationFailed"), (404, ""), (400, ""), (429, "TooManyRequests")],
)
def test_other_errors_are_final(family: FreshObject, error: tuple[int, str]) -> None:
    attempt = Attempt(ProviderProblem(*error))
    with pytest.raises(ProviderProblem):
        patient(Setting(), attempt, family)
    assert attempt.made == 1


def test_every_family_has_its_errors() -> None:
    assert set(FRESH) == set(FreshObject)
    assert not is_transient(FreshObject.ASSIGNMENT, NOT_THERE)


def test_an_ambiguous_outcome_is_never_repeated() -> None:
    attempt = Attempt(ProviderAmbiguous("lost", answered=False))
    with pytest.raises(ProviderAmbiguous):
        patient(Setting(), attempt)
    assert attempt.made == 1


def test_pauses_grow_to_ten_seconds() -> None:
    setting = Setting()
    setting.client = replace(setting.client, deadline=Deadline(START + 1000))
    patient(setting, Attempt(NOT_THERE, failures=7))
    pauses = [pause for pause in setting.pauses if pause]
    for pause, expected in zip(pauses, (2, 3, 4.5, 6.75, 10, 10, 10), strict=True):
        assert 0.8 * expected <= pause <= 1.2 * expected


def test_patience_ends_with_the_grace_time() -> None:
    setting = Setting()
    setting.client = replace(setting.client, deadline=Deadline(START + 1000))
    attempt = Attempt(NOT_THERE)
    with pytest.raises(ProviderProblem):
        patient(setting, attempt)
    assert START + GRACE <= attempt.last_at < START + GRACE + 12


def test_a_shorter_settle_time_shortens_the_grace_time() -> None:
    setting = Setting(settle_time=10)
    attempt = Attempt(NOT_THERE)
    with pytest.raises(ProviderProblem):
        patient(setting, attempt)
    assert attempt.last_at < START + 10 + 12


def test_an_old_object_gets_no_patience() -> None:
    attempt = Attempt(NOT_THERE)
    with pytest.raises(ProviderProblem):
        patient(Setting(), attempt, made_at=START - GRACE)
    assert attempt.made == 1


def test_no_attempt_starts_that_the_deadline_would_cut_short() -> None:
    setting = Setting()
    setting.client = replace(setting.client, deadline=Deadline(START + 20))
    attempt = Attempt(NOT_THERE, seconds=1)
    with pytest.raises(ProviderProblem):
        patient(setting, attempt)
    assert attempt.made > 1
    assert attempt.last_at < START + 20
    assert setting.world.clock < START + 21
