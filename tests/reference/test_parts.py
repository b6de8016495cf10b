"""Printed parts of pages are those of the code; the commands and errors that pages show exist."""

from __future__ import annotations

import re

import attrs

from cloudid_core.errors import Code
from cloudid_core.forms.fields import fields_of
from cloudid_core.settings import Settings
from cloudid_servers.cli.main import COMMANDS as LISTED
from cloudid_servers.provider_simulator.control import CONTROL
from cloudid_servers.provider_simulator.engine.behaviour import BUCKETS, QUOTAS, Behaviour, Replica
from cloudid_servers.provider_simulator.engine.ledger import LedgerEntry
from cloudid_servers.settings import ServerSettings

from .parts import DOCS, PAGES, PARTS, printed, settings


def test_the_printed_parts_are_those_of_the_code() -> None:
    """`make docs` writes them."""
    texts = [path.read_text() for path in PAGES]
    assert [printed(text) for text in texts] == texts
    assert sorted(name for text in texts for name in re.findall(r"<!-- printed: (\w+) -->", text)) == sorted(PARTS)


def test_the_page_of_the_simulated_cloud_has_its_requests_and_fields() -> None:
    text = (DOCS / "reference" / "simulator.md").read_text()
    shown = {tuple(each) for each in re.findall(r"^ +(GET|POST|DELETE) +(/simulator/\S+)", text, re.MULTILINE)}
    assert shown == {(route.method, route.template) for route in CONTROL.routes}
    names = [*Behaviour.__struct_fields__, *(each.name for each in attrs.fields(LedgerEntry))]
    assert [name for name in (*names, *Replica, *BUCKETS, *QUOTAS) if not re.search(rf"\b{name}\b", text)] == []


def test_every_setting_is_shown() -> None:
    text = settings()
    for form in (ServerSettings, Settings):
        for row in fields_of(form):
            assert f"| `{row.name}` |" in text
            assert row.doc in text


def test_every_command_is_shown() -> None:
    shown = re.findall(r"^### `cloudid (\w[\w-]*)", (DOCS / "reference" / "commands.md").read_text(), re.MULTILINE)
    assert {listed.name for listed in LISTED} == set(shown)


def test_the_error_codes_exist() -> None:
    shown = {code for path in PAGES for code in re.findall(r"\b50\d `([a-z]+_[a-z_]+)`", path.read_text())}
    assert shown
    assert shown <= {code.wire for code in Code}
