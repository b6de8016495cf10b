"""`cloudid simulate`, and the comparison of the simulated Azure with a recorded tenant."""

from __future__ import annotations

import json
from collections.abc import Set
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import click

from cloudid_core.effects import HttpRequest
from cloudid_core.values.secret import Secret

from ..provider_simulator import APP_ROLES, Simulator, start
from ..provider_simulator.command import simulate as served
from ..terminal import Exit, printable
from ..transcripts import Tenant, differences, read, record, unlike_the_tables


def _run(compare: Path | None, **options: Any) -> int:
    if compare is None:
        served.callback(**options)  # type: ignore[misc]  # a command has one
        return Exit.DONE
    recorded = list(read(compare))
    with start(Simulator(options["seed"])) as cloud, TemporaryDirectory() as folder:
        ours: list[dict[str, Any]] = []
        steps = {str(line["step"]) for line in recorded}
        paths = {str(line["path"]) for line in recorded if line["step"] == "machine"}
        record(_tenant(cloud.simulator, steps, paths), Path(folder), ours.append, cloud.url)
    found = [*differences(recorded, ours), *unlike_the_tables(recorded)]
    click.echo(printable("\n".join([*found, f"{len(recorded)} calls, {len(found)} differences"])))
    return Exit.FAILED if found else Exit.DONE


def _tenant(simulator: Simulator, steps: Set[str], paths: Set[str]) -> Tenant:
    """What the simulated cloud has for the steps that were recorded."""
    world = json.loads(simulator.handle(HttpRequest("GET", "/simulator/world")).response.body)
    application = world["applications"][0]
    machine = world["machines"][0]
    return Tenant(
        world["tenant"],
        machine["subscription"],
        machine["resource_group"],
        application["client_id"],
        Secret(application["client_secret"]),
        _machines(world, paths),
        world["groups"][0]["id"] if "group" in steps else "",
        "Directory Readers" if "directory role" in steps else "",
        _app_role(simulator) if "app role" in steps else "",
    )


KINDS: Final = {
    "/virtualMachines/": "vm-system",
    "/virtualMachineScaleSets/": "fleet-uniform",
    "/userAssignedIdentities/": "fleet-flexible",
    "/Microsoft.Web": "shop",
}
"""The machine whose look-up makes a call with this in its path."""


def _machines(world: Any, paths: Set[str]) -> tuple[str, ...]:
    """Machines like those that were looked up."""
    names = {name for part, name in KINDS.items() if any(part in path for path in paths)}
    return tuple(each["resource_id"] for each in world["machines"] if each["name"] in names)


def _app_role(simulator: Simulator) -> str:
    """An app role of the API that the simulated cloud has."""
    principals = simulator.world.directory.principals.all()
    api = next(each for each in principals if each.display_name in APP_ROLES)
    return f"{api.id}/{next(iter(APP_ROLES[api.display_name]))}"


simulate = click.Command(
    "simulate",
    callback=_run,
    help=f"""{served.help}

    With --compare it starts no server. Instead, it repeats against the simulated Azure the calls that `connect azure
    --record` made to your tenant. It shows where your tenant answered differently, and where your tenant differs from
    what is publicly known of Azure. The exit code is 1 if there is a difference.
    """,
    params=[
        *served.params,
        click.Option(
            ["--compare"],
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Compare the simulated Azure with this transcript.",
        ),
    ],
)
