"""Exchange: one request and its answer, as far as they are known, for dispatch, events, audit devices and programs."""

from __future__ import annotations

from collections.abc import Container, Hashable, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from ..audit import AuditContext, Entries
from ..deadline import Deadline
from ..effects import Instant
from ..errors import Code, Refused
from ..events import Problem, RequestAnswered, RequestReceived
from ..forms import spellings_of
from ..messages import NO_HEADERS, NOTHING, Answer, Operation, Request, Response
from ..mounts import Mount, View
from ..tokens import Caller
from ..values import name, text
from .routes import Held, Proven, Route, may_read_config


class Exchange(msgspec.Struct, kw_only=True):
    """One request and all that dispatch has found out about it so far."""

    request: Request
    request_id: str
    seconds: float = 0.0
    """How long it may take."""
    tells_state: bool = False
    """Whether it requests the state of this node, which is returned even if the store does not answer."""
    given_up: Refused | None = None
    """Why the host ended the work, if not because of the deadline."""
    is_late: bool = False
    """Whether its time is over. From then on, the store is not used."""
    is_cut_short: bool = False
    """Whether it ended before this node's own limit, because its caller set a shorter deadline or the host gave it up.

    Then the timeout shows nothing about the store or the audit devices, and health does not change.
    """
    time: Instant = 0.0
    """When it arrived."""
    operation: Operation | None = None
    """`None` until its method and target are parsed. Until then, the next fields are empty, too."""
    path: str = ""
    """Without a trailing slash."""
    shown_path: str = ""
    """The path for logs and audit."""
    query: Mapping[str, Any] = {}
    ends_in_slash: bool = False
    is_head: bool = False
    wants_help: bool = False
    mount: Mount | None = None
    route: Route | None = None
    captures: Mapping[str, str] = {}
    dead_end: Refused | None = None
    """Why the path has no route. Reported only to a caller whose token may use the path."""
    view: View | None = None
    """The store entries that it depends on."""
    body: Mapping[str, Any] = {}
    """Its parameters. Empty until its headers and body are parsed, as are the next fields."""
    token: str = ""
    """The text of the token in its headers, valid or not."""
    wrap_ttl: int = 0
    """TTL of the wrapped answer, in seconds. 0: it is not wrapped."""
    deadline: Deadline = Deadline(0.0)
    proven: Proven = msgspec.field(default_factory=Proven)
    """What is known of a login, once its mount has accepted the JWT."""
    held: Held = msgspec.field(default_factory=Held)
    """What it is about to create, noted before the commit."""
    role: str = ""
    """The role that it names."""
    counted_by: tuple[Hashable, ...] = ()
    """The quotas that have counted it. A request that starts again counts once."""
    headers: Mapping[str, str] = NO_HEADERS
    """Additional headers of its response."""
    is_executed: bool = False
    """Whether the program of its route was started."""
    caller: Caller | None = None
    """The caller, once the token is known to be valid."""
    caller_accessor: str = ""
    """The accessor of that token, if the request is audited."""
    unwrapped: Answer = NOTHING
    """The answer of the program."""
    answer: Answer | None = None
    """The answer to send: the program's, or the wrapping token's."""
    response: Response | None = None
    """What will be sent, once it is recorded."""
    trail: AuditContext | None = None
    """The audit devices and what they get, if the request is audited."""

    def __repr__(self) -> str:
        return f"<Exchange {self.request_id}>"

    @property
    def capability(self) -> str:
        """Return the capability that its operation needs."""
        return self.operation.capability if self.operation is not None else ""

    @property
    def fields(self) -> Container[str]:
        """Return the names of the fields in the form of its route."""
        return spellings_of(self.route.form) if self.route is not None else ()

    @property
    def is_login(self) -> bool:
        return self.route is not None and self.route.gives_token

    @property
    def is_of_known_caller(self) -> bool:
        """Return whether a token was verified: the caller's, or the JWT of a login."""
        return self.caller is not None or self.proven.principal_id != ""

    @property
    def may_know_provider_codes(self) -> bool:
        names_codes = self.route is not None and self.route.names_provider_codes
        return names_codes and may_read_config(self.caller, self.mount)

    @property
    def rests_on_view(self) -> bool:
        """Return whether its outcome is valid only if its view is not out of date."""
        return self.route is not None and self.route.rests_on_view

    def start_again(self) -> None:
        """Forget what was found under a view that is out of date, but not which quotas have counted the request."""
        self.proven, self.route = Proven(), None
        if self.trail is not None:
            self.trail.decision = None

    def hide_role(self, refusal: Code) -> None:
        """Leave the role out of the event of a refusal, if the caller may have invented it.

        A login names a role before its caller is known. Such a name must not become a label of metrics, and the event
        of a token that the mount does not accept must not depend on it. If the refusal says that the role does not
        exist, it stays, for operators who look for a misspelled name.
        """
        if not self.proven.principal_id or (self.proven.lacks_role and refusal is not Code.ROLE_NOT_FOUND):
            self.role = ""

    def received(self, audit: Entries | None) -> RequestReceived:
        """Return the event before the request is executed."""
        mount, token = self.mount, self.caller.token if self.caller is not None else None
        return RequestReceived(
            request_id=self.request_id,
            time=self.time,
            operation=self.capability,
            path=self.shown_path,
            mount_accessor=mount.accessor if mount is not None else "",
            remote_address=self.request.remote_address,
            token_id=token.id if token is not None else "",
            display_name=token.display_name if token is not None else "",
            policies=token.policies if token is not None else (),
            audit=audit,
        )

    def answered(self, response: Response, audit: Entries | None = None) -> RequestAnswered:
        """Return the event of the answer."""
        mount, token = self.mount, self.caller.token if self.caller is not None else None
        operation, auth, proven = self.operation, self.unwrapped.auth, self.proven
        return RequestAnswered(
            request_id=self.request_id,
            time=self.time,
            status=response.status,
            operation=operation.capability if operation is not None else "",  # not `capability`: a login saves the call
            path=self.shown_path,
            mount=mount.path if mount is not None else "",
            mount_accessor=mount.accessor if mount is not None else "",
            role=self.role,
            remote_address=self.request.remote_address,
            principal_id=proven.principal_id,
            resource_id=proven.resource_id,
            token_id=token.id if token is not None else "",
            display_name=token.display_name if token is not None else "",
            codes=response.codes,
            accessor=auth.accessor if auth is not None else "",
            lease_id=self.unwrapped.lease_id,
            problem=Problem.of(response.failure) if response.failure else None,
            audit=audit,
        )


def role_in(route: Route, captures: Mapping[str, str], body: Mapping[str, Any]) -> str:
    """Return the role that a request names, if the name is valid. Any other text could be a secret.

    The name may be a number or a boolean, as in the field itself.
    """
    named = body.get(route.role_field) if route.role_field else captures.get("name")
    if named is None or named == "":  # most requests name none, and an exception is slow
        return ""
    try:
        return _known_name(named if type(named) is str else text(named))
    except ValueError:
        return ""


_known_name: Final = lru_cache(maxsize=1024)(name)
"""Many requests name few roles. Only valid names are cached, and they are short."""
