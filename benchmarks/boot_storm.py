"""Thousands of machines that start at once, at a provider that admits few reads.

    python -m benchmarks.boot_storm [--json] [--servers …] [--storms …] [--scale SHARE] [--plot OUT.svg]

The simulated cloud has one subscription with the provider's bucket: 250 reads at once, then 25 a second, 429 beyond;
an answer takes 0.1 s, and each page of a list has 100 entries and costs a read. Each machine connects when its time has
come, sends its first login and waits for the answer as long as it takes; none asks twice.

    fleets     10,000 machines within 60 s, in 50 resource groups: plain ones, and 20 scale sets of both kinds
    strangers  5,000 machines within 60 s, each in a group of its own. The service may read these groups, and nothing
               in the subscription itself: each machine costs a read, and the bucket admits the last one after 190 s

Beside each storm 50 machines go on logging in that the service knows: each waits for its answer, and then a tenth of a
second. `known` is the rate of these during the storm as a share of that before and after it. `last_in` is when the last
machine was in, in seconds after the first one came; `overtaken` by how much a machine had come earlier, at most, than
one that was in before it. It exits with 1 when a bound is missed. `--scale 0.1` plays a tenth, in a tenth of the time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from bisect import bisect_right
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
from attrs import Factory, define, frozen

from cloudid_servers.provider_simulator import Simulator

from . import timeline
from .fleet import AUDIENCE, BASE_URL, ask_cloud
from .processes import Places, pin, server
from .report import environment, environment_text, tell
from .servers import MODULES
from .targets import cloud_of, configure, initialise, post
from .timeline import Chart

BURST: Final = 250
RATE: Final = 25
LATENCY: Final = 0.1
PAGE: Final = 100
ARRIVAL_SECONDS: Final = 60.0
KNOWN: Final = 50
KNOWN_PAUSE: Final = 0.1
WARM_UP_SECONDS: Final = 2.0
DEADLINE: Final = 240
LOCATION: Final = "westus2"
ROLE: Final = "far"
CONFIGURATION: Final = f"""
[server]
listen = "127.0.0.1:0"
connection_limit = 12000
log_level = "error"

