"""`cloudid`: its list of commands, its help, completion, and how errors end."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import cast

import click
import pytest
from click.testing import CliRunner

from cloudid_core.version import VERSION
from cloudid_servers.cli.examples import EXAMPLES
from cloudid_servers.cli.main import COMMANDS, PROGRAM, SECTIONS, Listed, commands
from cloudid_servers.terminal import Exit, Failed, run

from ..running import PATIENCE, ROOT

CONNECTED = ("--client-id", "id", "--tenant", "tenant", "--subscription", "id", "--feature", "virtual")


def cloudid(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cloudid_servers.cli", *arguments],
        cwd=ROOT,
        env=environment or None,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.parametrize("listed", COMMANDS, ids=lambda listed: listed.name)
def test_the_list_says_what_the_command_says_of_itself(listed: Listed) -> None:
    command = listed.load()
    assert (listed.name, listed.summary) == (command.name, command.get_short_help_str(200).rstrip("."))
    assert listed.section in SECTIONS


def test_the_help_has_every_command_in_its_section() -> None:
    text = CliRunner().invoke(commands, ["--help"]).stdout
    places = [text.index(f"\n{section}:") for section in SECTIONS if any(c.section == section for c in COMMANDS)]
    assert places == sorted(places)
    for listed in COMMANDS:
        assert text.index(f"\n  {listed.name} ") > text.index(f"\n{listed.section}:")


def leaves(command: click.Command, path: str) -> Iterator[str]:
    """The paths of a command's own commands, or its own where it has none."""
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            yield from leaves(below, f"{path} {name}")
    else:
        yield path


def test_every_command_has_examples() -> None:
    assert {*EXAMPLES} == {path for listed in COMMANDS for path in leaves(listed.load(), listed.name)}


@pytest.mark.parametrize("path", EXAMPLES)
def test_the_help_of_a_command_ends_with_examples_that_parse(path: str) -> None:
    shown = CliRunner().invoke(commands, [*path.split(), "--help"])
    assert shown.stdout.endswith("\n".join(["Examples:", *(f"    {each}" for each in EXAMPLES[path])]) + "\n")
    for example in EXAMPLES[path]:
        line = (
            example.rpartition("| ")[2]
            .removeprefix('eval "$(')
            .removesuffix(')"')
            .replace("$(cat checkpoint.key)", "0" * 64)
        )
        program, *words = shlex.split(line)
        assert program == PROGRAM
        assert parsed_path(words) == path


def parsed_path(words: list[str]) -> str:
    """Parse a command line as the program does, without running it; the path of its command."""
    command, context = cast("click.Command", commands), commands.make_context(PROGRAM, words)
    names = []
    while isinstance(command, click.Group):
        name, below, words = command.resolve_command(context, [*context._protected_args, *context.args])
        assert below is not None
        command, context = below, below.make_context(name, words, parent=context)
        names.append(below.name or "")
    return " ".join(names)


def test_the_version_is_that_of_the_core() -> None:
    shown = cloudid("--version")
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, f"cloudid {VERSION}\n", "")


def test_help_without_a_command_is_no_success() -> None:
    shown = cloudid()
    assert (shown.returncode, shown.stdout) == (Exit.UNUSABLE, "")
    assert shown.stderr.startswith("Usage: cloudid ")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_can_complete_the_commands(shell: str) -> None:
    assert "_CLOUDID_COMPLETE" in cloudid("completion", shell).stdout
    asked = {"_CLOUDID_COMPLETE": f"{shell}_complete", "COMP_WORDS": "cloudid comp", "COMP_CWORD": "1"}
    if shell == "fish":
        asked["COMP_CWORD"] = "comp"
    assert "completion" in cloudid(**asked).stdout
    del asked["COMP_WORDS"]
    failed = cloudid(**asked)
    assert (failed.returncode, failed.stderr.count("\n")) == (1, 1)


