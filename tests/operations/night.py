"""A night on call: breakages of a real server, one after the other, found and fixed with what the product shows.

The operator is called when health has a problem or a client is refused. Each look is a step: the first at `cloudid
status`, the second at the server's log. A breakage counts as found only where one paragraph of status, or one entry of
the log, has both its cause and its fix. The fix that is carried out is the one that was shown: commands are pasted, and
values are taken from the text.

`python -m tests.operations.night [WORD]...` goes through the breakages with these words in their names, or through all,
and prints a table of the steps.
"""

from __future__ import annotations

import os
import re
import shlex
import ssl
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

import httpx
from attrs import define, field, frozen

from cloudid_servers.provider_simulator import Simulator, start
from tests.servers import running
from tests.servers.deployment import POLICY
from tests.servers.running import PATIENCE, Running
from tests.servers.story import RESOURCE, login_form
from tests.waiting import PATIENT, wait_until

SERVER: Final = '[server]\nlisten = "127.0.0.1:0"\nstore = "store.sqlite"\nkey_file = "key"\n'
CREDS: Final = "cloud/creds/existing"
UNVERIFIED: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
UNVERIFIED.check_hostname = False
UNVERIFIED.verify_mode = ssl.CERT_NONE
REQUEST: Final[Mapping[str, Any]] = {**PATIENT, "verify": UNVERIFIED}


@define
class Night:
    """One installation with its server, beside a simulated cloud."""

    runtime: str
    folder: Path
    cloud: str
    root: str = field(default="", repr=False)
    form: dict[str, str] = field(factory=dict, repr=False)
    """A login that succeeds."""
    provider: str = ""
    """The address that the server has for Azure, if it is not the cloud's."""
    server: Running | None = None
    last_log: str = ""
    """The log of a server that did not start."""
    quiet_log: int = 0
    """The length of the server's log before the breakage."""
    others: list[Any] = field(factory=list)
    """Processes that were started to break something."""
    is_refused: bool = False
    """Whether a client was refused since the night was quiet."""

    @property
    def settings(self) -> Path:
        return self.folder / "cloudid.toml"

    @property
    def world(self) -> Any:
        return httpx.get(f"{self.cloud}/simulator/world", **REQUEST).json()

    @property
    def root_credential(self) -> dict[str, str]:
        """The credential that both mounts use while nothing is broken."""
        application = self.world["applications"][0]
        return {name: application[name] for name in ("client_id", "client_secret")}

    def prepare(self) -> None:
        """Initialise the store and configure logins, credentials and a policy."""
        self.settings.write_text(SERVER)
        self.root = running.initialise(self.runtime, self.settings)
        self.restart()
        world = self.world
        form = login_form(self.cloud, world["machines"][0])
        assert form is not None
        self.form = form
        mount = {**self.root_credential, "tenant_id": world["tenant"], "max_retries": 0}
        documents: Mapping[str, Mapping[str, Any]] = {
            "auth/cloud/config": {**mount, "resource": RESOURCE},
            "auth/cloud/role/all": {"bound_subscription_ids": world["subscriptions"], "token_policies": "app"},
            "sys/policies/acl/app": {"policy": POLICY},
            "cloud/config": {**mount, "subscription_id": world["subscriptions"][0]},
            "cloud/roles/existing": {"application_object_id": world["applications"][1]["object_id"], "ttl": "1h"},
        }
        for path, document in documents.items():
            self.must("POST", path, document)
        self.must("GET", CREDS)

    def restart(self, more: str = "", *, server: str = "") -> None:
        """Stop the server and start it. `server` are further lines of the table of that name, `more` further tables."""
        self.stop()
        self.settings.write_text(f"{SERVER}{server}\n{more}")
        self.start()

    def start(self) -> None:
        """Start the server with the settings as they are. It may refuse to start."""
        arguments = ("--settings", str(self.settings), "--provider", self.provider or self.cloud)
        log = self.folder / "server.log"
        try:
            self.server = Running(f"cloudid_servers.{self.runtime}", *arguments, log=log)
        except AssertionError:
            self.last_log = log.read_text()

    def stop(self) -> None:
        if self.server is not None:
            with self.server as server:
                server.stop()
        self.server, self.last_log, self.quiet_log = None, "", 0

    def quiet(self) -> None:
        """Begin a breakage with a server that is well and has the usual settings."""
        if self.server is None or self.settings.read_text() != f"{SERVER}\n":
            self.restart()
        wait_until(self.is_healthy)
        self.is_refused, self.quiet_log = False, len(self.log())

    def ask(self, method: str, path: str, body: object = None, token: str | None = None) -> httpx.Response:
        """Send a request as a client does. Its refusal calls the operator."""
        assert self.server is not None
        headers = {"X-Service-Token": self.root if token is None else token}
        url = f"{self.server.url}/v1/{path}"
        answer = httpx.request(method, url, headers=headers, json=body, **REQUEST)
        self.is_refused = self.is_refused or answer.status_code >= 400
        return answer

    def must(self, method: str, path: str, body: object = None) -> Any:
        answer = self.ask(method, path, body)
        assert answer.is_success, (path, answer.text)
        return answer.json() if answer.content else None

    def log_in(self) -> httpx.Response:
        return self.ask("POST", "auth/cloud/login", {**self.form, "role": "all"}, "")

    def faults(self, *rules: Mapping[str, Any]) -> None:
        """Let requests to the cloud fail, in place of those that failed so far."""
        httpx.post(f"{self.cloud}/simulator/faults", json=rules, **REQUEST).raise_for_status()

    def calls_operator(self) -> bool:
        """Return whether a client was refused, or health of this server shows that something is wrong."""
        if self.server is None or self.is_refused:
            return True
        try:
            health = httpx.get(f"{self.server.url}/v1/sys/health", **REQUEST)
        except httpx.HTTPError:
            return True
        return health.status_code != 200 or bool(health.json()["problems"])

    def run(self, *words: str) -> tuple[int, str]:
        """Run `cloudid` as the operator does; its exit code, and what it prints."""
        environment = {
            "CLOUDID_TOKEN": self.root,
            "CLOUDID_ADDR": self.server.url if self.server else "http://127.0.0.1:9",
            "CLOUDID_CACERT": str(self.folder / "cert.pem") if self.server and "https" in self.server.url else "",
            "HOME": str(self.folder),
        }
        with tempfile.TemporaryFile("w+") as out:
            command = running.start("cloudid_servers.cli", *words, stdout=out, stderr=out, environment=environment)
            return command.wait(PATIENCE), os.pread(out.fileno(), 2**20, 0).decode()

    def paste(self, command: str, **placeholders: str) -> None:
        """Carry out a command that the product has shown, with values in place of what stands for them."""
        words = [placeholders.get(word, word) for word in shlex.split(command)]
        assert words[0] == "cloudid", command
        for name, value in placeholders.items():
            words = [word.replace(name, value) for word in words]
        code, shown = self.run(*words[1:])
        assert code == 0, (command, shown)

    def status(self) -> list[str]:
        """The paragraphs that `cloudid status` prints."""
        return self.run("status", "--format", "table")[1].split("\n\n")

    def log(self) -> str:
        return "" if self.server is None else self.server.log()

    def entries(self) -> list[str]:
        """The entries of the log since the breakage. What a server prints that does not start is one."""
        return [self.last_log] if self.server is None else self.log()[self.quiet_log :].splitlines()

    def is_healthy(self) -> bool:
        return self.server is not None and self.run("status")[0] == 0


