"""`bench`: figures of synthetic and of recorded tokens, of several processes, and of a running service."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import pytest
from attrs import evolve
from cryptography.exceptions import InvalidSignature
from jwt import PyJWTError

from cloudid_core.errors import Refused
from cloudid_servers.bench import Contender, Subject, measure_processes, pyjwt, raw_rsa, synthetic, verification
from cloudid_servers.cli.bench import sentence_of

from ..client_site import Site
from ..story import login_form
from .shell import Shell

QUICK: Final = ("--seconds", "0.2", "--processes", "1")
CONTENDERS: Final[Mapping[str, Callable[[Subject], Contender[Any]]]] = {
    "raw_rsa": raw_rsa,
    "pyjwt": pyjwt,
    "cold": partial(verification, is_cached=False),
    "cached": partial(verification, is_cached=True),
}


@pytest.fixture(scope="module")
def subject() -> Subject:
    return synthetic(3, groups=12, key_bits=2048)


def test_synthetic_tokens_have_the_groups_and_the_key_that_were_chosen() -> None:
    subject = synthetic(2, groups=30, key_bits=3072)
    assert subject.key.key_size == 3072
    assert len(set(subject.tokens)) == 2
    claims = verification(subject, is_cached=False)
    assert "30 groups each" in subject.origin
    claims.run()


@pytest.mark.parametrize("name", CONTENDERS)
def test_every_contender_takes_a_right_signature_and_refuses_a_wrong_one(subject: Subject, name: str) -> None:
    CONTENDERS[name](subject).run()
    head, _, signature = subject.tokens[0].rpartition(".")
    wrong = evolve(subject, tokens=(f"{head}.{signature[:-8]}AAAAAAAA",))
    with pytest.raises((InvalidSignature, PyJWTError, Refused)):
        CONTENDERS[name](wrong).run()


def test_a_token_that_is_not_admitted_is_not_measured(subject: Subject, tmp_path: Path, cloudid: Shell) -> None:
    token, jwks = tmp_path / "token", tmp_path / "jwks.json"
    token.write_text(subject.tokens[0])
    jwks.write_text(subject.jwks)
    other = "0a5cf0a6-3b7e-4b0f-8a56-000000000000"
    ran = cloudid("bench", *QUICK, "--jwt", str(token), "--jwks", str(jwks), "--bound", f"group_ids={other}")
    assert (ran.code, "cannot be verified" in ran.err) == (1, True), ran.err


def test_the_command_shows_rates_percentiles_and_one_sentence(cloudid: Shell, tmp_path: Path) -> None:
    picture = tmp_path / "bench.svg"
    ran = cloudid("bench", *QUICK, "--json", "--svg", str(picture))
    found = json.loads(ran.out)
    assert set(found["figures"]) == set(CONTENDERS)
    for figure in found["figures"].values():
        assert figure["per_second"] > 0
        assert 0 < figure["p50"] <= figure["p99"]
        assert figure["spread"] >= 0
    assert found["processes"]["per_second"] > 0
    assert found["environment"]["cpu"]
    assert found["summary"].startswith("This machine verifies ")
    assert len(ElementTree.parse(picture).getroot().findall("{http://www.w3.org/2000/svg}rect")) == len(CONTENDERS)


def test_a_recorded_token_is_verified_with_a_key_set(cloudid: Shell, subject: Subject, tmp_path: Path) -> None:
    token, jwks = tmp_path / "token", tmp_path / "jwks.json"
    token.write_text(subject.tokens[0] + "\n")
    jwks.write_text(subject.jwks)
    bound = f"bound_subscription_ids={subject.tenant_id}"
    ran = cloudid("bench", *QUICK, "--json", "--jwt", str(token), "--jwks", str(jwks), "--bound", bound)
    assert json.loads(ran.out)["tokens"] == f"a token of {len(subject.tokens[0])} bytes in 12 groups"


@pytest.mark.parametrize(
    "arguments, text",
    [
        (("--jwt", "token"), "belong together"),
        (("--jwt", "token", "--jwks", "nowhere"), "nowhere cannot be read"),
        (("--jwt", "token", "--jwks", "token"), "it needs the claims"),
        (("--jwt", "headless", "--jwks", "token"), "cannot be verified: Invalid header"),
        (("--jwt", "token", "--jwks", "token", "--bound", "nothing=1"), "the name of a bound"),
        (("--against", "http://127.0.0.1:1"), "needs --jwt and --role"),
        (("--against", "http://127.0.0.1:1", "--jwt", "token", "--role", "anybody"), "cannot be reached"),
    ],
)
def test_what_cannot_be_measured_is_named(
    arguments: tuple[str, ...], text: str, cloudid: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    claims = b'{"tid": "a", "iss": "b", "nbf": 1, "exp": 2}'
    Path("token").write_text(f"a.{urlsafe_b64encode(b'{}').decode()}.c")
    Path("headless").write_text(f"a.{urlsafe_b64encode(claims).decode()}.c")
    ran = cloudid("bench", *QUICK, *arguments)
    assert ran.code
    assert text in ran.err


def test_several_processes_verify_more_than_nothing(subject: Subject) -> None:
    assert measure_processes(subject, 2) > 0


def test_the_sentence_has_the_rate_of_a_core_and_the_time_of_a_fleet() -> None:
    assert sentence_of(30_000, 60_000) == (
        "This machine verifies 30,000 logins a second per core; a fleet of 10,000 machines boots in 0.2 s."
    )


def test_logins_at_a_running_service_are_measured(cloudid: Shell, site: Site, tmp_path: Path) -> None:
    token = tmp_path / "token"
    form = login_form(site.cloud.url, site.machine("web"))
    assert form is not None
    token.write_text(form["jwt"])
    words = ("bench", "--seconds", "0.5", "--against", site.url, "--jwt", str(token), "--role")
    found = json.loads(cloudid(*words, "anybody", "--json").out)
    assert found["per_second"] > 0
    assert found["p50_ms"] <= found["p99_ms"]
    refused = cloudid(*words, "absent")
    assert "a login was refused after 0" in refused.err
