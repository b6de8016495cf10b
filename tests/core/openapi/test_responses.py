"""Responses: the envelope, and refusals by their status."""

from __future__ import annotations

from cloudid_core.errors import Code
from tests.documented import document


def test_every_status_of_a_refusal_lists_its_codes() -> None:
    """But that of a bug, which no route promises."""
    responses = document()["components"]["responses"]
    for code in Code:
        if code is not Code.INTERNAL_ERROR:
            assert code.wire in responses[f"Refused{code.status}"]["description"]
    assert "Refused500" not in responses


def test_a_refusal_has_a_code_in_its_header_and_one_for_each_text_in_its_body() -> None:
    """A 404 has it in its header only."""
    components = document()["components"]
    assert all(one["headers"]["X-Service-Error-Code"]["required"] for one in components["responses"].values())
    assert components["schemas"]["Refusal"]["required"] == ["errors", "codes"]
    missing = components["responses"]["Refused404"]["content"]["application/json"]["schema"]
    assert missing["required"] == ["errors"]


def test_a_token_has_all_members_of_its_block() -> None:
    auth = document()["components"]["schemas"]["Auth"]
    assert {"client_token", "accessor", "mfa_requirement", "num_uses"} <= set(auth["required"])
    assert not auth["additionalProperties"]
