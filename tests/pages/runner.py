"""Runs a page: its commands in one shell, in order, in an empty folder; what comes is compared with what it shows.

A page is executed as it stands. In a block of `console`, a line that begins with `$ ` is a command, which goes on in
the next lines while a quote or a backslash is open; the lines below it are all that it prints. `…` in a line stands for
whatever varies there, and alone on a line for any number of lines. Every command of a pipe has to succeed. Addresses of
the service and of the metadata service become those of the server and the simulated cloud that run beside it, and a
tenant is recorded from that cloud. Marks above a block say what else there is to know:

    <!-- file: NAME -->       the block is written to this file
    <!-- fails -->            the last command of the block fails
    <!-- the server -->       the command starts the page's own server, which goes on while the others run
    <!-- needs WHAT: TEST --> nothing of the block runs here, since WHAT is not there; TEST looks after it

With `<!-- given: a connected tenant -->` at the top of a page both mounts are configured for the simulated cloud first;
with `<!-- given: a connected tenant, https -->` the server speaks TLS, and the simulated cloud trusts its certificate.

`python -m tests.pages.runner PAGE` shows what comes, for whoever writes a page.
"""

from __future__ import annotations

import os
import pty
import re
import shlex
import shutil
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx
from attrs import frozen

from tests.servers import warm
from tests.servers.certificates import write_certificate
from tests.servers.running import Running, are_forked
from tests.servers.story import RESOURCE
from tests.waiting import PATIENT

from .blocks import ROOT, Block, parse

PROGRAMS: Final = Path(__file__).parent / "programs"
"""Programs that pages call and this machine may lack. Azure's talks to the simulated cloud here."""
CONNECTED: Final = "<!-- given: a connected tenant"
HTTPS: Final = f"{CONNECTED}, https -->\n"
ADDRESSES: Final = ("http://127.0.0.1:8200", "https://id.example.com")
"""Of the service, as pages write it."""
METADATA: Final = "http://169.254.169.254"
RECORDING: Final = "cloudid connect azure --record"
SHOWN: Final = ("text", "json", "hcl", "toml", "python", "")
"""Languages of blocks that need no mark: nothing runs in them."""
MARKS: Final = ("file", "fails", "the server", "given", "printed", "end")
"""What may stand above a block. The last two enclose what is printed from a table."""
_NEEDS: Final = re.compile(r"needs ([\w' ]+)")
_END: Final = "\x1e"
_ERASED: Final = re.compile(r"[^\n\x1e]*\r\x1b\[K")
"""A line of progress, in whose place another text came."""
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")


class PageIsWrong(AssertionError):
    """What a page shows is not what comes."""


@frozen
class Command:
    """A command of a page, and what it shows below it."""

    text: str
    shown: str
    line: int
    fails: bool = False


@frozen
class File:
    """A file that a page has its readers write."""

    name: str
    text: str


@frozen
class Shown:
    """Output of the server that runs for the page."""

    text: str
    line: int


Step = Command | File | Shown


@frozen
class Place:
    """The server and the simulated cloud that a page runs against; its shell is on a machine of that cloud."""

    url: str
    root_token: str
    simulator: str
    introduction: str
    """What the server printed at its start."""

    certificate: str = ""
    """The file with the certificate that the server has, if it speaks TLS."""
    is_started_by_page: bool = False
    """Its readers then have set `ROOT_TOKEN` and `SIMULATOR`, and nothing else."""

    @property
    def environment(self) -> dict[str, str]:
        found = {"SIMULATOR": self.simulator, "PYTHONPATH": str(ROOT)}
        if self.certificate:
            found |= {"CURL_CA_BUNDLE": self.certificate, "CLOUDID_CACERT": self.certificate}
        if self.is_started_by_page:
            return {**found, "ROOT_TOKEN": self.root_token}
        token, machine = {"VAULT_TOKEN": self.root_token}, {"AZURE_POD_IDENTITY_AUTHORITY_HOST": self.machine}
        return {**found, "VAULT_ADDR": self.url, **token, **machine}

    @property
    def machine(self) -> str:
        """The metadata service of a virtual machine, which the page's shell runs on."""
        return f"{self.simulator}/machines/web"

    def connect_tenant(self) -> None:
        """Configure both mounts for the simulated cloud."""
        world = httpx.get(f"{self.simulator}/simulator/world", **PATIENT).json()
        config = {name: world["applications"][0][name] for name in ("client_id", "client_secret")}
        config |= {"tenant_id": world["tenant"]}
        mounts = {"auth/cloud": {"resource": RESOURCE}, "cloud": {"subscription_id": world["subscriptions"][0]}}
        trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if self.certificate:
            trust.load_verify_locations(self.certificate)
        with httpx.Client(**{**PATIENT, "verify": trust}, headers={"X-Vault-Token": self.root_token}) as client:
            for mount, more in mounts.items():
                client.post(f"{self.url}/v1/{mount}/config", json=config | more).raise_for_status()

    def put_into(self, text: str) -> str:
        """A text of a page with the addresses of this place."""
        for address in ADDRESSES:
            text = text.replace(address, self.url)
        text = text.replace(RECORDING, f"cloudid connect azure --provider {self.simulator} --record")
        return text.replace(METADATA, self.machine)


