"""The parts of pages that are printed from tables and from what commands say of themselves."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from inspect import cleandoc
from itertools import groupby
from pathlib import Path
from typing import Final

import click
import msgspec

from benchmarks.walk import Stop, walk
from cloudid_core.auth_method import CHECKS
from cloudid_core.auth_method import config as auth_method
from cloudid_core.auth_method.checks import Stage
from cloudid_core.clouds import CLOUDS
from cloudid_core.forms.environment import FALLBACK, OVERRIDE
from cloudid_core.forms.fields import Field, fields_of
from cloudid_core.issuer import FACTS
from cloudid_core.mounts import AUTH, SECRET
from cloudid_core.permissions.table import ROTATE, Api, Feature, features_of
from cloudid_core.secrets_engine import config as secrets_engine
from cloudid_core.settings import Settings
from cloudid_core.system.audit import OPTIONS
from cloudid_servers.cli.examples import EXAMPLES
from cloudid_servers.cli.habits import HABITS
from cloudid_servers.cli.main import COMMANDS, PROGRAM, SECTIONS, commands
from cloudid_servers.client import KINDS
from cloudid_servers.settings import RELOADED, ServerSettings
from cloudid_servers.terminal import Exit

from . import azure
from .tables import table

DOCS: Final = Path(__file__).parents[2] / "docs"
PAGES: Final = tuple(
    sorted(
        (
            DOCS.parent / "README.md",
            DOCS / "why" / "architecture.md",
            *DOCS.glob("reference/*.md"),
            *DOCS.glob("how-to/*.md"),
        )
    )
)
_PART: Final = re.compile(r"(<!-- printed: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
FORMS: Final = (auth_method.Config, secrets_engine.Config)
EXITS: Final = {
    Exit.DONE: "Success. A check, a test or a verification found no problem.",
    Exit.FAILED: "The request was refused or failed, or the object does not exist; a line on standard error has the "
    "reason. Or a check, a test or a verification found a problem, which its report shows.",
    Exit.UNUSABLE: "The command line is invalid, or a file to test or verify cannot be read.",
    Exit.DIFFERENT: "`apply` only: the service differs from the folder, because of `--dry-run`, or because the service "
    "has rotated a secret and it was not replaced.",
    Exit.UNHEALTHY: "`status` only: the service answers, but is not healthy.",
    Exit.NOT_EXECUTABLE: "The command to run (with `--exec` or `agent`) is not a program, or may not be executed.",
    Exit.NO_COMMAND: "The command to run does not exist.",
    Exit.INTERRUPTED: "Interrupted by Ctrl-C.",
}


def admitted_walk() -> str:
    """The functions that an admitted login passes through."""
    return _drawn(walk())


def refused_walk() -> str:
    """The functions that a refused login passes through and an admitted one does not."""
    admitted = walk()
    return _drawn([stop for stop in walk(is_refused=True) if stop not in admitted])


def _drawn(stops: Iterable[Stop]) -> str:
    """A line for the functions of each module, in the order of their calls. Those of one statement are left out."""
    longer = [stop for stop in stops if stop.statements > 1]
    lines = [
        f"{module:28} {', '.join(stop.name.rpartition('.')[2] for stop in together)}"
        for module, together in groupby(longer, lambda stop: stop.module)
    ]
    return "\n".join(("```", *lines, "```", ""))


def stages() -> str:
    """The checks of a login in the order in which it runs them."""
    rows = ((stage.doc, ", ".join(f"`{check.name}`" for check in CHECKS if check.stage is stage)) for stage in Stage)
    return table(("stage", "checks"), rows) + "\n"


def settings() -> str:
    """The tables of the settings file."""
    devices = {f'[audit.<name>]` with `type = "{kind}"': options for kind, options in OPTIONS.items()}
    lines: list[str] = []
    for name, form in {"[server]": ServerSettings, "[service]": Settings, **devices}.items():
        lines += [f"### `{name}`", "", "| Key | Type | Default | Meaning |", "|---|---|---|---|"]
        lines += [*map(_setting, fields_of(form)), ""]
    lines += ["### `[clouds.<Name>]`", "", "| Key | Default for `CloudPublicCloud` |", "|---|---|"]
    lines += [f"| `{name}` | `{value}` |" for name, value in msgspec.structs.asdict(CLOUDS["CloudPublicCloud"]).items()]
    return "\n".join(lines) + "\n"


def _setting(row: Field) -> str:
    default = row.kind.show(row.default)
    shown = "" if default in ("", []) else f"`{str(default).lower() if isinstance(default, bool) else default}`"
    reloaded = " Reloaded by SIGHUP." if row.name in RELOADED else ""
    return f"| `{row.name}` | {row.kind.name} | {shown} | {row.doc}{reloaded} |"


def variables() -> str:
    """The environment variables that change configurations."""
    lines = ["| Variable | Fallback | Field of `auth/cloud/config` | Field of `cloud/config` |", "|---|---|---|---|"]
    login, engine = ({row.env: row.name for row in fields_of(form) if row.env} for form in FORMS)
    for name in dict.fromkeys((*login, *engine)):
        cells = (OVERRIDE + name, FALLBACK + name, login.get(name), engine.get(name))
        lines.append(f"| {' | '.join(f'`{cell}`' if cell else '' for cell in cells)} |")
    return "\n".join(lines) + "\n"


def identities() -> str:
    """The identities that `cloudid login` looks for."""
    rows = ((f"`{one.name}`", one.doc, ", ".join(f"`{name}`" for name in one.variables)) for one in KINDS)
    return table(("`--identity`", "This machine is", "What is set in its environment"), rows) + "\n"


def facts() -> str:
    """What templates of tokens for other services can name."""
    return table(("`NAME`", "What it is"), ((f"`{name}`", doc) for name, doc in FACTS.items())) + "\n"


def exits() -> str:
    """When a command ends with which exit code."""
    return table(("Code", "Meaning"), ((f"{code:d}", meaning) for code, meaning in EXITS.items())) + "\n"


def habits() -> str:
    """What cloudid makes of the command lines of `vault`."""
    rows = (
        (f"`vault {each.words}`", f"`{PROGRAM} {each.becomes}`" if each.becomes else each.answer) for each in HABITS
    )
    return table(("Typed", "Meant"), rows) + "\n"


def commands_by_section() -> str:
    """Every command, as its own help has it."""
    top = click.Context(commands, info_name=PROGRAM)
    lines: list[str] = []
    for section in SECTIONS:
        lines += [f"## {section}"]
        for listed in COMMANDS:
            if listed.section == section:
                lines += _described(listed.load(), top)
        lines += [""]
    return "\n".join(lines)


def _described(command: click.Command, parent: click.Context) -> Iterator[str]:
    """A command, and those below it."""
    context = click.Context(command, parent, info_name=command.name)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            if below := command.get_command(context, name):
                yield from _described(below, context)
        return
    usage = " ".join(command.collect_usage_pieces(context))
    yield from ("", f"### `{context.command_path}`", "", f"    {context.command_path} {usage}", "")
    yield cleandoc(command.help or "")
    helps = (option.get_help_record(context) for option in command.params if isinstance(option, click.Option))
    options = [record for record in helps if record]
    if options:
        yield from ("", "| Option | Meaning |", "|---|---|")
        yield from (_row(option, " ".join(meaning.split())) for option, meaning in options)
    path = context.command_path.removeprefix(f"{PROGRAM} ")
    yield from ("", *(f"    {example}" for example in EXAMPLES[path]))


def _row(option: str, meaning: str) -> str:
    option, meaning = (cell.replace("|", r"\|") for cell in (option, meaning))
    return f"| `{option}` | {meaning} |"


class Placeholders(dict[str, str]):
    """An occurrence of a problem in which each name stands for itself."""

    def __missing__(self, name: str) -> str:
        return f"{{{name}}}"


def role_definition(kind: str, name: str, description: str) -> str:
    """The command that makes a custom role of all actions that the features of a kind of mount need."""
    listed = ",\n".join(f'      "{action}"' for action in _least(features_of(kind), Api.RESOURCES))
    return f"""```console
$ az role definition create --output none --role-definition '{{
    "Name": "{name}",
    "Description": "{description}",
    "AssignableScopes": ["/subscriptions/'$SUBSCRIPTION'"],
    "Actions": [
{listed}
    ]}}'
```
"""


def directory_permissions(kind: str, *names: str) -> str:
    """The commands that ask for the permissions in the directory that features need."""
    permissions = _least((feature for feature in features_of(kind) if feature.name in names), Api.DIRECTORY)
    add = "$ az ad app permission add --id $ENGINE --api $GRAPH --api-permissions"
    return "\n".join(("```console", *(f"{add} $(role_id {each})=Role" for each in permissions), "```", ""))


def _least(features: Iterable[Feature], api: Api) -> list[str]:
    """The permissions with the least rights that features need."""
    return sorted({need.any_of[0] for feature in features for need in feature.needs if need.api is api})


PARTS: Final[Mapping[str, Callable[[], str]]] = {
    "settings": settings,
    "stages": stages,
    "admitted_walk": admitted_walk,
    "refused_walk": refused_walk,
    "variables": variables,
    "identities": identities,
    "azure": azure.sentence,
    "facts": facts,
    "login_role": partial(role_definition, AUTH, "cloudid logins", "Looks up the machines that log in"),
    "engine_role": partial(
        role_definition, SECRET, "cloudid engine", "Assigns roles to the service principals that it issues"
    ),
    "engine_permissions": partial(directory_permissions, SECRET, "roles with azure_roles", ROTATE),
    "exits": exits,
    "habits": habits,
    "commands": commands_by_section,
}


def printed(page: str) -> str:
    """The page with all its printed parts as the tables have them now."""
    return _PART.sub(lambda found: found[1] + PARTS[found[2]]() + found[3], page)
