"""Commands in texts: what a person copies out of a message must be read by a shell as it is meant."""

from __future__ import annotations

import shlex


def typed(*words: str) -> str:
    """Return the words of a command as they are typed: each one quoted where a shell would read it otherwise.

    Every name in a command that is printed goes through here, whether a user, a file or a service gave it.
    """
    return shlex.join(words)
