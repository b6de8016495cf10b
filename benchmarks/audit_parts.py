"""Where the CPU of audit goes: microseconds for a login, by parts, beside what it takes in the core without a device.

    python -m benchmarks.audit_parts [--machines N] [--rounds N]

All is in one process without sockets and event loop. What the loop takes to let each login wait twice comes on top: the
ratios of `benchmarks.audit` have it. Of each part the median over all rounds counts.

    core         the `request_warm` of `benchmarks.login_verification`: no device is enabled
    entries      what it takes more with a device, since the core makes both entries of the login
    hashes       the share of `entries` for keyed hashes: of the JWT, and of the token that is given and its accessor
    turn of N    chaining and writing both entries, where N entries come in a turn of the event loop
    fsync of N   the wait for the disk besides: the kernel's part of it
"""

from __future__ import annotations

import argparse
import gc
import os
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any, Final, cast

from cloudid_core import run_now
from cloudid_core.audit import FILE, DeclaredDevice, Entries
from cloudid_core.effects import Ready
from cloudid_core.events import Event
from cloudid_servers.audit.devices import FileDevice
from cloudid_servers.runtime import Runtime

from .fleet import Fleet, open_login, raise_fleet
from .report import environment, environment_text

TURNS: Final = (1, 8, 32)
ACCESSOR: Final = "a" * 24
TOKEN: Final = "t" * 96


def parts(machines: int, rounds: int, folder: Path) -> dict[str, float]:
    """Each part in microseconds for a login."""
    fleet, path = raise_fleet(machines), str(folder / "audit.log")
    declared = DeclaredDevice(name="file", type=FILE, options={"file_path": path})
    plain, audited, made = logins(fleet), logins(fleet, audit_devices=(declared,)), entries(fleet, declared)
    [device] = made[0].devices
    file = FileDevice(device, "benchmark", lambda checkpoints: None, cast(Runtime, None))

    def hash_all() -> None:
        for member in fleet.members:
            for secret in (member.token, TOKEN, ACCESSOR):
                device.hasher.text(secret)

    def write_all(turn: int, *, waits: bool) -> None:
        for start in range(0, len(made), turn):
            file.begin([text for each in made[start : start + turn] for text in each.texts])
            if waits:
                os.fdatasync(descriptor)

    file.begin(made[0].texts)
    descriptor = os.open(path, os.O_WRONLY)
    contenders: dict[str, Callable[[], None]] = {"core": plain, "with entries": audited, "hashes": hash_all}
    for turn in TURNS:
        contenders |= {
            f"turn of {turn}": partial(write_all, turn, waits=False),
            f"fsync of {turn}": partial(write_all, turn, waits=True),
        }
    for run in contenders.values():
        run()
    taken = [{name: seconds(run) / machines * 1e6 for name, run in contenders.items()} for _ in range(rounds)]
    os.close(descriptor)
    for each in taken:
        each["with entries"] -= each["core"]
        for turn in TURNS:
            each[f"fsync of {turn}"] -= each[f"turn of {turn}"]
    return {name.removeprefix("with "): median(each[name] for each in taken) for name in contenders}


def logins(fleet: Fleet, record: Callable[[Event], None] = lambda event: None, **settings: Any) -> Callable[[], None]:
    """A login of each member, at a service of their own whose host hands events on."""
    service, host = open_login(fleet, fact_max_age=86_400, **settings)

    def recorded(event: Event) -> Ready[None]:
        record(event)
        return Ready(None)

    host.record = recorded  # type: ignore[method-assign]

    def log_in_all() -> None:
        for member in fleet.members:
            answer = run_now(service.work_on(service.begin(member.request)), host)
            assert answer.status == 200, answer.body

    return log_in_all


def entries(fleet: Fleet, declared: DeclaredDevice) -> Sequence[Entries]:
    """The entries of a login of each member."""
    made: list[Entries] = []

    def keep(event: Event) -> None:
        if event.audit is not None and not event.audit.is_trial:
            made.append(event.audit)

    logins(fleet, keep, audit_devices=(declared,))()
    return made[-2 * len(fleet.members) :]


def seconds(run: Callable[[], None]) -> float:
    gc.collect()
    start = process_time()
    run()
    return process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit_parts", description=__doc__.split("\n")[0])
    parser.add_argument("--machines", type=int, default=512, help="machines, each with its token (512)")
    parser.add_argument("--rounds", type=int, default=15, help="rounds (15)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = parts(options.machines, options.rounds, Path(folder))
    print(environment_text(environment()) + "\n")
    for name, figure in figures.items():
        print(f"{name:12}{figure:8.1f}")


if __name__ == "__main__":
    main()
