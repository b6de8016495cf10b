"""Words that this project does not use in prose: `python -m tests.words` prints each place with a better word.

It reads the pages, and in the code the docstrings, the comments and all other texts: helps, errors, log lines and
field descriptions. Code blocks in pages, and names in code, are not prose.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PAGES: Final = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/**/*.md")
CODE: Final = ("cloudid_core/**/*.py", "servers/**/*.py", "servers/ui/static/*.html", "servers/ui/static/*.js")

WORDS: Final[Mapping[str, str]] = {
    r"anew": "again, or a verb: rewrite, recreate",
    r"mend(s|ed|ing)?|cures?": "fix, remedy",
    r"lend(s|ing)?|lent|borrow(s|ed)?|on loan": "issue, request, use; dynamic credentials",
    r"tells|told": "reports, logs, returns, shows, is notified, is distinguished",
    r"somebody|nobody": "someone, no one; the caller, an operator, another process",
    r"whoever": "the caller, anyone who",
    r"nonsense": "an invalid response",
    r"for ever": "forever",
    r"in earnest": "in production",
    r"all the same": "anyway",
    r"in silence": "silently",
    r"seldom": "rarely",
    r"another than|others than": "a different one, other than",
    r"of another kind": "of a different type",
    r"good tokens?": "a valid token",
    r"go(es)? on|went on|going on": "continue, keep running",
    r"stays? away|comes? again": "is skipped, is retried, is repeated",
    r"lives? on": "stays valid, remains",
    r"what stands(?! for)|what counts": "is stored, takes effect",
    r"proves? itself|prove themselves": "authenticates",
    r"(hold|holds|held) against": "check against, compare with, test",
    r"has held": "was verified",
    r"wish(ed|es)?": "want, request, choose",
    r"breach(es)?": "violation, attack",
    r"misspelt": "misspelled, unknown",
}
"""Each pattern, and what to write instead."""

EXCEPTIONS: Final[Mapping[tuple[str, str], str]] = {
    ("CONTRIBUTING.md", "come again"): "a sentence before it was rewritten, in the table of examples",
}
"""By path and word, in lower case: why the word is right there."""

_RETIRED: Final = {re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE): instead for pattern, instead in WORDS.items()}
_CODE: Final = re.compile(r"^ *(```|~~~).*?^ *\1|`[^`\n]*`|\]\([^)\n]*\)|<!--.*?-->", re.DOTALL | re.MULTILINE)


def main() -> int:
    """Print every retired word; the exit code is 1 if there is one, or an exception that nothing needs."""
    unused = {*EXCEPTIONS}
    count = 0
    for path, line, word, instead in found():
        if (path, word.lower()) in EXCEPTIONS:
            unused.discard((path, word.lower()))
            continue
        count += 1
        sys.stdout.write(f"{path}:{line}: {word!r}; write: {instead}\n")
    for path, word in sorted(unused):
        sys.stdout.write(f"{path}: the exception for {word!r} is not needed\n")
    return int(bool(count or unused))


def found() -> Iterator[tuple[str, int, str, str]]:
    """Yield path, line, word and the better word for every retired word."""
    for path in sorted(path for pattern in (*PAGES, *CODE) for path in ROOT.glob(pattern)):
        for line, text in prose(path):
            for retired, instead in _RETIRED.items():
                for match in retired.finditer(text):
                    yield (
                        str(path.relative_to(ROOT)),
                        line + text[: match.start()].count("\n"),
                        match[0].replace("\n", " "),
                        instead,
                    )


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the prose of a file, each part with the number of its first line."""
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        yield 1, _without_code(text)
    elif path.suffix == ".py":
        yield from _comments(text)
        yield from _texts(text)
    else:
        yield 1, text


def _without_code(text: str) -> str:
    """Blank out code, so that the numbers of lines stay."""
    return _CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)


def _comments(source: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def _texts(source: str) -> Iterator[tuple[int, str]]:
    """Docstrings, and all other strings of more than one word."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
            yield node.lineno, _without_code(node.value)


if __name__ == "__main__":
    sys.exit(main())
