"""Completion: the lines that make a shell complete the words of `cloudid`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from ..terminal import Failed
from .main import COMPLETE, PROGRAM, commands


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def show(shell: str) -> None:
    """Print what makes a shell complete the words of this command.

    Bash: `eval "$(cloudid completion bash)"` in ~/.bashrc. Zsh: the same with zsh in ~/.zshrc. Fish: `cloudid
    completion fish > ~/.config/fish/completions/cloudid.fish`.
    """
    found = get_completion_class(shell)
    if found is None:
        raise Failed(f"{shell} is not known")
    click.echo(found(commands, {}, PROGRAM, COMPLETE).source())
