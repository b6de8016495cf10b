"""Where the issuers' documents are published: a folder that a web server serves, or an address that accepts PUT.

The folder or address corresponds to the issuer's public address. An older document never replaces a newer one: a folder
is locked during the write, and an address receives `If-Match` if its responses have an `ETag`.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import IO, Final

from attrs import field, frozen

from cloudid_core.effects import Document, HttpRequest, HttpResponse
from cloudid_core.errors import ProviderUnreachable, PublicationFailed
from cloudid_core.values.secret import Secret

TIMEOUT: Final = 8.0
"""Maximum seconds of a request."""
LOCK_SECONDS: Final = 2.0
"""Seconds that a document waits while others are written into the same folder."""
LOCK_PAUSE: Final = 0.02
LARGEST: Final = 2**20
LARGEST_CREDENTIAL: Final = 2**14
_HEADER: Final = re.compile(r"([A-Za-z0-9-]+):[ \t]*([!-~][ -~]*)")

Fetch = Callable[[HttpRequest, float], Awaitable[HttpResponse]]


@frozen
class Folder:
    """A folder in which documents are files."""

    path: Path

    def read(self, name: str) -> Document | None:
        """Read a document. Raises `PublicationFailed`."""
        try:
            with (self.path / name).open("rb") as file:
                body = file.read(LARGEST)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise PublicationFailed(f"{self.path / name} cannot be read: {error.strerror}") from None
        return Document(body, sha256(body).hexdigest())

    def write(self, name: str, body: bytes, replaces: Document | None) -> None:
        """Write a document completely or not at all. Raises `PublicationFailed`."""
        file = self.path / name
        try:
            for part in reversed(file.relative_to(self.path).parents[:-1]):
                if not (self.path / part).is_dir():
                    (self.path / part).mkdir(exist_ok=True)
                    (self.path / part).chmod(0o755)  # everybody may read them, whatever the umask
            with (self.path / ".lock").open("ab") as lock:
                _take(lock)
                if self.read(name) != replaces:
                    raise PublicationFailed("another process has published a different document")
                _replace(file, body)
        except OSError as error:
            raise PublicationFailed(f"{file} cannot be written: {error.strerror}") from None


def _take(lock: IO[bytes]) -> None:
    """Wait for the lock, because both issuers and other servers publish at the same time. Raises `OSError`."""
    until = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= until:
                raise
            time.sleep(LOCK_PAUSE)


def _replace(file: Path, body: bytes) -> None:
    fresh = file.with_name(f".{file.name}.new")
    with suppress(FileNotFoundError):
        fresh.unlink()
    with fresh.open("xb") as written:
        written.write(body)
        os.fchmod(written.fileno(), 0o644)
        written.flush()
        os.fsync(written.fileno())
    fresh.replace(file)


@frozen
class Address:
    """An address below which documents are read by GET and written by PUT. Redirects are not followed."""

    url: str
    credential_file: str
    """A file with header lines, or with a query that begins with `?`. It is read for each request.

    Empty if none is needed.
    """
    fetch: Fetch = field(repr=False)

    async def read(self, name: str) -> Document | None:
        """Read a document. Raises `PublicationFailed`."""
        response = await self._ask("GET", name, {}, b"")
        if response.status == 404:
            return None
        if response.status != 200:
            raise PublicationFailed(f"GET was answered with status {response.status}")
        tag = response.headers.get("etag", "")
        return Document(response.body, "" if tag.startswith("W/") else tag)  # If-Match takes no weak ones

    async def write(self, name: str, body: bytes, replaces: Document | None) -> None:
        """Write a document. Raises `PublicationFailed`."""
        headers = {"content-type": "application/json"}
        if replaces is None:
            headers["if-none-match"] = "*"
        elif replaces.tag:
            headers["if-match"] = replaces.tag
        status = (await self._ask("PUT", name, headers, body)).status
        if status in (409, 412):
            raise PublicationFailed("another process has published a different document")
        if not 200 <= status < 300:
            raise PublicationFailed(f"PUT was answered with status {status}")

    async def _ask(self, method: str, name: str, headers: dict[str, str], body: bytes) -> HttpResponse:
        query, own = credential_in(self.credential_file)
        revealed = {key: value.reveal() for key, value in own.items()}
        request = HttpRequest(method, f"{self.url}/{name}{query.reveal()}", {**headers, **revealed}, body)
        try:
            return await self.fetch(request, TIMEOUT)
        except ProviderUnreachable:
            raise PublicationFailed(f"{method} was not answered") from None


def credential_in(path: str) -> tuple[Secret, dict[str, Secret]]:
    """Return the query and the headers of a file. Raises `PublicationFailed`, without the contents of the file."""
    query, headers = Secret(), dict[str, Secret]()
    try:
        with open(path or os.devnull, "rb") as file:
            lines = file.read(LARGEST_CREDENTIAL).decode("ascii").splitlines()
    except (OSError, ValueError):
        raise PublicationFailed("publish_credential_file cannot be read") from None
    for line in filter(None, map(str.strip, lines)):
        if re.fullmatch(r"\?[!-~]+", line):
            query = Secret(line)
        elif header := _HEADER.fullmatch(line):
            headers[header[1].lower()] = Secret(header[2])
        else:
            raise PublicationFailed("publish_credential_file has a line that is neither a header nor a query")
    return query, headers