@contextmanager
def place(server: str, text: str) -> Iterator[Place]:
    """What a page runs against: the server that it starts, or one with everything in memory; and a simulated cloud."""
    starts = [command for block in parse(text) if "the server" in block.marks for command in commands(block)]
    program, options = f"cloudid_servers.{server}", ["--dev"]
    if starts:
        program = "cloudid_servers.cli"
        options = [*shlex.split(starts[0].text)[1:], "--server", server.removesuffix("_server")]
    with tempfile.TemporaryDirectory() as folder:
        environment, certificate = {}, ""
        if HTTPS in text:
            write_certificate(Path(folder), "127.0.0.1")
            Path(folder, "tls.toml").write_text('[server]\ntls_certificate = "cert.pem"\ntls_key = "key.pem"\n')
            certificate = f"{folder}/cert.pem"
            environment = {"SSL_CERT_FILE": certificate}
            options += ["--settings", f"{folder}/tls.toml"]
        with Running(program, *options, "--listen", "127.0.0.1:0", environment=environment) as running:
            yield Place(*facts_of(running), certificate, bool(starts))


def facts_of(running: Running) -> tuple[str, str, str, str]:
    """What a server that has everything in memory printed: its address, root token, simulated cloud; all of it."""
    said = dict(line.partition(": ")[::2] for line in running.introduction)
    introduction = "\n".join((*running.introduction, f"listening on {running.url}"))
    return running.url, said["root token"], said["provider simulator"], introduction


def steps_of(text: str) -> list[Step]:
    """What a page has its readers do, in order."""
    return [step for block in parse(text) for step in _steps(block)]


def _steps(block: Block) -> Iterator[Step]:
    names = [name for name in block.marks if name not in MARKS]
    if any(_NEEDS.fullmatch(name) for name in names):
        _require_test(*(value for name, value in block.marks.items() if _NEEDS.fullmatch(name)))
    elif names:
        raise PageIsWrong(f"line {block.line}: nobody knows the mark {names}")
    elif "file" in block.marks:
        yield File(block.marks["file"], block.text)
    elif "the server" in block.marks:
        yield from (Shown(command.shown, command.line) for command in commands(block))
    elif block.language == "console":
        yield from commands(block)
    elif block.language not in SHOWN:
        raise PageIsWrong(f"line {block.line}: a block of {block.language} needs a mark that says what becomes of it")


def _require_test(name: str) -> None:
    """That a test is there."""
    path, _, test = name.partition("::")
    if not (ROOT / path).is_file() or f"def {test}(" not in (ROOT / path).read_text():
        raise PageIsWrong(f"there is no test {name}")


def commands(block: Block) -> Iterator[Command]:
    """The commands of a block of `console`, with what it shows below each."""
    lines = block.text.splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith("$ ")]
    if starts[:1] != [0]:
        raise PageIsWrong(f"line {block.line}: a block of console begins with a command")
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        text, shown = lines[start][2:], lines[start + 1 : end]
        while not _is_whole(text) and shown:
            text += "\n" + shown.pop(0)
        fails = "fails" in block.marks and start == starts[-1]
        yield Command(text, "\n".join(shown), block.line + start, fails)


def _is_whole(command: str) -> bool:
    """Whether no quote and no backslash is open at the end."""
    try:
        shlex.split(command)
    except ValueError:
        return False
    return True


