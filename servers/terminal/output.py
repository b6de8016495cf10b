"""Output: tables for people on a terminal, JSON in a pipe."""

from __future__ import annotations

import functools
import json
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import zip_longest
from typing import Any, Final, TypeVar

import click
from attrs import frozen

from ..machine import streams

GAP: Final = "  "
NARROWEST: Final = 12
"""Characters of a column that is reduced."""
JSON_ERRORS: Final = "cloudid.json_errors"
"""The key in a context's `meta` that says whether errors are objects too, since an option asked for JSON."""

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class Format(StrEnum):
    TABLE = "table"
    JSON = "json"


@frozen
class Output:
    """Where a command writes what it found. Standard output has the answer alone; notes go to standard error."""

    format: Format
    is_json_requested: bool = False
    """Whether an option asked for JSON, so that errors are JSON too."""

    def record(self, data: Mapping[str, Any]) -> None:
        """One thing: its members below each other, or an object. Long values go on in the lines below."""
        width = max(map(len, data), default=0)
        lines = [
            f"{begin.ljust(width)}{GAP}{line}".rstrip()
            for name, value in data.items()
            for begin, line in zip_longest([name], _folded(_text(value), width + len(GAP)), fillvalue="")
        ]
        click.echo(_json(data) if self.format is Format.JSON else "\n".join(lines))

    def rows(self, rows: Sequence[Mapping[str, Any]], columns: Sequence[str], none: str = "there is nothing") -> None:
        """Several things of a kind: a table of these members, or an array of objects with all of them. `none`: what a
        person reads where there are none.
        """
        shown = [[row.get(column) for column in columns] for row in rows]
        click.echo(_json(rows) if self.format is Format.JSON else table(shown, columns) if rows else none)

    def text(self, text: str, data: object) -> None:
        """A report in words; `data` says the same to programs."""
        click.echo(_json(data) if self.format is Format.JSON else printable(text))

    def note(self, text: str) -> None:
        """For a person who reads along; nothing that a script needs."""
        if self.format is Format.TABLE:
            click.echo(printable(text), err=True)


def table(rows: Sequence[Sequence[object]], heads: Sequence[str]) -> str:
    """Columns as wide as their widest cell, below their heads. On a terminal, a cell that is too long for it goes on in
    the lines below.
    """
    lines = [tuple(heads), *(tuple(_cell(value) for value in row) for row in rows)]
    widths = _fitting([max(len(line[column]) for line in lines) for column in range(len(heads))])
    return "\n".join(part for line in lines for part in _lines_of(line, widths))


def _columns() -> int:
    """Of the terminal; 0 in a pipe."""
    return shutil.get_terminal_size((0, 0)).columns if sys.stdout.isatty() else 0


def _folded(text: str, margin: int) -> Iterator[str]:
    """The lines of a text that stands behind a margin. What has no space stays whole, so that it can be copied."""
    width = max(_columns() - margin, 0)
    for line in text.removesuffix("\n").split("\n"):
        is_long = NARROWEST <= width < len(line)
        parts = textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False) if is_long else []
        yield from parts or [line]


def _fitting(widths: Sequence[int]) -> Sequence[int]:
    """The widths, of which the largest are reduced until all fit into the terminal."""
    columns = _columns()
    if not columns:
        return widths
    most = max(widths, default=0)
    while sum(min(width, most) for width in widths) + len(GAP) * (len(widths) - 1) > columns and most > NARROWEST:
        most -= 1
    return [min(width, most) for width in widths]


def _lines_of(cells: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    parts = [
        textwrap.wrap(cell, width, break_on_hyphens=False) if len(cell) > width else [cell]
        for cell, width in zip(cells, widths, strict=True)
    ]
    for line in zip_longest(*parts, fillvalue=""):
        yield GAP.join(part.ljust(width) for part, width in zip(line, widths, strict=True)).rstrip()


def _note_json(context: click.Context, _: click.Parameter, value: T) -> T:
    """Have errors be JSON too, also those of the other options."""
    context.meta[JSON_ERRORS] = context.meta.get(JSON_ERRORS) or value in (True, Format.JSON.value)
    return value


def with_output(default: Format | None = None) -> Callable[[F], F]:
    """Adds the options `--format` and `--json`, and hands the command an `Output` as `output`.

    `default` is the format without an option; `None`: a table on a terminal, JSON in a pipe.
    """
    shown = default.value if default else "table on a terminal, json in a pipe"

    def decorate(command: F) -> F:
        @click.option(
            "--format",
            "format_",
            type=click.Choice([each.value for each in Format]),
            callback=_note_json,
            help=f"Default: {shown}.",
        )
        @click.option("--json", "is_json", is_flag=True, callback=_note_json, help="The same as --format json.")
        @functools.wraps(command)
        def decorated(*args: Any, format_: str | None, is_json: bool, **options: Any) -> Any:
            is_json = is_json or format_ == Format.JSON
            usual = default or (Format.TABLE if sys.stdout.isatty() else Format.JSON)
            chosen = Format.JSON if is_json else Format(format_) if format_ else usual
            return command(*args, output=Output(chosen, is_json), **options)

        return decorated  # type: ignore[return-value]

    return decorate


def show_progress(text: str) -> None:
    """For a person who waits: the line is written anew each time, and goes with an empty text."""
    if sys.stderr.isatty():
        streams.write(streams.STDERR, f"\r{text}\033[K")


def printable(text: str) -> str:
    """The text without control characters: what a server sent must not steer a terminal."""
    return "".join(letter if letter.isprintable() or letter == "\n" else ascii(letter)[1:-1] for letter in text)


def _cell(value: object) -> str:
    """A value within a line."""
    return _text(value).replace("\n", "\\n")


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = value if isinstance(value, str | int | float) else json.dumps(value, ensure_ascii=False)
    return printable(str(text))


def _json(data: object) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False)
