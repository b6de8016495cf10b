"""Routes of FastAPI behind the tokens and policies of the service."""

# Without postponed annotations: FastAPI reads those of the dependency, whose types are imported in the function.

from collections.abc import Awaitable, Callable
from typing import Any, Final

from .calls import Called

TOKEN_HEADER: Final = "x-vault-token"
BEARER: Final = "bearer "
Call = Callable[..., Awaitable[Called]]


def required(call: Call, path: str, capability: str) -> Callable[[Any], Awaitable[list[str]]]:
    """Return a dependency that admits callers whose token has a capability at a path. It returns all that they have.

    Without a valid token, it answers 401; without the capability, 403.
    """
    from fastapi import HTTPException
    from starlette.requests import Request

    async def capabilities(request: Request) -> list[str]:
        authorization = request.headers.get("authorization", "")
        token = authorization[len(BEARER) :] if authorization.lower().startswith(BEARER) else ""
        token = request.headers.get(TOKEN_HEADER) or token.strip()
        challenge = {"www-authenticate": "Bearer"}
        if not token:
            raise HTTPException(401, "a token is needed", challenge)
        answer = await call("POST", "sys/capabilities-self", {"paths": [path]}, token=token)
        if answer.status in (400, 403):
            raise HTTPException(401, "the token is not valid", {"www-authenticate": 'Bearer error="invalid_token"'})
        if not answer.is_done:
            raise HTTPException(503, "the token cannot be checked")
        found: list[str] = answer.data.get("capabilities", [])
        if not {capability, "root"} & set(found):
            raise HTTPException(403, f"the token may not {capability} {path}")
        return found

    return capabilities