@pytest.mark.parametrize(
    "arguments, line",
    [
        (["nowhere"], "error: No such command 'nowhere'; see cloudid --help\n"),
        (["--nothing"], "error: No such option '--nothing'; see cloudid --help\n"),
        (["staus"], "error: No such command 'staus'. Did you mean 'status'? See cloudid --help\n"),
        (["completion"], "error: Missing argument '{bash|zsh|fish}'. Choose from: bash, zsh, fish; "),
    ],
)
def test_what_is_not_understood_is_one_line(arguments: list[str], line: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(commands, "cloudid", arguments) == Exit.UNUSABLE
    stderr = capfd.readouterr().err
    assert stderr.startswith(line)
    assert stderr.count("\n") == 1


@pytest.mark.parametrize(
    "failure, code, line",
    [
        (Failed("do this"), Exit.FAILED, "error: do this\n"),
        (OSError(2, "No such file", "a"), Exit.FAILED, "error: a: No such file\n"),
        (OSError(2, "No such file"), Exit.FAILED, "error: No such file\n"),
        (OSError("no number"), Exit.FAILED, "error: no number\n"),
        (ModuleNotFoundError("x", name="trio.abc"), Exit.FAILED, "pip install 'cloudid[trio]'\n"),
        (KeyError("secret"), Exit.FAILED, "error: this is a bug in cloudid (KeyError at test_main.py:"),
        (BrokenPipeError(), Exit.FAILED, ""),
        (UnicodeEncodeError("utf-8", "\udcff", 0, 1, "surrogates not allowed"), Exit.UNUSABLE, "not valid UTF-8\n"),
        (KeyboardInterrupt(), Exit.INTERRUPTED, ""),
        (click.Abort(), Exit.INTERRUPTED, ""),
    ],
)
def test_a_failure_is_one_line(failure: BaseException, code: int, line: str, capfd: pytest.CaptureFixture[str]) -> None:
    @click.command()
    def failing() -> None:
        raise failure

    assert run(failing, "failing", []) == code
    stderr = capfd.readouterr().err
    assert line in stderr
    assert "secret" not in stderr
    assert stderr.count("\n") == bool(line)


@pytest.mark.parametrize(
    "script, encoding, words, shown",
    [
        ('"$@"', "latin-1", ["check", "--settings", "/nowhere/☃"], "/nowhere/\\u2603"),
        ('"$@"', "utf-8", ["check", "--settings", "/nowhere/☃"], "/nowhere/☃"),
        ('"$@" >&-', "utf-8", ["status", "--address", "http://127.0.0.1:9"], "cannot be reached"),
        ('"$@" <&-', "utf-8", ["write", "sys/policies/acl/x", "policy=-"], "standard input is empty"),
    ],
    ids=["other letters", "all letters", "no output", "no input"],
)
def test_any_streams_will_do(script: str, encoding: str, words: list[str], shown: str, tmp_path: Path) -> None:
    line = ["sh", "-c", script, "sh", sys.executable, "-m", "cloudid_servers.cli", *words]
    environment = {"PYTHONIOENCODING": encoding, "HOME": str(tmp_path)}
    done = subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, timeout=PATIENCE, check=False)
    assert (done.returncode, shown in (done.stdout + done.stderr).decode(encoding)) == (1, True)


@pytest.mark.parametrize(
    "script, stderr",
    [
        ('"$@" > /dev/full', "error: No space left on device\n"),
        ('"$@" | true', ""),
    ],
    ids=["a full disk", "nobody reads on"],
)
def test_an_output_that_cannot_be_written_ends_with_1(script: str, stderr: str) -> None:
    line = ["bash", "-o", "pipefail", "-c", script, "sh", sys.executable, "-m", "cloudid_servers.cli", "--help"]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(line, cwd=ROOT, env=buffered, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.stderr, done.returncode) == (stderr, Exit.FAILED)


@pytest.mark.parametrize(
    "words, name",
    [
        (("trace", "-", "/dev/null"), "token: "),
        (("login", "--role", "web", "--jwt", "-"), "JWT: "),
        (("connect", "azure", *CONNECTED, "--client-secret", "-"), "client secret: "),
        (("write", "cloud/config", "client_secret=-"), "client_secret: "),
    ],
    ids=["trace", "login", "connect", "write"],
)
def test_a_secret_is_asked_for_on_a_terminal_and_not_shown(words: tuple[str, ...], name: str, tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    line = [sys.executable, "-m", "cloudid_servers.cli", *words, "--address", "http://127.0.0.1:9"]
    environment = {"HOME": str(tmp_path), "VAULT_TOKEN": "token"}
    with subprocess.Popen(
        line, cwd=ROOT, env=environment, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as process:
        os.close(theirs)
        shown = ""
        while name not in shown and (chunk := os.read(ours, 1 << 16)):
            shown += chunk.decode()
        os.write(ours, b"hunter2\n")
        with suppress(OSError):  # on Linux a terminal ends so
            while chunk := os.read(ours, 1 << 16):
                shown += chunk.decode()
        process.wait(PATIENCE)
    os.close(ours)
    assert "hunter2" not in shown


def test_a_bug_can_be_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUDID_TRACEBACK", "1")

    @click.command()
    def failing() -> None:
        raise KeyError

    with pytest.raises(KeyError):
        run(failing, "failing", [])
