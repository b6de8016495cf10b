"""Names of roles and policies, ids in Azure, and paths of mounts."""

from __future__ import annotations

import re
from typing import Final

NAME: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,126}[A-Za-z0-9_])?")
_POLICY_SEGMENT: Final = r"(?!\.{1,2}(?:/|\Z))[A-Za-z0-9_.@:-]+"
_POLICY: Final = re.compile(rf"{_POLICY_SEGMENT}(?:/{_POLICY_SEGMENT})*")
_LONGEST_POLICY: Final = 128
_LONGEST_HOST: Final = 253
_LABEL: Final = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_IDENTIFIER: Final = re.compile(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{0,128}")
_LONGEST_PATH: Final = 256
_PATH: Final = re.compile(r"[A-Za-z0-9_~-][A-Za-z0-9_.~-]*(?:/[A-Za-z0-9_~-][A-Za-z0-9_.~-]*)*")


def name(raw: object) -> str:
    """Return a name in lower case: 1 to 128 ASCII letters, digits and `_`, with `-` and `.` inside."""
    if not isinstance(raw, str) or not NAME.fullmatch(raw):
        raise ValueError(
            "must be 1 to 128 letters, digits and underscores; hyphens and dots are allowed except at the start and end"
        )
    return raw.lower()


def are_same(first: str, second: str) -> bool:
    """Return whether two texts are spellings of one name."""
    return first.lower() == second.lower()


def policy_name(raw: object) -> str:
    """Return the name of a policy in lower case.

    It has 1 to 128 ASCII letters, digits and `_-.@:`, with single slashes inside.
    """
    if not isinstance(raw, str) or len(raw) > _LONGEST_POLICY or not _POLICY.fullmatch(raw):
        raise ValueError(
            f"must be 1 to {_LONGEST_POLICY} letters, digits and characters of _-.@: with single slashes between them"
        )
    return raw.lower()


def tenant(raw: object) -> str:
    """Return a tenant unchanged: a GUID or a host name (RFC 1123 section 2.1); one label is enough."""
    if not isinstance(raw, str) or len(raw) > _LONGEST_HOST or not _HOST.fullmatch(raw):
        raise ValueError("must be a GUID or a host name")
    return raw


def identifier(raw: object) -> str:
    """Return free text: at most 128 characters, without control characters."""
    if not isinstance(raw, str) or not _IDENTIFIER.fullmatch(raw):
        raise ValueError("must be at most 128 characters without control characters")
    return raw


def mount_path(raw: str) -> str:
    """Return a path without slashes at its ends.

    Its segments have ASCII letters, digits and `_~-`, with `.` after the first character.
    """
    path = raw.strip("/")
    if len(path) > _LONGEST_PATH or not _PATH.fullmatch(path):
        raise ValueError(
            f"must be segments of letters, digits and characters of _~-. with at most {_LONGEST_PATH} "
            "characters in total"
        )
    return path
