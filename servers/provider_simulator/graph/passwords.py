"""Passwords of applications and service principals. A secret is shown once, when it is created."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from cloudid_core.effects import HttpResponse

from ..engine.requests import Call, Json
from ..engine.shapes import NOTHING, Shape
from ..world.directory import Holder
from ..world.objects import Password
from ..world.world import World, instant
from .conventions import answer, bad_request, no_content, read_body, read_fields, refuse_concurrent_change

DEFAULT_LIFETIME: Final = 2 * 365 * 86_400.0

NEW: Final[Shape] = {"passwordCredential": (dict, NOTHING)}
CREDENTIAL: Final[Shape] = {
    "displayName": (str, NOTHING),
    "startDateTime": (str, NOTHING),
    "endDateTime": (str, NOTHING),
}
OLD: Final[Shape] = {"keyId": (str,)}


def show_password(password: Password, secret: str | None = None) -> Json:
    return {
        "keyId": password.key_id,
        "displayName": password.display_name,
        "hint": password.hint,
        "startDateTime": instant(password.starts_at),
        "endDateTime": instant(password.ends_at),
        "secretText": secret,
        "customKeyIdentifier": None,
    }


def add_password(world: World, call: Call, holder: Holder) -> HttpResponse:
    wanted = read_fields(read_body(call, NEW).get("passwordCredential") or {}, CREDENTIAL, "'passwordCredential'")
    starts_at = read_instant(wanted.get("startDateTime"), world.now())
    ends_at = read_instant(wanted.get("endDateTime"), starts_at + DEFAULT_LIFETIME)
    if ends_at <= starts_at:
        raise bad_request("The end of a password must come after its start.")
    if len(holder.passwords) >= world.behaviour.quotas["passwords"]:
        raise bad_request("The size of the object has exceeded its limit. Please reduce the number of values.")
    refuse_concurrent_change(world, holder.id)
    password = world.directory.add_password(
        holder, wanted.get("displayName"), starts_at, ends_at, by=call.caller.client_id
    )
    return answer(world, show_password(password, password.secret))


def remove_password(world: World, call: Call, holder: Holder, known: Holder) -> HttpResponse:
    """`known`: the holder as the replica that writes use knows it, which may not have learned of the password yet."""
    key_id = read_body(call, OLD).get("keyId", "").lower()
    if any(all(password.key_id != key_id for password in one.passwords) for one in (holder, known)):
        raise bad_request(f"No password credential found with keyId '{key_id}'.")
    refuse_concurrent_change(world, holder.id)
    world.directory.remove_password(holder, key_id)
    return no_content(world)


def read_instant(value: Any, default: float) -> float:
    """RFC 3339."""
    if value is None:
        return default
    try:
        read = datetime.fromisoformat(value)
    except ValueError:
        raise bad_request("A time must be written as RFC 3339 says.") from None
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()
