"""Run a command with issued credentials, which are revoked when it ends, however it ends."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from collections.abc import Callable, Collection, Mapping, Sequence
from shutil import which
from typing import Final

from cloudid_core.errors import CloudidError

STOPS: Final = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
"""Signals that are passed on to the command. SIGQUIT still ends this process at once."""
BY_SIGNAL: Final = 128
"""What shells add to the number of the signal that ended a command."""
LOOKS_EVERY: Final = 1.0
"""Seconds. Where this process has other threads, one of them may receive the signal for the command's end."""


class NoSuchCommand(CloudidError):
    """The command cannot be started."""

    def __init__(self, command: Sequence[str], error: OSError | ValueError) -> None:
        reason = (
            error.strerror
            if isinstance(error, OSError)
            else ("an argument has a character that commands cannot contain")
        )
        self.is_there = not isinstance(error, FileNotFoundError)
        """Whether there is such a file, which is no program or not this user's to run."""
        super().__init__(f"the command cannot be started: {command[0]}: {reason}")


def require_program(command: Sequence[str]) -> None:
    """Raises `NoSuchCommand` if there is no program to run, before credentials are issued for it."""
    if which(command[0]) is None:
        number = errno.EACCES if "/" in command[0] and os.path.exists(command[0]) else errno.ENOENT
        raise NoSuchCommand(command, OSError(number, os.strerror(number)))


def run_command(command: Sequence[str], environment: Mapping[str, str], give_back: Callable[[], None]) -> int:
    """Run a command to its end and then `give_back`; the exit code, as a shell would tell it.

    Signals that ask this process to stop go to the command, and `give_back` is not interrupted by them. Raises
    `NoSuchCommand`, after it gave back.
    """
    awaited = STOPS | {signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    try:
        try:
            return _run(command, environment, awaited, before)
        finally:
            give_back()
            while signal.sigpending() & STOPS:  # the command has the signal, or has ended
                signal.sigwait(STOPS)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _run(
    command: Sequence[str], environment: Mapping[str, str], awaited: frozenset[signal.Signals], mask: Collection[int]
) -> int:
    def unblock() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    try:
        child = subprocess.Popen(command, env=dict(environment), preexec_fn=unblock)
    except (OSError, ValueError) as error:
        raise NoSuchCommand(command, error) from None
    while child.poll() is None:
        received, is_told = _next_signal(awaited)
        if received in STOPS and not is_told:
            child.send_signal(received)
    return exit_code(child.returncode)


def exit_code(returned: int) -> int:
    """The exit code of a command that has ended, as a shell would tell it."""
    return returned if returned >= 0 else BY_SIGNAL - returned


def _next_signal(awaited: frozenset[signal.Signals]) -> tuple[int, bool]:
    """The next signal, and whether the command has it already: a terminal sends it to both.

    If they get a signal twice, some programs stop without cleaning up. If no signal comes for a while, the command may
    have ended.
    """
    if hasattr(signal, "sigtimedwait"):
        received = signal.sigtimedwait(awaited, LOOKS_EVERY)
        return (received.si_signo, received.si_pid == 0) if received else (signal.SIGCHLD, True)
    number = signal.sigwait(awaited)
    return number, number == signal.SIGINT
