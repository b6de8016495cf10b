"""Fields of a request as words of a command line: `name=value`, `name=@FILE`, `name=-`, `-` and `@FILE`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import click

from cloudid_core.settings import LONGEST_JWT
from cloudid_core.values.secret import Secret

from ..machine import why_unreadable
from ..terminal import Failed

STDIN: Final = "-"
FILE: Final = "@"
ESCAPE: Final = "\\"
LONGEST: Final = 1 << 22
"""Characters of a file or of standard input."""


def read_words(words: Iterable[str]) -> tuple[dict[str, Any], set[str]]:
    """The fields that words give, and the names of those whose values the command line itself holds.

    A repeated name makes a list. Errors repeat names, never values. Raises `click.UsageError` for a word that
    is none of these, and `Failed` if a file cannot be read.
    """
    fields: dict[str, Any] = {}
    shown: set[str] = set()
    given: set[str] = set()
    stdin = _once()
    for word in words:
        name, is_field, value = word.partition("=")
        if word == STDIN or (word.startswith(FILE) and not is_field):
            fields |= _object(stdin("fields, as a JSON object") if word == STDIN else _content(word[1:]))
            continue
        if not is_field or not name:
            raise click.UsageError("fields must be NAME=VALUE, NAME=@FILE, NAME=-, or - for a JSON object")
        if value == STDIN:
            value = stdin(name)
            if not value:  # as behind a program that failed
                raise Failed(f"standard input is empty: to clear {name}, write {name}=")
        elif value.startswith(FILE):
            value = _content(value[1:])
        else:
            shown.add(name)
            value = value[1:] if value.startswith((ESCAPE + FILE, ESCAPE + STDIN)) else value
        before = fields[name] if name in given else []
        fields[name] = [*(before if isinstance(before, list) else [before]), value] if name in given else value
        given.add(name)
    return fields, shown


def read_secret(name: str, what: str) -> Secret:
    """The secret in a file, or with `-` on standard input. `what` it is, for questions and errors. Raises `Failed`.

    It is as long as a JWT may be, which is longer than any other secret.
    """
    try:
        if name == STDIN:
            text = read_stdin(what, LONGEST_JWT + 1)
        else:
            with Path(name).open(encoding="utf-8") as file:
                text = file.read(LONGEST_JWT + 1)
    except (OSError, UnicodeError) as error:
        raise Failed(f"the {what} in {name} cannot be read: {why_unreadable(error)}") from None
    return Secret(_bounded(text, f"the {what} in {name}", LONGEST_JWT).strip())


def read_stdin(name: str, longest: int) -> str:
    """Standard input; on a terminal it is asked for by name, and not shown while it is typed."""
    if sys.stdin.isatty():
        return str(click.prompt(name, hide_input=True, prompt_suffix=": ", err=True))
    return sys.stdin.read(longest)


def _once() -> Callable[[str], str]:
    """Reads standard input, once, for what is called so."""
    was_read = False

    def read(name: str) -> str:
        nonlocal was_read
        if was_read:
            raise click.UsageError("only one field can be read from standard input")
        was_read = True
        return _bounded(read_stdin(name, LONGEST + 1), "standard input")

    return read


def _content(name: str) -> str:
    try:
        with Path(name).open(encoding="utf-8") as file:
            return _bounded(file.read(LONGEST + 1), name)
    except (OSError, UnicodeError) as error:
        raise Failed(f"{name} cannot be read: {why_unreadable(error)}") from None


def _bounded(text: str, name: str, longest: int = LONGEST) -> str:
    """A text without the line end that editors and `echo` leave after it."""
    if len(text) > longest:
        raise Failed(f"{name} is longer than {longest} characters")
    return text.removesuffix("\n").removesuffix("\r")


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Failed("the fields must be a JSON object")
    return found
