"""`cloudid revoke`: ends leases and watches until nothing is left of them."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import click
from attrs import frozen

from cloudid_core.background import UNDER_WAY
from cloudid_core.errors import Code
from cloudid_core.values import duration

from ..client import Address, Service, ServiceRefused
from ..terminal import Failed, Output, printable, show_progress, with_output, without_slashes
from .advice import names_in
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
@click.option(
    "--mount", default="cloud", callback=without_slashes, metavar="PATH", help="The mount of ROLE. Default: cloud."
)
@click.option("--wait", default="10m", metavar="DURATION", help="How long to watch; 0 does not watch. Default: 10m.")
@click.option("--yes", is_flag=True, help="Revoke tokens below auth/ without asking for confirmation.")
@with_address
@with_output()
def revoke(what: str, mount: str, wait: str, yes: bool, address: Address, output: Output) -> None:
    """Revoke a lease, all leases of a role, or everything below a path.

    A word without a slash is a ROLE. A path like cloud/creds/reader/8Kx… is a LEASE. Any other path is a PREFIX. With a
    PREFIX below auth/, all tokens that were issued there are revoked, after a confirmation.

    The command watches until everything is revoked. Ctrl-C stops the watching, but the service continues. The exit code
    is 1 if there is no such role or lease, or if leases are left when --wait is over.

    For a LEASE, the token needs update at sys/leases/revoke, and update at sys/leases/lookup to watch. Otherwise it
    needs update and sudo at sys/leases/revoke-prefix, and list and sudo at sys/leases/lookup to watch.
    """
    try:
        seconds = duration.seconds(wait)
    except ValueError:
        raise click.UsageError("--wait must be a duration, like 90s or 10m") from None
    if not what.strip("/"):
        raise click.UsageError("the argument is empty: name a role, a lease or a path")
    path = what.strip("/") if "/" in what else f"{mount}/{CREDS}/{what}"
    with told(**names_in(path)):
        service = service_with_token(address)
        if path.split("/")[-3:-2] == [CREDS]:
            left = _revoke_lease(service, path, seconds, output)
        elif f"{path}/".startswith(LOGINS):
            _revoke_tokens(service, path, output, is_certain=yes)
            return
        else:
            left = _revoke_prefix(service, path, seconds, output, is_role="/" not in what)
    if left and seconds:
        raise Failed(printable(_continues(path, left)))


def _revoke_lease(service: Service, lease_id: str, seconds: int, output: Output) -> int | None:
    """End one lease; how many are left, `None` if the token may not know."""
    if (known := _lease(service, lease_id)) == {}:
        raise Failed(printable(f"there is no lease {lease_id}: it has ended, or its id is wrong"))
    if known is None:
        service.write("sys/leases/revoke", {"lease_id": lease_id})  # answers when the lease has ended
        output.record({"lease": lease_id, "left": 0})
        return 0
    service.write("sys/leases/revoke", {"lease_id": lease_id, "sync": False})
    watched = _Watched(lambda: int(bool(_lease(service, lease_id))), lambda: _lease(service, lease_id) or {})
    left = _watch(watched, lease_id, 1, seconds, output)
    output.record({"lease": lease_id, "left": left})
    return left


def _revoke_tokens(service: Service, path: str, output: Output, *, is_certain: bool) -> None:
    question = f"Revoke all tokens that were issued below {path}, and all their leases?"
    if not is_certain:
        if not sys.stdin.isatty():
            raise Failed(
                f"this revokes all tokens that were issued below {path}, and all their leases: add --yes to confirm"
            )
        if not click.confirm(question, err=True):
            raise Failed("nothing was revoked")
    service.write(f"sys/leases/revoke-prefix/{path}", {"sync": False})
    output.record({"prefix": path})
    tell(f"the tokens that were issued below {path} are revoked, and their leases will be")


def _revoke_prefix(service: Service, path: str, seconds: int, output: Output, *, is_role: bool) -> int | None:
    """End all leases below a path; how many are left, `None` if the token may not know."""
    before = _count(service, path)
    if before == 0:
        if is_role:
            _require_role(service, path)
        tell(f"there are no leases below {path}")
    service.write(f"sys/leases/revoke-prefix/{path}", {"sync": False})
    watched = _Watched(lambda: _count(service, path), lambda: _first_lease(service, path))
    left = _watch(watched, path, before or 0, seconds, output)
    output.record({"prefix": path, "leases": before, "left": left})
    return left


def _require_role(service: Service, path: str) -> None:
    """Raise `Failed` if the role of a path does not exist, as far as the token may see that."""
    mount, _, role = path.rpartition(f"/{CREDS}/")
    try:
        service.read(f"{mount}/roles/{role}")
    except ServiceRefused as refusal:
        if refusal.status in (400, 404):
            text = f"{mount} has no role {role} and no leases of it; cloudid list {mount}/roles lists the roles"
            raise Failed(printable(text)) from None


def _lease(service: Service, lease_id: str) -> Mapping[str, Any] | None:
    """What is known of a lease; empty if there is none, `None` if the token may not know."""
    try:
        return dict(service.write("sys/leases/lookup", {"lease_id": lease_id}).get("data") or {})
    except ServiceRefused as refusal:
        if Code.LEASE_NOT_FOUND.wire in refusal.codes:
            return {}
        if refusal.status == 403:
            return None
        raise


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


@frozen
class _Watched:
    """What is looked at until nothing is left."""

    count: Callable[[], int | None]
    first: Callable[[], Mapping[str, Any]]
    """A lease that is left; empty if none is known."""

    @property
    def reason(self) -> str:
        """Why a lease that is left could not be revoked so far; empty if nothing is known."""
        reason = str(self.first().get("revoke_error") or "")
        return "" if reason == UNDER_WAY else reason


def _watch(watched: _Watched, path: str, before: int, seconds: int, output: Output) -> int | None:
    """How many leases are left, when none is or the time is over; `None` if the token may not know."""
    began = time.monotonic()
    left: int | None = before
    reason = ""
    try:
        if before:
            output.note(f"revoking {before} leases; Ctrl-C stops only the watching")
        while (left := watched.count()) and time.monotonic() - began < seconds:
            passed = time.monotonic() - began
            show_progress(f"{left} of {max(before, left)} leases remain after {passed:.0f} s of at most {seconds} s")
            if not reason and (reason := watched.reason):
                tell(f"Azure has not removed everything yet: {reason}")
            time.sleep(INTERVAL)
    except KeyboardInterrupt:
        tell(_continues(path, left))
        raise KeyboardInterrupt from None
    finally:
        show_progress("")
    if left is None:
        tell("the service continues, but the token may not list sys/leases/lookup, so the remaining leases are unknown")
    return left


def _first_lease(service: Service, path: str) -> Mapping[str, Any]:
    try:
        first = _leases(service, path, 1)
        return (_lease(service, first[0]) if first else None) or {}
    except ServiceRefused:
        return {}


def _continues(path: str, left: int | None) -> str:
    is_lease = path.split("/")[-3:-2] == [CREDS]
    show = f"write sys/leases/lookup lease_id={shlex.quote(path)}" if is_lease else f"list sys/leases/lookup/{path}"
    return f"the service continues; remaining leases: {left or 'unknown'}; cloudid {show} shows them"
