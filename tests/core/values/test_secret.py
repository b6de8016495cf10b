"""Secret texts, and tokens in paths."""

from __future__ import annotations

import pytest

from cloudid_core.values.secret import Secret, without_tokens

SECRET = Secret("hunter2-é")


def test_a_secret_reveals_its_text_on_request_only() -> None:
    assert SECRET.reveal() == "hunter2-é"
    for printed in (
        repr(SECRET),
        str(SECRET),
        f"{SECRET}",
        f"{SECRET:>40}",
        f"{SECRET!r}",
        repr([SECRET]),
    ):
        assert "hunter2" not in printed


def test_secrets_compare_by_text_and_with_secrets_only() -> None:
    assert Secret("hunter2-é") == SECRET
    assert Secret("hunter2") != SECRET
    assert SECRET != "hunter2-é"


def test_an_empty_secret_is_false() -> None:
    assert SECRET
    assert not Secret()


def test_a_secret_is_no_key() -> None:
    with pytest.raises(TypeError):
        hash(SECRET)


def test_a_secret_carries_nothing_but_its_text() -> None:
    with pytest.raises(AttributeError):
        SECRET.note = "x"  # type: ignore[attr-defined]


SERVICE_TOKEN = f"cs.{'0123456789abcdef' * 2}{'aB-_' * 8}"
JWT = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJhIn0.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    "path, shown",
    [
        (f"auth/token/lookup/{SERVICE_TOKEN}", "auth/token/lookup/********"),
        (f"{JWT}/x", "********/x"),
        (f"a/cb.{'A' * 400}/{SERVICE_TOKEN}", "a/********/********"),
        ("auth/cloud/role/cs.web", "auth/cloud/role/cs.web"),
        ("cloud/creds/eyJafjallajokull", "cloud/creds/eyJafjallajokull"),
        ("sys/leases/lookup/cloud/creds/web/019a0b1c2d3e4f5061728394a5b6c7d8", None),
        (f"sys/policies/acl/basics.{'a' * 40}", None),
        ("", ""),
    ],
)
def test_a_path_is_shown_without_tokens(path: str, shown: str | None) -> None:
    assert without_tokens(path) == (path if shown is None else shown)
