"""Keyed hashes of secrets."""

from __future__ import annotations

import hmac
from typing import Any

import attrs
import pytest

from cloudid_core.audit.hashing import LEAF_LIMIT, PREFIX, REPEATED, REPEATED_LENGTH, SECRETS, Hasher
from cloudid_core.catalog import CATALOG
from cloudid_core.forms.fields import SECRET, fields_of

KEY = bytes(range(32))
HASHER = Hasher(KEY)


def hashed(text: str) -> str:
    return PREFIX + hmac.digest(KEY, text.encode(), "sha256").hex()


@pytest.mark.parametrize("text", ["", "s3cret", "\u00e9\U0001f511", "x" * 10_000])
def test_a_hash_is_hmac_sha256(text: str) -> None:
    assert HASHER.text(text) == hashed(text)


def test_another_key_gives_another_hash() -> None:
    assert Hasher(bytes(32)).text("s3cret") != HASHER.text("s3cret")


@pytest.mark.parametrize(
    "value, shown",
    [
        ("s3cret", hashed("s3cret")),
        (12345, hashed("12345")),
        (1.5, hashed("1.5")),
        (True, True),
        (None, None),
        (["a", 1], [hashed("a"), hashed("1")]),
        (("a",), [hashed("a")]),
        ({"a": {"b": "c"}}, {"a": {"b": hashed("c")}}),
    ],
)
def test_texts_and_numbers_are_hashed_wherever_they_are(value: Any, shown: Any) -> None:
    """A client secret that happens to be a number is a secret too."""
    assert HASHER.value(value) == shown


def test_members_can_be_kept_clear() -> None:
    assert HASHER.members({"a": "b", "c": 1}, ("a",)) == {"a": "b", "c": hashed("1")}


@pytest.mark.parametrize(
    "members",
    [
        {"n" * 100_000: 1},
        {"n" * 100_000: "text"},
        {"a": {"n" * 100_000: 1}},
        {"a": [{"n" * 1000: 1}] * 100},
        {f"{number:0200}": 1 for number in range(200)},
    ],
)
def test_long_names_are_hashed_too(members: dict[str, Any]) -> None:
    """Names are clear, so that without a bound any token could fill the disk of a device."""
    assert HASHER.members(members, tuple(members)).keys() == {"*"}


def test_names_that_a_form_knows_are_clear_and_all_others_hashed() -> None:
    """A name is the text of whoever sends it; a form knows nothing of what is inside of its fields."""
    members = {"role": True, "$(id)": True, "plain": {"role": {"deep": [{"deeper": None}]}}}
    assert HASHER.members(members, known={"role", "plain"}) == {
        "role": True,
        hashed("$(id)"): True,
        "plain": {hashed("role"): {hashed("deep"): [{hashed("deeper"): None}]}},
    }
    assert HASHER.members(members, known=()) == {
        hashed("role"): True,
        hashed("$(id)"): True,
        hashed("plain"): {hashed("role"): {hashed("deep"): [{hashed("deeper"): None}]}},
    }


@pytest.mark.parametrize("name", ["$(id)", "`id`", "a b", "a;b", "é", "", "n" * 65, "auth/cloud/", "\n", "<x>"])
def test_a_name_in_an_answer_that_is_no_plain_word_is_hashed(name: str) -> None:
    """Answers repeat names that requests made up: of metadata, of what was wrapped."""
    expected = {hashed(name): True, "token_ttl": [{hashed(name): None}]}
    assert HASHER.members({name: True, "token_ttl": [{name: None}]}) == expected


@pytest.mark.parametrize("name", sorted(SECRETS))
def test_a_secret_stays_hashed_whatever_a_mount_asks_for(name: str) -> None:
    assert HASHER.members({name: "s3cret"}, (name,), (name,)) == {name: hashed("s3cret")}
    nested = {"config": [{name: "s3cret", "ttl": 1}]}
    assert HASHER.members(nested, ("config",)) == {"config": [{name: hashed("s3cret"), "ttl": 1}]}


def test_every_field_that_holds_a_secret_is_known_as_one() -> None:
    """By its type, or because no repr shows it."""
    forms = {route.form for component in CATALOG for route in component.routes.routes}
    secrets = {
        field.name
        for form in forms
        for field in fields_of(form)
        if field.kind is SECRET or not attrs.fields_dict(form)[field.name].repr
    }
    assert {"jwt", "client_secret", "token"} <= secrets <= SECRETS


@pytest.mark.parametrize("name", sorted(REPEATED))
def test_what_comes_again_with_other_logins_is_hashed_like_everything_else(name: str) -> None:
    """Whether its hash is remembered or not, and whatever it is."""
    for value in ("web", "web", "x" * (REPEATED_LENGTH + 1)):
        assert HASHER.members({name: value}) == {name: hashed(value)}
    assert HASHER.members({name: 1}) == {name: hashed("1")}
    assert HASHER.members({name: ["web"]}) == {name: [hashed("web")]}
    assert HASHER.members({name: "web"}, (name,)) == {name: "web"}
    assert Hasher(bytes(32)).members({name: "web"}) != {name: hashed("web")}


@pytest.mark.parametrize(
    "data", [{"a": [1] * 1000}, {str(n): n for n in range(1000)}, {"a": [[[n]] for n in range(300)]}]
)
def test_a_large_structure_is_one_hash(data: dict[str, Any]) -> None:
    """A request of a megabyte does not cost half a million hashes."""
    assert list(HASHER.members(data)) == ["*"]


def test_texts_are_hashed_one_by_one_unless_they_are_many() -> None:
    assert HASHER.texts(("a", "b")) == (hashed("a"), hashed("b"))
    assert len(HASHER.texts(tuple(map(str, range(LEAF_LIMIT + 1))))) == 1
