"""The site of these pages, by Sphinx: `make site`. It reads the CommonMark as it stands; its order is the index's."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePath
from posixpath import normpath
from typing import Any, Final

INDEX: Final = "docs/README"
DECISIONS: Final = "docs/why/decisions/README"
_ROW: Final = re.compile(r"^\| (?:\*\*(?P<part>.+?)\*\* \||.+? \| (?P<cell>.+) \|$)", re.MULTILINE)
_HIDDEN: Final = (":hidden:", ":glob:", ":maxdepth: 1")
_PAGE: Final = re.compile(r"\]\(([^)#]+)\.md\)")

project = "cloudid"
root_doc = "README"
extensions = ["myst_parser"]
include_patterns = ["*.md", "docs/**.md", "benchmarks/README.md", "tests/contract/*.md", "tests/mutants/*.md"]
exclude_patterns = [".*", "build", "dist"]
nitpicky = True
suppress_warnings = ["misc.highlighting_failure"]  # blocks also show output, for which no language has rules
myst_heading_anchors = 4

html_theme = "furo"  # its fonts are those of the reader's machine
html_title = project
html_favicon = "../servers/ui/static/icon.svg"
html_copy_source = False
html_show_copyright = False


def parts(index: str) -> Iterator[tuple[str, list[str]]]:
    """The parts of the index with their pages, each page once."""
    seen: set[str] = set()
    part, pages = "Find", [INDEX]
    for row in _ROW.finditer(index):
        if row["part"]:
            yield part, pages
            part, pages = row["part"], []
        found = (normpath(f"docs/{page}") for page in _PAGE.findall(row["cell"] or ""))
        pages += (page for page in found if page not in seen)
        seen.update(pages)
    yield part, [*pages, "CHANGELOG", "ROADMAP", "CODE_OF_CONDUCT", "tests/contract/rows", "tests/mutants/survivors"]


def tree(caption: str, pages: list[str]) -> str:
    return "\n".join(("", "```{toctree}", f":caption: {caption}", *_HIDDEN, "", *pages, "```", ""))


def add_navigation(app: Any, name: str, source: list[str]) -> None:
    if name == root_doc:
        index = (Path(app.srcdir) / f"{INDEX}.md").read_text()
        source[0] += "".join(tree(part, [f"/{page}" for page in pages]) for part, pages in parts(index))
    elif name == DECISIONS:
        source[0] += tree("decisions", ["[0-9]*"])


def add_front_page(app: Any, exception: Exception | None) -> None:
    if exception is None:
        out = PurePath(app.outdir)
        shutil.copy(out / f"{root_doc}.html", out / "index.html")


def setup(app: Any) -> None:
    app.connect("source-read", add_navigation)
    app.connect("build-finished", add_front_page)
