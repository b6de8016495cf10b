"""`cloudid revoke`: ends leases and watches until nothing is left of them."""

from __future__ import annotations

import time
from typing import Final

import click

from cloudid_core.background import UNDER_WAY
from cloudid_core.errors import Code
from cloudid_core.values import duration

from ..client import Address, Service, ServiceRefused
from ..terminal import Failed, Output, printable, show_progress, with_output, without_slashes
from .connection import service_with_token, tell, told, with_address

CREDS: Final = "creds"
"""The segment of a lease's id before the name of its role."""
LOGINS: Final = "auth/"
"""What is below gives tokens, which are no leases: none of them can be counted."""
INTERVAL: Final = 1.0
"""Seconds between two looks at what is left."""
ENOUGH: Final = 10_000
"""So many leases are counted, and no more."""


@click.command("revoke")
@click.argument("what", metavar="ROLE|LEASE|PREFIX")
@click.option("--mount", default="cloud", callback=without_slashes, metavar="PATH", help="Of a ROLE. Default: cloud.")
@click.option("--wait", default="10m", metavar="DURATION", help="Watch for so long; 0: not at all. Default: 10m.")
@with_address
@with_output()
def revoke(what: str, mount: str, wait: str, address: Address, output: Output) -> None:
    """End the leases of a role, one lease, or all below a path.

    A word without a slash is a ROLE, a path like cloud/creds/reader/8Kx… is one LEASE, any other path a PREFIX; below
    auth/ it ends all tokens that were issued there. A LEASE needs update at sys/leases/revoke; the others need update
    and sudo at sys/leases/revoke-prefix, and list and sudo at sys/leases/lookup to watch. Ctrl-C ends the watching
    alone: the service goes on.
    """
    try:
        seconds = duration.seconds(wait)
    except ValueError:
        raise click.UsageError("--wait is a duration, like 90s or 10m") from None
    if not what.strip("/"):
        raise click.UsageError("name a role, a lease or a path: an empty word would be all of them")
    path = what.strip("/") if "/" in what else f"{mount}/{CREDS}/{what}"
    with told(role=what):
        service = service_with_token(address)
        if path.split("/")[-3:-2] == [CREDS]:
            if _is_missing(service, path):
                output.note(f"there was no lease {path}")
            service.write("sys/leases/revoke", {"lease_id": path})
            output.record({"lease": path, "left": 0})
            return
        if f"{path}/".startswith(LOGINS):
            service.write(f"sys/leases/revoke-prefix/{path}", {"sync": False})
            output.record({"prefix": path})
            output.note(f"the tokens that were issued below {path} are ended, and what they were lent follows")
            return
        before = _count(service, path)
        service.write(f"sys/leases/revoke-prefix/{path}", {"sync": False})
        if before == 0:
            output.note(f"there was no lease below {path}")
        left = _watch(service, path, before or 0, seconds, output)
    output.record({"prefix": path, "leases": before, "left": left})
    if left and seconds:
        raise Failed(printable(_goes_on(path, left)))


def _is_missing(service: Service, lease_id: str) -> bool:
    """Whether the token may see that there is no such lease. To end one is answered the same in any case."""
    try:
        service.write("sys/leases/lookup", {"lease_id": lease_id})
    except ServiceRefused as refusal:
        return Code.LEASE_NOT_FOUND.wire in refusal.codes
    return False


def _count(service: Service, path: str) -> int | None:
    """How many leases are below a path, up to `ENOUGH`; `None` if the token may not know."""
    try:
        return len(_leases(service, path, ENOUGH))
    except ServiceRefused as refusal:
        if refusal.status == 403:
            return None
        raise


def _leases(service: Service, path: str, most: int) -> list[str]:
    try:
        answer = service.read(f"sys/leases/lookup/{path}", list="true")
    except ServiceRefused as refusal:
        if refusal.status == 404:
            return []
        raise
    found: list[str] = []
    for key in answer["data"]["keys"]:
        below = f"{path}/{key.rstrip('/')}"
        found += _leases(service, below, most - len(found)) if key.endswith("/") else [below]
        if len(found) >= most:
            break
    return found


def _watch(service: Service, path: str, before: int, seconds: int, output: Output) -> int | None:
    """How many leases are left, when none is or the time is over; `None` if the token may not know."""
    until = time.monotonic() + seconds
    left: int | None = before
    reason = ""
    try:
        if before:
            output.note(f"leases are ended: {before}; Ctrl-C ends the watching alone")
        while (left := _count(service, path)) and time.monotonic() < until:
            show_progress(f"{left} of {max(before, left)} leases are left")
            if not reason and (reason := _reason(service, path)):
                tell(f"the provider does not do its part yet: {reason}")
            time.sleep(INTERVAL)
    except KeyboardInterrupt:
        tell(_goes_on(path, left))
        raise
    finally:
        show_progress("")
    if left is None:
        tell("the token may not list sys/leases/lookup: the service goes on, and what is left is not known")
    return left


def _reason(service: Service, path: str) -> str:
    """Why a lease that is left could not be revoked so far; empty if nothing is known."""
    try:
        first = _leases(service, path, 1)
        found = service.write("sys/leases/lookup", {"lease_id": first[0]}) if first else {}
    except ServiceRefused:
        return ""
    reason = str((found.get("data") or {}).get("revoke_error") or "")
    return "" if reason == UNDER_WAY else reason


def _goes_on(path: str, left: int | None) -> str:
    count = left or "not known"
    return f"the service goes on; leases that are left: {count}; cloudid list sys/leases/lookup/{path} shows them"
