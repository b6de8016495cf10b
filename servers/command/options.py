"""Options: the command line, the same for both servers."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import field, frozen

from cloudid_core.values.secret import Secret

from ..settings.settings import SettingsError, http_address, parse_address

SERVE: Final = "serve"
INIT: Final = "init"
BACKUP: Final = "backup"
COPY: Final = "copy-store"
REKEY: Final = "rekey"
MOST_WORKERS: Final = 64
TEST_ROLES: Final = "test-roles"
"""Takes the command line of `cloudid_servers.role_tests`."""
COMMANDS: Final = {
    SERVE: "serve requests until SIGTERM (the command when none is given)",
    INIT: "prepare the store and the key file of --settings, and print the root token, once",
    BACKUP: "write a consistent copy of the store of --settings, also while it is served",
    COPY: "copy the store of --settings into another, empty one, and compare both, while no server uses either",
    REKEY: "change the master key: let a new one open the store too, and when it is in use, let no other (--finish)",
}


@frozen(kw_only=True)
class Options:
    """What the command line says."""

    command: str = SERVE
    is_dev: bool = False
    settings: Path | Mapping[str, Any] | None = None
    """A TOML file; the command line knows nothing else. Other applications may give its tables."""
    listen: str = ""
    provider: str = ""
    root_token: Secret = field(factory=Secret)
    workers: int = 1
    new_root_token: bool = False
    """`init`: make another root token for a store that is initialised."""
    target: Path = Path()
    """`backup`: the file to write. `copy-store`: the settings file of the other store."""
    new_key_file: Path | None = None
    """`rekey`: where the new master key is. At most one of the three is set; none: the change is finished."""
    new_key_variable: str = ""
    new_key_command: str = ""


def read_options(program: str, arguments: Sequence[str] | None = None) -> Options:
    """Parse the command line; explains itself and exits when it is wrong."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] not in (*COMMANDS, "-h", "--help"):
        words.insert(0, SERVE)
    parser = _parser(program)
    given = parser.parse_args(words)
    if given.command == SERVE and not given.is_dev and not given.settings:
        parser.error("one of --dev and --settings FILE is needed")
    if given.command == SERVE and given.root_token and not given.is_dev:
        parser.error("--root-token is for --dev only")
    if given.command == SERVE and given.workers > 1 and given.is_dev:
        parser.error("--workers needs a store that processes share, which --dev does not have")
    vars(given).pop("finish", None)
    return Options(**{name: value for name, value in vars(given).items() if value is not None})


def _parser(program: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program,
        description="Turn machines' identities into service tokens.",
        epilog=f"`{TEST_ROLES} FILE ...` tests which logins roles admit: see `{TEST_ROLES} --help`.",
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    serve, init, backup, copy, rekey = (
        commands.add_parser(name, help=text, description=text, allow_abbrev=False) for name, text in COMMANDS.items()
    )
    for command in (serve, init, backup, copy, rekey):
        command.add_argument(
            "--settings", type=Path, metavar="FILE", help="TOML file with settings", required=command is not serve
        )
    serve.add_argument(
        "--dev",
        dest="is_dev",
        action="store_true",
        help="keep everything in memory, initialised, on a simulated cloud",
    )
    serve.add_argument(
        "--root-token", type=Secret, metavar="TOKEN", help="with --dev: the root token (default: random)"
    )
    serve.add_argument(
        "--provider", type=_url, metavar="URL", help="address of a provider simulator that stands for every environment"
    )
    serve.add_argument("--listen", type=_address, metavar="HOST:PORT", help="default: 127.0.0.1:8200")
    serve.add_argument(
        "--workers",
        type=_count,
        metavar="N",
        default=1,
        help=f"processes that serve together, 1 to {MOST_WORKERS}; more than one needs a store in PostgreSQL",
    )
    init.add_argument(
        "--new-root-token",
        action="store_true",
        help="print another root token for a store that is initialised: the first was lost or never shown",
    )
    step = rekey.add_mutually_exclusive_group(required=True)
    step.add_argument("--new-key-file", type=Path, metavar="FILE", help="file with the new key; made if there is none")
    step.add_argument("--new-key-variable", metavar="NAME", help="environment variable with the new key")
    step.add_argument("--new-key-command", metavar="COMMAND", help="command that prints the new key")
    step.add_argument("--finish", action="store_true", help="let only the key of --settings open the store from now on")
    backup.add_argument("target", type=Path, metavar="TARGET", help="file to write; it must not exist")
    copy.add_argument("target", type=Path, metavar="TARGET", help="TOML file with the settings of the other store")
    return parser


def _count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,3}", text) or not 1 <= int(text) <= MOST_WORKERS:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 to {MOST_WORKERS}")
    return int(text)


def _url(text: str) -> str:
    try:
        return http_address(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text} {error}") from None


def _address(text: str) -> str:
    try:
        parse_address(text)
    except SettingsError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text
