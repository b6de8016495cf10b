"""Matching: the rule that decides, on tables of cases and against a naive matcher of its own."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.policies.document import DENY, Policy, Rule
from cloudid_core.policies.matching import OPERATIONS, Acl
from cloudid_core.testing.world import World
from tests.sampling import examples


def made_of(*policies: Policy) -> Acl:
    return World().perform(Acl.of(policies))


def acl_of(*documents: dict[str, str]) -> Acl:
    """Policies by their patterns and what each grants: names of capabilities with blanks between."""
    return made_of(
        *(
            Policy(str(n), "", tuple(Rule(pattern, frozenset(words.split())) for pattern, words in document.items()))
            for n, document in enumerate(documents)
        )
    )


@pytest.mark.parametrize(
    "pattern, yes, no",
    [
        ("a/b/c", ["a", "a/b", "A"], ["a/b/c", "a/b/c/d", "b", "a/c"]),
        ("a/b", ["a"], ["ab", "a/bc"]),
        ("ab*", ["ab", "abc", "abc/d"], ["a", "b"]),
        ("a/b*", ["a", "a/b", "a/bc/d"], ["a/c", "b"]),
        ("*", ["a", "a/b"], []),
        ("+/b", ["a", "x"], ["a/b", "a/x"]),
        ("a*/b", ["a*"], ["ab", "abc"]),
    ],
)
def test_what_is_below_a_path_is_reached_by_what_grants_something_there(
    pattern: str, yes: list[str], no: list[str]
) -> None:
    subject = acl_of({pattern: "read"})
    assert [path for path in yes if not subject.reaches(path)] == []
    assert [path for path in no if subject.reaches(path)] == []
    assert not acl_of({pattern: "deny"}).reaches(yes[0])


def test_capabilities_do_not_depend_on_the_case_of_the_path() -> None:
    assert acl_of({"a/b": "read"}).capabilities("A/B") == {"read"}


@pytest.mark.parametrize(
    "pattern, yes, no",
    [
        ("a/b", ["a/b", "A/B"], ["a/b/", "a", "a/bc", "/a/b"]),
        ("a*", ["a", "ab", "a/b/c"], ["b", ""]),
        ("*", ["", "a", "a/b"], []),
        ("a/*", ["a/", "a/b/c"], ["a", "ab"]),
        ("a*b", ["a*b"], ["ab", "axb"]),
        ("a/*/b", ["a/*/b"], ["a/x/b"]),
        ("+", ["a", ""], ["a/b"]),
        ("a/+", ["a/b", "a/"], ["a", "a/b/", "a/b/c"]),
        ("+/b", ["a/b", "/b"], ["b", "a/a/b"]),
        ("a/+/c", ["a/b/c", "a//c"], ["a/b/b/c", "a/c", "a/b/cd"]),
        ("a/+/c*", ["a/b/c", "a/b/cd/e"], ["a/b/b", "a/b", "a/b/x/c"]),
        ("a/+/*", ["a/b/", "a/b/c/d"], ["a/b", "a"]),
        ("+/+", ["a/b", "/"], ["a", "a/b/c"]),
        ("a/b+", ["a/b+"], ["a/bc"]),
        ("a/+b/c", ["a/+b/c"], ["a/xb/c"]),
        ("Cloud/Creds/Web", ["cloud/creds/web", "cloud/creds/WEB"], []),
    ],
)
def test_patterns(pattern: str, yes: list[str], no: list[str]) -> None:
    subject = acl_of({pattern: "read"})
    assert [path for path in yes if not subject.allows("read", path)] == []
    assert [path for path in no if subject.allows("read", path)] == []


@pytest.mark.parametrize(
    "path, best_first",
    [
        ("a/b/c", ["a/b/c", "a/b/+", "a/b/*", "a/+/c", "a/*", "a/+/*", "a*", "+/b/c", "+/+/c", "*", "+/b/*"]),
        ("a/b/c", ["a/b/c*", "a/b/+"]),
        ("a/b/c", ["a/+/c", "a/+/+", "a/+/c*", "a/+/*"]),
        ("a/b/c", ["+/b/c", "+/+/c", "+/+/+", "*", "+/b/c*", "+/b/*", "+/+/*"]),
        ("ab/ab", ["+/ab", "+/ab*", "+/a*", "+/*"]),
    ],
)
def test_the_best_pattern_decides_alone(path: str, best_first: list[str]) -> None:
    """Each pattern beats all that come after it, in whatever order they are written."""
    for number, best in enumerate(best_first):
        others = best_first[number + 1 :]
        for document in (
            {best: "deny"} | dict.fromkeys(others, "read"),
            dict.fromkeys(others, "read") | {best: "deny"},
        ):
            assert not acl_of(document).allows("read", path), best
        assert acl_of({best: "read"}, dict.fromkeys(others, "deny")).allows("read", path), best


@pytest.mark.parametrize(
    "path, best, other",
    [
        ("a/b/cc", "+/+/cc", "+/b/+"),  # the longer, though its text is less
        ("x/a/b/cc/d", "x/+/+/cc/*", "x/+/b/+/*"),
        ("a/b/c", "+/b/+", "+/+/c"),  # alike in everything else: `b` is greater than `+`
        ("x/a/b/c/d", "x/+/b/+/*", "x/+/+/c/*"),
    ],
)
def test_patterns_with_as_many_wildcards_are_decided_by_length_and_then_by_text(
    path: str, best: str, other: str
) -> None:
    for document in ({best: "read", other: "update"}, {other: "update", best: "read"}):
        assert acl_of(document).capabilities(path) == {"read"}
        assert naive_words(list(document.items()), path) == {"read"}


def test_different_patterns_do_not_add_up() -> None:
    assert acl_of({"a/*": "read"}, {"a/b": "update"}).capabilities("a/b") == {"update"}


def test_rules_for_one_pattern_add_up() -> None:
    for documents in permutations([{"a/*": "read"}, {"a/*": "update"}, {"A/*": "list"}]):
        assert acl_of(*documents).capabilities("a/b") == {"read", "update", "list"}


def test_deny_wipes_what_others_grant_for_the_same_pattern() -> None:
    for documents in permutations([{"a/*": "read"}, {"a/*": "deny"}, {"A/*": "update sudo"}]):
        assert acl_of(*documents).capabilities("a/b") == DENY


def test_restrictions_of_one_pattern_are_merged() -> None:
    """What either rule requires or denies holds; what either allows is allowed."""
    update = frozenset({"update"})
    first = Rule("p", update, {"a": ("x",)}, {"b": ("x",)}, ("a",), 10, 0)
    second = Rule("p", update, {"a": ("y",), "b": (), "c": ()}, {"b": ("y",)}, ("c", "a"), 5, 60)
    subject = made_of(Policy("one", "", (first,)), Policy("two", "", (second,)))
    good = {"a": "y", "b": "z", "c": 1}
    assert subject.allows("update", "p", good, 5)
    assert subject.allows("update", "p", good | {"a": "x"}, 60)
    assert not subject.allows("update", "p", {"a": "x"}, 5), "c is required"
    assert not subject.allows("update", "p", good | {"b": "x"}, 5)
    assert not subject.allows("update", "p", good | {"d": 1}, 5)
    assert [ttl for ttl in (0, 4, 61) if subject.allows("update", "p", good, ttl)] == []


def test_parameters_count_for_writes_and_reads_only() -> None:
    subject = made_of(Policy("p", "", (Rule("p", OPERATIONS, required_parameters=("a",)),)))
    assert {operation for operation in OPERATIONS if subject.allows(operation, "p")} == {"delete", "list"}


def test_an_answer_must_be_wrapped_under_either_bound() -> None:
    at_most = made_of(Policy("p", "", (Rule("p", frozenset({"read"}), max_wrapping_ttl=60),)))
    assert [ttl for ttl in (0, 1, 60, 61) if at_most.allows("read", "p", {}, ttl)] == [1, 60]


@pytest.mark.parametrize(
    "rules, allowed",
    [
        ({"p": "list"}, True),
        ({"p/": "list"}, True),
        ({"p/*": "list"}, True),
        ({"p/": "deny", "p": "list"}, False),
        ({"p": "deny", "*": "list"}, False),
        ({"p": "deny", "p*": "list"}, False),
        ({"p": "deny", "p/*": "list"}, False),
        ({"p": "deny", "+/": "list"}, False),
        ({"p/*": "deny", "*": "list"}, False),
        ({"p/*": "deny", "+": "list"}, False),
        ({"p/*": "deny", "p": "list"}, True),
        ({"+/": "deny", "p": "list"}, True),
        ({"p*": "deny", "p": "list"}, True),
        ({"*": "read", "p": "list"}, True),
        ({"p/": "read", "p": "list"}, False),
        ({"p/": "list", "p": "deny"}, True),
        ({"+": "list"}, True),
        ({"+": "list", "p": "deny"}, False),
        ({"q": "list"}, False),
    ],
)
def test_a_list_is_decided_by_exact_rules_and_with_the_slash_first(rules: dict[str, str], allowed: bool) -> None:
    """A rule for `p` speaks about a list of `p/` unless there is one for `p/`, whatever wildcards say of either."""
    assert acl_of(rules).allows("list", "p") is allowed
    assert acl_of(rules).allows("list", "p/") is allowed


def test_only_lists_have_their_slash_taken_away_or_added() -> None:
    assert not acl_of({"p/": "read"}).allows("read", "p")
    assert acl_of({"p/": "list"}).capabilities("p") == DENY
    assert acl_of({"p": "list"}).capabilities("p/") == {"list"}


def test_case_opens_no_way_round_a_deny() -> None:
    """Names of roles have no case, so neither have paths."""
    subject = acl_of({"cloud/creds/*": "read", "cloud/creds/admin": "deny"})
    assert [name for name in ("admin", "Admin", "ADMIN") if subject.allows("read", f"cloud/creds/{name}")] == []


def test_nothing_matches_nothing_is_allowed() -> None:
    assert Acl().capabilities("a") == DENY
    assert not any(Acl().allows(operation, "a") for operation in OPERATIONS)


def test_a_rule_without_capabilities_denies() -> None:
    assert acl_of({"a/*": "read", "a/b": ""}).capabilities("a/b") == DENY


def test_words_that_are_no_operations_are_never_allowed() -> None:
    subject = acl_of({"a": "sudo scan", "b": "deny"})
    assert not any(subject.allows(word, path) for word in ("sudo", "scan", "deny", "root", "") for path in "ab")


def test_protected_paths_need_sudo_besides() -> None:
    assert not acl_of({"sys/auth/*": "update"}).allows("update", "sys/auth/azure")
    assert not acl_of({"sys/auth/*": "sudo"}).allows("update", "sys/auth/azure")
    assert acl_of({"sys/auth/*": "update sudo"}).allows("update", "sys/auth/azure")
    assert not acl_of({"auth/token/accessors": "list"}).allows("list", "auth/token/accessors")
    assert not acl_of({"sys/leases/lookup/*": "list"}).allows("list", "sys/leases/lookup")
    assert acl_of({"sys/leases/lookup/*": "list sudo"}).allows("list", "sys/leases/lookup")


def test_sudo_can_be_asked_for() -> None:
    assert acl_of({"a": "update sudo", "b": "update"}).is_sudo("a")
    assert not acl_of({"a": "update sudo", "b": "update"}).is_sudo("b")


def test_root_may_do_everything() -> None:
    root = Acl(is_root=True)
    assert all(root.allows(operation, "sys/seal") for operation in OPERATIONS)
    assert root.is_sudo("anything")
    assert root.capabilities("anything") == {"root"}


# ---- the naive matcher: the rules in words, one after the other, as slowly as they come


def naive_match(pattern: str, path: str) -> bool:
    """A `*` at the end stands for any rest: some start of the path is what stands before it."""
    if pattern.endswith("*"):
        return any(naive_match_segments(pattern[:-1], path[:cut]) for cut in range(len(path) + 1))
    return naive_match_segments(pattern, path)


def naive_match_segments(pattern: str, path: str) -> bool:
    wanted, found = pattern.split("/"), path.split("/")
    if len(wanted) != len(found):
        return False
    return not [number for number in range(len(wanted)) if wanted[number] not in ("+", found[number])]


def naive_wildcards(pattern: str) -> list[int]:
    """Where the wildcards stand: `+` as a whole segment, `*` as the last character."""
    padded = f"/{pattern}/"
    whole = [at for at in range(len(pattern)) if padded[at : at + 3] == "/+/"]
    return whole + ([len(pattern) - 1] if pattern.endswith("*") else [])


def naive_beats(one: str, other: str) -> bool:
    ones, others = naive_wildcards(one), naive_wildcards(other)
    if not ones or not others:
        return not ones
    if ones[0] != others[0]:
        return ones[0] > others[0]
    if one.endswith("*") != other.endswith("*"):
        return other.endswith("*")
    if len(ones) != len(others):
        return len(ones) < len(others)
    if len(one) != len(other):
        return len(one) > len(other)
    return one > other


def naive_words(rules: list[tuple[str, str]], path: str) -> set[str] | None:
    """The capabilities of the one best pattern that matches; `None` when none does."""
    matching = {pattern for pattern, _ in rules if naive_match(pattern, path.lower())}
    for pattern in matching:
        if all(naive_beats(pattern, other) for other in matching - {pattern}):
            words = {word for own, text in rules if own == pattern for word in text.split()}
            return set() if "deny" in words else words
    assert not matching
    return None


def naive_allows(rules: list[tuple[str, str]], operation: str, path: str) -> bool:
    if operation != "list":
        return operation in (naive_words(rules, path) or set())
    bare = path[:-1] if path.endswith("/") else path
    exact = [rule for rule in rules if not naive_wildcards(rule[0])]
    for some in (exact, [rule for rule in rules if rule not in exact]):
        for spelling in (bare + "/", bare):
            words = naive_words(some, spelling)
            if words is not None:
                return "list" in words
    return False


SEGMENTS = st.sampled_from(["a", "b", "ab", "+", "+", "+", "", "a+", "*a"])
PATTERNS = st.builds(
    lambda segments, end: "/".join(segments) + end,
    st.lists(SEGMENTS, min_size=1, max_size=4),
    st.sampled_from(["", "*"]),
).filter(lambda pattern: "+*" not in pattern)
PATHS = st.lists(st.sampled_from(["a", "b", "A", "ab", "aba", ""]), min_size=1, max_size=5).map("/".join)
WORDS = st.lists(st.sampled_from(["read", "list", "update", "deny"]), max_size=2, unique=True).map(" ".join)
POLICIES = st.lists(st.dictionaries(PATTERNS, WORDS, min_size=1, max_size=6), min_size=1, max_size=3)


@examples(5)
@given(POLICIES, st.lists(PATHS, min_size=4, max_size=12))
def test_agrees_with_the_naive_matcher(documents: list[dict[str, str]], paths: list[str]) -> None:
    """Random policies, random paths (and the patterns themselves), every operation."""
    rules = [rule for document in documents for rule in document.items()]
    subject = acl_of(*documents)
    for path in [*paths, *(pattern.rstrip("*") for pattern, _ in rules)]:
        for operation in ("read", "update", "list"):
            assert subject.allows(operation, path) is naive_allows(rules, operation, path), (operation, path)


@examples(2)
@given(POLICIES, PATHS)
def test_the_order_of_policies_does_not_matter(documents: list[dict[str, str]], path: str) -> None:
    assert acl_of(*documents).capabilities(path) == acl_of(*reversed(documents)).capabilities(path)
