"""Documents that are printed from tables."""

from __future__ import annotations

from cloudid_core.catalog import CATALOG
from cloudid_core.documents import codes_table, fields_table, routes_table, table
from cloudid_core.errors import Code
from cloudid_core.settings import Settings


def test_a_table_is_markdown() -> None:
    """A head, a rule, a line for each row; a bar in a cell is no border."""
    assert table(("a", "b"), [("1", "x|y")]) == "| a | b |\n| --- | --- |\n| 1 | x\\|y |"


def test_every_code_is_documented() -> None:
    assert codes_table().count("\n") == len(Code) + 1


def test_defaults_and_spellings_are_shown() -> None:
    """Defaults are shown as they would be read back."""
    assert "| `leeway` | duration from 0 to 300 | `60` |" in fields_table(Settings)


def test_the_reference_says_where_sudo_is_needed() -> None:
    """Of two operations at one path only one may need it."""
    tables = "\n".join(routes_table(component) for component in CATALOG)
    assert "| POST | `rotate` | with `sudo` |" in tables
    assert "| LIST | `leases/lookup` | with `sudo` |" in tables
    assert "| POST | `leases/lookup` | yes |" in tables
    assert "| GET | `health` | no |" in tables