@frozen
class Found:
    """Where an operator found a breakage, after how many steps; `fix` is the part of the text that says it."""

    steps: int
    place: str
    cause: str
    fix: re.Match[str]


Repair: TypeAlias = Callable[[Night, re.Match[str]], object]


@frozen
class Breakage:
    """What breaks, how the cause and the fix are shown, and how the shown fix is carried out."""

    name: str
    do_break: Callable[[Night], object]
    cause: str
    fix: str
    repair: Repair

    def live_through(self, night: Night) -> Found:
        """Break the service, find the breakage as an operator does, and fix it as is shown."""
        night.quiet()
        self.do_break(night)
        wait_until(night.calls_operator)
        found = self.find(night)
        self.repair(night, found.fix)
        wait_until(night.is_healthy)
        night.must("GET", CREDS)
        assert night.log_in().is_success
        return found

    def find(self, night: Night) -> Found:
        """Look at status, then at the log. Raise `AssertionError` if neither has both cause and fix."""
        looks: Mapping[str, Callable[[], list[str]]] = {"status": night.status, "log": night.entries}
        shown: list[str] = []
        for step, (place, look) in enumerate(looks.items(), 1):
            texts = look()
            for text in texts:
                cause, fix = re.search(self.cause, text), re.search(self.fix, text)
                if cause and fix:
                    return Found(step, place, cause[0], fix)
            shown += [f"--- step {step}: {place}", *texts]
        raise AssertionError("\n\n".join([f"{self.name} is not found", *shown]))


@contextmanager
def night_of(runtime: str, folder: Path) -> Iterator[Night]:
    """An installation that serves."""
    with ExitStack() as stack:
        cloud = stack.enter_context(start(Simulator()))
        night = Night(runtime, folder, cloud.url)
        stack.callback(night.stop)
        night.prepare()
        yield night


def row_of(breakage: Breakage, found: Found) -> str:
    """A row of the table, as Markdown."""
    cells = (breakage.name, str(found.steps), found.place, found.cause, found.fix[0])
    return f"| {' | '.join(' '.join(cell.split()).replace('|', chr(92) + '|') for cell in cells)} |"


def main(words: Sequence[str]) -> int:
    from .breakages import BREAKAGES

    chosen = [each for each in BREAKAGES if not words or any(word in each.name for word in words)]
    sys.stdout.write("| Breakage | Steps | Seen in | Cause | Fix |\n|---|---|---|---|---|\n")
    failures = 0
    with tempfile.TemporaryDirectory() as folder, night_of("trio_server", Path(folder)) as night:
        for breakage in chosen:
            try:
                sys.stdout.write(f"{row_of(breakage, breakage.live_through(night))}\n")
            except AssertionError as failure:
                failures += 1
                sys.stderr.write(f"{breakage.name}: {failure}\n")
            sys.stdout.flush()
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
