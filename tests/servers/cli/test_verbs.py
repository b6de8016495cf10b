"""`read`, `write`, `list`, `delete` and `patch` on a server, and how words become fields."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from cloudid_core.catalog import CATALOG
from cloudid_core.messages import Operation
from cloudid_servers.cli import completion
from cloudid_servers.cli.main import commands
from cloudid_servers.cli.words import read_words
from cloudid_servers.paths import route_at
from cloudid_servers.terminal import Failed

from ..client_site import ROOT as ROOT_TOKEN
from ..client_site import Site
from .shell import Shell


@pytest.fixture
def operator(cloudid: Shell) -> Shell:
    cloudid.set(VAULT_TOKEN=ROOT_TOKEN)
    return cloudid


def stdin(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def test_a_role_is_written_read_changed_listed_and_deleted(operator: Shell) -> None:
    shown = operator("write", "auth/cloud/role/web", "bound_locations=westeurope", "token_ttl=1h")
    assert (shown.code, shown.out, shown.err) == (0, "", "")
    shown = operator("read", "/v1/auth/cloud/role/web/")
    assert (shown.code, shown.err) == (0, "")
    assert shown.json["data"]["bound_locations"] == ["westeurope"]
    assert {"request_id", "lease_id", "warnings"} <= {*shown.json}
    assert operator("patch", "auth/cloud/role/web", "token_ttl=30m").code == 0
    shown = operator("read", "auth/cloud/role/web", "--format", "table")
    members = dict(line.split(None, 1) for line in shown.out.splitlines() if " " in line)
    assert (members["bound_locations"], members["token_ttl"]) == ("westeurope", "30m")
    assert "web" in operator("list", "auth/cloud/role").out.splitlines()
    assert operator("list", "auth/cloud/role", "after=w", "limit=1", "--format", "table").out == "web\n"
    shown = operator("delete", "auth/cloud/role/web", "--format", "table")
    assert (shown.code, shown.out, shown.err) == (0, "", "done\n")
    assert operator("read", "auth/cloud/role/web").code == 1


@pytest.mark.parametrize("words", [["read"], ["list"], ["patch", "token_ttl=1h"]], ids=lambda words: words[0])
def test_what_is_not_there_is_one_line(operator: Shell, words: list[str]) -> None:
    path = "auth/cloud/role/nobody" if words[0] != "list" else "sys/leases/lookup/nowhere"
    shown = operator(words[0], path, *words[1:])
    assert (shown.code, shown.out, shown.err) == (1, "", f"error: nothing is at {path}\n")
    assert "nobody" not in operator("list", "auth/cloud/role").out.splitlines()


def test_a_path_that_nobody_knows_is_told_as_the_service_does(operator: Shell) -> None:
    shown = operator("read", "cloud/nowhere")
    assert (shown.code, shown.err.splitlines()[0]) == (1, "error: unsupported path (unsupported_path)")
    assert shown.err.endswith("more: cloudid read cloud --help-path\n")
    assert operator("list", "cloud/config").err.endswith("more: cloudid read cloud/config --help-path\n")
    assert operator("read", "auth/cloud/rol").err.endswith("more: cloudid read auth/cloud --help-path\n")


def test_an_answer_without_members_is_told_in_words(operator: Shell) -> None:
    shown = operator("read", "sys/audit", "--format", "table")
    assert (shown.code, shown.out, shown.err) == (0, "", "nothing found\n")


def test_one_value_is_printed_raw(operator: Shell) -> None:
    assert operator("read", "auth/cloud/role/all", "--field", "token_ttl").out == "3600\n"
    assert operator("read", "auth/cloud/role/all", "--field", "token_policies").out == "app\n"
    assert operator("read", "auth/cloud/role/all", "--field", "token_policies", "--json").out == '["app"]\n'
    assert operator("read", "sys/policies/acl/app", "--field", "name").out == "app\n"
    shown = operator("read", "auth/cloud/role/all", "--field", "nothing")
    assert (shown.code, shown.err) == (1, "error: the response has no nothing\n")


def test_an_answer_is_wrapped(site: Site, operator: Shell) -> None:
    token = operator("read", "auth/cloud/role/all", "--wrap-ttl", "1m", "--field", "token").out.strip()
    assert site.ask("POST", "sys/wrapping/unwrap", {"token": token})["data"]["token_ttl"] == 3600
    assert "creation_path" in operator("read", "auth/cloud/role/all", "--wrap-ttl", "1m", "--format", "table").out
    assert operator("read", "auth/cloud/role/all", "--wrap-ttl", "soon").code == 1


def test_unknown_fields_are_told_as_the_service_does(operator: Shell) -> None:
    shown = operator("write", "auth/cloud/role/typo", "token_tll=westeurope", "bound_locations=westeurope")
    assert shown.code == 0
    warning = "warning: Endpoint ignored these unrecognized parameters: [token_tll]\n"
    assert shown.err == warning
    shown = operator("write", "auth/cloud/role/typo", "token_tll=westeurope", "--format", "table")
    assert (shown.out, shown.err) == ("", f"{warning}done\n")
    operator("delete", "auth/cloud/role/typo")


def test_values_come_from_files_and_standard_input(
    operator: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "policy.hcl").write_text('path "cloud/*" { capabilities = ["read"] }\n')
    assert operator("write", "sys/policies/acl/filed", f"policy=@{tmp_path}/policy.hcl").code == 0
    assert "cloud/*" in operator("read", "sys/policies/acl/filed", "--field", "policy").out
    stdin(monkeypatch, json.dumps({"bound_locations": ["a", "b"], "token_ttl": 60}))
    assert operator("write", "auth/cloud/role/piped", "-", "token_ttl=90").code == 0
    assert operator("read", "auth/cloud/role/piped").json["data"]["bound_locations"] == ["a", "b"]
    assert operator("read", "auth/cloud/role/piped", "--field", "token_ttl").out == "90\n"


def test_a_secret_is_never_shown_and_belongs_into_no_word(
    site: Site, operator: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = site.application["client_secret"]
    stdin(monkeypatch, f"{secret}\n")
    shown = operator("write", "auth/cloud/config", "client_secret=-")
    assert (shown.code, shown.err) == (0, "")
    shown = operator("write", "auth/cloud/config", f"client_secret={secret}")
    assert shown.code == 0
    assert "client_secret is a secret, and other users can see the command line" in shown.err
    stdin(monkeypatch, "canary")
    for words in (
        ["auth/cloud/config", "client_secret=-", "environment=nowhere"],
        ["cloud/nowhere", "client_secret=-"],
    ):
        shown = operator("write", *words)
        assert shown.code in (1, 2)
        assert "canary" not in shown.out + shown.err
        stdin(monkeypatch, "canary")


def test_help_about_a_path_is_the_services(operator: Shell) -> None:
    for words in (["cloud/roles/x", "--help-path"], ["cloud/roles/x?help=1"]):
        shown = operator("write", *words, "--format", "table")
        assert shown.code == 0
        assert "POST roles/:name: " in shown.out
        assert "    azure_roles (" in shown.out
    assert "GET config: " in operator("read", "cloud", "--help-path").out
    assert "GET config: " in operator("read", "cloud", "--help-path", "--json").json["help"]


def test_public_paths_need_no_token(cloudid: Shell) -> None:
    assert cloudid("read", "sys/health", "--field", "sealed").out == "false\n"
    shown = cloudid("read", "cloud/config")
    assert (shown.code, "cloudid login --role" in shown.err) == (1, True), shown.err


@pytest.mark.parametrize(
    "words, fields, shown",
    [
        (["a=b", "c="], {"a": "b", "c": ""}, ["a", "c"]),
        (["a=b=c"], {"a": "b=c"}, ["a"]),
        (["a=1", "a=2", "a=3"], {"a": ["1", "2", "3"]}, ["a"]),
        ([r"a=\@b", r"b=\-", r"c=\d"], {"a": "@b", "b": "-", "c": r"\d"}, ["a", "b", "c"]),
        (["a=@file"], {"a": "from a file"}, []),
        (["@object", "a=2"], {"a": "2", "b": [1]}, ["a"]),
        (["a=-"], {"a": "typed\nlines"}, []),
    ],
    ids=str,
)
def test_words_become_fields(
    words: list[str], fields: dict[str, Any], shown: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("from a file\n")
    (tmp_path / "object").write_text('{"a": 1, "b": [1]}')
    stdin(monkeypatch, "typed\nlines\n")
    assert read_words(words) == (fields, set(shown))


@pytest.mark.parametrize("words", [["canary"], ["=canary"], ["a=-", "b=-"], ["-x"]], ids=str)
def test_words_that_are_no_fields_are_not_repeated(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    stdin(monkeypatch, "canary")
    ran = CliRunner().invoke(commands, ["write", "cloud/config", *words], input="canary")
    assert ran.exit_code == 2
    assert "canary" not in ran.output


@pytest.mark.parametrize("content", ["[1]", "canary", "[" * 100_000], ids=lambda text: text[:6])
def test_an_object_must_be_one(content: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin(monkeypatch, content)
    with pytest.raises(Failed, match="must be a JSON object"):
        read_words(["-"])


def test_an_empty_input_clears_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As behind a program that failed: a configuration without a client secret goes on with a managed identity."""
    for nothing in ("", "\n"):
        stdin(monkeypatch, nothing)
        with pytest.raises(Failed, match="standard input is empty: to clear client_secret, write client_secret="):
            read_words(["client_secret=-"])
    assert read_words(["client_secret="]) == ({"client_secret": ""}, {"client_secret"})


