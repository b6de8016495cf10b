"""Access tokens."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from cloudid_core.clouds import Cloud
from cloudid_core.deadline import Deadline
from cloudid_core.effects import PlatformToken
from cloudid_core.errors import Code, PlatformTokenUnavailable, ProviderProblem, Refused
from cloudid_core.provider.client import Credentials
from cloudid_core.provider.oauth import LONGEST_LIFE, access_token, ask_for_token, forget
from cloudid_core.provider.responses import NONSENSE
from cloudid_core.values.secret import Secret

from .cloud import CLOUD, LOGIN, SCOPE, START, TOKEN_PATH, Reply, Setting, error, form_of, reply, token, unreachable

REFUSED = reply(401, {"error": "invalid_client", "error_codes": [7000215], "error_description": "AADSTS7000215: no"})


def setting_with(*replies: Reply) -> Setting:
    setting = Setting()
    setting.cloud.script(f"POST {TOKEN_PATH}", *replies)
    return setting


def get(setting: Setting, scope: str = SCOPE, **changes: Any) -> str:
    return setting.world.perform(access_token(replace(setting.client, **changes), scope)).reveal()


def test_a_token_is_asked_for_with_the_client_secret() -> None:
    setting = setting_with(token("a"))
    assert get(setting) == "a"
    (request,) = setting.cloud.requests
    assert request.url == f"{LOGIN}{TOKEN_PATH}"
    assert form_of(request) == {
        "grant_type": "client_credentials",
        "client_id": "app",
        "client_secret": "s3cret&=",
        "scope": "https://arm.audience//.default",
    }


def test_a_token_is_used_again() -> None:
    setting = setting_with(token("a"), token("b"))
    assert [get(setting), get(setting)] == ["a", "a"]


OTHER_CLOUD = Cloud(LOGIN.replace("login", "other"), CLOUD.resource_manager, CLOUD.resource_audience, CLOUD.directory)


@pytest.mark.parametrize(
    "scope, changes",
    [
        ("other/.default", {}),
        (SCOPE, {"owner": "mount:2"}),
        (SCOPE, {"cloud": OTHER_CLOUD}),
        (SCOPE, {"tenant": "other.test"}),
        (SCOPE, {"credentials": Credentials(client_id="other", client_secret=Secret("s3cret&="))}),
        (SCOPE, {"credentials": Credentials(client_id="app", client_secret=Secret("other"))}),
    ],
)
def test_whatever_differs_has_a_token_of_its_own(scope: str, changes: dict[str, Any]) -> None:
    setting = setting_with(token("a"), token("b"))
    setting.cloud.script("POST /other.test/oauth2/v2.0/token", token("b"))
    assert get(setting) == "a"
    assert get(setting, scope, **changes) == "b"
    assert get(setting) == "a"


@pytest.mark.parametrize("lifetime", ["3600", "03600", 3600])
def test_a_lifetime_may_be_the_text_of_a_number(lifetime: object) -> None:
    """Sources: the metadata service's token in Azure/azure-sdk-for-net issue 6756, with "28800" for `expires_in` and
    `ext_expires_in`; servers that stand in for the token endpoint repeat that.
    """
    answer = {"access_token": "a", "expires_in": lifetime, "ext_expires_in": "3600", "token_type": "Bearer"}
    setting = setting_with(reply(200, answer), token("b"))
    assert get(setting) == "a"
    setting.later(3299)
    assert get(setting) == "a"
    setting.later(1)
    assert get(setting) == "b"


@pytest.mark.parametrize("expires_in, last", [(3600, 3299), (1000, 899), (10**9, LONGEST_LIFE - 301)])
def test_a_token_is_replaced_ahead_of_its_end(expires_in: int, last: int) -> None:
    setting = setting_with(token("a", expires_in), token("b"))
    get(setting)
    setting.later(last)
    assert get(setting) == "a"
    setting.later(1)
    assert get(setting) == "b"


@pytest.mark.parametrize("trouble", [error(503), REFUSED, unreachable(), reply(200, {})])
def test_a_good_token_outlives_a_failed_refresh_which_is_not_tried_twice(trouble: Reply) -> None:
    setting = setting_with(token("a"), trouble)
    get(setting)
    setting.later(3400)
    assert get(setting) == "a"
    assert len(setting.cloud.requests) == 2
    setting.later(200)
    with pytest.raises((ProviderProblem, type(unreachable()))):
        get(setting)


def test_many_who_need_a_token_at_once_ask_once() -> None:
    setting = setting_with(token("a"), token("b"))
    tasks = [setting.world.spawn(access_token(setting.client, SCOPE)) for _ in range(10)]
    setting.world.settle()
    assert {task.result().reveal() for task in tasks} == {"a"}
    assert len(setting.cloud.requests) == 1


def test_a_forgotten_token_is_replaced() -> None:
    setting = setting_with(token("a"), token("b"))
    get(setting)
    forget(setting.client, SCOPE, Secret("a"))
    assert get(setting) == "b"


def test_a_newer_token_is_not_forgotten_for_an_older_one() -> None:
    setting = setting_with(token("b"), token("c"))
    get(setting)
    forget(setting.client, SCOPE, Secret("a"))
    assert get(setting) == "b"


def test_a_refused_secret_has_the_providers_code() -> None:
    with pytest.raises(ProviderProblem) as caught:
        get(setting_with(REFUSED))
    assert (caught.value.status, caught.value.code) == (401, "AADSTS7000215")


def test_a_failure_is_not_remembered() -> None:
    setting = setting_with(REFUSED, token("a"))
    with pytest.raises(ProviderProblem):
        get(setting)
    assert get(setting) == "a"


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"access_token": "a"},
        {"access_token": 1, "expires_in": 3600},
        {"access_token": "", "expires_in": 3600},
        {"access_token": "a\r\nhost: evil", "expires_in": 3600},
        {"access_token": "a" * 20_000, "expires_in": 3600},
        {"access_token": "a", "expires_in": 0},
        {"access_token": "a", "expires_in": -1},
        {"access_token": "a", "expires_in": 10**12},
        {"access_token": "a", "expires_in": "NaN"},
        {"access_token": "a", "expires_in": "0"},
        {"access_token": "a", "expires_in": "-1"},
        {"access_token": "a", "expires_in": "1e3"},
        {"access_token": "a", "expires_in": " 3600"},
        {"access_token": "a", "expires_in": "3" * 30},
        {"access_token": "a", "expires_in": "٣٦٠٠"},
        {"access_token": "a", "expires_in": 3600, "token_type": "pop"},
    ],
)
def test_a_nonsensical_answer_gives_no_token(answer: Any) -> None:
    with pytest.raises(ProviderProblem) as caught:
        get(setting_with(reply(200, answer)))
    assert caught.value.code == NONSENSE


def test_the_deadline_holds_for_tokens_too() -> None:
    setting = setting_with(error(503, retry_after="50"))
    with pytest.raises(Refused) as caught:
        get(setting, deadline=Deadline(START + 40))
    assert caught.value.code is Code.DEADLINE_PASSED


class Platform:
    """A platform with one identity."""

    def __init__(self, life: float = 3600.0, text: str = "platform's") -> None:
        self.asked: list[tuple[str, str]] = []
        self.answer = PlatformToken(Secret(text), START + life)

    def __call__(self, resource: str, client_id: str) -> PlatformToken:
        self.asked.append((resource, client_id))
        return self.answer


def test_without_a_secret_the_platform_vouches() -> None:
    platform = Platform()
    setting = Setting(platform=platform)
    credentials = Credentials(client_id="user-assigned")
    assert [get(setting, credentials=credentials) for _ in range(2)] == ["platform's"] * 2
    assert platform.asked == [("https://arm.audience/", "user-assigned")]
    assert setting.cloud.requests == []


@pytest.mark.parametrize("platform", [None, Platform(life=0), Platform(text="a b"), Platform(text="")])
def test_a_platform_that_gives_nothing_useful_is_unavailable(platform: Platform | None) -> None:
    with pytest.raises(PlatformTokenUnavailable):
        get(Setting(platform=platform), credentials=Credentials())


def test_a_token_that_is_asked_for_fresh_is_not_kept() -> None:
    setting = setting_with(token("a"), token("b"))
    for _ in range(2):
        setting.world.perform(ask_for_token(setting.client, "r/.default"))
    assert [form_of(request)["client_secret"] for request in setting.cloud.requests] == ["s3cret&=", "s3cret&="]
    assert len(setting.context.caches.access_tokens) == 0


def test_a_secret_that_is_not_accepted_yet_says_so() -> None:
    setting = setting_with(REFUSED)
    with pytest.raises(ProviderProblem) as caught:
        setting.world.perform(ask_for_token(setting.client, "r/.default"))
    assert caught.value.code == "AADSTS7000215"


def test_no_effect_shows_a_secret() -> None:
    setting = setting_with(token("t0ken"))
    get(setting)
    story = "\n".join(setting.world.transcript())
    assert "s3cret" not in story
    assert "t0ken" not in story
