"""Names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.values.names import are_same, identifier, mount_path, name, policy_name


def test_names_are_the_same_in_any_case() -> None:
    assert are_same("Web-1", "wEB-1")
    assert not are_same("web", "web-1")


@pytest.mark.parametrize("raw", ["a", "_", "0", "dev-role", "a.b", "a..b", "a-._-b", "_x_", "A" * 128])
def test_name(raw: str) -> None:
    assert name(raw) == raw.lower()


@pytest.mark.parametrize(
    "raw",
    [
        "",
        ".",
        "..",
        "-a",
        "a-",
        ".a",
        "a.",
        "a/b",
        "a b",
        "a\n",
        "a\0",
        "é",
        "\N{KELVIN SIGN}",
        "٣",
        "a%2fb",
        "A" * 129,
        None,
        1,
        [],
    ],
)
def test_what_is_no_name(raw: object) -> None:
    with pytest.raises(ValueError, match=r"^must be 1 to 128 letters"):
        name(raw)


@given(st.from_regex(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,126}[A-Za-z0-9_])?", fullmatch=True))
def test_names_ignore_case_and_stay_as_they_are(raw: str) -> None:
    assert name(raw) == name(raw.upper()) == name(name(raw)) == raw.lower()


@given(st.text(max_size=6))
def test_only_safe_characters_get_through(raw: str) -> None:
    try:
        found = name(raw)
    except ValueError:
        return
    assert found.isascii()
    assert found.replace("-", "_").replace(".", "_").replace("_", "a").isalnum()


@pytest.mark.parametrize(
    "raw, path",
    [
        ("cloud", "cloud"),
        ("cloud/", "cloud"),
        ("/team/a/", "team/a"),
        ("West-2_x~y.z", "West-2_x~y.z"),
        ("a" * 256,) * 2,
    ],
)
def test_slashes_at_the_ends_are_dropped_and_the_case_stays(raw: str, path: str) -> None:
    assert mount_path(raw) == path


@pytest.mark.parametrize(
    "raw", ["", "/", "a//b", "a/../b", ".", ".hidden", "a b", "a*", "+", "a/+/b", "%2e", "ä", "a\n", "a" * 257]
)
def test_what_a_url_or_a_policy_would_read_otherwise_is_refused(raw: str) -> None:
    with pytest.raises(ValueError, match="must be segments"):
        mount_path(raw)


@pytest.mark.parametrize("raw", ["a", "team/app", "user@example.com", "a:b", "a-", ".a", "A" * 128, "a/b/c", "..."])
def test_policy_name(raw: str) -> None:
    assert policy_name(raw) == raw.lower()


@pytest.mark.parametrize(
    "raw",
    ["", "/", "/a", "a/", "a//b", ".", "..", "a/..", "./a", "a/./b", "a*", "a,b", "a b", "a\n", "é", "a" * 129, 1],
)
def test_what_is_no_policy_name(raw: object) -> None:
    with pytest.raises(ValueError, match="must be"):
        policy_name(raw)


@pytest.mark.parametrize("raw", ["", "x" * 128, "foo bar", "é", "a/b", ".."])
def test_identifier(raw: str) -> None:
    assert identifier(raw) == raw


@pytest.mark.parametrize("raw", ["x" * 129, "a\n", "\0", "\x7f", "\x85", "\ud800", 1])
def test_what_is_no_identifier(raw: object) -> None:
    with pytest.raises(ValueError, match="must be"):
        identifier(raw)