def script_of(steps: list[Step]) -> str:
    """A script for the shell, which prints the status of each command behind its output."""
    parts = []
    for step in steps:
        match step:
            case File(name, text):
                parts.append(f"cat > {shlex.quote(name)} <<'{_END}'\n{text}{_END}")
            case Command(text):
                parts.append(f"{text}\nprintf '{_END}%d{_END}' $?")
            case Shown():
                pass
    return "\n".join(parts) + "\n"


def outputs(steps: list[Step], folder: Path, environment: Mapping[str, str]) -> list[tuple[str, int]]:
    """What each command of a page prints to a terminal when all are run in a folder, and its status."""
    programs = (str(PROGRAMS), str(Path(sys.executable).parent), os.environ["PATH"])
    reader = {"PATH": os.pathsep.join(programs), "HOME": str(folder), "LANG": "C.UTF-8"}
    if are_forked():
        reader[warm.NURSERY] = str(warm.nursery().fileno())
    *pairs, rest = _on_terminal(script_of(steps), folder, {**reader, "TERM": "dumb", **environment}).split(_END)
    if len(pairs) != 2 * sum(isinstance(step, Command) for step in steps):
        raise PageIsWrong(f"the shell ended after {len(pairs) // 2} commands: {rest}")
    return [(output, int(status)) for output, status in zip(pairs[::2], pairs[1::2], strict=True)]


def _on_terminal(script: str, folder: Path, environment: Mapping[str, str]) -> str:
    """What a script prints to a terminal, where programs write for people; without colours."""
    reading, terminal = pty.openpty()
    with subprocess.Popen(
        ["bash", "-o", "pipefail", "-c", script],
        cwd=folder,
        env=environment,
        pass_fds=[int(environment[warm.NURSERY])] if warm.NURSERY in environment else [],
        stdin=subprocess.DEVNULL,
        stdout=terminal,
        stderr=terminal,
    ) as shell:
        os.close(terminal)
        chunks = []
        try:
            while chunk := os.read(reading, 2**16):
                chunks.append(chunk)
        except OSError:
            pass  # on Linux the terminal ends so, when nobody has it any more
        finally:
            os.close(reading)
            shell.kill()
    return _COLOUR.sub("", _ERASED.sub("", b"".join(chunks).decode().replace("\r\n", "\n")))


def is_shown(shown: str, came: str) -> bool:
    """Whether output is that which a page shows."""
    lines = [re.escape(line.rstrip()).replace("…", ".*") for line in shown.splitlines()]
    pattern = "".join("(?:.*\n)*" if line == ".*" else f"{line}[ ]*\n" for line in lines)
    return re.fullmatch(pattern, came.rstrip("\n") + "\n" if came.strip() else "") is not None


def check(text: str, at: Place, folder: Path) -> None:
    """Run a page's text. Raises `PageIsWrong` with the first line that does not show what comes."""
    prepare(text, at)
    steps = steps_of(at.put_into(text))
    came = iter(outputs(steps, folder, at.environment))
    for step in steps:
        match step:
            case Shown(shown, line) if not is_shown(shown, at.introduction):
                raise PageIsWrong(f"line {line}: the server printed\n{at.introduction}")
            case Command(command, shown, line, fails):
                output, status = next(came)
                if bool(status) != fails or not is_shown(shown, output):
                    raise PageIsWrong(f"line {line}: status {status}\n$ {command}\n{output}")


def prepare(text: str, at: Place) -> None:
    """Make what a page takes as given."""
    if CONNECTED in text:
        at.connect_tenant()


def missing_programs(text: str, *known: str) -> list[str]:
    """Which of these programs a page calls, and this machine lacks."""
    return [name for name in known if re.search(rf"\b{name} ", text) and shutil.which(name) is None]


def show(page: str) -> None:
    """Print what each command of a page prints."""
    text = (ROOT / page).read_text()
    with place("trio_server", text) as at, tempfile.TemporaryDirectory() as folder:
        prepare(text, at)
        steps = steps_of(at.put_into(text))
        told = [step for step in steps if isinstance(step, Command)]
        for command, (output, status) in zip(told, outputs(steps, Path(folder), at.environment), strict=True):
            sys.stdout.write(f"$ {command.text}\n{output}" + (f"[{status}]\n" if status else ""))


if __name__ == "__main__":
    show(sys.argv[1])
