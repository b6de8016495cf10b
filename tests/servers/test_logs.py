"""Logs: JSON lines, and no secrets in them."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from cloudid_core.errors import ProviderUnreachable
from servers.common.logs import adopt_libraries, describe_error, open_log


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def failed() -> ValueError:
    secret = "hunter2"
    try:
        raise ValueError(secret)
    except ValueError as error:
        return error


def test_events_are_lines_of_json_of_some_importance() -> None:
    stream = io.StringIO()
    log = open_log("warning", stream)
    log.info("quiet")
    log.warning("loud", path="/v1/\n")
    [line] = lines(stream)
    assert (line["event"], line["level"], line["path"]) == ("loud", "warning", "/v1/\n")
    assert line["timestamp"].endswith("Z")


def test_of_an_error_kind_and_place_are_told_but_not_its_text() -> None:
    facts = describe_error(failed())
    assert facts["error"] == "ValueError"
    assert facts["where"][0].endswith(" failed")
    assert "hunter2" not in json.dumps(facts)


def test_our_own_errors_have_texts_for_the_log() -> None:
    assert describe_error(ProviderUnreachable("no answer", sent=True)) == {
        "error": "ProviderUnreachable",
        "reason": "no answer",
    }


@pytest.fixture
def _root_logger() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level


@pytest.mark.usefixtures("_root_logger")
def test_what_libraries_say_is_told_without_their_words() -> None:
    stream = io.StringIO()
    adopt_libraries(open_log("info", stream))
    library = logging.getLogger("library.of.others")
    library.info("GET /?token=hunter2")
    library.error("hunter2", exc_info=failed())
    [line] = lines(stream)
    assert (line["logger"], line["level"], line["error"]) == ("library.of.others", "error", "ValueError")
    assert "hunter2" not in stream.getvalue()
