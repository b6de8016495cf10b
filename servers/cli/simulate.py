"""`cloudid simulate`, and whether the simulated cloud answers as one that somebody recorded."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from cloudid_core.effects import HttpRequest
from cloudid_core.values.secret import Secret

from ..provider_simulator import Simulator, start
from ..provider_simulator.command import simulate as served
from ..terminal import Exit, printable
from ..transcripts import Tenant, differences, read, record


def _run(compare: Path | None, **options: Any) -> int:
    if compare is None:
        served.callback(**options)  # type: ignore[misc]  # a command has one
        return Exit.DONE
    recorded = list(read(compare))
    with start(Simulator(options["seed"])) as cloud, TemporaryDirectory() as folder:
        ours: list[dict[str, Any]] = []
        looks_up = any(line["step"] == "machine" for line in recorded)
        record(_tenant(cloud.simulator, looks_up=looks_up), Path(folder), ours.append, cloud.url)
    found = list(differences(recorded, ours))
    click.echo(printable("\n".join([*found, f"{len(recorded)} calls, {len(found)} differences"])))
    return Exit.FAILED if found else Exit.DONE


def _tenant(simulator: Simulator, *, looks_up: bool) -> Tenant:
    world = json.loads(simulator.handle(HttpRequest("GET", "/simulator/world")).response.body)
    application = world["applications"][0]
    machine = world["machines"][0]
    return Tenant(
        world["tenant"],
        machine["subscription"],
        machine["resource_group"],
        application["client_id"],
        Secret(application["client_secret"]),
        machine["resource_id"] if looks_up else "",
    )


simulate = click.Command(
    "simulate",
    callback=_run,
    help=f"""{served.help}

    With --compare it does what `connect azure --record` does, with the simulated cloud, and says where that answers
    otherwise than the tenant of the transcript. Exit code 1: somewhere.
    """,
    params=[
        *served.params,
        click.Option(
            ["--compare"], type=click.Path(path_type=Path), metavar="FILE", help="Compare it with a transcript."
        ),
    ],
)
