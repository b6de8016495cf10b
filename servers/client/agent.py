"""The agent: keeps a machine logged in, and the files with its token and its credentials up to date.

Its messages never repeat the text of a response, because a failing service may answer anything.
"""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs

from attrs import Factory, define, evolve, field, frozen

from cloudid_core.backoff import Backoff
from cloudid_core.errors import CloudidError, Code
from cloudid_core.values.secret import Secret

from ..web import Unreachable
from .identity import Identity, NoIdentity
from .service import Service, ServiceRefused
from .tokens import TokenFileRefused, write_private
from .variables import NAMES, dotenv, variables_of

LOGIN: Final = "login"
"""The source of the agent's own token."""
AGAIN: Final = Backoff(first=1.0, longest=60.0, spread=(0.5, 1.0))
RENEW_AT: Final = (0.6, 0.75)
"""Parts of a life after which it is prolonged: by chance between these, so that not all machines ask together."""
SHORTEST: Final = 0.5
LONGEST: Final = 86400.0
"""Seconds between two looks at something that lasts."""
PLAIN: Final = ("client_token", "access_token", "client_secret")
"""What a file holds that is neither `.json` nor `.env`: the first of these."""


class Malformed(CloudidError):
    """An answer lacks what it must have. The text repeats nothing of it."""


OF_THE_SERVICE: Final = (ServiceRefused, Unreachable, Malformed)
FAILURES: Final = (ServiceRefused, Unreachable, NoIdentity, TokenFileRefused, Malformed)


@define
class Kept:
    """Credentials that are kept up to date: the login's token, or those that a path of the service issues."""

    source: str
    files: tuple[Path, ...]
    lent: Mapping[str, str] = field(factory=dict, repr=False)
    lease: str = ""
    is_renewable: bool = False
    seconds: float = 0.0
    """Lifetime in seconds since it was issued."""
    valid_for: float = 0.0
    """Lifetime in seconds since it was issued or renewed. 0: it does not expire."""
    due: float = 0.0
    failures: int = 0
    is_denied: bool = False
    """Refused to a token that is known to be good: another login does not help."""

    def is_written(self) -> bool:
        """Whether every file holds it."""
        return all(file.exists() for file in self.files)


@frozen
class Clock:
    """Time, pauses and chance, for tests to replace."""

    now: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random


