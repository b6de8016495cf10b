"""Azure Arc: the agent gives tokens to those who can read a file that only root and the group `himds` can read.

The first request is answered with 401 and the path of that file. Another program could answer in the agent's place and
name a file of its choice, so only the agent's own folder is read. The checks are those of the vendor's libraries
(azure-identity 1.27, `azure_arc.py`), and links are not followed.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Final

from cloudid_core.errors import CloudidError
from cloudid_core.values.secret import Secret

KEYS: Final = Path("/var/opt/azcmagent/tokens")
"""Where the agent for Linux writes its keys."""
AGENT: Final = Path("/opt/azcmagent/bin/himds")
"""The agent's program: where it is, the agent listens at `ENDPOINT`, also for those who do not have its environment."""
ENDPOINT: Final = "http://localhost:40342/metadata/identity/oauth2/token"
VERSION: Final = "2020-06-01"
LARGEST_KEY: Final = 4096
"""Bytes."""

_CHALLENGE: Final = re.compile(r"Basic realm=([^\x00-\x1f]{1,4096})", re.IGNORECASE)


class ChallengeRefused(CloudidError):
    """The agent's challenge is not answered. The text repeats nothing of it."""


def key_of(challenge: str, folder: Path) -> Secret:
    """The key in the file that a challenge names, if it is one of the agent's. Raises `ChallengeRefused`."""
    named = _CHALLENGE.fullmatch(challenge.strip())
    if named is None:
        raise ChallengeRefused("the agent's challenge does not name a file")
    path = named[1]
    if path.rpartition("/")[0] != str(folder) or not path.endswith(".key"):
        raise ChallengeRefused(f"the agent's challenge names a file that is not a key in {folder}: it was not read")
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ChallengeRefused("the agent's key is not a regular file: it was not read")
            key = file.read(LARGEST_KEY + 1)
    except PermissionError:
        raise ChallengeRefused(
            "the agent's key cannot be read: run as root, or as a member of the group himds"
        ) from None
    except OSError as error:
        raise ChallengeRefused(f"the agent's key cannot be read: {error.strerror}") from None
    if len(key) > LARGEST_KEY:
        raise ChallengeRefused(f"the agent's key is larger than {LARGEST_KEY} bytes: it was not sent")
    try:
        return Secret(key.decode("ascii").strip())
    except UnicodeDecodeError:
        raise ChallengeRefused("the agent's key is not text: it was not sent") from None
