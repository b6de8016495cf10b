"""Documents of policies: the rules that a text states, in HCL and in JSON, and what is refused."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.errors import Code, Refused
from cloudid_core.policies.document import DENY, Policy, Rule, parse
from cloudid_core.store.records import decode, encode
from tests.sampling import examples

FULL_HCL = """
# what an operator may do
name = "operator"
path "/cloud/roles/+" {
  capabilities = ["create", "update"]
  comment = "writes roles"
  allowed_parameters = {
    "TTL" = ["1h", 3600]
    "*"   = []
  }
  denied_parameters = { application_object_id = [], persist_app = [true] }
  required_parameters = ["azure_roles"]
  min_wrapping_ttl = "1m"
  max_wrapping_ttl = 90
}
path "cloud/creds/*" { policy = "read" }
"""

FULL_JSON = {
    "name": "operator",
    "path": {
        "/cloud/roles/+": {
            "capabilities": ["create", "update"],
            "comment": "writes roles",
            "allowed_parameters": {"TTL": ["1h", 3600], "*": []},
            "denied_parameters": {"application_object_id": [], "persist_app": [True]},
            "required_parameters": ["azure_roles"],
            "min_wrapping_ttl": "1m",
            "max_wrapping_ttl": 90,
        },
        "cloud/creds/*": {"policy": "read"},
    },
}

FULL_RULES = (
    Rule(
        "cloud/roles/+",
        frozenset({"create", "update"}),
        allowed_parameters={"ttl": ("1h", 3600), "*": ()},
        denied_parameters={"application_object_id": (), "persist_app": (True,)},
        required_parameters=("azure_roles",),
        min_wrapping_ttl=60,
        max_wrapping_ttl=90,
    ),
    Rule("cloud/creds/*", frozenset({"read", "list"})),
)


def rules(document: object) -> tuple[Rule, ...]:
    return parse("p", json.dumps(document)).rules


def refusal(text: str) -> str:
    with pytest.raises(Refused) as caught:
        parse("p", text)
    assert caught.value.code is Code.POLICY_INVALID
    return caught.value.problems[0].detail


@pytest.mark.parametrize("text", [FULL_HCL, json.dumps(FULL_JSON)], ids=["HCL", "JSON"])
def test_every_key_is_read(text: str) -> None:
    assert parse("operator", text) == Policy("operator", text, FULL_RULES)


def test_base64_is_decoded_and_the_plain_text_kept() -> None:
    text = json.dumps(FULL_JSON)
    assert parse("operator", b64encode(text.encode()).decode()) == Policy("operator", text, FULL_RULES)


@pytest.mark.parametrize("text", ["", " \n", "{}", '{"path": {}}', "# nothing"])
def test_an_empty_policy_has_no_rules(text: str) -> None:
    assert parse("p", text) == Policy("p", text, ())


def test_repeated_blocks_may_be_lists_in_json() -> None:
    block = {"capabilities": ["read"]}
    read = frozenset({"read"})
    assert rules({"path": [{"a": block}, {"a": block}]}) == (Rule("a", read),) * 2
    assert rules({"path": {"a": [block, block], "b": block}}) == (Rule("a", read), Rule("a", read), Rule("b", read))


@pytest.mark.parametrize(
    "block, capabilities",
    [
        ({}, []),
        ({"policy": "deny"}, ["deny"]),
        ({"policy": "read"}, ["read", "list"]),
        ({"policy": "write"}, ["create", "read", "update", "delete", "list"]),
        ({"policy": "sudo"}, ["create", "read", "update", "delete", "list", "sudo"]),
        ({"policy": "read", "capabilities": ["patch"]}, ["read", "list", "patch"]),
        ({"capabilities": ["read", "deny", "sudo"]}, ["deny"]),
        ({"capabilities": ["scan", "recover", "subscribe"]}, ["scan", "recover", "subscribe"]),
    ],
)
def test_capabilities(block: dict[str, Any], capabilities: list[str]) -> None:
    assert rules({"path": {"a": block}})[0].capabilities == frozenset(capabilities)


def test_a_rule_that_denies_has_no_restrictions() -> None:
    block = {"capabilities": ["deny"], "allowed_parameters": {"a": []}, "min_wrapping_ttl": 5}
    assert rules({"path": {"a": block}}) == (Rule("a", DENY),)


@pytest.mark.parametrize(
    "document",
    [
        {"paths": {}},
        {"name": 1},
        {"path": "a"},
        {"path": ["a"]},
        {"path": {"a": "read"}},
        {"path": {"a": ["read"]}},
        {"path": {"a": {"capability": ["read"]}}},
        {"path": {"a": {"capabilities": "read"}}},
        {"path": {"a": {"capabilities": [1]}}},
        {"path": {"a": {"capabilities": ["READ"]}}},
        {"path": {"a": {"policy": "admin"}}},
        {"path": {"a": {"policy": ["read"]}}},
        {"path": {"a": {"allowed_parameters": ["b"]}}},
        {"path": {"a": {"allowed_parameters": {"b": "c"}}}},
        {"path": {"a": {"allowed_parameters": {"b": [["c", None]]}}}},
        {"path": {"a": {"allowed_parameters": {"b": [{"c": 0.5}]}}}},
        {"path": {"a": {"allowed_parameters": {"b": ["c*d"]}}}},
        {"path": {"a": {"allowed_parameters": {"b": ["*c*d*"]}}}},
        {"path": {"a": {"allowed_parameters": [{"b": []}, {"B": []}]}}},
        {"path": {"a": {"allowed_parameters": [[]]}}},
        {"path": {"a": {"allowed_parameters": {"b": [], "B": ["c"]}}}},
        {"path": {"a": {"denied_parameters": {"b": [2**63]}}}},
        {"path": {"a": {"denied_parameters": {"b": [None]}}}},
        {"path": {"a": {"required_parameters": [1]}}},
        {"path": {"a": {"min_wrapping_ttl": "soon"}}},
        {"path": {"a": {"min_wrapping_ttl": 2, "max_wrapping_ttl": 1}}},
        {"path": {"a": {"control_group": {}}}},
        {"path": {"a": {"expiration": "2030-01-01T00:00:00Z"}}},
        {"path": {"a/+*": {}}},
        {"path": {"a/{{identity.entity.id}}": {}}},
    ],
)
def test_refuses(document: object) -> None:
    refusal(json.dumps(document))


def test_a_value_may_be_a_list_or_an_object_as_a_whole() -> None:
    values = {"b": [["c", "d*e"], {"f": ["g"]}, True]}
    (rule,) = rules({"path": {"a": {"allowed_parameters": values, "denied_parameters": {"b": ["c*d"]}}}})
    assert rule.allowed_parameters == {"b": (["c", "d*e"], {"f": ["g"]}, True)}
    assert rule.denied_parameters == {"b": ("c*d",)}


def test_parameters_may_be_blocks_without_an_equals_sign() -> None:
    text = 'path "a" { denied_parameters { "b" = ["*"] }, denied_parameters { "c" = [] } }'
    (rule,) = parse("p", text).rules
    assert rule.denied_parameters == {"b": ("*",), "c": ()}


def test_an_answer_may_have_to_be_wrapped_for_one_exact_time() -> None:
    block = {"capabilities": ["read"], "min_wrapping_ttl": 60, "max_wrapping_ttl": "1m"}
    (rule,) = parse("p", json.dumps({"path": {"a": block}})).rules
    assert (rule.min_wrapping_ttl, rule.max_wrapping_ttl) == (60, 60)


@pytest.mark.parametrize(
    "text",
    [
        '{"path": {"a": {"capabilities": ["deny"]}, "a": {"capabilities": ["read"]}}}',
        '{"path": {"a": {"capabilities": ["deny"], "capabilities": ["read"]}}}',
        '{"path": {}',
        '{"path": {"a": {"denied_parameters": {"b": [NaN]}}}}',
        '{"path": {"\\ud800": {}}}',
        '{"path": ' + "[" * 100_000,
        '{"path": {"a": {"min_wrapping_ttl": 1' + "0" * 5000 + "}}}",
        " " * (2**18 + 1),
        "not a policy",
    ],
)
def test_refuses_the_text(text: str) -> None:
    refusal(text)


def test_the_error_names_the_place_and_not_the_input() -> None:
    good = {"capabilities": ["read"]}
    reply = refusal(json.dumps({"path": {"a": good, "s3cret": {"capabilities": ["s3cret"]}}}))
    assert reply.startswith("path 2: ")
    assert "s3cret" not in reply
    assert refusal('{\n"s3cret": s3cret}') == "at line 2, column 11"
    assert "s3cret" not in refusal(json.dumps({"s3cret": 1})) + refusal(json.dumps({"path": {"a": {"s3cret": 1}}}))


def test_a_policy_is_the_same_when_it_was_stored() -> None:
    policy = parse("operator", json.dumps(FULL_JSON))
    assert decode(encode(policy), Policy) == policy


@examples(2)
@given(st.text() | st.text(alphabet='path "{}[]=,*+/\\\n#$%<-1', max_size=40))
def test_any_text_is_a_policy_or_refused(text: str) -> None:
    try:
        policy = parse("p", text)
    except Refused:
        return
    assert decode(encode(policy), Policy) == policy
