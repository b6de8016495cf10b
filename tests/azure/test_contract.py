"""The simulated cloud answers as the tables say that Azure does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

import pytest

from cloudid_servers.transcripts.evidence import CONTENT_TYPES, Exchange, exchanges, shape_of

from .simulated import Answer, cloud
from .situations import NOT_SIMULATED, SITUATIONS

ALL: Final = tuple(exchanges())
SIMULATED: Final = tuple(each for each in ALL if each.name in SITUATIONS)


def code_of(answer: Answer) -> str:
    """The code of an error."""
    if answer.status < 400:
        return ""
    if numbers := answer.body.get("error_codes"):
        return f"AADSTS{numbers[0]}"
    return str(answer.body["error"]["code"])


def differences(exchange: Exchange, answer: Answer) -> Iterator[str]:
    given = f"{answer.status} {code_of(answer)}".strip()
    wanted = f"{exchange.status} {exchange.code}".strip()
    if given != wanted:
        yield f"answered {given}, not {wanted}: {answer.body}"
        return
    yield from (f"header {name} is missing" for name in exchange.header_names - answer.headers.keys())
    shape = shape_of(exchange)
    if shape is None:
        if answer.body is not None:
            yield "has a body"
        return
    if answer.headers["content-type"] != CONTENT_TYPES[exchange.api]:
        yield f"content type {answer.headers['content-type']}"
    yield from dict.fromkeys(shape.differences(answer.body))


def test_every_exchange_has_a_situation_or_a_reason_why_not() -> None:
    named = Counter((each.family, each.name) for each in ALL)
    assert [name for name, number in named.items() if number > 1] == []
    assert {each.name for each in ALL} == SITUATIONS.keys() | NOT_SIMULATED.keys()
    assert not SITUATIONS.keys() & NOT_SIMULATED.keys()


@pytest.mark.parametrize("exchange", SIMULATED, ids=lambda each: each.name)
def test_the_simulated_cloud_answers_as_recorded(exchange: Exchange) -> None:
    with cloud() as served:
        assert list(differences(exchange, SITUATIONS[exchange.name](served))) == []
