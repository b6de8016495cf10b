"""Matching: which rule decides about a path, and whether it lets a request pass.

The exact pattern decides before any other. Of the patterns with wildcards the best one decides alone: the one whose
first wildcard stands further right; then one that does not end in `*`; then the one with fewer `+`; then the longer;
then the greater text. Patterns do not add up, but rules for the same pattern do.

Paths are compared in lower case, as the names in them are: a `deny` of `creds/admin` also stops `creds/Admin`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from itertools import chain
from operator import attrgetter
from typing import Final

from attrs import evolve, frozen

from ..effects import give_way, in_turns
from ..forms import Field, Json
from ..values import fold, least
from . import parameters as constraints
from .builtin import needs_sudo
from .document import DENY, Policy, Rule

OPERATIONS: Final = frozenset({"create", "read", "update", "patch", "delete", "list"})
"""What can be done at a path; each needs the capability of its name."""

AT_ONCE: Final = 500
"""So many rules are read before other programs go on."""

_ROOT: Final = frozenset({"root"})
_NO_PARAMETERS: Final[Mapping[str, Json]] = {}


@frozen
class _Wildcard:
    """A pattern with a `*` at its end or with segments that are `+`, ready to be compared."""

    rule: Rule
    prefix: str
    """What comes before the first wildcard."""
    segments: tuple[str, ...]
    is_open: bool
    """Whether it ends in `*`; the last segment is then where the rest of the path starts."""
    rank: str
    """What is compared to find the best of several patterns that match: numbers of fixed width, then the pattern."""

    @classmethod
    def of(cls, rule: Rule) -> Iterable[_Wildcard]:
        """None when the pattern is literal."""
        pattern = rule.pattern
        is_open = pattern.endswith("*")
        segments = tuple(pattern.removesuffix("*").split("/") if is_open else pattern.split("/"))
        if not is_open and "+" not in segments:
            return ()
        prefix = pattern.removesuffix("*")
        if "+" in segments:
            prefix = "".join(f"{segment}/" for segment in segments[: segments.index("+")])
        numbers = (len(prefix), not is_open, 10**7 - segments.count("+"), len(pattern))  # no policy is as long
        rank = "{:08}{:d}{:08}{:08}".format(*numbers) + pattern
        return (cls(rule, prefix, segments, is_open, rank),)

    def matches(self, path: str, given: list[str]) -> bool:
        """Whether it matches a path, whose segments are `given`."""
        if not path.startswith(self.prefix):
            return False
        last = len(self.segments) - 1
        if self.is_open:
            if len(given) <= last or not given[last].startswith(self.segments[last]):
                return False
        elif len(given) != last + 1 or self.segments[last] not in ("+", given[last]):
            return False
        return all(own in ("+", other) for own, other in zip(self.segments[:last], given, strict=False))


@frozen
class Acl:
    """What several policies allow together. Without a rule, and not of root, nothing."""

    is_root: bool = False
    _exact: Mapping[str, Rule] = {}
    """The rules without wildcards, by their patterns in lower case."""
    _wildcards: Sequence[_Wildcard] = ()
    """The best first."""
    _granting: Sequence[list[str]] = ()
    """The segments of the patterns that grant something."""

    @classmethod
    async def of(cls, policies: Iterable[Policy]) -> Acl:
        """What these policies allow. Other programs go on meanwhile: there may be very many rules."""
        groups: dict[str, list[Rule]] = {}

        def add(rule: Rule) -> Iterable[None]:
            groups.setdefault(fold(rule.pattern), []).append(rule)
            return ()

        await in_turns([rule for policy in policies for rule in policy.rules], add, AT_ONCE)
        merged = await in_turns(list(groups.items()), lambda group: (_merged(*group),), AT_ONCE)
        rules = {rule.pattern: rule for rule in merged}
        wildcards = await in_turns(merged, _Wildcard.of, AT_ONCE)
        granting = await in_turns(merged, _granted, AT_ONCE)
        for wildcard in wildcards:
            del rules[wildcard.rule.pattern]
        if len(wildcards) > AT_ONCE:
            await give_way()
        wildcards.sort(key=attrgetter("rank"), reverse=True)
        return cls(exact=rules, wildcards=wildcards, granting=granting)

    @property
    def patterns(self) -> int:
        """With how many patterns a path may have to be compared."""
        return len(self._wildcards)

    @property
    def granting_patterns(self) -> int:
        """With how many patterns `reaches` compares."""
        return len(self._granting)

    def allows(
        self,
        operation: str,
        path: str,
        parameters: Mapping[str, Json] = _NO_PARAMETERS,
        wrapping_ttl: int = 0,
        fields: Mapping[str, Field] = constraints.NO_FIELDS,
    ) -> bool:
        """Whether one of `OPERATIONS` on a path may pass. The path of a list may end in a slash or not.

        Protected paths also need `sudo`. `wrapping_ttl`: for how many seconds the answer is to be wrapped; 0: not.
        `fields` are those of the route by each of their names.
        """
        if self.is_root:
            return True
        path = fold(path)
        if operation == "list":
            path = path.removesuffix("/") + "/"
            rule = self._matching_list(path)
        else:
            rule = self._matching(path)
        return (
            rule is not None
            and operation in OPERATIONS
            and operation in rule.capabilities
            and ("sudo" in rule.capabilities or not needs_sudo(path))
            and _wrapping_fits(rule, wrapping_ttl)
            and (operation not in constraints.CHECKED or constraints.fit(rule, parameters, fields))
        )

    def capabilities(self, path: str) -> frozenset[str]:
        """What may be done at a path: `root` alone, `deny` alone, or capabilities of a rule."""
        if self.is_root:
            return _ROOT
        rule = self._matching_list(fold(path))
        return rule.capabilities or DENY if rule else DENY

    def is_sudo(self, path: str) -> bool:
        """Whether a rule grants `sudo` at a path, for programs that do more for such callers."""
        return self.is_root or "sudo" in self.capabilities(path)

    def reaches(self, path: str) -> bool:
        """Whether something below a path is allowed."""
        below = fold(path).split("/")
        return self.is_root or any(_leads_below(segments, below) for segments in self._granting)

    def _matching_list(self, path: str) -> Rule | None:
        """The rule that decides about a list: exact before wildcards, with the final slash before without.

        In another order a rule for `p` would let pass a list of `p/` that a rule for `p/` denies, or a rule for `*` a
        list of `p/` that a rule for `p` denies.
        """
        bare = path.removesuffix("/")
        exact = self._exact.get(path) or self._exact.get(bare)
        return exact or self._matching_wildcard(path) or self._matching_wildcard(bare)

    def _matching(self, path: str) -> Rule | None:
        return self._exact.get(path) or self._matching_wildcard(path)

    def _matching_wildcard(self, path: str) -> Rule | None:
        given = path.split("/")
        return next((wildcard.rule for wildcard in self._wildcards if wildcard.matches(path, given)), None)


def _granted(rule: Rule) -> Iterable[list[str]]:
    """The segments of its pattern, if it grants something."""
    return (rule.pattern.split("/"),) if rule.capabilities - DENY else ()


def _leads_below(segments: list[str], path: list[str]) -> bool:
    """Whether a pattern of these segments matches something below the segments of a path."""
    for own, other in zip(segments, path, strict=False):
        if own.endswith("*") and own is segments[-1]:
            return other.startswith(own[:-1])
        if own not in ("+", other):
            return False
    return len(segments) > len(path)


def _merged(pattern: str, rules: Sequence[Rule]) -> Rule:
    """The rules for one pattern as one: the capabilities of all, or `deny` alone if one denies; all restrictions.

    All of them at once: to add one after the other would copy what is there already each time.
    """
    if len(rules) == 1:
        return rules[0] if rules[0].pattern == pattern else evolve(rules[0], pattern=pattern)
    capabilities = frozenset[str]().union(*(rule.capabilities for rule in rules))
    if "deny" in capabilities:
        return Rule(pattern, DENY)
    return Rule(
        pattern,
        capabilities,
        constraints.merged(rule.allowed_parameters for rule in rules),
        constraints.merged(rule.denied_parameters for rule in rules),
        tuple(dict.fromkeys(chain.from_iterable(rule.required_parameters for rule in rules))),
        reduce(least, (rule.min_wrapping_ttl for rule in rules)),
        reduce(least, (rule.max_wrapping_ttl for rule in rules)),
    )


def _wrapping_fits(rule: Rule, ttl: int) -> bool:
    """Whether an answer is wrapped for as long as the rule demands. A rule with either bound demands wrapping."""
    least, most = rule.min_wrapping_ttl, rule.max_wrapping_ttl
    return not (least or most) or (ttl > 0 and least <= ttl and (not most or ttl <= most))
