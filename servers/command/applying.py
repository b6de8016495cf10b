"""A server applies a folder itself: when its node begins to lead the background work, and when it gets SIGHUP."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from attrs import field, frozen
from structlog.typing import FilteringBoundLogger

from cloudid_core.effects import HttpRequest, HttpResponse
from cloudid_core.events import Event, LeadershipTaken
from cloudid_core.health import HealthProblem
from cloudid_core.run import run
from cloudid_core.service import Service
from cloudid_core.values.secret import Secret

from ..client import Address, ServiceRefused
from ..client import Service as Client
from ..folders import ServersSecrets, Source, carry_out, plan
from ..host import App, Host
from ..http1 import Head
from ..logs import describe_error
from ..settings import ServerSettings

NAME: Final = "apply"
"""What audit entries show of the token."""
HERE: Final = "127.0.0.1"
HOST: Final = "(the server)"
"""In the record of a folder: whichever node leads applies it."""
TOKEN_SECONDS: Final = 3600
RETRY_SECONDS: Final = 60.0
FORBIDDEN: Final = 403


class Elsewhere(Exception):
    """Another node leads."""


@frozen
class _InProcess(Client):
    """The service of this process, as a thread asks it."""

    send_to: Callable[[HttpRequest], HttpResponse] = field(kw_only=True)

    def send(self, request: HttpRequest) -> HttpResponse:
        return self.send_to(request)


class Applying:
    """Applies the folder of the settings, in a thread, each time that it is asked to. One that fails is tried again."""

    def __init__(
        self, server: ServerSettings, app: App, host: Host, service: Service, log: FilteringBoundLogger
    ) -> None:
        self._server = server
        self._app = app
        self._host = host
        self._service = service
        self._log = log
        self._asked = host.new_event()
        host.sinks.append(self._note)
        host.start(self._run)

    def ask(self) -> None:
        """Have the folder applied once more, after what is under way."""
        self._asked.set()

    def _note(self, event: Event) -> None:
        if isinstance(event, LeadershipTaken):
            self.ask()

    async def _run(self) -> None:
        while True:
            await self._asked.wait()
            self._asked = self._host.new_event()
            if not await self._is_settled():
                await self._host.wait(self._asked, RETRY_SECONDS)
                self.ask()

    async def _is_settled(self) -> bool:
        """Apply the folder; whether there is nothing to try again."""
        folder = self._server.apply_folder
        try:
            token = await run(self._service.make_token(NAME, self._server.apply_policies, TOKEN_SECONDS), self._host)
            await self._host.in_thread(self._apply, token)
        except Elsewhere:
            self._log.info("folder left to the node that leads", folder=folder)
        except Exception as error:  # noqa: BLE001  # the server continues, and health reports it
            failure = describe_error(error)
            failure["reason"] = self._reason(error, failure.get("reason", failure["error"]))
            self._log.error("folder not applied", folder=folder, **failure)
            self._tell(failure["reason"])
            return False
        self._tell("")
        return True

    def _reason(self, error: Exception, text: str) -> str:
        """What failed, and where; what is not permitted is not to the policies that the folder is applied with."""
        if not isinstance(error, ServiceRefused):
            return text
        is_denied = error.status == FORBIDDEN
        denied_to = f" to the policies {', '.join(self._server.apply_policies)}" if is_denied else ""
        return f"{error.about or error.path}: {text}{denied_to}"

    def _tell(self, reason: str) -> None:
        """Let health tell why the folder is not applied; empty: it is, or it is for another node to tell."""
        told = [{"folder": self._server.apply_folder, "reason": reason}] if reason else []
        self._service.context.node.note(HealthProblem.FOLDER_NOT_APPLIED, told)

    def _apply(self, token: Secret) -> None:
        """In a thread. Writers of the folder get no secret of the server that `apply_secrets` does not hold."""
        server = self._server
        asked = _InProcess(Address(""), token, send_to=self._send)
        source = Source(folder=Path(server.apply_folder), host=HOST, id=server.apply_folder_id)
        todo = plan(asked, source, ServersSecrets(server.apply_secrets), prunes=server.apply_prune)
        warnings: list[str] = []
        carry_out(asked, todo, warnings.append)
        left = [*todo.withheld, *todo.left]
        log = self._log.warning if left or warnings else self._log.info
        log(
            "folder applied",
            folder=self._server.apply_folder,
            written=len(todo.changes),
            removed=len(todo.removed),
            unchanged=todo.unchanged,
            left=left,
            warnings=warnings,
        )

    def _send(self, request: HttpRequest) -> HttpResponse:
        return self._host.from_thread(partial(self._answer, request))

    async def _answer(self, request: HttpRequest) -> HttpResponse:
        """On the event loop. Raises `Elsewhere` once another node leads, which applies the folder itself."""
        if not await run(self._service.leads(), self._host):
            raise Elsewhere
        head = Head(request.method, request.url, request.headers, closes=False, length=len(request.body))
        response = await self._app.answer_in_time(self._app.begin(head, request.body, HERE))
        return HttpResponse(response.status, response.headers, response.body)
