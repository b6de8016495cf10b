"""Patience with objects that were just made, and proof of new credentials."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cloudid_core.deadline import Deadline
from cloudid_core.effects import Now, Sleep
from cloudid_core.errors import ProviderAmbiguous, ProviderProblem
from cloudid_core.provider.client import Credentials
from cloudid_core.provider.propagation import (
    GRACE,
    FreshObject,
    is_transient,
    retry_while_propagating,
    wait_until_proven,
)
from cloudid_core.values.secret import Secret

from .cloud import START, TOKEN_PATH, Reply, Setting, form_of, reply, token

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


@pytest.mark.parametrize("family, error", [(family, error) for family in FreshObject for error in family.errors])
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
    assert all(family.errors for family in FreshObject)
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


def refusal(code: int, status: int = 401) -> Reply:
    return reply(status, {"error": "invalid_client", "error_codes": [code]})


def prove(setting: Setting, *replies: Reply, needed: int = 1) -> bool:
    setting.cloud.script(f"POST {TOKEN_PATH}", *replies)
    new = Credentials(client_id="new-app", client_secret=Secret("new-secret"))
    return setting.world.perform(wait_until_proven(setting.client, new, FreshObject.SECRET, needed=needed))


def test_the_new_credentials_are_tried_and_nothing_is_kept() -> None:
    setting = Setting()
    assert prove(setting, token())
    form = form_of(setting.cloud.requests[0])
    assert (form["client_id"], form["client_secret"]) == ("new-app", "new-secret")
    assert len(setting.context.caches.access_tokens) == 0


@pytest.mark.parametrize("refused", [refusal(7000215), refusal(700016, 400), refusal(7000229)])
def test_a_secret_that_is_not_known_yet_is_asked_for_again(refused: Reply) -> None:
    setting = Setting()
    assert prove(setting, refused, refused, token())
    assert len(setting.cloud.requests) == 3
    assert all(1.6 <= pause <= 2.4 for pause in setting.pauses)


def test_successes_must_come_in_a_row() -> None:
    setting = Setting()
    not_yet = refusal(7000215)
    assert prove(setting, token(), token(), not_yet, token(), token(), token(), not_yet, needed=3)
    assert len(setting.cloud.requests) == 6


def test_a_deadline_ends_the_proof() -> None:
    setting = Setting()
    assert not prove(setting, refusal(7000215))
    assert START + 80 < setting.world.clock < START + 90


def test_without_time_nothing_is_proven() -> None:
    setting = Setting()
    setting.world.advance(90)
    assert not prove(setting, token())
    assert setting.cloud.requests == []


def test_a_secret_that_has_expired_will_not_get_better() -> None:
    setting = Setting()
    with pytest.raises(ProviderProblem) as caught:
        prove(setting, refusal(7000222))
    assert caught.value.code == "AADSTS7000222"
    assert len(setting.cloud.requests) == 1
