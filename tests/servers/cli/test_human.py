"""Values as people read them."""

from __future__ import annotations

from typing import Any

import pytest

from cloudid_core.values import duration, rfc3339
from cloudid_servers.terminal import Format, Output, human

from .test_output import in_terminal

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    "seconds, text",
    [
        (0, "0"),
        (1, "1s"),
        (90, "1m30s"),
        (3600, "1h"),
        (5400, "1h30m"),
        (86400, "1d"),
        (90000, "25h"),
        (2764800, "32d"),
    ],
)
def test_a_duration_is_shown_as_fields_take_it(seconds: int, text: str) -> None:
    assert human.text_of(seconds, "token_ttl") == text
    assert duration.seconds(text) == seconds


@pytest.mark.parametrize(
    "after, text",
    [(54 * 60, "in 54 min"), (-45, "45 s ago"), (3 * 3600, "in 3 h"), (-12 * 86400, "12 d ago"), (0, "0 s ago")],
)
def test_a_time_is_shown_as_the_distance_from_now(after: float, text: str) -> None:
    assert human.text_of(rfc3339.show(NOW + after), "expire_time", NOW) == text
    assert human.text_of(int(NOW + after), "creation_time", NOW) == text
    assert human.text_of(rfc3339.show(NOW + after), "time", NOW) == rfc3339.show(NOW + after), "as a log has it"


@pytest.mark.parametrize(
    "value, text",
    [(None, ""), (True, "yes"), (5, "5"), (["a", "b"], "a, b"), ([], ""), ({"a": 1, "b": ["x"]}, "a=1, b=x")],
)
def test_other_values(value: object, text: str) -> None:
    assert human.text_of(value) == text


def test_inner_things_are_tables(capsys: pytest.CaptureFixture[str]) -> None:
    needs: list[dict[str, Any]] = [{"api": "graph", "granted": True}, {"api": "arm", "granted": None}]
    Output(Format.TABLE).record({"count": 2, "needs": needs, "data": {"keys": ["a", "b"], "ttl": 60}})
    assert capsys.readouterr().out.splitlines() == [
        "count  2",
        "needs",
        "  api    granted",
        "  graph  yes",
        "  arm",
        "data",
        "  keys  a, b",
        "  ttl   1m",
    ]


def test_a_thing_of_things_is_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    mount = {"type": "azure", "config": {"max_lease_ttl": 3600}, "options": None}
    Output(Format.TABLE).record({"cloud/": mount, "team/": {**mount, "type": "cloud"}})
    assert capsys.readouterr().out.splitlines() == [
        "name    cloud/",
        "type    azure",
        "config",
        "  max_lease_ttl  1h",
        "",
        "name    team/",
        "type    cloud",
        "config",
        "  max_lease_ttl  1h",
    ]
    Output(Format.TABLE).record({"cloud/": {"type": "azure"}, "team/": {"type": "cloud"}})
    assert capsys.readouterr().out.splitlines() == ["name    type", "cloud/  azure", "team/   cloud"]


COLOURED = """
from cloudid_servers.terminal import Format, Output
Output(Format.TABLE).rows([{"mark": "✗", "name": "a"}, {"mark": "✓", "name": "b"}], ("mark", "name"))
"""


def test_marks_have_colours_on_a_terminal_that_shows_them() -> None:
    assert in_terminal(80, COLOURED, NO_COLOR="", TERM="xterm")[1:] == [
        "\033[31m✗\033[0m     a",
        "\033[32m✓\033[0m     b",
    ]
    for variables in ({"NO_COLOR": "1", "TERM": "xterm"}, {"NO_COLOR": "", "TERM": "dumb"}):
        assert in_terminal(80, COLOURED, **variables)[1:] == ["✗     a", "✓     b"]
