"""The service as a client asks it: where it is, one request, and its refusals."""

from __future__ import annotations

import math
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec
from attrs import field, frozen

from cloudid_core.applied import HEADER as FOLDER_HEADER
from cloudid_core.effects import HttpRequest, HttpResponse
from cloudid_core.errors import CloudidError
from cloudid_core.values import coercion, duration
from cloudid_core.values.secret import Secret

from .. import web

T = TypeVar("T")

DEFAULT_ADDRESS: Final = "http://127.0.0.1:8200"
DEFAULT_TIMEOUT: Final = 100.0
"""Seconds: longer than the service works on a request, 90 by default, so that its answer is not missed."""
RETRIES: Final = 2
RETRIED: Final = frozenset({429, 503})
"""Answers of a service that is too busy. What it began for a request that it then refused, it undoes by itself."""
SHORTEST_PAUSE: Final = 1.0
PORTS: Final = {"http": 80, "https": 443}
ROOT_NAMESPACES: Final = frozenset({"", "root", "root/", "/"})


class SettingsRefused(CloudidError):
    """What the environment or an option says of the service cannot be used."""


class ServiceRefused(CloudidError):
    """The service answered with an error. `codes` and `errors` go together; a proxy in between answers neither.

    `document` is all that was answered: health also reports problems if it cannot serve requests.
    """

    def __init__(
        self, status: int, errors: tuple[str, ...], codes: tuple[str, ...], document: Mapping[str, Any]
    ) -> None:
        self.status = status
        self.errors = errors
        self.codes = codes
        self.document = document
        self.path = ""
        """The path that was requested."""
        self.about = ""
        """The path of the refused request, if several are sent at a time."""
        super().__init__("; ".join(errors) or f"it answered {status}")


class RequestInterrupted(KeyboardInterrupt):
    """Ctrl-C ended the wait for an answer."""

    def __init__(self, method: str, path: str) -> None:
        self.method, self.path = method, path.strip("/")
        super().__init__()


Watch = Callable[[str], AbstractContextManager[Callable[[str], None]]]
"""Shows a person what is awaited; the function that it yields adds a remark."""


def _unwatched(what: str) -> AbstractContextManager[Callable[[str], None]]:
    return nullcontext(lambda remark: None)


@frozen
class Address:
    """Where the service is, and how it is asked."""

    url: str
    tls: ssl.SSLContext | None = field(default=None, repr=False, eq=False)
    timeout: float = DEFAULT_TIMEOUT
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, variables: Mapping[str, str], given: str = "", remembered: str = "") -> Address:
        """What the environment says; `given`: an address that counts before it, `remembered`: one that counts where
        neither names any. `/v1` at its end is not part of it.

        `CLOUDID_ADDR`, `_CACERT`, `_SKIP_VERIFY` and `_CLIENT_TIMEOUT` count before the same names with `VAULT`. Raises
        `SettingsRefused`.
        """

        def variable(name: str) -> str:
            return f"CLOUDID_{name}" if variables.get(f"CLOUDID_{name}") else f"VAULT_{name}"

        def said(name: str) -> str:
            return variables.get(variable(name), "")

        def read(name: str, rule: str, use: Callable[[str], T]) -> T:
            try:
                return use(said(name))
            except (OSError, ValueError):
                raise SettingsRefused(f"{variable(name)} must {rule}") from None

        if said("NAMESPACE") not in ROOT_NAMESPACES:
            raise SettingsRefused("cloudid has no namespaces: unset VAULT_NAMESPACE")
        url = (given or said("ADDR") or remembered or DEFAULT_ADDRESS).rstrip("/").removesuffix("/v1")
        if not is_address(url):
            source = "--address" if given else variable("ADDR")
            raise SettingsRefused(f"{source} must be a URL, like https://cloudid.example:8200")
        skips = read("SKIP_VERIFY", "be true or false", lambda text: coercion.boolean(text or False))
        seconds = read(
            "CLIENT_TIMEOUT",
            "be a duration, like 30s or 2m",
            lambda text: float(duration.seconds(text)) if text else DEFAULT_TIMEOUT,
        )
        tls = read("CACERT", "name a readable file of certificates", lambda text: web.authorities(url, text or None))
        if skips:
            tls.check_hostname = False
            tls.verify_mode = ssl.CERT_NONE
        insecure = "the certificate is not verified" if skips else "" if web.is_private(url) else "the URL is not https"
        warnings = (f"tokens are not protected on their way to the service: {insecure}",) if insecure else ()
        return cls(url, tls, seconds or DEFAULT_TIMEOUT, warnings)


