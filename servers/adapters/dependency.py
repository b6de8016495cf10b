"""Routes of FastAPI behind the tokens and policies of the service."""

# Without postponed annotations: FastAPI reads those of the dependency, whose types are imported in the function.

from collections.abc import Awaitable, Callable
from typing import Any, Final

from cloudid_core.policies.document import CAPABILITIES

from .calls import Called, Caller

TOKEN_HEADER: Final = "x-vault-token"
BEARER: Final = "bearer "
Call = Callable[..., Awaitable[Called]]
GRANTED: Final = frozenset(CAPABILITIES) - {"deny", "scan", "recover", "subscribe"}
"""The capabilities that let a request pass."""


def required(call: Call, path: str, capability: str) -> Callable[[Any], Awaitable[list[str]]]:
    """Return a dependency that admits callers whose token has a capability at a path. It returns all that they have.

    Without a valid token, it answers 401; without the capability, 403. Raises `ValueError` for a path or a capability
    that no policy can grant.
    """
    if capability not in GRANTED:
        raise ValueError(f"capability must be one of {', '.join(sorted(GRANTED))}")
    if path.startswith("v1/") or {"", ".", ".."} & set(path.strip("/").split("/")):
        raise ValueError("path must be below /v1/, without empty and relative segments")
    from fastapi import HTTPException
    from starlette.requests import Request

    async def capabilities(request: Request) -> list[str]:
        authorization = request.headers.get("authorization", "")
        token = authorization[len(BEARER) :] if authorization.lower().startswith(BEARER) else ""
        token = request.headers.get(TOKEN_HEADER) or token.strip()
        challenge = {"www-authenticate": "Bearer"}
        if not token:
            raise HTTPException(401, "a token is needed", challenge)
        peer = request.client.host if request.client else ""
        caller = Caller(peer, ", ".join(request.headers.getlist("x-forwarded-for")))
        answer = await call("POST", "sys/capabilities-self", {"paths": [path]}, token=token, caller=caller)
        if answer.status in (400, 403):
            raise HTTPException(401, "the token is not valid", {"www-authenticate": 'Bearer error="invalid_token"'})
        if answer.status == 429:
            raise HTTPException(429, "too many requests", {"retry-after": answer.headers.get("retry-after", "1")})
        if not answer.is_done:
            raise HTTPException(503, "the token cannot be checked")
        found: list[str] = answer.data.get("capabilities", [])
        if not {capability, "root"} & set(found):
            raise HTTPException(403, f"the token may not {capability} {path}")
        return found

    return capabilities
