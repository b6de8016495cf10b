"""Command lines of `vault` and `bao`: each is understood, or answered with the command that cloudid has for it."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import click
from attrs import field, frozen

from .connection import EXEC, tell


@frozen
class Habit:
    """A row of the table.

    `becomes`: the words of cloudid, where {1} and {2} are arguments, {path} is an option or else the first argument,
    and {fields} stands for all other options and fields. `answer`: what is printed where no command line fits.
    """

    words: str
    becomes: str = ""
    answer: str = ""


HABITS: Final = (
    Habit("token lookup", "read auth/token/lookup-self", "cloudid write auth/token/lookup token=-"),
    Habit("token renew", "write auth/token/renew-self {fields}", "cloudid write auth/token/renew token=-"),
    Habit("token revoke", answer="cloudid write auth/token/revoke-self, or cloudid write auth/token/revoke token=-"),
    Habit("token create", "write auth/token/create {fields}"),
    Habit("token capabilities", "write sys/capabilities-self paths={1}"),
    Habit("policy list", "list sys/policies/acl"),
    Habit("policy read", "read sys/policies/acl/{1} --field=policy"),
    Habit("policy write", "write sys/policies/acl/{1} policy=@{2}", "cloudid write sys/policies/acl/NAME policy=@FILE"),
    Habit("policy delete", "delete sys/policies/acl/{1}"),
    Habit("auth list", "read sys/auth"),
    Habit("auth enable", "write sys/auth/{path} type={1} {fields}"),
    Habit("auth disable", "delete sys/auth/{1}"),
    Habit("secrets list", "read sys/mounts"),
    Habit("secrets enable", "write sys/mounts/{path} type={1} {fields}"),
    Habit("secrets disable", "delete sys/mounts/{1}"),
    Habit("secrets move", "write sys/remount from={1} to={2}"),
    Habit("audit list", "read sys/audit"),
    Habit("audit enable", "write sys/audit/{path} type={1} {fields}"),
    Habit("audit disable", "delete sys/audit/{1}"),
    Habit("lease lookup", "write sys/leases/lookup lease_id={1}"),
    Habit("lease renew", "write sys/leases/renew lease_id={1} {fields}"),
    Habit("lease revoke", "revoke {1}"),
    Habit("operator init", answer="cloudid init --settings FILE, on the server's machine"),
    Habit("operator rekey", answer="cloudid rekey --settings FILE --new-key-file FILE, on the server's machine"),
    Habit("operator unseal", answer="not needed: the server opens its store with the key that its settings name"),
    Habit("operator key-status", "read sys/key-status"),
    Habit("operator rotate", "write sys/rotate"),
    Habit("operator raft", answer="cloudid backup --settings FILE TARGET, on the server's machine"),
    Habit("login", "login --role={role} --mount=auth/{path}", "cloudid login --role ROLE"),
    Habit("unwrap", "write sys/wrapping/unwrap", "cloudid write sys/wrapping/unwrap token=-"),
    Habit("path-help", "read {1} --help-path"),
    Habit("server", answer="cloudid serve --settings FILE, or cloudid dev"),
    Habit("version", "--version"),
    Habit("kv", answer="not available: cloudid has no key-value engine"),
)
"""In the order of the reference, which prints them."""

PASSED: Final = frozenset({"field", "format", "address", "wrap-ttl"})
"""Options that commands of cloudid have too."""
IGNORED: Final = frozenset({"f", "force", "no-print", "no-store", "self", "prefix"})
"""Options without a value that say what cloudid does anyway, or finds out by itself."""
VALUED: Final = PASSED | {"method", "path", "policy", "ttl", "period", "description"}
"""Options whose value may be the next word."""
RENAMED: Final = {"policy": "policies"}
VERBS: Final = frozenset({"read", "list", "write", "patch", "delete", "status"})
"""Commands of both, whose options may have a single dash."""
_OPTION: Final = re.compile(r"-([a-z][a-z-]*)(?:=(.*))?", re.DOTALL)


@frozen
class Typed:
    """A command line of `vault`, taken apart."""

    arguments: tuple[str, ...]
    fields: tuple[str, ...]
    options: Mapping[str, str]
    passed: tuple[str, ...] = field(factory=tuple)

    @classmethod
    def of(cls, words: Sequence[str]) -> Typed:
        arguments: list[str] = []
        fields: list[str] = []
        options: dict[str, str] = {}
        passed: list[str] = []
        rest = iter(words)
        for word in rest:
            if word.startswith("--"):
                passed.append(word)
            elif found := _OPTION.fullmatch(word):
                name, value = found[1], found[2]
                if name not in IGNORED:
                    options[name] = value if value is not None else next(rest, "") if name in VALUED else "true"
            else:
                (fields if "=" in word else arguments).append(word)
        passed += [f"--{name}={options.pop(name)}" for name in sorted(PASSED & options.keys())]
        return cls(tuple(arguments), tuple(fields), options, tuple(passed))

    def filled(self, becomes: str) -> list[str]:
        """The words of cloudid. Raises `LookupError` for an argument that is missing, and for one too many."""
        named = dict(word.split("=", 1) for word in self.fields)
        path = self.options.get("path") or (self.arguments[0] if self.arguments else "cloud")
        used = {int(number) for number in re.findall(r"{(\d)}", becomes)}
        if len(self.arguments) > max(used, default=0):
            raise LookupError(becomes)
        words: list[str] = []
        for word in shlex.split(becomes):
            if word == "{fields}":
                words += [
                    f"{RENAMED.get(name, name)}={value}" for name, value in self.options.items() if name != "path"
                ]
                words += self.fields
            else:
                words.append(word.format("", *self.arguments, **{**named, "path": path}))
        return [*words, *self.passed]


def understood(words: Sequence[str]) -> list[str]:
    """Return a command line in the words of cloudid. Raises `click.UsageError` with the command that it has instead."""
    end = next((at for at, word in enumerate(words) if word in ("--", EXEC)), len(words))
    typed, rest = list(words[:end]), list(words[end:])
    if typed and typed[0] in VERBS:
        return [*_with_long_options(typed), *rest]
    habit = next((each for each in HABITS if typed[: len(each.words.split())] == each.words.split()), None)
    if habit is None or not _is_of_vault(habit, typed):
        return list(words)
    line = Typed.of(typed[len(habit.words.split()) :])
    try:
        if not habit.becomes or line.options.get("method", "azure") not in ("azure", "cloud"):
            raise LookupError(habit.words)
        translated = line.filled(habit.becomes)
    except LookupError:
        instead = habit.answer or f"cloudid {habit.becomes}"
        raise click.UsageError(f"cloudid has no command {habit.words!r}. Instead: {instead}") from None
    if sys.stderr.isatty():
        tell(f"that is: {shlex.join(['cloudid', *translated])}")
    return [*translated, *rest]


def _is_of_vault(habit: Habit, typed: Sequence[str]) -> bool:
    """Whether a command line is not of the command of cloudid that has the same name."""
    if habit.words != "login":
        return True
    return any(word.startswith(("-method", "-path", "role=")) for word in typed[1:])


def _with_long_options(words: Sequence[str]) -> Iterator[str]:
    for word in words:
        found = _OPTION.fullmatch(word)
        if found is None or found[1] not in (PASSED | IGNORED):
            yield word
        elif found[1] in PASSED:
            yield f"-{word}"
