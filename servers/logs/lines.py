"""Every line of the log, as a table: its event, its levels, its members, and what it means or what to do about it.

`make docs` prints it as `docs/reference/log.md`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Final

from attrs import frozen

from cloudid_core.events import Event, Problem, Progress, RequestAnswered, RequestReceived

TEXT: Final = "text"
TEXTS: Final = "list of texts"
INTEGER: Final = "integer"
NUMBER: Final = "number"

COMMON: Final[Mapping[str, tuple[str, str]]] = {
    "timestamp": (TEXT, "when the line was written: RFC 3339, UTC, with microseconds"),
    "level": (TEXT, "`debug`, `info`, `warning` or `error`; `critical` is not used"),
    "event": (TEXT, "the kind of line"),
    "worker": (INTEGER, "the number of the worker, if there are several"),
    "lost_lines": (INTEGER, "the number of lines before this one that could not be written"),
}
"""What any line can have; the first three it always has."""

MEMBERS: Final[Mapping[str, tuple[str, str]]] = {
    "accessor": (TEXT, "accessor of the token that was issued"),
    "attempts": (INTEGER, "number of attempts"),
    "cause": (TEXT, "the likely cause of a refusal, by its first code"),
    "claim": (TEXT, "name of the claim"),
    "code": (
        "text or integer",
        "code of a refusal or a problem; for a worker that died, its exit code, or the negative number of a signal",
    ),
    "codes": (TEXTS, "codes of a refusal; absent if the request was not refused"),
    "connection_limit": (INTEGER, "the current maximum of connections"),
    "connections": (INTEGER, "number of open connections"),
    "descriptors": (INTEGER, "maximum file descriptors of the process"),
    "device": (TEXT, "name of the audit device"),
    "display_name": (TEXT, "of the caller's token"),
    "document": (TEXT, "path of the published document, relative to the issuer"),
    "error": (TEXT, "class of a failure, such as `ProviderProblem`"),
    "expires_at": (NUMBER, "seconds since 1970"),
    "fix": (TEXT, "the fix for the cause"),
    "folder": (TEXT, "the folder of `apply_folder`"),
    "intent_id": (TEXT, "id of an intent, which `sys/leases/lookup` does not know"),
    "job": (TEXT, "the background job"),
    "kind": (TEXT, "`data`, `token` or `master`"),
    "lease_id": (TEXT, "id of a lease"),
    "left": (TEXTS, "paths whose objects differ from the folder"),
    "logger": (TEXT, "name of the library's logger"),
    "mount": (TEXT, "path of the mount"),
    "mount_accessor": (TEXT, "accessor of the mount"),
    "mount_id": (TEXT, "storage id of the mount"),
    "ms": (NUMBER, "milliseconds from the arrival of the request to its response"),
    "names": (TEXTS, "names of settings"),
    "node": (TEXT, "id of the other node"),
    "operation": (TEXT, "the operation in the words of policies: `read`, `update`, `list`, `delete`"),
    "path": (TEXT, "path without `/v1/`, query and tokens"),
    "pause": (NUMBER, "seconds until the next attempt"),
    "phase": (TEXT, "`idle`, `adding`, `proving` or `overlapping`"),
    "pid": (INTEGER, "of the process"),
    "policies": (TEXTS, "of the caller's token"),
    "principal_id": (TEXT, "object id of the service principal, for logins whose JWT the mount accepted"),
    "reason": (
        TEXT,
        "the reason; for an error from Azure, its status, its code and both request ids (Azure's and the "
        "client's), never its text",
    ),
    "ref": (TEXT, "the object of the job"),
    "removed": (INTEGER, "number of deleted paths"),
    "remote_address": (TEXT, "address of the client, as reported by a trusted proxy if there is one"),
    "request_id": (TEXT, "the id in the response and in audit entries"),
    "resource_id": (TEXT, "resource id of the machine, for logins whose JWT the mount accepted, if the JWT names one"),
    "role": (
        TEXT,
        "the role that the request names, if the name is valid; for logins, only if the mount accepted the JWT",
    ),
    "state": (TEXT, "the new state"),
    "status": (INTEGER, "status of the response"),
    "term": (INTEGER, "number of the key"),
    "time": (NUMBER, "when the request arrived, in seconds since 1970"),
    "token_id": (TEXT, "of the caller's token: a keyed hash, not the token"),
    "unchanged": (INTEGER, "number of files that required no change"),
    "wanted": (INTEGER, "the value in the settings"),
    "warnings": (TEXTS, "warnings of the service, each with its path"),
    "where": (TEXTS, "the stack frames of a bug, innermost last"),
    "work": (TEXT, "`tick` or `upkeep`"),
    "written": (INTEGER, "number of written paths"),
}
"""What some lines have, by name: a name means the same in each."""

FAILURE: Final = ("error", "reason", "where")
"""The members of a failure: cloudid's own by class and text, any other by class and place."""

ADVICE: Final = ("cause", "fix")
"""What the table of codes says of a refusal."""

RECEIVED: Final = "request received"
ANSWERED: Final = "request"
_DEFECT: Final = "A bug: report `error` and `where`. The server continues."


@frozen
class Line:
    """A row. What is empty or zero is left out of a line of the core."""

    event: str
    level: str
    members: tuple[str, ...]
    meaning: str


