"""The cause and the fix that a command prints below a refusal, with the names that the command knows filled in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from attrs import frozen

from cloudid_core.advice import PLACEHOLDER, advice_on, fill
from cloudid_core.mounts import BUILT_IN

from ..paths import mount_of
from ..typed import typed

LOGIN_MOUNT: Final = "auth/cloud"
"""Where a command looks for roles of logins without `--mount`."""
ROLE_PARENTS: Final = frozenset({"creds", "role", "roles", "static-creds", "static-roles", "token", "rotate-role"})
"""The segments of a path before the name of a role."""


@frozen
class Filled:
    """The advice on a refusal. `command` can be pasted; it is empty if there is none, or a name in it is not known."""

    cause: str
    fix: str
    command: str = ""

    @property
    def lines(self) -> list[str]:
        more = [f"more: {self.command}"] if self.command else []
        return [f"cause: {self.cause}", f"fix: {self.fix}", *more]

    @property
    def members(self) -> dict[str, str]:
        """The same for programs."""
        return {"cause": self.cause, "fix": self.fix, "command": self.command}


def filled_advice(codes: Iterable[str], names: Mapping[str, str], *, this: str = "") -> Filled | None:
    """Return the advice on the first code that has a row. `this`: the command that prints it, as the table has it."""
    advice = advice_on(codes)
    if advice is None:
        return None
    takes_mount = advice.command.endswith("--role ROLE") and (names.get("mount") or LOGIN_MOUNT) != LOGIN_MOUNT
    command = f"{advice.command} --mount MOUNT" if takes_mount else advice.command
    quoted = {name: typed(value) for name, value in names.items() if value}
    command = fill(command, quoted)
    is_usable = advice.command != this and not PLACEHOLDER.search(command)
    cause, fix = (fill(text, quoted) for text in (advice.cause, advice.fix))
    return Filled(cause, fix, command if is_usable else "")


def names_in(path: str) -> dict[str, str]:
    """Return what the placeholders of the table stand for after a request to this path."""
    segments = path.strip("/").split("/")
    is_built_in = any(f"{path}/".startswith(f"{mount.path}/") for mount in BUILT_IN)
    has_role = len(segments) > 1 and segments[-2] in ROLE_PARENTS
    found = {"path": path, "mount": "" if is_built_in else mount_of(path), "role": segments[-1] if has_role else ""}
    return {name: value for name, value in found.items() if value}