[service]
request_deadline = {DEADLINE}
fact_max_age = 600
"""


@frozen
class Storm:
    """What comes, and what must become of it."""

    machines: int
    orders: Callable[[int], dict[str, Any]]
    """What the simulated cloud is asked to make for each machine."""
    reads: Callable[[int], float]
    """How many reads so many machines may cost."""
    last_in: Callable[[int, float], float]
    """Seconds after which the last of so many machines must be in that come within so many seconds."""
    faults: tuple[dict[str, Any], ...] = ()
    is_in_order: bool = False


def _order_of_a_fleet(number: int) -> dict[str, Any]:
    """A tenth is in ten uniform sets, a tenth in ten flexible ones."""
    fleet = number // 10 % 10
    kind = {0: "vmss_uniform", 1: "vmss_flexible"}.get(number % 10)
    if kind is None:
        return {"resource_group": f"group-{number * 7919 % 50}"}
    return {"kind": kind, "scale_set": f"{kind[5:]}-{fleet}", "resource_group": f"group-{fleet + number % 10 * 10}"}


FORBIDDEN: Final = {"status": 403, "code": "AuthorizationFailed"}
STORMS: Final[Mapping[str, Storm]] = {
    "fleets": Storm(10_000, _order_of_a_fleet, lambda machines: 400, lambda machines, span: span + 30),
    "strangers": Storm(
        5_000,
        lambda number: {"resource_group": f"group-{number}"},
        lambda machines: 1.1 * machines,
        lambda machines, span: max(span, (machines - BURST) / RATE) + 30,
        faults=({"match": {"path": "/arm/subscriptions/[^/]+/providers/"}, "action": FORBIDDEN},),
        is_in_order=True,
    ),
}


@frozen
class Scene:
    """The simulated cloud, and the logins in the order in which they come."""

    cloud: Simulator
    config: Mapping[str, str]
    newcomers: Sequence[bytes]
    known: Sequence[bytes]


@define
class Course:
    """What happened, in seconds since the storm began."""

    alone: float
    """Seconds for which the known machines are alone, before and after the storm."""
    came: list[float] = Factory(list)
    went_in: list[tuple[float, float]] = Factory(list)
    """Who is in: when it came, and when it was answered."""
    failures: Counter[str] = Factory(Counter)
    known: list[float] = Factory(list)
    """When a known machine was answered; before the storm: negative."""
    known_failures: Counter[str] = Factory(Counter)
    reads: list[tuple[float, float]] = Factory(list)
    throttled: int = 0

    @property
    def last_in(self) -> float:
        return max((at for _, at in self.went_in), default=0.0)

    @property
    def overtaken(self) -> float:
        most, latest = 0.0, 0.0
        for came, _ in sorted(self.went_in, key=lambda each: each[1]):
            latest = max(latest, came)
            most = max(most, latest - came)
        return most

    @property
    def known_share(self) -> float:
        end = max(self.last_in, 1.0)
        before = sum(1 for at in self.known if -self.alone <= at < 0)
        during = sum(1 for at in self.known if 0 <= at < end)
        after = sum(1 for at in self.known if end <= at < end + self.alone)
        return (during / end) / ((before + after) / (2 * self.alone)) if before + after else 0.0


def raise_scene(storm: Storm, machines: int) -> Scene:
    """Make the machines, and let each fetch its token."""
    cloud = Simulator(base_url=BASE_URL)
    world = ask_cloud(cloud, "GET", "/simulator/world")
    application = {name: world["applications"][0][name] for name in ("client_id", "client_secret")}
    known = [{"resource_group": "known", "name": f"known-{number}"} for number in range(KNOWN)]
    newcomers = [{**storm.orders(number), "name": f"new-{number}"} for number in range(machines)]
    return Scene(
        cloud,
        {**application, "tenant_id": world["tenant"], "resource": AUDIENCE},
        [_login(cloud, order) for order in newcomers],
        [_login(cloud, order) for order in known],
    )


def _login(cloud: Simulator, order: dict[str, Any]) -> bytes:
    made = ask_cloud(cloud, "POST", "/simulator/machines", {**order, "location": LOCATION})
    query = f"api-version=2018-02-01&resource={AUDIENCE}"
    path = f"/machines/{order['name']}/metadata/identity/oauth2/token?{query}"
    form = {
        "role": ROLE,
        "jwt": ask_cloud(cloud, "GET", path)["access_token"],
        "subscription_id": made["subscription"],
        "resource_group_name": made["resource_group"],
        "vmss_name" if "scale_set" in order else "vm_name": order.get("scale_set", order["name"]),
    }
    return post("auth/cloud/login", json.dumps(form).encode())


@define
class Player:
    """Plays a storm at a server, from one thread."""

    host: str
    port: int
    cloud: str
    course: Course
    began: float = 0.0
    is_over: bool = False

    @property
    def now(self) -> float:
        return perf_counter() - self.began

    async def play(self, scene: Scene, span: float) -> None:
        """The known machines alone, then the storm beside them."""
        self.began = perf_counter() + WARM_UP_SECONDS + self.course.alone
        known = [asyncio.create_task(self._go_on(request)) for request in scene.known]
        count = len(scene.newcomers)
        shuffled = [scene.newcomers[number * 7907 % count] for number in range(count)]
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
            await asyncio.sleep(-self.now)
            first = await self._count(client)
            watch = asyncio.create_task(self._watch(client, first))
            await asyncio.gather(*(self._come(number * span / count, each) for number, each in enumerate(shuffled)))
            watch.cancel()
            counted = await self._count(client)
            self.course.reads.append((self.now, counted["admitted"] - first["admitted"]))
            self.course.throttled = counted["throttled"] - first["throttled"]
        await asyncio.sleep(self.course.alone + 1)
        self.is_over = True
        await asyncio.gather(*known)

    async def _come(self, at: float, request: bytes) -> None:
        await asyncio.sleep(at - self.now)
        came = self.now
        self.course.came.append(came)
        status = await self._attempt(lambda: self._ask_once(request))
        if status == "200":
            self.course.went_in.append((came, self.now))
        else:
            self.course.failures[status] += 1

    async def _ask_once(self, request: bytes) -> str:
        reader, writer = await asyncio.open_connection(self.host, self.port)
        try:
            return await _exchange(reader, writer, request)
        finally:
            writer.close()

    async def _go_on(self, request: bytes) -> None:
        reader, writer = await asyncio.open_connection(self.host, self.port)
        while not self.is_over:
            status = await self._attempt(lambda: _exchange(reader, writer, request))
            if status == "200":
                self.course.known.append(self.now)
            else:
                self.course.known_failures[status] += 1
                if status != "503":
                    break
            await asyncio.sleep(KNOWN_PAUSE)
        writer.close()

    async def _attempt(self, work: Callable[[], Awaitable[str]]) -> str:
        try:
            return await asyncio.wait_for(work(), 2 * DEADLINE)
        except (OSError, EOFError, TimeoutError) as error:
            return type(error).__name__

    async def _watch(self, client: httpx.AsyncClient, first: Mapping[str, int]) -> None:
        while True:
            counted = await self._count(client)
            self.course.reads.append((self.now, counted["admitted"] - first["admitted"]))
            tell(f"{self.now:4.0f} s: {len(self.course.went_in)} of {len(self.course.came)} are in")
            await asyncio.sleep(1)

    async def _count(self, client: httpx.AsyncClient) -> dict[str, int]:
        counts: dict[str, int] = (await client.get(f"{self.cloud}/simulator/requests")).json()["arm_reads"]
        return counts


async def _exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> str:
    """The status of an answer."""
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:-2])
    await reader.readexactly(int(fields.get(b"content-length", b"0")))
    return head.split(b" ", 2)[1].decode()


def run(name: str, module: str, scale: float, alone: float, places: Places, folder: Path) -> Course:
    """Play a storm at a server."""
    storm = STORMS[name]
    tell(f"{name}: making machines")
    scene = raise_scene(storm, max(1, int(storm.machines * scale)))
    settings = folder / "cloudid.toml"
    settings.write_text(CONFIGURATION, "utf-8")
    root_token = initialise(settings)
    behaviour = {"throttle": {"arm_reads": [BURST, RATE]}, "page_size": PAGE}
    slow = {"match": {"family": "arm"}, "action": {"delay": LATENCY}}
    faults = [*({**fault, "action": {**fault["action"], "delay": LATENCY}} for fault in storm.faults), slow]
    course = Course(alone)
    with (
        cloud_of(scene.cloud, places.cloud) as cloud,
        server(places.server, folder / "log", module, "--settings", str(settings), "--provider", cloud) as running,
    ):
        role = {"bound_locations": [LOCATION]}
        configure(running.url, root_token, {"auth/cloud/config": scene.config, f"auth/cloud/role/{ROLE}": role})
        for path, body in (("behaviour", behaviour), ("faults", faults)):
            httpx.post(f"{cloud}/simulator/{path}", json=body, trust_env=False).raise_for_status()
        address = urlsplit(running.url)
        pin(places.load)
        player = Player(address.hostname or "127.0.0.1", address.port or 80, cloud, course)
        asyncio.run(player.play(scene, ARRIVAL_SECONDS * scale))
    return course


def summary(name: str, course: Course, scale: float) -> dict[str, Any]:
    """The figures of a storm, and which bounds it missed."""
    storm, machines = STORMS[name], len(course.came)
    last_in = storm.last_in(machines, ARRIVAL_SECONDS * scale)
    reads = course.reads[-1][1] if course.reads else 0
    waits = sorted(at - came for came, at in course.went_in)
    checks = {
        "all are in": not course.failures,
        f"last_in <= {last_in:.0f}": course.last_in <= last_in,
        f"reads <= {storm.reads(machines):.0f}": reads <= storm.reads(machines),
        "known >= 0.8": course.known_share >= 0.8 and not course.known_failures,
    }
    if storm.is_in_order:
        checks["overtaken <= 2"] = course.overtaken <= 2
    return {
        "machines": machines,
        "in": len(course.went_in),
        "failures": dict(course.failures),
        "last_in": round(course.last_in, 1),
        "median_wait": round(waits[len(waits) // 2], 2) if waits else None,
        "longest_wait": round(waits[-1], 1) if waits else None,
        "reads": int(reads),
        "reads_each": round(reads / machines, 3),
        "throttled": course.throttled,
        "overtaken": round(course.overtaken, 2),
        "known": round(course.known_share, 2),
        "missed": [check for check, is_met in checks.items() if not is_met],
    }


def charts(course: Course) -> list[Chart]:
    """What happened over time."""
    seconds = range(int(course.last_in) + 2)
    came, went_in = sorted(course.came), sorted(at for _, at in course.went_in)
    known = Counter(int(at) for at in course.known if at >= 0)
    bucket = [(float(at), float(BURST + RATE * at)) for at in seconds if BURST + RATE * at <= course.reads[-1][1]]
    return [
        Chart(
            "machines",
            {
                "in": [(at, bisect_right(went_in, at)) for at in seconds],
                "came": [(at, bisect_right(came, at)) for at in seconds],
            },
        ),
        Chart("reads", {"sent": course.reads, "the bucket": bucket}),
        Chart("known logins a second", {"during the storm": [(at, known[at]) for at in seconds[:-2]]}),
    ]


def table(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """The figures in Markdown."""
    names = [name for name in next(iter(rows.values())) if name not in ("failures", "missed")]
    lines = ["| | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    lines += [f"| {title} | " + " | ".join(str(row[name]) for name in names) + " |" for title, row in rows.items()]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.boot_storm",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print figures and environment as JSON")
    parser.add_argument("--servers", nargs="+", choices=("trio", "aiohttp"), default=["trio", "aiohttp"])
    parser.add_argument("--storms", nargs="+", choices=list(STORMS), default=list(STORMS))
    parser.add_argument("--scale", type=float, default=1.0, help="share of the machines, and of the time they come in")
    parser.add_argument("--alone", type=float, default=15.0, help="seconds before and after a storm for `known`")
    parser.add_argument("--plot", type=Path, help="SVG file to draw what happened over time into")
    options = parser.parse_args()
    facts, places = environment(), Places.choose()
    rows: dict[str, dict[str, Any]] = {}
    pictures: list[tuple[str, list[Chart]]] = []
    for name in options.storms:
        for which in options.servers:
            with tempfile.TemporaryDirectory() as folder:
                course = run(name, MODULES[which], options.scale, options.alone, places, Path(folder))
            title = f"{name}, {which}"
            rows[title] = summary(name, course, options.scale)
            pictures.append((title, charts(course)))
            tell("")
    if options.json:
        print(json.dumps({"environment": facts, "rows": rows}, indent=2))
    else:
        print(table(rows), environment_text(facts), sep="\n\n")
    if options.plot:
        options.plot.write_text(timeline.draw(pictures, f"{facts['cpu']}, {facts['cores']} cores; {facts['python']}"))
    missed = {title: row["missed"] for title, row in rows.items() if row["missed"]}
    for title, bounds in missed.items():
        print(f"{title}: missed {', '.join(bounds)}; failures {rows[title]['failures']}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