SERVER_LINES: Final = (
    Line("audit checkpoint command failed", "warning", ("reason",), "Run `audit_checkpoint_command` by hand."),
    Line(
        "audit device failed",
        "warning",
        ("device", "reason"),
        "Free space on the disk that `device` writes to, or start its receiver. If no device can be "
        "written to, requests are refused.",
    ),
    Line("audit device works again", "warning", ("device",), "No action is needed."),
    Line(
        "background work failed",
        "error",
        ("work", *FAILURE),
        "The work is retried every second. If the line is repeated, fix the cause that it names, usually the store.",
    ),
    Line(
        "background work not handed over",
        "warning",
        FAILURE,
        "No action is needed: another node, or the next start, takes over the work later.",
    ),
    Line("background task failed", "error", FAILURE, _DEFECT),
    Line(
        "certificate ends soon or is not valid",
        "warning",
        ("reason",),
        "`reason` has the file and its expiry. Renew the certificate and send SIGHUP, or correct the clock.",
    ),
    Line("connection failed", "error", FAILURE, _DEFECT),
    Line(
        "connection limit lowered",
        "warning",
        ("wanted", "connection_limit", "descriptors"),
        "Allow the process more descriptors (`ulimit -n`, `LimitNOFILE`), at least `connection_limit` "
        "plus 768, or lower `connection_limit`.",
    ),
    Line(
        "connections cannot be accepted",
        "warning",
        FAILURE,
        "There is no free descriptor or memory, so new clients wait. Allow the process more, or lower "
        "`connection_limit`.",
    ),
    Line("draining", "info", ("connections",), "The server was asked to stop."),
    Line("event loop failed", "error", FAILURE, _DEFECT),
    Line(
        "folder applied",
        "info, warning",
        ("folder", "written", "removed", "unchanged", "left", "warnings"),
        "Check `left`: secrets that the service has rotated and that differ from the folder, and objects "
        "that the folder created and no longer contains.",
    ),
    Line(
        "folder left to the node that leads",
        "info",
        ("folder",),
        "No action is needed. To apply the folder with SIGHUP, send it to the node that does the "
        "background work, which `sys/leader` names.",
    ),
    Line(
        "folder not applied",
        "error",
        ("folder", *FAILURE),
        "Fix the cause that `reason` names. The server retries every minute, and immediately after SIGHUP.",
    ),
    Line(
        "library",
        "warning, error",
        ("logger", *FAILURE),
        "A message of the library that `logger` names. Its text is omitted, because it may contain secrets.",
    ),
    Line(
        "refused",
        "info",
        ("status", "code", "remote_address", *ADVICE),
        "The client did not send a valid HTTP request.",
    ),
    Line("request failed", "error", FAILURE, _DEFECT),
    Line(
        "settings not reloaded",
        "error",
        ("reason",),
        "Fix the cause that `reason` names, and send SIGHUP again. Until then, the old settings stay in effect.",
    ),
    Line("settings reloaded", "info", (), "The settings were reloaded after SIGHUP."),
    Line(
        "settings that take a restart have changed",
        "warning",
        ("names",),
        "Restart the server, so that the settings in `names` take effect.",
    ),
    Line(
        "undelivered answer not given back",
        "error",
        FAILURE,
        "No action is needed. The client did not receive the result of its request, and it is not "
        "revoked yet. The server retries.",
    ),
    Line("unraisable error", "error", FAILURE, _DEFECT),
    Line(
        "unsafe",
        "warning",
        ("code", "reason"),
        "`reason` describes how secrets are exposed, or which data the store has lost. `init` refuses to "
        "create such a store; an existing store is served, and `sys/health` shows how to fix or accept the "
        "problem.",
    ),
    Line(
        "worker died",
        "error",
        ("worker", "pid", "code", "pause"),
        "Another worker is started after `pause` seconds. A negative `code` is the signal that ended the "
        "worker. For example, -9 often means that the kernel ran out of memory.",
    ),
    Line("worker failed", "error", ("worker", *FAILURE), _DEFECT),
)
"""The lines of the server itself."""


def core_lines() -> Iterator[Line]:
    """The lines of the core's events."""
    for event in sorted(_leaves(Event), key=name_of):
        yield Line(name_of(event), _levels(event), _members(event), " ".join((inspect.getdoc(event) or "").split()))


def name_of(event: type[Event]) -> str:
    """The `event` of its line."""
    if event is RequestAnswered:
        return ANSWERED
    return RECEIVED if event is RequestReceived else str(event.__struct_config__.tag)


def _leaves(event: type[Event]) -> Iterator[type[Event]]:
    for kind in event.__subclasses__():
        if kind.__struct_config__.tag and not kind.__subclasses__():
            yield kind
        else:
            yield from _leaves(kind)


def _levels(event: type[Event]) -> str:
    if event is RequestAnswered:
        return "info; warning with `error`"
    return f"{event.severity}; warning with `reason`" if issubclass(event, Progress) else event.severity


def _members(event: type[Event]) -> tuple[str, ...]:
    """The fields of an event as its line has them."""
    members: list[str] = []
    for name in event.__struct_fields__:
        if name == "problem":
            members += Problem.__struct_fields__
        elif name == "time" and event is RequestAnswered:
            members.append("ms")
        elif name == "codes":
            members += ["codes", *ADVICE]
        elif name != "audit":
            members.append(name)
    return tuple(members)
