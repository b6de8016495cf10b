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
    "event": (TEXT, "which line it is"),
    "worker": (INTEGER, "the number of the worker, if there are several"),
    "lost_lines": (INTEGER, "how many lines before this one could not be written"),
}
"""What any line can have; the first three it always has."""

MEMBERS: Final[Mapping[str, tuple[str, str]]] = {
    "accessor": (TEXT, "of the token that a login or a creation gave"),
    "attempts": (INTEGER, "how often it was tried"),
    "cause": (TEXT, "the likely cause of a refusal, by its first code"),
    "claim": (TEXT, "name of the claim"),
    "code": ("text or integer", "of a refusal or a problem; of a worker that died: its exit code, negative: a signal"),
    "codes": (TEXTS, "codes of a refusal; absent if the request was not refused"),
    "connection_limit": (INTEGER, "how many connections there may be now"),
    "connections": (INTEGER, "how many are open"),
    "descriptors": (INTEGER, "how many file descriptors the process may open"),
    "device": (TEXT, "name of the audit device"),
    "display_name": (TEXT, "of the caller's token"),
    "document": (TEXT, "the path below the issuer of what is published there"),
    "error": (TEXT, "class of a failure, such as `ProviderProblem`"),
    "expires_at": (NUMBER, "seconds since 1970"),
    "fix": (TEXT, "what fixes the cause of a refusal"),
    "folder": (TEXT, "the folder of `apply_folder`"),
    "intent_id": (TEXT, "of an intent: `sys/leases/lookup` does not know it"),
    "job": (TEXT, "the background job"),
    "kind": (TEXT, "`data`, `token` or `master`"),
    "lease_id": (TEXT, "id of a lease"),
    "left": (TEXTS, "paths at which something stays that the folder does not have so"),
    "logger": (TEXT, "which library, by the name of its logger"),
    "mount": (TEXT, "path of the mount"),
    "mount_accessor": (TEXT, "accessor of the mount"),
    "mount_id": (TEXT, "storage id of the mount"),
    "ms": (NUMBER, "milliseconds from the request's arrival at the service to its answer"),
    "names": (TEXTS, "names of settings"),
    "node": (TEXT, "id of the other node"),
    "operation": (TEXT, "what policies call it: `read`, `update`, `list`, `delete`"),
    "path": (TEXT, "without `/v1/` and without a query; tokens in it are left out"),
    "pause": (NUMBER, "seconds until it is tried again"),
    "phase": (TEXT, "`idle`, `adding`, `proving` or `overlapping`"),
    "pid": (INTEGER, "of the process"),
    "policies": (TEXTS, "of the caller's token"),
    "principal_id": (TEXT, "of a login whose JWT the mount accepted, refused or not: object id of the principal"),
    "reason": (
        TEXT,
        "why; of a failure at Azure status, code and both request ids (its own, and ours), never its text",
    ),
    "ref": (TEXT, "what the job was about"),
    "removed": (INTEGER, "how many paths were removed"),
    "remote_address": (TEXT, "of the client, or what a trusted proxy says of it"),
    "request_id": (TEXT, "as in the answer and in the audit entries"),
    "resource_id": (TEXT, "of a login whose JWT the mount accepted, refused or not: the machine, if the JWT names one"),
    "role": (TEXT, "that the request names, if it is a valid name; of a login only once the mount accepted its JWT"),
    "state": (TEXT, "the state that it has now"),
    "status": (INTEGER, "of the answer"),
    "term": (INTEGER, "number of the key"),
    "time": (NUMBER, "when the request came: seconds since 1970"),
    "token_id": (TEXT, "of the caller's token: a keyed hash, not the token"),
    "unchanged": (INTEGER, "how many files say what is there already"),
    "wanted": (INTEGER, "what the settings ask for"),
    "warnings": (TEXTS, "of the service, each behind the path that it is about"),
    "where": (TEXTS, "the frames of a defect, innermost last"),
    "work": (TEXT, "`tick` or `upkeep`"),
    "written": (INTEGER, "how many paths were written"),
}
"""What some lines have, by name: a name means the same in each."""

