"""What is proven of a login, and the claims that templates make of it."""

from __future__ import annotations

from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.issuer.facts import FACTS, LONGEST, MOST_NAMES, RESERVED, TEMPLATE, claims_of

HOSTILE = st.text(st.sampled_from('"\\{},:[]x\n') | st.characters(exclude_categories=["Cs"]), max_size=20)


@pytest.mark.parametrize(
    "template, claims",
    [
        ("", {"oid": "me", "vm_name": "web"}),
        ('{"machine": {{vm_name}}, "where": {"place": {{ location }}}, "n": [1, true]}', None),
        (b64encode(b'{"machine": {{vm_name}}, "where": {"place": {{location}}}, "n": [1, true]}').decode(), None),
        ("{}", {}),
    ],
)
def test_a_template_chooses_claims_and_a_fact_that_is_not_proven_is_empty(
    template: str, claims: dict[str, object] | None
) -> None:
    assert TEMPLATE.parse(template) == template
    expected = {"machine": "web", "where": {"place": ""}, "n": [1, True]} if claims is None else claims
    assert claims_of(template, {"oid": "me", "vm_name": "web"}) == expected


@pytest.mark.parametrize(
    "template",
    [
        "oid",
        "[{{oid}}]",
        '{"a": {{secret}}}',
        '{"a": {{identity.entity.id}}}',
        '{"a": "{{oid}}"}',
        '{"a": "on {{oid}}"}',
        "{{{oid}}: 1}",
        '{"a": {{oid}}',
        '{"a": ' + "[" * 40 + "]" * 40 + "}",
        '{"a": "' + "x" * LONGEST + '"}',
        '{"a": [' + ",".join(["{{oid}}"] * (MOST_NAMES + 1)) + "]}",
        *(f'{{"{name}": "x"}}' for name in sorted(RESERVED)),
    ],
)
def test_what_is_no_template_is_refused(template: str) -> None:
    assert not TEMPLATE.accepts(template)


@given(st.dictionaries(st.sampled_from(sorted(FACTS)), HOSTILE))
def test_no_fact_changes_more_than_its_own_claim(facts: dict[str, str]) -> None:
    """Escapes before a name are the worst that a writer of templates can do."""
    for template in ('{"a": {{vm_name}}, "b": {"d": {{oid}}}, "c": 1}', '{"a": {{vm_name}}, "b": "\\{{oid}}, "c": 1}'):
        claims = claims_of(TEMPLATE.parse(template), facts)
        assert claims["a"] == facts.get("vm_name", "")
        assert claims.keys() == {"a", "b", "c"}
