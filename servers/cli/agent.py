"""`cloudid agent`: keeps a machine logged in."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
import tomllib
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Final

import click
from attrs import define

from cloudid_core.values import rfc3339

from ..client import LOGIN, STOPS, Address, Agent, Identity, Kept, NoSuchCommand, Service, exit_code
from ..machine import ServiceManager, why_unreadable
from ..terminal import Exit, Failed, printable
from .connection import Starting, with_address, with_identity

HURRY: Final = 60.0
"""Seconds that the command of --on-change has."""
TERMINATION: Final = 10.0
"""Seconds that a child has to end before it is killed."""
SIGNALS: Final = ("HUP", "INT", "TERM", "USR1", "USR2", "WINCH")


class _Stopped(BaseException):
    """A signal, or the end of the child, ends the agent with this code."""

    def __init__(self, code: int) -> None:
        self.code = code


def _configure(context: click.Context, _: click.Parameter, name: str | None) -> None:
    """What the file says stands in for options that are not given."""
    if name is None:
        return
    try:
        said = tomllib.loads(Path(name).read_text("utf-8-sig"))
    except tomllib.TOMLDecodeError as error:
        raise Failed(f"{name} is not valid TOML: {error}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise Failed(f"{name} cannot be read: {why_unreadable(error)}") from None
    known = {each.name or "": each for each in context.command.params if each.name != "config"}
    names = {max(each.opts, key=len).lstrip("-").replace("-", "_"): each.name or "" for each in known.values()}
    if unknown := said.keys() - names.keys():
        raise Failed(
            f"{name} has unknown options: {', '.join(sorted(map(ascii, unknown)))}; allowed are "
            f"{', '.join(sorted(names))}"
        )
    for each in ("command", "write"):
        if not isinstance(said.get(each, []), list):
            raise Failed(f"{name}: {each} must be a list")
    context.default_map = {names[each]: value for each, value in said.items()}


@click.command("agent", cls=Starting)
@click.option(
    "--config",
    metavar="FILE",
    is_eager=True,
    expose_value=False,
    callback=_configure,
    help="A TOML file with these options, named with _ instead of -. command and write are lists. Command-line options"
    " take precedence.",
)
@with_identity
@with_address
@click.option(
    "--write",
    "targets",
    multiple=True,
    metavar="SOURCE=FILE",
    help="Keep FILE up to date with the secret that SOURCE issues. SOURCE is login, or a path like cloud/creds/ROLE or"
    " cloud/token/ROLE?scope=SCOPE.",
)
@click.option(
    "--tenant",
    default="",
    envvar="AZURE_TENANT_ID",
    metavar="ID",
    help="The tenant id to write with credentials if the service does not return it. Default: AZURE_TENANT_ID.",
)
@click.option(
    "--on-change", default="", metavar="COMMAND", help="A command to run, without a shell, after files have changed."
)
@click.option("--signal", "signalled", type=click.Choice(SIGNALS), help="The signal to send CMD after a change.")
@click.option(
    "--restart", is_flag=True, help="Restart CMD after a change, with the credentials in environment variables."
)
@click.option("--revoke-on-exit", is_flag=True, help="Revoke the token and its leases when the agent exits.")
@click.option("--once", is_flag=True, help="Write the files once and exit, without retries.")
@click.argument("command", metavar="[-- CMD...]", nargs=-1)
def agent(
    identify: Callable[[], Identity],
    role: str,
    mount: str,
    address: Address,
    targets: tuple[str, ...],
    tenant: str,
    on_change: str,
    signalled: str | None,
    restart: bool,
    revoke_on_exit: bool,
    once: bool,
    command: tuple[str, ...],
) -> int:
    """Keep this machine logged in and its credential files up to date.

    The agent renews its token and leases before they expire. If a renewal is refused, it logs in again. Failures are
    retried with growing pauses. Each login, renewal and failure is a line on standard error.

    The name of FILE chooses its format: .json is JSON, .env holds environment variables for systemd, shells and Azure's
    SDKs, any other name holds only the token or secret. Files have mode 0600 and are replaced atomically.

    CMD starts as a child process when all files are written. The signals that stop the agent are passed on to it, and
    the agent exits with its exit code. Without --revoke-on-exit, the token and leases stay valid until they expire.
    """
    if (signalled and restart) or ((signalled or restart) and not command):
        raise click.UsageError("--signal and --restart cannot be combined, and need a CMD")
    if once and command:
        raise click.UsageError("--once cannot be combined with a CMD")
    if once and not targets:
        raise click.UsageError("--once needs --write")
    try:
        hook = shlex.split(on_change)
    except ValueError:
        raise click.UsageError("--on-change has an unclosed quote or a trailing backslash") from None
    child = _Child(command, signal.Signals[f"SIG{signalled}"] if signalled else None, restart)
    manager = ServiceManager(os.environ)

    def changed() -> None:
        if hook:
            _run(hook)
        child.refresh(keeper.environment)

    keeper = Agent(Service(address), mount, role, identify, _kept(targets), changed, _tell, tenant, not once)
    before = {each: signal.signal(each, child.on_signal) for each in (*STOPS, signal.SIGCHLD)}
    try:
        if once:
            keeper.keep()
            return Exit.FAILED if any(one.failures for one in keeper.kept) else Exit.DONE
        keeper.run(manager.ready)
    except _Stopped as stopped:
        return stopped.code
    finally:
        child.is_over = True
        manager.stopping()
        child.stop()
        if revoke_on_exit:
            keeper.end()
        for each, handler in before.items():
            signal.signal(each, handler)
    return Exit.DONE


def _kept(targets: Sequence[str]) -> list[Kept]:
    files: dict[str, list[Path]] = {LOGIN: []}
    for target in targets:
        source, _, file = target.rpartition("=")
        if not source or not file:
            raise click.UsageError("--write must be SOURCE=FILE")
        if any(Path(file) in others for others in files.values()):
            raise click.UsageError("--write names a FILE twice")
        files.setdefault(source.removeprefix("v1/"), []).append(Path(file))
    return [Kept(source, tuple(names)) for source, names in files.items()]


@define
class _Child:
    """The command that runs beside the agent, if there is one."""

    command: Sequence[str]
    signal_on_change: signal.Signals | None
    restarts: bool
    process: subprocess.Popen[bytes] | None = None
    is_over: bool = False
    """Whether the agent is ending already: no signal interrupts that."""

    def on_signal(self, number: int, _: FrameType | None) -> None:
        """Pass signals that stop the agent to the child, and end when the child ends."""
        process = self.process
        if process is not None and process.poll() is not None:
            self._end(exit_code(process.returncode))
        elif number in STOPS and process is not None:
            process.send_signal(number)
        elif number in STOPS:
            self._end(Exit.DONE)

    def refresh(self, environment: dict[str, str]) -> None:
        """Start it, or tell it that something is new."""
        if not self.command:
            return
        if self.process is not None and self.signal_on_change:
            self.process.send_signal(self.signal_on_change)
        if self.restarts:
            self.stop()
        if self.process is None:
            try:  # in a group of its own: a terminal would tell it a second time
                self.process = subprocess.Popen(
                    self.command, env={**os.environ, **(environment if self.restarts else {})}, process_group=0
                )
            except (OSError, ValueError) as error:
                raise NoSuchCommand(self.command, error) from None
            self.on_signal(signal.SIGCHLD, None)  # it may have ended before it was known here

    def stop(self) -> None:
        """End it, in peace if it will."""
        process, self.process = self.process, None
        if process is None or process.poll() is not None:
            return
        process.terminate()
        try:
            process.wait(TERMINATION)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _end(self, code: int) -> None:
        if not self.is_over:
            self.is_over = True
            raise _Stopped(code)


def _run(command: Sequence[str]) -> None:
    """Run the command of --on-change. A failure is only printed."""
    try:
        code = subprocess.run(command, timeout=HURRY, check=False).returncode
    except (OSError, ValueError) as error:
        _tell(f"--on-change: {NoSuchCommand(command, error)}")
    except subprocess.TimeoutExpired:
        _tell(f"--on-change: the command was stopped after {HURRY:g} seconds")
    else:
        if code:
            _tell(f"--on-change: the command exited with code {code}")


def _tell(text: str) -> None:
    with suppress(OSError):  # a closed stderr does not end the agent
        click.echo(f"{rfc3339.show(int(time.time()))} {printable(text)}", err=True)
