"""The job of a login with FastAPI, PyJWT and SQLAlchemy: `python -m benchmarks.baselines.fastapi_sqlalchemy FILE`

It verifies the JWT, checks the bounds that the token proves, inserts a row for the service token durably, and answers.
The file is JSON: the key set of the tenant, audience, issuer, role, and the path of the SQLite database.
The handlers are `async def` and use SQLAlchemy's synchronous session: on a local file that is faster than its
asynchronous one, which takes every statement to a thread, and than handlers that run in threads themselves.
With `grouped` in the file, a thread commits the tokens of all logins that wait, together; the event loop goes on.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any, Final

import jwt
import uvicorn
from fastapi import FastAPI, Header, HTTPException
from pydantic import BaseModel
from sqlalchemy import JSON, Engine, create_engine, event
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

TTL: Final = 2_764_800


class Base(DeclarativeBase):
    pass


class Token(Base):
    """A service token, under its hash."""

    __tablename__ = "token"

    id: Mapped[str] = mapped_column(primary_key=True)
    accessor: Mapped[str] = mapped_column(unique=True)
    display_name: Mapped[str]
    policies: Mapped[list[str]] = mapped_column(JSON)
    meta: Mapped[dict[str, str]] = mapped_column(JSON)
    created_at: Mapped[float]
    expires_at: Mapped[float] = mapped_column(index=True)


class Login(BaseModel):
    role: str
    jwt: str
    subscription_id: str
    resource_group_name: str
    vm_name: str


class GroupedCommits:
    """Commits tokens in a thread: those that come while it waits for the disk are the next group."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._thread = ThreadPoolExecutor(1)
        self._waiting: list[Token] = []
        self._commit: asyncio.Task[None] | None = None

    async def add(self, token: Token) -> None:
        """Returns when the token is on the disk."""
        under_way = self._commit
        self._waiting.append(token)
        if under_way is not None and not under_way.done():
            await asyncio.wait([under_way])
        if token in self._waiting:  # the first of its group to come here commits all
            group, self._waiting = self._waiting, []
            self._commit = asyncio.create_task(self._write(group))
        assert self._commit is not None
        await self._commit

    async def _write(self, group: list[Token]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, insert, self._engine, group)


def insert(engine: Engine, tokens: list[Token]) -> None:
    with Session(engine) as session:
        session.add_all(tokens)
        session.commit()


def application(config: dict[str, Any], engine: Engine) -> FastAPI:
    app = FastAPI(openapi_url=None)
    keys = {key.key_id: key for key in jwt.PyJWKSet.from_dict(config["keys"]).keys}
    role = config["role"]
    commits = GroupedCommits(engine) if config["grouped"] else None

    @app.get("/v1/sys/health")
    async def health() -> dict[str, Any]:
        return {"initialized": True, "sealed": False, "standby": False, "server_time_utc": int(time.time())}

    @app.post("/v1/auth/cloud/login")
    async def log_in(form: Login) -> dict[str, Any]:
        try:
            key = keys[jwt.get_unverified_header(form.jwt)["kid"]]
            claims = jwt.decode(
                form.jwt, key, algorithms=["RS256"], audience=config["audience"], issuer=config["issuer"], leeway=60
            )
            check_bounds(claims, form, role)
        except (jwt.InvalidTokenError, KeyError, ValueError):
            raise HTTPException(403, "permission denied") from None
        client_token, accessor = secrets.token_urlsafe(32), secrets.token_urlsafe(16)
        now = time.time()
        token = Token(
            id=digest(client_token),
            accessor=accessor,
            display_name=f"cloud-{claims['oid']}",
            policies=["bench", "default"],
            meta={"role": form.role, "vm_name": form.vm_name, "resource_group_name": form.resource_group_name},
            created_at=now,
            expires_at=now + TTL,
        )
        if commits is not None:
            await commits.add(token)
        else:
            insert(engine, [token])
        auth = {"client_token": client_token, "accessor": accessor, "lease_duration": TTL, "renewable": True}
        return {"auth": auth | {"policies": ["bench", "default"], "token_type": "service"}}

    @app.get("/v1/auth/token/lookup-self")
    async def look_up(x_service_token: Annotated[str, Header()]) -> dict[str, Any]:
        with Session(engine) as session:
            token = session.get(Token, digest(x_service_token))
            if token is None or token.expires_at <= time.time():
                raise HTTPException(403, "permission denied")
            ttl = int(token.expires_at - time.time())
            data = {"accessor": token.accessor, "display_name": token.display_name, "policies": token.policies}
            return {"data": data | {"meta": token.meta, "creation_time": int(token.created_at), "ttl": ttl}}

    return app


def check_bounds(claims: dict[str, Any], form: Login, role: dict[str, list[str]]) -> None:
    """Raises `ValueError` when the claims are not what the role asks for, or not what the login names."""
    parts = claims["xms_mirid"].split("/")
    subscription, group, name = parts[2], parts[4], parts[-1]
    named = (form.subscription_id, form.resource_group_name, form.vm_name)
    if tuple(text.lower() for text in named) != (subscription.lower(), group.lower(), name.lower()):
        raise ValueError("the machine is another one")
    if subscription not in role["bound_subscription_ids"] or group not in role["bound_resource_groups"]:
        raise ValueError("the machine is out of bounds")
    if not set(claims["groups"]) & set(role["bound_group_ids"]):
        raise ValueError("the machine is in no group that is bound")


def digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def open_database(path: str) -> Engine:
    """As durable as the servers' store: a commit is on the disk when it returns."""
    engine = create_engine(f"sqlite:///{path}")

    @event.listens_for(engine, "connect")
    def _set_up(connection: Any, _: object) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")

    Base.metadata.create_all(engine)
    return engine


def main() -> None:
    config = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    app = application(config, open_database(config["database"]))
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    server = uvicorn.Server(uvicorn.Config(app, access_log=False, log_level="warning"))
    server.run(sockets=[listener])


if __name__ == "__main__":
    main()
