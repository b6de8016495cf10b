"""Tables of Markdown, for the pages that are printed."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import NOTHING, Factory

from cloudid_core.forms.fields import Field, fields_of
from cloudid_core.values.secret import Secret


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown."""
    lines = [list(heads), *map(list, rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def fields_table(form: type) -> str:
    """The fields of a form or record: name, type, default, environment variable, meaning."""
    return table(("field", "type", "default", "environment", "meaning"), map(_field_row, fields_of(form)))


def _field_row(field: Field) -> tuple[str, ...]:
    name = f"`{field.name}`" + (f" (`{field.old_name}`)" if field.old_name else "")
    if field.required:
        default = "required"
    elif field.default is NOTHING or isinstance(field.default, Factory):  # type: ignore[arg-type]
        default = ""
    else:
        shown = "" if isinstance(field.default, Secret) else field.kind.show(field.default)
        default = f"`{shown}`" if shown not in ("", []) else "empty"
    return name, field.kind.name, default, f"`CLOUD_{field.env}`" if field.env else "", field.doc
