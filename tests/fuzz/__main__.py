"""Coverage-guided fuzzing of the parsers in the table, then altered tokens: `python -m tests.fuzz`.

Each target has a process of its own, which ends at the first input that breaks it. That input is kept, and
`--replay FILE` with the target's name gives it to the target again.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import atheris

with redirect_stderr(StringIO()), atheris.instrument_imports(include=["cloudid_core", "cloudid_servers"]):
    from .altered import alter
    from .targets import TARGETS

CORPUS: Final = Path("build/fuzz")
LONGEST: Final = 4096
"""Bytes of an input."""

SLOWEST: Final = 60
"""Seconds after which an input counts as one without an end."""

MEMORY: Final = 2048
"""MiB that a process may take."""


def fuzz(name: str, corpus: Path, limit: str) -> bool:
    """Whether a target holds for all inputs that `limit`, an option of libFuzzer, leaves room for."""
    folder = corpus / name.replace(" ", "-")
    folder.mkdir(parents=True, exist_ok=True)
    child = os.fork()
    if not child:
        _fuzz(name, folder, limit)  # libFuzzer ends the process
    _, status = os.waitpid(child, 0)
    holds = os.waitstatus_to_exitcode(status) == 0
    if not holds:
        sys.stdout.write((folder / "log").read_text(errors="replace"))
    return holds


def _fuzz(name: str, folder: Path, limit: str) -> None:
    log = os.open(folder / "log", os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
    os.dup2(log, 1)
    os.dup2(log, 2)
    seeds, found = folder / "seeds", folder / "found"
    for each in (seeds, found):
        each.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(TARGETS[name].seeds):
        (seeds / str(number)).write_bytes(seed if isinstance(seed, bytes) else seed.encode())
    options = [limit, "-seed=1", f"-max_len={LONGEST}", f"-timeout={SLOWEST}", f"-rss_limit_mb={MEMORY}"]
    options += ["-verbosity=0", "-print_final_stats=1", f"-artifact_prefix={folder}/broken-"]
    atheris.Setup([sys.argv[0], *options, str(found), str(seeds)], TARGETS[name].examine)
    atheris.Fuzz()


def run(names: Iterable[str], corpus: Path, limit: str) -> list[str]:
    """The targets that broke."""
    broken = []
    for name in names:
        sys.stdout.write(f"{name} ...\n")
        sys.stdout.flush()
        if not fuzz(name, corpus, limit):
            broken.append(name)
    return broken


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.split("\n")[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="default: all: " + ", ".join(TARGETS))
    parser.add_argument("--seconds", type=int, default=60, help="for each target (default: 60)")
    parser.add_argument("--runs", type=int, help="so many inputs for each target, in place of a time")
    parser.add_argument("--tokens", type=int, default=0, help="altered tokens at the end (default: none)")
    parser.add_argument("--corpus", type=Path, help=f"keep found inputs here (default: {CORPUS}; with --runs nowhere)")
    parser.add_argument("--replay", type=Path, help="give this file to the one target that is named")
    options = parser.parse_args()
    names: list[str] = options.targets or list(TARGETS)
    if options.replay:
        sys.stdout.write(f"{TARGETS[names[0]].examine(options.replay.read_bytes())!r}\n")
        return 0
    with TemporaryDirectory() as folder:
        limit = f"-runs={options.runs}" if options.runs else f"-max_total_time={options.seconds}"
        broken = run(names, options.corpus or (Path(folder) if options.runs else CORPUS), limit)
    if options.tokens:
        sys.stdout.write(f"{alter(options.tokens)}\n")
    sys.stdout.write(f"broken: {', '.join(broken)}\n" if broken else f"{len(names)} targets hold\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
