"""Services of tests: they answer requests, and have no deadline but that of each request."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

from cloudid_core.dispatch import Exchange
from cloudid_core.effects import Program
from cloudid_core.errors import Code, Refused
from cloudid_core.messages import patience
from cloudid_core.messages.response import Request, Response, render_refusal
from cloudid_core.routing import Held, Proven

FOR_EVER: Final = 10.0**9


class Handling(ABC):
    """What a host asks of a service, by way of `handle`."""

    @abstractmethod
    def handle(self, request: Request) -> Program[Response]: ...

    def begin(self, request: Request) -> Exchange:
        """Any token counts as verified."""
        proven = Proven(principal_id=request.headers.get("x-vault-token", ""))
        return Exchange(request=request, request_id="", seconds=patience(request.headers, FOR_EVER), proven=proven)

    def work_on(self, exchange: Exchange) -> Program[Response]:
        return self.handle(exchange.request)

    async def give_back(self, held: Held) -> None:
        """It creates nothing."""
        assert not held

    async def answer_late(self, exchange: Exchange) -> Response:
        return render_refusal(exchange.given_up or Refused(Code.DEADLINE_PASSED))
