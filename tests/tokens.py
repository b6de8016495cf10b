"""Tokens, and the policies that they have."""

from __future__ import annotations

from typing import Any

import msgspec

from cloudid_core.credentials.identity_tokens import IdentityTokens

from .installation import ROOT, Installation

LOOK_UP_SELF = "auth/token/lookup-self"


def create_token(installation: Installation, token: str = ROOT, at: str = "create", **fields: object) -> Any:
    """The `auth` member of the answer to the creation of a token."""
    return installation.must("POST", f"auth/token/{at}", fields, token).auth


def new_token(installation: Installation, token: str = ROOT, **fields: object) -> str:
    """The text of a new token."""
    text: str = create_token(installation, token, "create", **fields)["client_token"]
    return text


def look_up_self(installation: Installation, token: str) -> Any:
    """What a token reads about itself."""
    return installation.must("GET", LOOK_UP_SELF, None, token).data


def is_valid(installation: Installation, token: str) -> bool:
    return installation.ask("GET", LOOK_UP_SELF, None, token).status == 200


def write_policy(installation: Installation, name: str, *rules: tuple[str, list[str]]) -> str:
    """Write a policy of paths and their capabilities; its name."""
    text = msgspec.json.encode({"path": {path: {"capabilities": can} for path, can in rules}}).decode()
    installation.must("POST", f"sys/policies/acl/{name}", {"policy": text})
    return name


def identity_token(installation: Installation, path: str = "cloud", audience: str = "a", lifetime: int = 3600) -> str:
    """An identity token of a mount, lifetime in seconds."""
    tokens = IdentityTokens.of(installation.context, installation.mount(path), audience, lifetime)
    return installation.perform(tokens.make()).reveal()
