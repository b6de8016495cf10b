"""The page about compatibility with Azure, and README's sentence about it, from the tables of evidence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import Final

from cloudid_servers.transcripts.evidence import Exchange, Family, exchanges, families, sources

from .tables import table

YEAR: Final = re.compile(r"\b20[0-2]\d\b")


def sentence() -> str:
    """README's sentence."""
    return f"**Tested against {recorded()} recorded exchanges with Azure; not yet run against a real tenant.**\n"


def recorded() -> int:
    """Return how many recorded exchanges the tables rest on, each counted once."""
    return len({reference for each in exchanges() for reference in each.recorded})


def page() -> Iterator[str]:
    """The parts of the page behind its title."""
    yield sentence().strip()
    yield (
        "No session with a tenant of our own is behind this page. Recordings of real sessions with Azure that others "
        "have published (test suites of `az`, Azure PowerShell and Azure's SDKs), answers quoted in public issues, and "
        "Azure's documentation were reduced to facts: call, status, error code, members with their types, headers. "
        "Tests compare the [simulated cloud](simulator.md) with these facts, and replay such answers to both servers. "
        "`cloudid connect azure --record` and `cloudid simulate --compare` [do the same with your "
        "tenant](../how-to/record-a-tenant.md)."
    )
    yield (
        "The evidence of an answer is *recorded*, *reported* (quoted in an issue), *documented*, or *not confirmed*: "
        "the service and the simulated cloud expect it, and nothing public shows it."
    )
    heads = ("calls about", "answers", "recorded exchanges", "reported", "documented", "not confirmed", "years")
    yield table(heads, map(_summary, families().values()))
    yield "## Sources"
    yield table(("word", "place", "years, as far as the answers show them"), _sources())
    yield "The tables, with the source of each answer: `servers/transcripts/families/`."
    for family in families().values():
        yield f"## {family.title}"
        rows = ((f"`{each.call}`", _answer(each), each.evidence, _versions(each)) for each in family.exchanges)
        yield table(("call", "answer", "evidence", "API versions of the recordings"), rows)
        if family.unconfirmed:
            yield "Not confirmed:"
            yield "\n".join(f"- {each}" for each in family.unconfirmed)


def _summary(family: Family) -> tuple[str, ...]:
    kinds = [list(chain.from_iterable(getattr(each, kind) for each in family.exchanges)) for kind in KINDS]
    unconfirmed = sum(each.evidence == "not confirmed" for each in family.exchanges)
    counted = [str(len(set(references)) or "") for references in kinds]
    return (_link(family.title), str(len(family.exchanges)), *counted, str(unconfirmed or ""), _years(family))


KINDS: Final = ("recorded", "reported", "documented")


def _link(title: str) -> str:
    anchor = "".join(each for each in title.lower().replace(" ", "-") if each.isalnum() or each == "-")
    return f"[{title}](#{anchor})"


def _years(family: Family) -> str:
    """The years of the recorded and reported answers, as far as they are known."""
    references = [reference for each in family.exchanges for reference in (*each.recorded, *each.reported)]
    known = [sources()[word]["years"] if (word := each.partition(":")[0]) in sources() else each for each in references]
    years = sorted({year for text in known for year in YEAR.findall(text)})
    return f"{years[0]} to {years[-1]}" if years else ""


def _sources() -> Iterator[tuple[str, ...]]:
    for word, source in sources().items():
        yield f"`{word}`", source["place"], source["years"]


def _answer(exchange: Exchange) -> str:
    return f"{exchange.status}{f' `{exchange.code}`' if exchange.code else ''}"


def _versions(exchange: Exchange) -> str:
    first, last = (exchange.versions[:1] or ("",))[0], (exchange.versions[-1:] or ("",))[0]
    return first if first == last else f"{first} to {last}"