def is_address(url: str) -> bool:
    """Return whether this can be the address of a service."""
    try:
        parts = urlsplit(url)
        return parts.scheme in PORTS and bool(parts.hostname) and parts.port != 0 and not parts.username
    except ValueError:
        return False


def is_same_address(one: str, other: str) -> bool:
    """Return whether two addresses are the same one, written differently or not."""
    return _parts(one) == _parts(other)


def _parts(url: str) -> tuple[str, str, int, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or PORTS[parts.scheme], parts.path.rstrip("/")


@frozen
class Service:
    """Asks the service, with one token."""

    address: Address
    token: Secret = field(factory=Secret)
    pause: Callable[[float], None] = time.sleep
    wrap_ttl: str = ""
    """For how long each answer is wrapped; empty: it is not."""
    folder_id: str = ""
    """The applied folder that writes and deletions are for; empty: none."""
    watch: Watch = field(default=_unwatched, repr=False, eq=False)

    def read(self, path: str, **query: str) -> dict[str, Any]:
        """As `ask`, with GET."""
        return self.ask("GET", path, query=query)

    def write(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """As `ask`, with POST."""
        return self.ask("POST", path, body)

    def ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, query: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The answer of a request that succeeded, sent again while the service is too busy for it.

        `path`: below `/v1/`. Raises `ServiceRefused`, `web.Unreachable`, and `RequestInterrupted` for Ctrl-C.
        """
        url = f"{self.address.url}/v1/{quote(path.strip('/'))}" + (f"?{urlencode(query, doseq=True)}" if query else "")
        headers = {"x-service-token": self.token.reveal()} if self.token else {}
        if self.wrap_ttl:
            headers["x-service-wrap-ttl"] = self.wrap_ttl
        if self.folder_id:
            headers[FOLDER_HEADER] = self.folder_id
        content = b"" if body is None else msgspec.json.encode(body)
        request = HttpRequest(method, url, headers, content)
        try:
            with self.watch(f"{path.strip('/')} at {self.address.url}") as remark:
                return _read(self._answered(request, remark), path)
        except KeyboardInterrupt:
            raise RequestInterrupted(method, path) from None

    def _answered(self, request: HttpRequest, remark: Callable[[str], None]) -> HttpResponse:
        """The answer of the last try."""
        for number in range(1, RETRIES + 1):
            remark(f"try {number} of {RETRIES + 1}")
            response = self.send(request)
            wait = _retry_after(response)
            if response.status not in RETRIED or wait > self.address.timeout:
                return response
            remark(f"try {number + 1} of {RETRIES + 1} after {wait:.0f} s: it answered {response.status}")
            self.pause(wait)
        remark(f"try {RETRIES + 1} of {RETRIES + 1}")
        return self.send(request)

    def send(self, request: HttpRequest) -> HttpResponse:
        """One request, and its answer, whatever that is. Raises `web.Unreachable`."""
        return web.send(request, self.address.timeout, tls=self.address.tls)


def _retry_after(response: HttpResponse) -> float:
    """Seconds until the next try. Only a service that says so is asked again: infinity."""
    try:
        seconds = float(response.headers["retry-after"])
    except (KeyError, ValueError):
        return math.inf
    return max(seconds, SHORTEST_PAUSE) if math.isfinite(seconds) else math.inf


def _read(response: HttpResponse, path: str) -> dict[str, Any]:
    document = web.document(response)
    if 200 <= response.status < 300:
        if response.body and not document:
            raise web.Unreachable("a different service answers at this address")
        return document
    said = (document.get(name) for name in ("errors", "codes"))
    errors, codes = (tuple(map(str, each)) if isinstance(each, list) else () for each in said)
    code = response.headers.get("x-service-error-code", "")
    refusal = ServiceRefused(response.status, errors, codes or ((code,) if code else ()), document)
    refusal.path = path.strip("/")
    raise refusal
