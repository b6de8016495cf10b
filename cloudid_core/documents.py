"""Documents: tables of Markdown, for the pages that are printed, and the interface as an OpenAPI document.

`python -m cloudid_core.documents` prints that document.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import NOTHING, Factory

from .catalog import CATALOG
from .forms import Field, fields_of
from .mounts import BUILT_IN
from .openapi import document_of, generic_place, paths_of
from .values import Secret


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


def openapi() -> str:
    """The interface as an OpenAPI document, with parameters for the paths of mounts."""
    built_in = {(mount.kind, mount.type): mount.path for mount in BUILT_IN}
    return document_of(
        paths_of(each, built_in.get((each.kind, each.type)) or generic_place(each.kind, each.type)) for each in CATALOG
    )


if __name__ == "__main__":
    print(openapi(), end="")  # noqa: T201  # that is what it is for
