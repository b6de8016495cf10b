"""Fields: one table, and the parsing, defaults and reading that are derived from it."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import frozen
from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.errors import Code, Refused
from cloudid_core.forms import fields
from cloudid_core.forms.fields import (
    INTEGER,
    NOT_OFFERED,
    TEXT,
    Field,
    FieldType,
    bounded,
    combined,
    fields_of,
    one_of,
    parse,
    require,
    setting,
    show,
    without_not_offered,
)
from cloudid_core.values.secret import Secret

KINDS: dict[str, FieldType[Any]] = {name: kind for name, kind in vars(fields).items() if isinstance(kind, FieldType)}
CANARY = "c4n4ry"


@frozen(kw_only=True)
class Form:
    """A class of settings as features declare them."""

    plain: int = 0
    name: str = setting(fields.TEXT, "", "A name.", required=True)
    ttl: int = setting(fields.SECONDS, 60, "A time.", old_name="lease", env="TTL")
    tags: tuple[str, ...] = setting(fields.TEXTS, (), "Some tags.")
    password: Secret = setting(fields.SECRET, Secret(), "A secret.")
    count: int = setting(bounded(fields.INTEGER, 1, 9), 1, "A number.")
    color: str = setting(one_of("red", "blue"), "red", "A color.")


def test_the_table_has_a_row_for_each_setting_in_order() -> None:
    assert [field.name for field in fields_of(Form)] == ["name", "ttl", "tags", "password", "count", "color"]
    assert fields_of(Form)[1] == Field("ttl", fields.SECONDS, 60, "A time.", "TTL", "lease", False)


def test_what_was_given_is_parsed_and_the_rest_is_not_there() -> None:
    given_values = parse(Form, {"ttl": "1m", "tags": "a, b", "count": "7", "other": 1, "plain": 2})
    assert dict(given_values.values) == {"ttl": 60, "tags": ("a", "b"), "count": 7}
    assert "ttl" in given_values
    assert given_values["ttl"] == 60
    assert "name" not in given_values
    assert given_values.ignored == ("other", "plain")


def test_an_old_spelling_is_accepted_and_remembered() -> None:
    old = parse(Form, {"lease": 5})
    assert (old["ttl"], old.spelled_old) == (5, {"lease": True})
    new = parse(Form, {"ttl": 5})
    assert (new["ttl"], new.spelled_old) == (5, {"lease": False})


@pytest.mark.parametrize("body", [{"lease": 5, "ttl": 7}, {"ttl": 7, "lease": 5}, {"ttl": 7, "lease": "nonsense"}])
def test_the_new_spelling_beats_the_old_one(body: dict[str, object]) -> None:
    assert parse(Form, body)["ttl"] == 7


def test_null_leaves_a_duration_alone_and_empties_other_fields() -> None:
    given_values = parse(Form, {"ttl": None, "name": None, "tags": None})
    assert dict(given_values.values) == {"name": "", "tags": ()}


def test_all_problems_are_reported_at_once_and_none_contains_the_input() -> None:
    bad = {
        "name": [CANARY],
        "ttl": CANARY,
        "count": CANARY,
        "color": CANARY,
        "password": {CANARY: 1},
        "tags": [[CANARY]],
    }
    with pytest.raises(Refused) as refusal:
        parse(Form, bad)
    problems = refusal.value.problems
    assert {problem.code for problem in problems} == {Code.FIELD_INVALID}
    assert [problem.detail.split()[0] for problem in problems] == [f'"{name}"' for name in bad]
    assert CANARY not in str(refusal.value)
    assert refusal.value.__suppress_context__


def test_a_problem_names_the_spelling_that_was_used() -> None:
    with pytest.raises(Refused, match='"lease" must be'):
        parse(Form, {"lease": "soon"})


@pytest.mark.parametrize("body", [{}, {"name": ""}, {"name": None}])
def test_a_required_field_must_be_there_and_not_empty(body: dict[str, object]) -> None:
    with pytest.raises(Refused) as refusal:
        require(Form, parse(Form, body))
    assert (refusal.value.code, refusal.value.problems[0].detail) == (Code.FIELD_REQUIRED, '"name"')


def test_a_required_field_that_is_there_is_enough() -> None:
    require(Form, parse(Form, {"name": "x"}))


def test_a_record_is_shown_in_the_order_of_its_table() -> None:
    shown = show(Form(name="x", ttl=5, tags=("a",), password=Secret("p")), omit=["password"])
    assert list(shown.items()) == [("name", "x"), ("ttl", 5), ("tags", ["a"]), ("count", 1), ("color", "red")]


@frozen(kw_only=True)
class Kept(fields.AsWritten):
    """A record that reads back as it was written."""

    networks: tuple[str, ...] = setting(fields.NETWORKS, (), "Networks.")
    name: str = setting(fields.TEXT, "", "A name.")
    number: int = 0


def test_a_record_keeps_what_was_written_beside_what_it_means() -> None:
    record = Kept(**parse(Kept, {"networks": "10.1.2.3/8, ::1", "name": "A"}).values, number=7)
    assert show(record) == {"networks": ["10.1.2.3/8", "::1"], "name": "A"}
    assert record.normal == Kept(networks=("10.0.0.0/8", "::1/128"), name="A", number=7)
    assert record.normal is record.normal, "made once"
    assert record.normal.normal == record.normal


def test_an_old_spelling_in_use_is_shown_beside_the_new_one() -> None:
    assert show(Form(ttl=5), spelled_old=["lease"])["lease"] == 5
    assert "lease" not in show(Form(ttl=0), spelled_old=["lease"])
    assert "lease" not in show(Form(ttl=5))


@pytest.mark.parametrize("raw, fits", [(1, True), ("9", True), (0, False), (10, False)])
def test_a_bounded_integer_lies_between_its_bounds(raw: object, fits: bool) -> None:
    kind = bounded(fields.INTEGER, 1, 9)
    if fits:
        assert kind.parse(raw) == int(str(raw))
    else:
        with pytest.raises(ValueError, match="must be between 1 and 9"):
            kind.parse(raw)


@pytest.mark.parametrize("raw, fits", [("99ms", False), ("100ms", True), (60, True), ("61s", False), (0, False)])
def test_a_bounded_duration_lies_between_its_bounds(raw: object, fits: bool) -> None:
    kind = bounded(fields.PRECISE_SECONDS, 0.1, 60.0)
    if fits:
        kind.parse(raw)
    else:
        with pytest.raises(ValueError, match=r"must be between 0\.1s and 60s"):
            kind.parse(raw)


@pytest.mark.parametrize("kind", [fields.PRECISE_SECONDS, fields.SECONDS, fields.INTEGER])
def test_bounds_change_neither_what_is_shown_nor_what_null_means(kind: FieldType[int]) -> None:
    limited = bounded(kind, 1, 9)
    assert (limited.show(4), limited.null_is_absent) == (kind.show(4), kind.null_is_absent)


@pytest.mark.parametrize("raw, fits", [("red", True), ("", True), ("Red", False), ("green", False), (1, False)])
def test_a_choice_is_one_of_few_or_the_empty_text(raw: object, fits: bool) -> None:
    kind = one_of("red", "blue")
    if fits:
        assert kind.parse(raw) == raw
    else:
        with pytest.raises(ValueError, match="must be one of red, blue"):
            kind.parse(raw)


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-10, 10**6)
    | st.text(max_size=8)
    | st.sampled_from(["5m", "1h30m", "10.0.0.0/8,::1", "0 3 * * *", "a,b", "true", "0x10", "k=v"])
)


@given(st.sampled_from(sorted(KINDS)), SCALARS | st.lists(SCALARS, max_size=3))
def test_what_is_shown_parses_to_the_same_value(name: str, raw: object) -> None:
    """What does not parse raises `ValueError`, whose text names a rule."""
    kind = KINDS[name]
    problem = "must "
    try:
        value = kind.parse(raw)
    except ValueError as error:
        problem = str(error)
    else:
        assert kind.parse(kind.show(value)) == value
    assert problem.startswith("must ")


def test_what_was_given_prints_its_names_alone() -> None:
    @frozen
    class Form:
        jwt: str = setting(fields.TEXT, "", "A secret.")

    assert repr(parse(Form, {"jwt": "s3cret"})) == "<ParsedFields jwt>"


def test_a_combined_form_has_the_fields_of_all_and_the_first_form_counts() -> None:
    @frozen(kw_only=True)
    class Other:
        count: str = setting(TEXT, "", "Another field of the same name.", old_name="number")
        more: int = setting(INTEGER, 1, "A field of its own.")

    @frozen(kw_only=True)
    class First:
        count: int = setting(INTEGER, 7, "How many.", old_name="amount")

    both = combined("Both", First, Other)
    given = parse(both, {"amount": "3", "more": 2, "number": 1})
    assert (given.values, given.ignored) == ({"count": 3, "more": 2}, ("number",))


@pytest.mark.parametrize("name", sorted(NOT_OFFERED))
@pytest.mark.parametrize("empty", ["", None, [], {}, 0, False])
def test_a_field_that_asks_for_nothing_is_accepted_without_a_word(name: str, empty: object) -> None:
    body = {"name": "a", name: empty, "other": 1}
    assert without_not_offered(parse(Form, body), body).ignored == ("other",)


@pytest.mark.parametrize("name", sorted(NOT_OFFERED))
def test_a_field_that_asks_for_what_is_not_offered_is_refused_by_its_name(name: str) -> None:
    body = {"name": "a", name: {"a": CANARY}}
    with pytest.raises(Refused) as refused:
        without_not_offered(parse(Form, body), body)
    assert refused.value.code is Code.FIELD_INVALID
    assert f'"{name}" must be empty' in str(refused.value)
    assert CANARY not in str(refused.value)


def test_a_field_that_is_shown_only_when_it_is_set() -> None:
    @frozen(kw_only=True)
    class Quiet:
        loud: str = setting(TEXT, "", "Shown.")
        quiet: str = setting(TEXT, "", "Shown when set.", shown_empty=False)

    assert show(Quiet()) == {"loud": ""}
    assert show(Quiet(quiet="x")) == {"loud": "", "quiet": "x"}
