"""A place on the web that takes documents by PUT from whoever has its credential, and tells everybody its tags."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from cloudid_core.effects import HttpRequest, HttpResponse
from cloudid_core.testing.conformance import Scripted

HEADER: Final = "s3cret-of-the-header"
QUERY: Final = "?sig=s3cret-of-the-query"
CREDENTIAL: Final = f"{QUERY}\nAuthorization: Bearer {HEADER}\nx-ms-blob-type: BlockBlob\n"


class Shelf:
    """Answers requests as a store of objects does (RFC 9110, section 13.1)."""

    def __init__(self, *, tells_tags: bool = True) -> None:
        self.documents: dict[str, bytes] = {}
        self.status = 0
        """What every PUT is answered with, if it is not 0."""
        self._tells_tags = tells_tags

    def __call__(self, request: HttpRequest) -> Scripted:
        headers = {name.lower(): value for name, value in request.headers.items()}
        url, query = request.url.partition("?")[::2]
        path = "/" + url.partition("://")[2].partition("/")[2]
        there = self.documents.get(path)
        tag = f'"{sha256(there).hexdigest()}"' if there is not None else ""
        if request.method == "GET":
            found = {"etag": tag} if self._tells_tags else {"etag": f"W/{tag}"}
            return Scripted(HttpResponse(404) if there is None else HttpResponse(200, found, there))
        if (headers.get("authorization"), f"?{query}") != (f"Bearer {HEADER}", QUERY):
            return Scripted(HttpResponse(403))
        if self.status:
            return Scripted(HttpResponse(self.status, {"location": "/elsewhere"}))
        if (headers.get("if-none-match") == "*" and there is not None) or headers.get("if-match", tag) != tag:
            return Scripted(HttpResponse(412))
        self.documents[path] = request.body
        return Scripted(HttpResponse(201))
