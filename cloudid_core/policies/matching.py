"""Matching: which rule decides about a path, and whether it allows a request.

An exact pattern takes precedence. Of the patterns with wildcards, exactly one decides: the one whose first wildcard is
furthest right; then one that does not end in `*`; then the one with fewer `+`; then the longer one; then the one that
sorts later. Different patterns are not combined, but rules for the same pattern are.

Paths are compared in lower case, like the names in them: a `deny` of `creds/admin` also denies `creds/Admin`.
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
"""The operations at a path. Each needs the capability of the same name."""

AT_ONCE: Final = 500
"""How many rules are read before other programs get a turn."""

_ROOT: Final = frozenset({"root"})
_NO_PARAMETERS: Final[Mapping[str, Json]] = {}


@frozen
class _Wildcard:
    """A pattern with a `*` at its end or with `+` segments, prepared for comparisons."""

    rule: Rule
    prefix: str
    """The part before the first wildcard."""
    segments: tuple[str, ...]
    is_open: bool
    """Whether it ends in `*`. The last segment is then the prefix of the rest of the path."""
    rank: str
    """Sort key that selects the best of several matching patterns: numbers of fixed width, then the pattern."""

    @classmethod
    def of(cls, rule: Rule) -> Iterable[_Wildcard]:
        """Return the pattern prepared for comparisons, or `None` if it is literal."""
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
        """Return whether it matches a path, whose segments are `given`."""
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
    """What several policies allow together. Without any rule, and unless it is root, nothing."""

    is_root: bool = False
    _exact: Mapping[str, Rule] = {}
    """The rules without wildcards, by their patterns in lower case."""
    _wildcards: Sequence[_Wildcard] = ()
    """The rules with wildcards, best first."""
    _granting: Sequence[list[str]] = ()
    """The segments of the patterns that grant something."""

    @classmethod
    async def of(cls, policies: Iterable[Policy]) -> Acl:
        """Combine policies. Other programs get turns, because there may be very many rules."""
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
        """Return the maximum number of patterns that a path is compared with."""
        return len(self._wildcards)

    @property
    def granting_patterns(self) -> int:
        """Return the number of patterns that `reaches` compares."""
        return len(self._granting)

    def allows(
        self,
        operation: str,
        path: str,
        parameters: Mapping[str, Json] = _NO_PARAMETERS,
        wrapping_ttl: int = 0,
        fields: Mapping[str, Field] = constraints.NO_FIELDS,
    ) -> bool:
        """Return whether one of `OPERATIONS` on a path is allowed. The path of a list may end in a slash or not.

        Protected paths also need `sudo`. `wrapping_ttl` is the seconds for which the response is wrapped; 0 means it is
        not. `fields` are the fields of the route by each of their names.
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
        """Return the capabilities at a path: only `root`, only `deny`, or the capabilities of a rule."""
        if self.is_root:
            return _ROOT
        rule = self._matching_list(fold(path))
        return rule.capabilities or DENY if rule else DENY

    def is_sudo(self, path: str) -> bool:
        """Return whether a rule grants `sudo` at a path, for programs that do more for such callers."""
        return self.is_root or "sudo" in self.capabilities(path)

    def reaches(self, path: str) -> bool:
        """Return whether something below a path is allowed."""
        below = fold(path).split("/")
        return self.is_root or any(_leads_below(segments, below) for segments in self._granting)

    def _matching_list(self, path: str) -> Rule | None:
        """Return the rule that decides about a list.

        Exact patterns precede wildcards, and a pattern with the final slash precedes one without. In another order, a
        rule for `p` would allow a list of `p/` that a rule for `p/` denies, or a rule for `*` would allow a list of
        `p/` that a rule for `p` denies.
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
    """Return the segments of its pattern, if it grants something."""
    return (rule.pattern.split("/"),) if rule.capabilities - DENY else ()


def _leads_below(segments: list[str], path: list[str]) -> bool:
    """Return whether a pattern with these segments matches something below the segments of a path."""
    for own, other in zip(segments, path, strict=False):
        if own.endswith("*") and own is segments[-1]:
            return other.startswith(own[:-1])
        if own not in ("+", other):
            return False
    return len(segments) > len(path)


def _merged(pattern: str, rules: Sequence[Rule]) -> Rule:
    """Merge the rules for one pattern: all capabilities, or only `deny` if one denies; and all restrictions.

    They are merged together, because adding one after the other would copy the result each time.
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
    """Return whether a response is wrapped for as long as the rule requires.

    A rule with either limit requires wrapping.
    """
    least, most = rule.min_wrapping_ttl, rule.max_wrapping_ttl
    return not (least or most) or (ttl > 0 and least <= ttl and (not most or ttl <= most))
