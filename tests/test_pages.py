"""Pages: their links lead to a file that is there and to a heading in it, and what they name is in the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from aiohttp.web_protocol import RequestHandler

from cloudid_servers.aiohttp_server import protocol

from .test_laws import ROOT, files_of_the_repository

PAGES: Final = tuple(sorted(path for path in files_of_the_repository() if path.suffix == ".md"))

OF_OTHERS: Final = frozenset(
    {"tls_config", "ETag", "ModifyIndex", "OTEL_TRACES_SAMPLER"}
    | {"VaultAuth", "VAULT_JWT_FILE", "VAULT_TOKEN_FILE", "kubernetes_role"}
    | {"ConsistentRead", "TransactItems", "X_Forwarded_For"}
)
"""Words of other programs that pages show."""

_CODE: Final = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_INLINE: Final = re.compile(r"\]\(([^)\s]+)\)")
_DEFINITION: Final = re.compile(r"^\[(.+?)\]: (\S+)$", re.MULTILINE)
_HEADING: Final = re.compile(r"^#+ (.+)$", re.MULTILINE)
_ELSEWHERE: Final = re.compile(r"[a-z]+:")


def links(text: str) -> Iterator[str]:
    """The targets of a page, except addresses on the web."""
    shown = _CODE.sub("", text)
    for target in (*_INLINE.findall(shown), *(target for _, target in _DEFINITION.findall(shown))):
        if not _ELSEWHERE.match(target):
            yield target


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings: lower case, blanks as hyphens, without punctuation."""
    headings = _HEADING.findall(_CODE.sub("", text))
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path, text: str) -> list[str]:
    """The links of a page that lead nowhere."""
    broken = []
    for target in links(text):
        name, _, anchor = target.partition("#")
        path = (page.parent / name) if name else page
        if not path.exists() or (anchor and anchor not in anchors(text if path == page else path.read_text())):
            broken.append(target)
    return broken


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    assert broken_links(ROOT / page, (ROOT / page).read_text()) == []


@pytest.mark.parametrize(
    "text",
    [
        "[a page](docs/missing.md)",
        "[a heading](docs/reference/clients.md#missing)",
        "# Here\n[a heading of this page](#missing)",
        "[`name`]\n\n[`name`]: docs/missing.md",
    ],
)
def test_a_link_that_leads_nowhere_is_noticed(text: str) -> None:
    assert len(broken_links(ROOT / "README.md", text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "[a page](docs/reference/clients.md)",
        "[the web](https://example.com/missing)",
        "# It's here: now\n[a heading](#its-here-now)",
        "```\n[code](missing)\n```",
    ],
)
def test_other_links_pass(text: str) -> None:
    assert broken_links(ROOT / "README.md", text) == []


def test_the_index_has_every_page() -> None:
    """Each page of `docs` has an entrance in `docs/README.md`; decisions are in a list of their own."""
    listed = {(Path("docs") / target.partition("#")[0]) for target in links((ROOT / "docs/README.md").read_text())}
    pages = {page for page in PAGES if page.parts[0] == "docs" and "decisions" not in page.parts}
    assert sorted(pages - listed - {Path("docs/README.md")}) == []


def named(text: str) -> dict[str, str]:
    """The files of the code names that a page refers to: ``[`name`]: path``."""
    return {label.strip("`"): path for label, path in _DEFINITION.findall(text) if label.startswith("`")}


def defines(source: str, name: str) -> bool:
    """Whether a module defines a name: a function, a class, a constant or a method."""
    known = re.escape(name)
    return re.search(rf"^ *(?:(?:(?:async )?def|class) {known}\b|{known}(?::| =))", source, re.MULTILINE) is not None


def test_names_of_the_code_are_where_a_page_says() -> None:
    wrong = [
        f"{page}: {name} is not defined in {path}"
        for page in PAGES
        for name, path in named((ROOT / page).read_text()).items()
        if not defines((ROOT / page).parent.joinpath(path).read_text(), name)
    ]
    assert not wrong, "\n".join(wrong)


def test_names_of_the_code_are_links() -> None:
    """A name in brackets without a file, or a file that no name leads to, is a slip."""
    for page in PAGES:
        text = _CODE.sub("", (ROOT / page).read_text())
        used = set(re.findall(r"\[`([^`\]]+)`\](?![:(])", text))
        assert used == named(text).keys(), page


@pytest.mark.parametrize(
    "source", ["name: Final = 1", "name = 1", "class name:", "    def name(self):", "async def name() -> None:"]
)
def test_a_definition_is_found(source: str) -> None:
    assert defines(source, "name")
    assert not defines(source.replace("name", "names"), "name")
    assert not defines(f"use({source})", "name")
    assert not defines("name(1)", "name")


def test_pages_name_what_is_there() -> None:
    """A name that a decision or a how-to page shows as code is a word of the code, until it is renamed there too."""
    sources = [path for path in files_of_the_repository() if path.suffix == ".py" and path.name != "test_pages.py"]
    words = {word for path in sources for word in re.findall(r"\w+", (ROOT / path).read_text().lower())}
    wrong = [
        f"{page.name}: {name}"
        for folder in ("why/decisions", "how-to", "start")
        for page in sorted((ROOT / "docs" / folder).glob("*.md"))
        for name in re.findall(r"`([A-Za-z_]\w*)`", page.read_text())
        if name not in OF_OTHERS and name.lower() not in words
    ]
    assert not wrong, "\n".join(wrong)


def test_the_private_attributes_of_aiohttp_are_those_of_the_page() -> None:
    """Who upgrades aiohttp finds in `docs/why/decisions` what its server rests on, and all of it."""
    [page] = (ROOT / "docs/why/decisions").glob("*-private-attributes-of-aiohttp.md")
    told = set(re.findall(r"^\| `(_\w+)` \|", page.read_text(), re.MULTILINE))
    source = ast.parse(Path(protocol.__file__).read_text())
    used = {node.attr for node in ast.walk(source) if isinstance(node, ast.Attribute)}
    base = {name for form in RequestHandler.__mro__ for name in (*vars(form), *getattr(form, "__slots__", ()))}
    assert told == {name for name in used & base if re.match(r"_[a-z]", name)}
