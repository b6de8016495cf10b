"""Tokens of a client: where they are looked for, and who may read the file."""

from __future__ import annotations

import json
import os
import pwd
from collections.abc import Mapping
from pathlib import Path
from stat import S_IMODE
from types import SimpleNamespace
from typing import Final

import pytest

from cloudid_core.values.secret import Secret
from cloudid_servers.client import Login, find_token, is_same_address, last_login, store_login
from cloudid_servers.client.tokens import TokenFileRefused

URL: Final = "https://cloudid.example"


def found(variables: Mapping[str, str], url: str = URL) -> Secret:
    return find_token(variables, url, pytest.fail)


def stored(token: str, variables: Mapping[str, str]) -> Path:
    return store_login(Login(Secret(token), URL, "auth/cloud", "web"), variables)


def test_what_counts_first(tmp_path: Path) -> None:
    variables = {"HOME": str(tmp_path)}
    assert not found(variables)
    (tmp_path / ".vault-token").write_text("theirs\n")
    assert found(variables) == Secret("theirs")
    stored("ours", variables)
    assert found(variables) == Secret("ours")
    variables["VAULT_TOKEN"] = "of their environment"
    assert found(variables) == Secret("of their environment")
    variables["CLOUDID_TOKEN"] = "of our environment"
    assert found(variables) == Secret("of our environment")


def test_a_stored_token_is_for_its_owner_only_and_replaces_what_is_there(tmp_path: Path) -> None:
    """Also where a file is there that others can read, or a link to one."""
    shared = tmp_path / "shared"
    shared.write_text("old")
    (tmp_path / ".cloudid-token").symlink_to(shared)
    mask = os.umask(0)
    try:
        path = stored("new", {"HOME": str(tmp_path)})
    finally:
        os.umask(mask)
    assert (path, path.is_symlink(), S_IMODE(path.stat().st_mode)) == (tmp_path / ".cloudid-token", False, 0o600)
    assert (json.loads(path.read_text())["token"], shared.read_text()) == ("new", "old")
    assert sorted(os.listdir(tmp_path)) == [".cloudid-token", "shared"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o666])
def test_our_file_is_refused_if_others_may_read_it(tmp_path: Path, mode: int) -> None:
    path = stored("canary", {"HOME": str(tmp_path)})
    path.chmod(mode)
    with pytest.raises(TokenFileRefused) as refused:
        found({"HOME": str(tmp_path)})
    assert f"{mode:04o}" in str(refused.value)
    assert "canary" not in str(refused.value)


def test_what_can_be_no_token_is_named_and_not_shown(tmp_path: Path) -> None:
    (tmp_path / ".vault-token").write_text("canary\nof two lines\n")
    for variables, source in (({}, ".vault-token"), ({"VAULT_TOKEN": "canary\u20ac"}, "VAULT_TOKEN")):
        with pytest.raises(TokenFileRefused, match=source) as refused:
            found({"HOME": str(tmp_path), **variables})
        assert "canary" not in str(refused.value)


@pytest.mark.parametrize("variables", [{}, {"HOME": ""}])
def test_an_empty_home_is_none(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The list of users says where it is. Path names that begin with an empty one begin with a slash."""
    monkeypatch.setattr(pwd, "getpwuid", lambda user: SimpleNamespace(pw_dir=str(tmp_path)))
    monkeypatch.setenv("HOME", "")
    assert stored("ours", variables) == tmp_path / ".cloudid-token"
    assert found(variables) == Secret("ours")


def test_who_has_no_home_has_no_token_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
    monkeypatch.delenv("HOME")
    monkeypatch.chdir(tmp_path)
    assert not found({})
    with pytest.raises(TokenFileRefused, match="cannot be written"):
        stored("canary", {})


def test_a_file_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / ".cloudid-token").mkdir()
    with pytest.raises(TokenFileRefused, match="cannot be read"):
        found({"HOME": str(tmp_path)})
    with pytest.raises(TokenFileRefused, match="cannot be written"):
        stored("canary", {"HOME": str(tmp_path)})
    assert os.listdir(tmp_path) == [".cloudid-token"]


@pytest.mark.parametrize(
    "text",
    [
        '{"token": "canary"}',
        '{"token": "canary", "address": "ftp://x", "mount": "", "role": ""}',
        '{"token": "canary", "address": 7, "mount": "", "role": ""}',
        '{"token": "canary',
        "{" * 9000,
    ],
)
def test_a_damaged_file_is_named_and_not_shown(tmp_path: Path, text: str) -> None:
    path = stored("ours", {"HOME": str(tmp_path)})
    path.write_text(text)
    with pytest.raises(TokenFileRefused, match="is damaged") as refused:
        last_login({"HOME": str(tmp_path)})
    assert "canary" not in str(refused.value)


@pytest.mark.parametrize(
    "other", ["HTTPS://Cloudid.Example", "https://cloudid.example:443", "https://cloudid.example/"]
)
def test_an_address_is_the_same_however_it_is_written(other: str, tmp_path: Path) -> None:
    variables = {"HOME": str(tmp_path)}
    stored("ours", variables)
    assert found(variables, other) == Secret("ours")


@pytest.mark.parametrize(
    "other",
    [
        "http://cloudid.example",
        "https://cloudid.example:8200",
        "https://cloudid.example.evil",
        "https://cloudid.example/other",
    ],
)
def test_any_other_address_gets_no_token(other: str, tmp_path: Path) -> None:
    variables = {"HOME": str(tmp_path)}
    stored("ours", variables)
    assert not is_same_address(URL, other)
    with pytest.raises(TokenFileRefused, match="is not sent to"):
        found(variables, other)
