"""Completion: `cloudid completion`, and the paths and fields that the tables know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import click
from click.shell_completion import CompletionItem, get_completion_class

from cloudid_core.catalog import CATALOG
from cloudid_core.messages import Operation
from cloudid_core.mounts import AUTH, BUILT_IN, SECRET

from ..paths import MOUNTABLE, fields_at
from ..terminal import Failed
from .main import COMPLETE, PROGRAM, commands

USUAL: Final = {AUTH: "auth/cloud", SECRET: "cloud"}
"""Where a component of each kind is mounted by default."""
CAPTURES: Final = (":", "*")
"""A segment of a pattern that begins so stands for any text."""


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a shell completion script.

    For bash, add `eval "$(cloudid completion bash)"` to ~/.bashrc. For zsh, add `eval "$(cloudid completion zsh)"` to
    ~/.zshrc. For fish, run `cloudid completion fish > ~/.config/fish/completions/cloudid.fish`.
    """
    found = get_completion_class(shell)
    if found is None:
        raise Failed(f"{shell} is not supported")
    click.echo(found(commands, {}, PROGRAM, COMPLETE).source())


def complete_path(operation: Operation, _: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
    """Completes paths that have an operation: as much of each as is the same whatever the names in it."""
    offers: dict[str, str] = {}
    for pattern, doc in _patterns(operation, typed):
        if (offer := _continued(typed, pattern)) is not None:
            offers.setdefault(offer, doc)
    return [CompletionItem(offer, help=doc) for offer, doc in sorted(offers.items())]


def complete_field(
    operation: Operation, context: click.Context, _: click.Parameter, typed: str
) -> list[CompletionItem]:
    """Completes the names of the fields that an operation takes at the path before them."""
    fields = fields_at(str(context.params.get("path") or ""), operation)
    return [
        CompletionItem(f"{name}=", help=field.doc) for name, field in fields.items() if f"{name}=".startswith(typed)
    ]


def _patterns(operation: Operation, typed: str) -> Iterator[tuple[Sequence[str], str]]:
    """The patterns of all routes that have an operation, below each place where their component may be mounted."""
    is_built_in = any(f"{typed}/".startswith(f"{mount.path}/") for mount in BUILT_IN)
    for component in CATALOG:
        places = [mount.path for mount in BUILT_IN if CATALOG.of(mount) is component] or [USUAL[component.kind]]
        if component is MOUNTABLE.get(component.kind) and not is_built_in:
            is_login = typed.startswith("auth/")
            if is_login is (component.kind == AUTH):
                places.append("auth/:mount" if is_login else ":mount")
        for place in places:
            for route in component.routes.routes:
                if route.operation is operation:
                    yield f"{place}/{route.path}".split("/"), route.doc


def _continued(typed: str, pattern: Sequence[str]) -> str | None:
    """What was typed, continued by a pattern up to the next name that only the user knows; `None` if it differs."""
    *done, last = typed.split("/")
    if len(pattern) <= len(done):
        return None
    if any(known != given and not known.startswith(CAPTURES) for known, given in zip(pattern, done, strict=False)):
        return None
    rest = []
    for segment in pattern[len(done) :]:
        if segment.startswith(CAPTURES):
            rest.append("")
            break
        rest.append(segment)
    offer = "/".join(rest)
    return "/".join([*done, offer]) if offer and offer.startswith(last) else None