@define
class Agent:
    """Keep all credentials up to date, until an exception of the caller ends it.

    `tell` gets a line about each thing that was issued, was renewed or failed.
    """

    service: Service
    mount: str
    role: str
    identify: Callable[[], Identity]
    kept: list[Kept]
    """The login comes first."""
    on_change: Callable[[], None]
    tell: Callable[[str], None]
    tenant: str = ""
    tries_again: bool = True
    clock: Clock = Factory(Clock)

    def run(self, ready: Callable[[], None]) -> None:
        """Run forever. `ready` is called once, when all files are written."""
        is_told = False
        while True:
            self.keep()
            if not is_told and not any(one.failures for one in self.kept):
                ready()
                is_told = True
            self.clock.pause(max(0.0, min(one.due for one in self.kept) - self.clock.now()))

    def keep(self) -> None:
        """Do scheduled work and report failures. Notify the caller if the files have changed."""
        before = [one.lent for one in self.kept]
        for one in self.kept:
            if one.due <= self.clock.now() and (one is self.kept[0] or self.service.token):
                self._keep(one)
        after = [one.lent for one in self.kept]
        if all(after) and before != after:
            self.on_change()

    @property
    def environment(self) -> dict[str, str]:
        """Return all credentials as environment variables."""
        return {name: value for one in self.kept for name, value in variables_of(one.lent).items()}

    def end(self) -> None:
        """Revoke the login's token with every lease. A failure is reported; they then expire."""
        if self.service.token:
            try:
                self.service.write("auth/token/revoke-self", {})
            except FAILURES as failure:
                self.tell(f"the token is not revoked, but will expire: {reason(failure)}")

    def _keep(self, one: Kept) -> None:
        try:
            is_renewed = self._renew(one)
            if not is_renewed:
                self._lend(one)
        except FAILURES as failure:
            one.failures += 1
            pause = AGAIN.pause(one.failures, self.clock.chance())
            one.due = self.clock.now() + pause
            again = f"; again in {pause:.0f} seconds" if self.tries_again else ""
            at = f"{self.service.address.url}: " if isinstance(failure, OF_THE_SERVICE) else ""
            self.tell(f"{one.source}: {at}{reason(failure)}{again}")
        else:
            done = "renewed" if is_renewed else "issued"
            attempts = "attempt" if one.failures == 1 else "attempts"
            recovered = f" after {one.failures} failed {attempts}" if one.failures else ""
            lasting = f"valid for {one.valid_for:.0f} seconds" if one.valid_for else "valid without expiry"
            self.tell(f"{one.source}: {done}{recovered}, {lasting}")
            one.failures = 0

    def _renew(self, one: Kept) -> bool:
        """Renew it. Return whether it stays valid; shortly before its maximum lifetime, a new one is needed."""
        if not one.is_renewable or one.failures or not one.is_written():
            return False
        try:
            if one.source == LOGIN:
                granted = _part(self.service.write("auth/token/renew-self", {}), "auth")
            else:
                granted = self.service.write("sys/leases/renew", {"lease_id": one.lease})
        except ServiceRefused as refusal:
            if refusal.status >= 500:
                raise
            return False
        seconds = _seconds(granted)
        self._wait(one, seconds)
        return not seconds or seconds >= one.seconds / 2

    def _lend(self, one: Kept) -> None:
        answer = self._login() if one.source == LOGIN else self._asked(one)
        seconds = _seconds(answer)
        data = {name: answer[name] for name in NAMES if answer.get(name)}
        if not data.keys() & {*PLAIN} or not all(
            isinstance(each, str) and each.isascii() and each.isprintable() for each in data.values()
        ):
            raise Malformed("the service returned no usable credentials")
        if "client_secret" in data and self.tenant:
            data.setdefault("tenant_id", self.tenant)
        for file in one.files:
            write_private(file, content(file, data))
        one.lent, one.lease, one.is_renewable = data, str(answer.get("lease_id") or ""), answer.get("renewable") is True
        one.seconds = seconds
        self._wait(one, seconds)
        if one.source == LOGIN:
            self.service = evolve(self.service, token=Secret(data["client_token"]))
            for other in self.kept[1:]:  # leases of the previous token end with it
                other.due, other.is_renewable = 0.0, False

    def _login(self) -> dict[str, Any]:
        body = self.identify().login(self.role)
        auth = _part(evolve(self.service, token=Secret()).write(f"{self.mount}/login", body), "auth")
        if not auth.get("client_token"):
            raise Malformed("the service returned no token")
        return auth

    def _asked(self, one: Kept) -> dict[str, Any]:
        """Request a path's credentials. If the token is refused, it may have ended: log in once more, and not again."""
        path, _, query = one.source.partition("?")
        try:
            answer = self.service.ask("GET", path, query=parse_qs(query))
        except ServiceRefused as refusal:
            if refusal.status != Code.PERMISSION_DENIED.status or one.is_denied:
                raise
            self._lend(self.kept[0])
            one.is_denied = True
            return self._asked(one)
        one.is_denied = False
        data = _part(answer, "data")
        return {**answer, **data, "lease_duration": answer.get("lease_duration") or data.get("expires_in")}

    def _wait(self, one: Kept, seconds: float) -> None:
        """Until a part of its life is over. 0 seconds: it has no end."""
        one.valid_for = seconds
        least, most = RENEW_AT
        part = seconds * (least + (most - least) * self.clock.chance())
        one.due = self.clock.now() + (min(max(part, SHORTEST), LONGEST) if seconds else LONGEST)


def content(file: Path, lent: Mapping[str, str]) -> str:
    """What a file holds: by the end of its name JSON, lines for an environment, or the token alone."""
    if file.name.endswith(".json"):
        return json.dumps(dict(lent), indent=2) + "\n"
    if file.name.endswith(".env"):  # not by the suffix: a file that is named .env has none
        return dotenv(variables_of(lent))
    return next(lent[name] for name in PLAIN if name in lent) + "\n"


def reason(failure: CloudidError) -> str:
    """Why something failed, in words of our own: of a refusal, its codes alone."""
    if not isinstance(failure, ServiceRefused):
        return str(failure)
    known = [code for code in Code if code.wire in failure.codes]
    texts = ", ".join(f"{code.text} ({code.wire})" for code in known)
    return f"the service answered {failure.status}" + (f": {texts}" if texts else "")


def _part(answer: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = answer.get(name)
    if not isinstance(found, dict):
        raise Malformed(f"the service's response has no {name}")
    return found


def _seconds(answer: Mapping[str, Any]) -> float:
    seconds = answer.get("lease_duration")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not math.isfinite(seconds) or seconds < 0:
        raise Malformed("the service did not return the lease duration")
    return float(seconds)
