"""Programs: from a command line to an exit code, with errors of one line."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from traceback import extract_tb
from typing import Any, Final

import click

from cloudid_core.advice import advice_on
from cloudid_core.errors import CloudidError, Refused

from .. import extras
from ..machine import streams
from ..runtime import INTERRUPTED, until_interrupted
from .human import RED, has_colours, in_colour
from .output import JSON_ERRORS, printable, show_progress

TRACEBACK: Final = "CLOUDID_TRACEBACK"
"""The environment variable that has a bug end a command with a traceback."""


class Exit(IntEnum):
    """What a script learns from a command; the page of the commands says when each comes."""

    DONE = 0
    FAILED = 1
    UNUSABLE = 2
    DIFFERENT = 3
    UNHEALTHY = 4
    NOT_EXECUTABLE = 126
    NO_COMMAND = 127
    INTERRUPTED = INTERRUPTED


class Failed(click.ClickException):
    """A command cannot do what it should; the text says why, and what to do."""

    exit_code = Exit.FAILED

    def __init__(self, message: str, *, document: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.document: Mapping[str, Any] = document or {"errors": [message], "codes": []}
        """The same for programs."""


class Unusable(Failed):
    """What a command is to test or to verify cannot be read."""

    exit_code = Exit.UNUSABLE


class NotExecutable(Failed):
    """The command that should run cannot be executed."""

    exit_code = Exit.NOT_EXECUTABLE


class NoCommand(Failed):
    """The command that should run does not exist."""

    exit_code = Exit.NO_COMMAND


def without_slashes(_: click.Context, __: click.Parameter, path: str) -> str:
    """The path of a mount, which the service shows with a slash at its end."""
    return path.strip("/")


def run(command: click.Command, program: str, arguments: Sequence[str] | None = None, obj: object = None) -> int:
    """Do what a command line says, and answer the exit code; what is wrong is a line on standard error.

    `obj` is what the commands find in their context. `arguments`: without them, those of the process.
    """
    streams.open_missing()
    words = list(sys.argv[1:] if arguments is None else arguments)
    return until_interrupted(lambda: with_reasons(lambda: _invoke(command, program, words, obj)))


def with_reasons(work: Callable[[], int | None]) -> int:
    """The exit code of some work: its own, or another with the reason on stderr when it fails."""
    try:
        return work() or Exit.DONE
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        streams.write(streams.STDERR, f"{error.format_message()}\n")
        return Exit.UNUSABLE
    except click.UsageError as error:
        return _complain(_usage(error), Exit.UNUSABLE)
    except click.ClickException as error:
        return _complain(error.format_message(), error.exit_code)
    except click.Abort:  # Ctrl-C or Ctrl-D at a question
        return Exit.INTERRUPTED
    except CloudidError as error:
        return _complain("\n".join([str(error), *_advice_lines(error)]), Exit.FAILED)
    except BrokenPipeError:  # the reader has closed the pipe
        streams.forget_unwritten()
        return Exit.FAILED
    except OSError as error:
        streams.forget_unwritten()
        return _complain(system_reason(error), Exit.FAILED)
    except ImportError as error:
        if text := extras.remedy(error):
            return _complain(text, Exit.FAILED)
        raise
    except Exception as bug:  # whatever it is, a person gets one line
        if os.environ.get(TRACEBACK):
            raise
        if isinstance(bug, UnicodeEncodeError) and bug.reason == "surrogates not allowed":
            return _complain("an argument is not valid UTF-8", Exit.UNUSABLE)
        return _complain(
            f"this is a bug in cloudid ({_place(bug)}): run the command again with {TRACEBACK}=1, and "
            "report the output",
            Exit.FAILED,
        )


def _advice_lines(error: CloudidError) -> list[str]:
    """The cause and the fix of a refusal, such as that of a server which does not start."""
    advice = advice_on([error.code.wire]) if isinstance(error, Refused) else None
    return [f"cause: {advice.cause}", f"fix: {advice.fix}"] if advice else []


def _invoke(command: click.Command, program: str, words: list[str], obj: object) -> int:
    with command.make_context(program, words, obj=obj) as context:
        try:
            code = command.invoke(context)
        except (Failed, CloudidError) as failure:
            if not context.meta.get(JSON_ERRORS):
                raise
            return _complain_in_json(failure)
    return code if isinstance(code, int) else Exit.DONE


def _complain_in_json(failure: Failed | CloudidError) -> int:
    """Write an error as one line of JSON, for a program that asked for JSON."""
    known = failure if isinstance(failure, Failed) else Failed(str(failure))
    show_progress("")
    streams.write(streams.STDERR, json.dumps(known.document, ensure_ascii=False) + "\n")
    return known.exit_code


def system_reason(error: OSError) -> str:
    """What the system refused, and of which file."""
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename else reason


def _usage(error: click.UsageError) -> str:
    text = " ".join(error.format_message().split()).rstrip(".")
    see = " See" if text.endswith("?") else "; see"
    return f"{text}{see} {error.ctx.command_path} --help" if error.ctx else text


def _place(bug: BaseException) -> str:
    """The type of an exception, and where it was raised; its text may hold a secret."""
    while isinstance(bug, BaseExceptionGroup):
        bug = bug.exceptions[0]
    frames = extract_tb(bug.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(bug).__name__}{where}"


def _complain(text: str, code: int) -> int:
    """Write an error. Names in it may come from a service, so control characters are escaped."""
    show_progress("")
    word = in_colour("error:", RED) if has_colours(sys.stderr.isatty()) else "error:"
    streams.write(streams.STDERR, f"{word} {printable(text)}\n")
    return code
