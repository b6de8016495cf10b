"""Regular expressions whose work grows faster than their input, found without running them.

A pattern works in more than linear time where it can read the same text in several ways (Weber and Seidl, "On the
degree of ambiguity of finite automata", 1991): it has two loops, p and q, and a text that leads from p to p, from p to
q, and from q to q. A text of n such pieces can be split between the loops in n ways, and one that fails at its end is
tried in all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from re import _constants, _parser  # the library's own parser of patterns
from typing import Any, Final

op: Any = _constants
ALPHABET: Final = [chr(code) for code in range(128)] + ["\xe9", "\xc9", "\u017f", "\u212a", "\u2028", "\u4e00"]
EVERY: Final = (1 << len(ALPHABET)) - 1
MANY: Final = 1000
"""A repeat of as many times counts as endless. Fewer bound the work by themselves."""
COPIES: Final = 2
"""How many times a bounded repeat is written out."""


class Automaton:
    """What a pattern reads: each state stands behind one character set of the pattern; state 0 is the start."""

    def __init__(self, pattern: re.Pattern[Any], is_searched: bool = False) -> None:
        text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
        self._flags = pattern.flags | (re.ASCII if isinstance(pattern.pattern, bytes) else 0)
        self._empty: list[list[tuple[int, int]]] = []
        self._reads: dict[int, tuple[int, int]] = {}
        self._checks: set[int] = set()
        """States that a place in the text, or what is around it, may make fail."""
        start = self._state()
        if is_searched:  # it is tried from every character on
            start = self._loop(start, lambda place: self._character(place, EVERY))
        parse_flags = pattern.flags & ~(re.UNICODE if isinstance(pattern.pattern, bytes) else 0)
        self._end = self._sequence(start, _parser.parse(text, parse_flags))
        self.steps = {state: self._steps(state) for state in range(len(self._empty))}

    def _state(self) -> int:
        self._empty.append([])
        return len(self._empty) - 1

    def _join(self, start: int, end: int, forbidden: int = 0) -> None:
        self._empty[start].append((end, forbidden))

    def _character(self, start: int, allowed: int) -> int:
        reader, end = self._state(), self._state()
        self._join(start, reader)
        self._reads[reader] = (allowed, end)
        return end

    def _loop(self, start: int, body: Any, forbidden: int = 0) -> int:
        head, end = self._state(), self._state()
        self._join(start, head)
        self._join(body(head), head)
        self._join(head, end, forbidden)
        return end

    def _sequence(self, start: int, nodes: Any) -> int:
        for kind, argument in nodes:
            start = self._node(start, kind, argument)
        return start

    def _node(self, start: int, kind: Any, argument: Any) -> int:
        if kind in (op.LITERAL, op.NOT_LITERAL, op.ANY, op.IN):
            return self._character(start, self._set(kind, argument))
        if kind is op.SUBPATTERN:
            _, added, removed, nodes = argument
            before, self._flags = self._flags, (self._flags | added) & ~removed
            end = self._sequence(start, nodes)
            self._flags = before
            return end
        if kind is op.ATOMIC_GROUP:
            return self._sequence(start, argument)
        if kind is op.BRANCH:
            end = self._state()
            for branch in argument[1]:
                self._join(self._sequence(start, branch), end)
            return end
        if kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            least, most, nodes = argument
            return self._repeat(start, least, most, nodes, is_possessive=kind is op.POSSESSIVE_REPEAT)
        end = self._state()
        self._join(start, end)
        self._checks.add(end)
        return end

    def _repeat(self, start: int, least: int, most: int, nodes: Any, is_possessive: bool) -> int:
        for _ in range(min(least, COPIES)):
            start = self._sequence(start, nodes)
        if most >= MANY:
            forbidden = 0
            if is_possessive and len(nodes) == 1 and nodes[0][0] in (op.LITERAL, op.NOT_LITERAL, op.ANY, op.IN):
                forbidden = self._set(*nodes[0])
            return self._loop(start, lambda head: self._sequence(head, nodes), forbidden)
        end = self._state()
        self._join(start, end)
        for _ in range(min(most - least, COPIES)):
            start = self._sequence(start, nodes)
            self._join(start, end)
        return end

    def _set(self, kind: Any, argument: Any) -> int:
        """The characters of the alphabet that a node reads, as the library reads them."""
        found = 0
        for place, character in enumerate(ALPHABET):
            cases = {character, character.lower(), character.upper()} if self._flags & re.IGNORECASE else {character}
            found |= any(self._has(kind, argument, each) for each in cases) << place
        return found

    def _has(self, kind: Any, argument: Any, character: str) -> bool:
        if len(character) != 1:
            return False
        code = ord(character)
        if kind is op.LITERAL:
            return bool(code == argument)
        if kind is op.NOT_LITERAL:
            return bool(code != argument)
        if kind is op.ANY:
            return character != "\n" or bool(self._flags & re.DOTALL)
        if kind is op.RANGE:
            least, most = argument
            return bool(least <= code <= most)
        if kind is op.CATEGORY:
            escape = {"DIGIT": "d", "SPACE": "s", "WORD": "w"}[str(argument).rpartition("_")[2]]
            escape = escape.upper() if "NOT" in str(argument) else escape
            return re.fullmatch(f"\\{escape}", character, self._flags & re.ASCII) is not None
        is_negated = argument[0][0] is op.NEGATE
        return any(self._has(kind, each, character) for kind, each in argument[is_negated:]) != is_negated

    def _steps(self, start: int) -> list[tuple[int, int]]:
        """What may be read next, and the state behind it; twice where two ways lead to the same."""
        found: list[tuple[int, int]] = []

        def walk(state: int, allowed: int, seen: frozenset[tuple[int, int]]) -> None:
            if state in self._reads:
                characters, end = self._reads[state]
                if characters & allowed:
                    found.append((characters & allowed, end))
            for following, forbidden in self._empty[state]:
                if (state, following) not in seen:
                    walk(following, allowed & ~forbidden, seen | {(state, following)})

        walk(start, EVERY, frozenset())
        return found

    def is_done(self, state: int) -> bool:
        """Whether the pattern may end behind a state, whatever follows."""
        new, seen = [state], {state}
        while new:
            place = new.pop()
            if place == self._end and place not in self._checks:
                return True
            for following, _ in self._empty[place]:
                if following not in seen and following not in self._checks:
                    seen.add(following)
                    new.append(following)
        return False

    def reachable(self, start: int) -> set[int]:
        found: set[int] = set()
        new = [start]
        while new:
            for _, state in self.steps[new.pop()]:
                if state not in found:
                    found.add(state)
                    new.append(state)
        return found


SEARCHES: Final = frozenset({"search", "sub", "subn", "split", "findall", "finditer"})


def ambiguity(pattern: re.Pattern[Any], uses: frozenset[str] = frozenset({"fullmatch"})) -> str:
    """How a pattern, in these uses, can read one text in many ways and fail in all of them; empty if it cannot."""
    automaton = Automaton(pattern, not SEARCHES.isdisjoint(uses))
    must_end = "fullmatch" in uses
    reach = {state: automaton.reachable(state) for state in {0, *automaton.reachable(0)}}
    loops = [state for state, beyond in reach.items() if state in beyond]
    failing = [state for state in loops if must_end or not automaton.is_done(state)]
    for state in failing:
        for place, (characters, following) in enumerate(automaton.steps[state]):
            others = automaton.steps[state][place + 1 :]
            if state in reach[following] and any(characters & mask and end == following for mask, end in others):
                return "a repeat within a repeat"
    for first in loops:
        for second in failing:
            if first != second and second in reach[first] and _meet(automaton, first, second, reach):
                return "two repeats that read the same, one behind the other"
    return ""


def _meet(automaton: Automaton, first: int, second: int, reach: dict[int, set[int]]) -> bool:
    """Whether one text leads from the first state to itself, from it to the second, and from that to itself."""
    goal = (first, second, second)
    new, seen = [(first, first, second)], set[tuple[int, int, int]]()
    while new:
        one, between, other = new.pop()
        for mask, to_one in automaton.steps[one]:
            if to_one != first and first not in reach[to_one]:
                continue
            for other_mask, to_other in automaton.steps[other]:
                if not mask & other_mask or (to_other != second and second not in reach[to_other]):
                    continue
                for between_mask, to_between in automaton.steps[between]:
                    if not mask & other_mask & between_mask:
                        continue
                    state = (to_one, to_between, to_other)
                    if state == goal:
                        return True
                    if state not in seen and (to_between == second or second in reach[to_between]):
                        seen.add(state)
                        new.append(state)
    return False


def patterns_in(value: object, depth: int = 0) -> Iterator[re.Pattern[Any]]:
    """The patterns that a value of a module holds: it is one, a method of one, or has some as members."""
    owner = getattr(value, "__self__", None)
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(owner, re.Pattern):
        yield owner
    elif depth < 3 and isinstance(value, dict):
        for member in value.values():
            yield from patterns_in(member, depth + 1)
    elif depth < 3 and isinstance(value, (list, tuple, set, frozenset)):
        for member in value:
            yield from patterns_in(member, depth + 1)
