"""The state of the service, as load balancers and clients ask for it."""

from __future__ import annotations

import pytest

from tests.installation import START, Installation


@pytest.mark.parametrize("path", ["health", "seal-status", "leader", "init"])
def test_the_state_is_answered_without_a_token_and_without_an_envelope(path: str) -> None:
    reply = Installation().must("GET", f"sys/{path}", token="").body
    assert "request_id" not in reply


def test_a_healthy_node() -> None:
    reply = Installation().must("GET", "sys/health", token="").body
    assert (reply["initialized"], reply["sealed"], reply["standby"]) == (True, False, False)
    assert reply["server_time_utc"] == START


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("query, status", [("", 200), ("?activecode=299", 299), ("?standbycode=499", 200)])
def test_a_load_balancer_can_choose_the_status(method: str, query: str, status: int) -> None:
    assert Installation().ask(method, f"sys/health{query}", token="").status == status


@pytest.mark.parametrize("status", ["99", "199", "300", "304", "399", "600", "x", ""])
def test_a_text_that_is_no_status_is_refused(status: str) -> None:
    assert Installation().refused("GET", f"sys/health?activecode={status}", token="") == (400, "field_invalid")


@pytest.mark.parametrize("status", [204, 205])
def test_a_status_that_forbids_content_has_none(status: int) -> None:
    """Content there would be read as the beginning of the next response."""
    reply = Installation().ask("GET", f"sys/health?activecode={status}", token="")
    assert (reply.status, reply.response.body) == (status, b"")


def test_the_seal_status_is_that_of_an_open_service() -> None:
    reply = Installation().must("GET", "sys/seal-status", token="").body
    assert (reply["initialized"], reply["sealed"], reply["t"], reply["n"], reply["progress"]) == (True, False, 1, 1, 0)


def test_every_node_says_that_it_is_the_leader() -> None:
    assert Installation().must("GET", "sys/leader", token="").body["is_self"] is True


def test_the_store_is_in_use_and_cannot_be_initialised_again() -> None:
    world = Installation()
    assert world.must("GET", "sys/init", token="").body == {"initialized": True}
    assert world.refused("PUT", "sys/init", {"secret_shares": 1}, token="") == (400, "malformed_request")
