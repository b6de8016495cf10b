"""Cases against the roles of a server, by its `explain`."""

from __future__ import annotations

from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from ssl import create_default_context
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from cloudid_core.errors import CloudidError
from cloudid_core.values.secret import Secret

from .cases import Case
from .verdict import Verdict

TIMEOUT: Final = 60.0
"""Seconds that a server may take for one case."""
LONGEST_ANSWER: Final = 1 << 22
"""Bytes."""


class ServerError(CloudidError):
    """The server could not be asked, or did not answer the question."""


class Online:
    """Asks a server. The token needs `update` and `sudo` at `<mount>/explain`. No redirect is followed."""

    def __init__(self, server: str, mount: str, token: Secret, ca_file: str = "") -> None:
        parts = urlsplit(server)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ServerError("the server's address must start with http:// or https://")
        self._parts = parts
        self._path = f"{parts.path.rstrip('/')}/v1/{mount.strip('/')}/explain"
        self._token = token
        self._ca_file = ca_file

    def decide(self, case: Case) -> Verdict:
        status, answer = self._post(case.body)
        if status == 200:
            return Verdict.of(answer["data"])
        if status in (400, 403) and "permission_denied" not in answer.get("codes", ()):
            return Verdict.of_refusal(answer.get("codes", ()), "; ".join(answer.get("errors", ())))
        raise ServerError(f"the server answered {status}: {'; '.join(answer.get('errors', ()))}")

    def _post(self, body: dict[str, Any]) -> tuple[int, Any]:
        headers = {"x-service-token": self._token.reveal(), "content-type": "application/json"}
        try:
            with closing(self._connection()) as connection:
                connection.request("POST", self._path, msgspec.json.encode(body), headers)
                response = connection.getresponse()
                answer = msgspec.json.decode(response.read(LONGEST_ANSWER))
        except (OSError, HTTPException, msgspec.DecodeError, ValueError) as error:
            raise ServerError(f"the server could not be asked: {type(error).__name__}") from None
        if not isinstance(answer, dict):
            raise ServerError("the server answered something else than an object")
        return response.status, answer

    def _connection(self) -> HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "http":
            return HTTPConnection(host, port, timeout=TIMEOUT)
        context = create_default_context(cafile=self._ca_file or None)
        return HTTPSConnection(host, port, timeout=TIMEOUT, context=context)