FAILURE: Final = ("error", "reason", "where")
"""What tells a failure: ours by class and text, any other by class and place."""

ADVICE: Final = ("cause", "fix")
"""What the table of codes says of a refusal."""

RECEIVED: Final = "request received"
ANSWERED: Final = "request"
_DEFECT: Final = "A defect: report `error` and `where`. The server goes on."


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
        "Free the disk, or start the receiver, that `device` writes to: requests that no device can record are "
        "refused.",
    ),
    Line("audit device works again", "warning", ("device",), "Nothing."),
    Line(
        "background work failed",
        "error",
        ("work", *FAILURE),
        "It is tried again each second. If the line keeps coming, look at what it names: mostly the store.",
    ),
    Line(
        "background work not handed over",
        "warning",
        FAILURE,
        "Nothing: the next start, or another node, takes it over later.",
    ),
    Line("background task failed", "error", FAILURE, _DEFECT),
    Line(
        "certificate ends soon or is not valid",
        "warning",
        ("reason",),
        "`reason` has the file and its time: renew it and send SIGHUP, or put the clock right.",
    ),
    Line("connection failed", "error", FAILURE, _DEFECT),
    Line(
        "connection limit lowered",
        "warning",
        ("wanted", "connection_limit", "descriptors"),
        "Give the process more descriptors (`ulimit -n`, `LimitNOFILE`): `connection_limit` and 768 more; or lower "
        "`connection_limit`.",
    ),
    Line(
        "connections cannot be accepted",
        "warning",
        FAILURE,
        "No descriptor or memory is left, and new clients wait. Give the process more, or lower `connection_limit`.",
    ),
    Line("draining", "info", ("connections",), "The server was told to stop."),
    Line("event loop failed", "error", FAILURE, _DEFECT),
    Line(
        "folder applied",
        "info, warning",
        ("folder", "written", "removed", "unchanged", "left", "warnings"),
        "Look at `left`: secrets that the service made and that the folder has otherwise, and what the folder made and "
        "has no more.",
    ),
    Line(
        "folder left to the node that leads",
        "info",
        ("folder",),
        "Nothing. After SIGHUP: send it to the node that leads, which `sys/leader` names.",
    ),
    Line(
        "folder not applied",
        "error",
        ("folder", *FAILURE),
        "Mend what `reason` names: the server tries again each minute, and at once when it gets SIGHUP.",
    ),
    Line(
        "library",
        "warning, error",
        ("logger", *FAILURE),
        "Something in the library that `logger` names. Its text is left out: it may hold secrets.",
    ),
    Line(
        "refused",
        "info",
        ("status", "code", "remote_address", *ADVICE),
        "The bytes that arrived were not a request that could be read.",
    ),
    Line("request failed", "error", FAILURE, _DEFECT),
    Line(
        "settings not reloaded",
        "error",
        ("reason",),
        "Mend what `reason` names, and send SIGHUP again. The old settings are in effect.",
    ),
    Line("settings reloaded", "info", (), "SIGHUP came, and the settings can be used."),
    Line(
        "settings that take a restart have changed",
        "warning",
        ("names",),
        "Restart for the settings in `names` to count.",
    ),
    Line(
        "undelivered answer not given back",
        "error",
        FAILURE,
        "Nothing: what a request created and its client did not receive is not revoked yet. The server tries again.",
    ),
    Line("unraisable error", "error", FAILURE, _DEFECT),
    Line(
        "unsafe",
        "warning",
        ("code", "reason"),
        "`reason` says what gives secrets away to others, or what was lost of the store. `init` refuses the former; a "
        "store that exists is served, and `sys/health` tells what mends or accepts it.",
    ),
    Line(
        "worker died",
        "error",
        ("worker", "pid", "code", "pause"),
        "Another is started after `pause` seconds. A negative `code` is the signal that ended it: 9 is often the "
        "kernel, out of memory.",
    ),
    Line("worker failed", "error", ("worker", *FAILURE), _DEFECT),
)
"""What the server itself tells."""


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
