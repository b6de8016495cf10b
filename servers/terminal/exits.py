"""Exit codes: what a script learns from a command."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from ..runtime import INTERRUPTED


class Exit(IntEnum):
    DONE = 0
    FAILED = 1
    UNUSABLE = 2
    DIFFERENT = 3
    INTERRUPTED = INTERRUPTED


EXITS: Final = {
    Exit.DONE: "It was done. A check, a test or a verification found nothing wrong.",
    Exit.FAILED: "It was refused or failed, or what was asked for is not there, and one line on standard error says "
    "why; or a check, a test or a verification found something wrong, and its report says what.",
    Exit.UNUSABLE: "The command line cannot be understood, or a file to be tested or verified cannot be read. Of "
    "`status`: the service is not healthy.",
    Exit.DIFFERENT: "Of `apply`: the service is not as the folder says, with `--dry-run` or since a secret was left "
    "that the service made itself.",
    Exit.INTERRUPTED: "Ctrl-C ended it.",
}
