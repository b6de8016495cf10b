"""Tables of the pages that are printed."""

from __future__ import annotations

from cloudid_core.settings import Settings

from .tables import fields_table, table


def test_a_table_is_markdown() -> None:
    """A head, a rule, a line for each row; a bar in a cell is no border."""
    assert table(("a", "b"), [("1", "x|y")]) == "| a | b |\n| --- | --- |\n| 1 | x\\|y |"


def test_defaults_and_spellings_are_shown() -> None:
    """Defaults are shown as they would be read back."""
    assert "| `leeway` | duration from 0 to 300 | `60` |" in fields_table(Settings)
