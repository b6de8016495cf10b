"""Output: tables for people on a terminal, JSON in a pipe."""

from __future__ import annotations

import functools
import json
import os
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
from .human import coloured, text_of

GAP: Final = "  "
STEP: Final = "  "
"""How far in the members of an inner thing stand."""
NARROWEST: Final = 12
"""Characters of a column that is reduced."""
COLUMNS_BEHIND: Final = "CLOUDID_COLUMNS"
"""The environment variable by which a program that shows the output of a command gives the width that it has."""
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

    @property
    def is_for_lines(self) -> bool:
        """Whether a list is for a program that reads lines: in a pipe, unless an option asked for JSON."""
        return not self.is_json_requested and not sys.stdout.isatty()

    def record(self, data: Mapping[str, Any]) -> None:
        """One thing: its members below each other, or an object. Long values continue in the lines below."""
        click.echo(_json(data) if self.format is Format.JSON else coloured("\n".join(_members(data))))

    def rows(self, rows: Sequence[Mapping[str, Any]], columns: Sequence[str], none: str = "nothing found") -> None:
        """Several things of a kind: a table of these members, or an array of objects with all of them. `none`: what a
        person reads where there are none.
        """
        shown = coloured(_table(rows, columns)) if rows else none
        click.echo(_json(rows) if self.format is Format.JSON else shown)

    def text(self, text: str, data: object) -> None:
        """A report in words; `data` says the same to programs."""
        click.echo(_json(data) if self.format is Format.JSON else coloured(printable(text)))

    def note(self, text: str) -> None:
        """For a person who reads along; nothing that a script needs."""
        if self.format is Format.TABLE:
            click.echo(printable(text), err=True)


def table(rows: Sequence[Sequence[object]], heads: Sequence[str], margin: int = 0) -> str:
    """Columns as wide as their widest cell, below their heads.

    On a terminal, a cell that is too long for it continues in the lines below. `margin`: characters of each line that
    something else takes.
    """
    lines = [tuple(heads), *(tuple(_cell(value, name) for name, value in zip(heads, row, strict=True)) for row in rows)]
    widths = _fitting([max(len(line[column]) for line in lines) for column in range(len(heads))], margin)
    return "\n".join(part for line in lines for part in _lines_of(line, widths))


def _table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], margin: int = 0) -> str:
    return table([[row.get(column) for column in columns] for row in rows], columns, margin)


def _members(data: Mapping[str, Any], margin: int = 0) -> Iterator[str]:
    """The members of a thing as lines. Things inside it stand below their names, a step further in."""
    if data and all(isinstance(value, Mapping) and value for value in data.values()):
        yield from _things([{"name": name, **value} for name, value in data.items()], margin)
        return
    width = max(map(len, data), default=0)
    for name, value in data.items():
        if _is_nested(value):
            yield name
            inside = (
                _members(value, margin + len(STEP))
                if isinstance(value, Mapping)
                else _things(value, margin + len(STEP))
            )
            yield from (f"{STEP}{line}" for line in inside)
        else:
            folded = _folded(printable(text_of(value, name)), width + len(GAP) + margin)
            for begin, line in zip_longest([name], folded, fillvalue=""):
                yield f"{begin.ljust(width)}{GAP}{line}".rstrip()


def _things(rows: Sequence[Mapping[str, Any]], margin: int) -> Iterator[str]:
    """Several things: a table, or blocks where a table would be too wide, or where they hold things themselves."""
    names = dict.fromkeys(name for row in rows for name in row)
    columns = [name for name in names if any(_has(row, name) for row in rows)]
    room = _columns() - margin
    is_narrow = _columns() and len(columns) * (NARROWEST + len(GAP)) > room
    if is_narrow or any(_is_nested(row.get(name)) for row in rows for name in columns):
        for number, row in enumerate(rows):
            yield from [""] * bool(number)
            yield from _members({name: row[name] for name in columns if _has(row, name)}, margin)
    else:
        yield from _table(rows, columns, margin).split("\n")


def _has(row: Mapping[str, Any], name: str) -> bool:
    return row.get(name) not in (None, "", [], {})


def _is_nested(value: object) -> bool:
    """Whether a value holds things that have members."""
    if isinstance(value, Mapping):
        return bool(value)
    return isinstance(value, list) and bool(value) and all(isinstance(each, Mapping) for each in value)


def _columns() -> int:
    """Of the terminal, or what `COLUMNS_BEHIND` says of the one behind a pipe; 0 in any other pipe."""
    if sys.stdout.isatty():
        return shutil.get_terminal_size((0, 0)).columns
    return int(os.environ.get(COLUMNS_BEHIND, "0"))


def _folded(text: str, margin: int) -> Iterator[str]:
    """The lines of a text that stands behind a margin. What has no space stays whole, so that it can be copied."""
    width = max(_columns() - margin, 0)
    for line in text.removesuffix("\n").split("\n"):
        is_long = NARROWEST <= width < len(line)
        parts = textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False) if is_long else []
        yield from parts or [line]


def _fitting(widths: Sequence[int], margin: int = 0) -> Sequence[int]:
    """The widths, of which the largest are reduced until all fit into the terminal."""
    if not _columns():
        return widths
    columns = _columns() - margin
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
    shown = default.value if default else "table on a terminal, JSON in a pipe"

    def decorate(command: F) -> F:
        @click.option(
            "--format",
            "format_",
            type=click.Choice([each.value for each in Format]),
            callback=_note_json,
            help=f"The output format. Default: {shown}.",
        )
        @click.option("--json", "is_json", is_flag=True, callback=_note_json, help="Short for --format json.")
        @functools.wraps(command)
        def decorated(*args: Any, format_: str | None, is_json: bool, **options: Any) -> Any:
            is_json = is_json or format_ == Format.JSON
            usual = default or (Format.TABLE if sys.stdout.isatty() else Format.JSON)
            chosen = Format.JSON if is_json else Format(format_) if format_ else usual
            return command(*args, output=Output(chosen, is_json), **options)

        return decorated  # type: ignore[return-value]

    return decorate


def show_progress(text: str) -> None:
    """For a person who waits: the line is rewritten each time, and an empty text removes it."""
    if sys.stderr.isatty():
        streams.write(streams.STDERR, f"\r{text}\033[K")


def printable(text: str) -> str:
    """The text without control characters: what a server sent must not steer a terminal."""
    return "".join(letter if letter.isprintable() or letter == "\n" else ascii(letter)[1:-1] for letter in text)


def _cell(value: object, name: str) -> str:
    """A value within a line."""
    return printable(text_of(value, name)).replace("\n", "\\n")


def _json(data: object) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False)