def test_what_is_too_long_or_cannot_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin(monkeypatch, "x" * (1 << 22) + "y")
    with pytest.raises(Failed, match="standard input is longer"):
        read_words(["a=-"])
    (tmp_path / "bytes").write_bytes(b"\xff")
    for name, reason in {"nowhere": "No such file or directory", "bytes": "it is no text in UTF-8"}.items():
        with pytest.raises(Failed, match=f"{name} cannot be read: {reason}"):
            read_words([f"a=@{tmp_path}/{name}"])


def offered(operation: Operation, typed: str) -> list[str]:
    context, argument = click.Context(commands), click.Argument(["path"])
    return [item.value for item in completion.complete_path(operation, context, argument, typed)]


@pytest.mark.parametrize(
    "operation, typed, expected",
    [
        (Operation.WRITE, "cloud/ro", ["cloud/roles/", "cloud/rotate-role/", "cloud/rotate-root"]),
        (Operation.WRITE, "auth/cloud/role/web/", []),
        (Operation.READ, "team/a", []),
        (Operation.WRITE, "team/ro", ["team/roles/", "team/rotate-role/", "team/rotate-root"]),
        (Operation.READ, "auth/other/conf", ["auth/other/config"]),
        (Operation.LIST, "sys/po", ["sys/policies/acl", "sys/policy"]),
        (Operation.LIST, "nothing/at/all", []),
    ],
)
def test_paths_are_completed_from_the_tables(operation: Operation, typed: str, expected: list[str]) -> None:
    assert offered(operation, typed) == expected


def test_every_route_is_offered_and_found() -> None:
    """What is completed cannot drift from what the service answers."""
    for operation in Operation:
        for pattern, _ in completion._patterns(operation, ""):
            path = "/".join("x" if segment.startswith(completion.CAPTURES) else segment for segment in pattern)
            route = route_at(path, operation)
            assert route is not None, path
            assert any(route in component.routes.routes for component in CATALOG)
            if not pattern[0].startswith(completion.CAPTURES) and not pattern[1].startswith(completion.CAPTURES):
                start = "/".join(pattern[:2])
                assert any(f"{path}/".startswith(offer) for offer in offered(operation, start)), path


def test_fields_are_completed_from_the_forms() -> None:
    context = click.Context(commands)
    context.params["path"] = "auth/other/role/web"
    argument = click.Argument(["words"])
    items = completion.complete_field(Operation.WRITE, context, argument, "bound_l")
    assert [item.value for item in items] == ["bound_locations="]
    assert items[0].help
    context.params["path"] = "no/such/path"
    assert completion.complete_field(Operation.WRITE, context, argument, "") == []
