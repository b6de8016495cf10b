"""Secret texts."""

from __future__ import annotations

import pytest

from cloudid_core.values.secret import Secret

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
