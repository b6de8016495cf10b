"""Options: the command line, the same for both servers."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from attrs import field, frozen

from cloudid_core.values.secret import Secret

from .settings import SettingsError, parse_address


@frozen(kw_only=True)
class Options:
    """What was asked for on the command line."""

    is_init: bool = False
    is_dev: bool = False
    settings: Path | None = None
    listen: str = ""
    provider: str = ""
    root_token: Secret = field(factory=Secret)


def read_options(program: str, arguments: Sequence[str] | None = None) -> Options:
    """Parse the command line; explains itself and exits when it is wrong."""
    parser = _parser(program)
    given = parser.parse_args(arguments)
    is_init = given.action == "init"
    if is_init and (given.dev or not given.settings):
        parser.error("init needs --settings FILE, and nothing else")
    if not given.dev and not given.settings:
        parser.error("one of --dev and --settings FILE is needed")
    if given.root_token and not given.dev:
        parser.error("--root-token is for --dev only")
    return Options(
        is_init=is_init,
        is_dev=given.dev,
        settings=given.settings,
        listen=given.listen or "",
        provider=given.provider,
        root_token=Secret(given.root_token),
    )


def _parser(program: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program, description="Turn machines' identities into service tokens.", allow_abbrev=False
    )
    parser.add_argument(
        "action",
        nargs="?",
        choices=("serve", "init"),
        default="serve",
        help="init: prepare the store and the key file of --settings, and print the root token, once (default: serve)",
    )
    parser.add_argument("--settings", type=Path, metavar="FILE", help="TOML file with settings")
    parser.add_argument(
        "--dev", action="store_true", help="keep everything in memory, initialised, on a simulated cloud"
    )
    parser.add_argument(
        "--root-token", default="", metavar="TOKEN", help="with --dev: the root token (default: random)"
    )
    parser.add_argument(
        "--provider",
        default="",
        metavar="URL",
        help="address of a provider simulator that stands for every environment",
    )
    parser.add_argument("--listen", type=_address, metavar="HOST:PORT", help="default: 127.0.0.1:8200")
    return parser


def _address(text: str) -> str:
    try:
        parse_address(text)
    except SettingsError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text
