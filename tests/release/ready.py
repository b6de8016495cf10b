"""Whether this commit may be released: `python -m tests.release.ready [TAG]`. `make release` runs it.

A release needs a changelog entry for its version, a tag of the same name, and everything that only the owner of the
repository knows. Lines that wait for the owner contain `SET-BY-OWNER`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cloudid_core.version import VERSION

ROOT: Final = Path(__file__).parent.parent.parent
MARK: Final = "SET-BY-OWNER"
EXPLAINED_IN: Final = (":!tests/release", ":!CONTRIBUTING.md")
"""Where the mark is only mentioned."""


def missing_from(root: Path, tag: str = "", version: str = VERSION) -> Iterator[str]:
    """Yield what a release still lacks, a line each."""
    if tag and tag != f"v{version}":
        yield f"the tag {tag} is not v{version}, the version in cloudid_core/version.py"
    if f"## {version}" not in (root / "CHANGELOG.md").read_text():
        yield f"CHANGELOG.md has no section ## {version}"
    found = subprocess.run(
        ["git", "grep", "-n", MARK, "--", ".", *EXPLAINED_IN], cwd=root, capture_output=True, text=True, check=False
    )
    yield from (f"only the owner can complete {line}" for line in found.stdout.splitlines())


def main() -> int:
    lacking = list(missing_from(ROOT, *sys.argv[1:2]))
    for line in lacking:
        sys.stderr.write(f"not ready for a release: {line}\n")
    return int(bool(lacking))


if __name__ == "__main__":
    sys.exit(main())
