"""The recorder: a line for each call of the core to the provider, which keeps the shape of the answer and no value.

A line keeps words that we or the provider's interface chose: known segments of a path, names of members, codes, types,
the words of closed vocabularies (such as `AzureADMyOrg`), and whether a resource id has `/resourcegroups/` in lower
case. A GUID becomes a pseudonym, the same throughout a transcript; every other text becomes the word `text`.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from attrs import define, field

from cloudid_core.clouds import Cloud
from cloudid_core.effects import HttpRequest, HttpResponse
from cloudid_core.errors import CloudidError, ProviderUnreachable
from cloudid_core.provider.responses import problem_of

from ..machine import why_unreadable
from .evidence import vocabulary

LONGEST: Final = 1 << 24
MOST_LINES: Final = 10_000
HEADERS: Final = re.compile("retry-after|content-type|x-ms-ratelimit-remaining-[a-z-]+")
VALUE: Final = re.compile(r"[0-9]{1,9}|application/json(; ?[a-z.=0-9-]+)*", re.IGNORECASE)
CODE: Final = re.compile("[A-Za-z][A-Za-z0-9_.]{0,63}")
MEMBER: Final = re.compile(r"[@$A-Za-z][\w@$#.-]{0,63}")
OPEN: Final = frozenset({"tags", "userAssignedIdentities"})
"""Members whose own members are names from the tenant."""
SEGMENT: Final = re.compile(
    r"v\d\.\d|common|oauth2|token|\.well-known|openid-configuration|discovery|keys|applications|servicePrincipals|directory"
    r"|deletedItems|groups|members|memberOf|\$ref|microsoft\.graph\.\w+|addPassword|removePassword|getMemberGroups|owners"
    r"|federatedIdentityCredentials|subscriptions|resourceGroups|providers|permissions|role(Assignments|Definitions)"
    r"|roleManagement|appRoleAssignedTo|appRoleAssignments|directoryObjects"
    r"|virtualMachines|virtualMachineScaleSets|userAssignedIdentities|checkMemberGroups|permanentDelete"
    r"|Microsoft\.(Authorization|Compute|ManagedIdentity|Resources|Web|HybridCompute)",
    re.IGNORECASE,
)
KEYED: Final = re.compile(r"(\w+)\((\w+)='.*'\)")
GROUP: Final = re.compile("/resourcegroups/", re.IGNORECASE)
GUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
OURS: Final = frozenset({"api-version", "$top", "$select", "$count", "grant_type"})
"""Parameters whose values cloudid chooses, and that identify no one."""


class TranscriptRefused(CloudidError):
    """A transcript cannot be read."""


@define
class Recorder:
    """Writes what a cloud answers. `step`: what is being done."""

    cloud: Cloud
    write: Callable[[dict[str, Any]], None]
    step: str = ""
    _names: dict[str, str] = field(factory=dict, repr=False)

    def around(
        self, send: Callable[[HttpRequest, float], Coroutine[Any, Any, HttpResponse]]
    ) -> Callable[[HttpRequest, float], Coroutine[Any, Any, HttpResponse]]:
        """The effect of a call to the provider, which is recorded."""

        async def call_provider(request: HttpRequest, timeout: float) -> HttpResponse:
            step, started = self.step, time.monotonic()
            try:
                response = await send(request, timeout)
            except ProviderUnreachable:
                self.write({"step": step, **self._asked(request), "status": None})
                raise
            seconds = round(time.monotonic() - started, 3)
            self.write({"step": step, **self._asked(request), **self._answered(response), "seconds": seconds})
            return response

        return call_provider

    def _asked(self, request: HttpRequest) -> dict[str, Any]:
        bases = {"login": self.cloud.login, "arm": self.cloud.resource_manager, "graph": self.cloud.directory}
        api, base = next(((api, base) for api, base in bases.items() if request.url.startswith(base)), ("other", ""))
        parts = urlsplit(request.url.removeprefix(base))
        query = self._parameters(parts.query)
        path = "/".join(self._segment(unquote(segment)) for segment in parts.path.split("/"))
        return {"method": request.method, "api": api, "path": path, "query": query, "request": self._body(request)}

    def _segment(self, segment: str) -> str:
        if not segment or SEGMENT.fullmatch(segment):
            return segment
        if keyed := KEYED.fullmatch(segment):
            return f"{keyed[1]}({keyed[2]})"
        return self._pseudonym("id" if GUID.fullmatch(segment) else "name", segment)

    def _pseudonym(self, kind: str, text: str) -> str:
        return self._names.setdefault(text.lower(), f"{kind}-{len(self._names) + 1}")

    def _body(self, request: HttpRequest) -> Any:
        if not request.body:
            return None
        try:
            return self.shape(json.loads(request.body))
        except (ValueError, RecursionError):
            return self._parameters(request.body.decode("latin-1"))

    def _parameters(self, text: str) -> dict[str, Any]:
        given = [(name, value) for name, value in parse_qsl(text) if MEMBER.fullmatch(name)]
        return {name: value if name in OURS else self.shape(value) for name, value in given}

    def _answered(self, response: HttpResponse) -> dict[str, Any]:
        headers = {
            name: value if VALUE.fullmatch(value) else "text"
            for name, value in sorted(response.headers.items())
            if HEADERS.fullmatch(name)
        }
        try:
            body = self.shape(json.loads(response.body)) if response.body else None
        except (ValueError, RecursionError):
            body = "no JSON"
        said: dict[str, Any] = {"status": response.status, "headers": headers, "answer": body}
        if response.status >= 400:
            code = problem_of(response, time.time()).code
            said["code"] = code if CODE.fullmatch(code) else "text"
        return said

    def shape(self, value: object, member: str = "") -> Any:
        """What a value is like; `member` has it. A list is like its first element."""
        match value:
            case dict():
                is_open = {name for name, each in value.items() if name in OPEN and isinstance(each, dict)}
                shown = {name: {} if name in is_open else self.shape(each, name) for name, each in value.items()}
                return {name: each for name, each in shown.items() if MEMBER.fullmatch(name) and not GUID.search(name)}
            case list():
                return [self.shape(each, member) for each in value[:1]]
            case str():
                return self._text(value, member)
            case bool():
                return "boolean"
            case None:
                return None
            case _:
                return "number"

    def _text(self, value: str, member: str) -> str:
        if value in vocabulary().get(member, ()):
            return value
        if GUID.fullmatch(value):
            return self._pseudonym("id", value)
        group = GROUP.search(value) if value.startswith("/") else None
        return f"text{group[0].rstrip('/')}" if group else "text"


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a transcript. Raises `TranscriptRefused`."""
    try:
        if path.stat().st_size > LONGEST:
            raise TranscriptRefused(f"{path} is longer than {LONGEST} bytes")
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    except (OSError, ValueError, RecursionError) as error:
        raise TranscriptRefused(f"{path} cannot be read: {why_unreadable(error)}") from None
    named = ("step", "method", "api", "path")
    if len(lines) > MOST_LINES or not all(
        isinstance(line, dict) and all(isinstance(line.get(name), str) for name in named) for line in lines
    ):
        raise TranscriptRefused(f"{path} is not a transcript")
    yield from lines
