"""A soak: one server under a steady load of everything, for as long as you like, and whether it stays as it is.

    python -m tests.endurance.soak [--server NAME] [--minutes N] [--plot FILE.svg]

Logins whose tokens live for seconds, look-ups, renewals, credentials that are given back or expire, changes of roles
and policies. Every second it notes memory, open descriptors, the size of the store, stored tokens, and how long
requests take. After the warm-up, the first third, none of the first four may grow by more than its bound; else it ends
with 1. It needs Linux, which tells memory and descriptors of other processes.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import escape
from pathlib import Path
from random import Random
from statistics import linear_regression, mean
from typing import Final

import httpx
from attrs import frozen

from benchmarks.plot import STYLE
from benchmarks.report import tell
from tests.servers.deployment import Deployment
from tests.servers.running import SERVERS, Client, Running, body, status
from tests.servers.threads import Threads

MINUTES: Final = 3.0
SAMPLE_SECONDS: Final = 1.0
FEWEST: Final = 3
"""Samples that are taken at least, on a machine that is busy."""

TIDY_SECONDS: Final = 5.0
"""How often dead tokens are asked to be removed, which else happens every minute: short runs show their level too."""
IDENTITY_SECONDS: Final = 300.0
"""How often the machine that logs in gets a new identity, since the old one expires."""
WARM_UP: Final = 1 / 3
CLIENTS: Final = 4
PAUSE: Final = 0.01
"""Seconds between two requests of a client: the load is steady, and leaves the machine some room."""
TTL: Final = "3s"
NAMES: Final = 20
MEGABYTE: Final = 2**20
SERVICE: Final = {"request_deadline": "10s", "request_grace": "1s", "settle_time": 2, "fact_max_age": 3600}


@frozen
class Measure:
    """What is measured, and by how much it may grow from the end of the warm-up to the end.

    That is `share` of its mean, or `least` if that is more. A measure without a share is only drawn.
    """

    name: str
    unit: str = ""
    share: float | None = None
    least: float = 0.0


MEASURES: Final = (
    Measure("memory", "MB", share=0.05, least=4.0),
    Measure("descriptors", share=0.1, least=4.0),
    Measure("store", "MB", share=0.1, least=1.0),
    Measure("stored tokens", share=0.5, least=200.0),
    Measure("p50", "ms"),
    Measure("p99", "ms"),
)

Series = Mapping[str, Sequence[float]]
"""Each measure by its name, a value for each sample; `seconds`: since the start."""


def growth(seconds: Sequence[float], values: Sequence[float]) -> float:
    """By how much a straight line through the values grows from the first to the last."""
    return linear_regression(seconds, values).slope * (seconds[-1] - seconds[0])


@frozen
class Verdict:
    """How one measure did after the warm-up."""

    measure: Measure
    mean: float
    growth: float

    @property
    def bound(self) -> float | None:
        measure = self.measure
        return None if measure.share is None else max(measure.share * self.mean, measure.least)

    @property
    def is_flat(self) -> bool:
        return self.bound is None or self.growth <= self.bound

    def line(self) -> str:
        bound = "" if self.bound is None else f" (at most {self.bound:+.1f})"
        verdict = "" if self.bound is None else ": flat" if self.is_flat else ": GROWS"
        return f"{self.measure.name:14}{self.mean:10.1f} {self.measure.unit:3}{self.growth:+9.1f}{bound}{verdict}"


def judge(series: Series) -> list[Verdict]:
    """How each measure did after the warm-up."""
    first = int(len(series["seconds"]) * WARM_UP)
    seconds = series["seconds"][first:]
    values = {measure: series[measure.name][first:] for measure in MEASURES}
    return [Verdict(measure, mean(rest), growth(seconds, rest)) for measure, rest in values.items()]


class Load(Threads):
    """Clients with a steady mix of requests, for as long as the block lasts, and how long their requests take."""

    def __init__(self, deployment: Deployment, server: Running) -> None:
        super().__init__(*(partial(self._run, Random(number)) for number in range(CLIENTS)))
        self.failures: list[str] = []
        self._deployment, self._port = deployment, server.port
        self.login = deployment.login_bytes()
        self._latencies: list[float] = []

    def take_latencies(self) -> list[float]:
        """Those since the last call, in seconds and in ascending order."""
        taken, self._latencies = self._latencies, []
        return sorted(taken)

    def _run(self, dice: Random, stop: threading.Event) -> None:
        with Client(self._port) as connection:

            def ask(request: bytes) -> bytes:
                start = time.perf_counter()
                answer = connection.ask(request)
                self._latencies.append(time.perf_counter() - start)
                if status(answer) >= 400:
                    self.failures.append(f"{request.split(b' HTTP')[0].decode()}: {body(answer).decode()}")
                return answer

            while not stop.wait(PAUSE):
                self._live(dice, ask)

    def _live(self, dice: Random, ask: Callable[[bytes], bytes]) -> None:
        """The life of one token, and now and then something else."""
        login = json.loads(body(ask(self.login)))
        if "auth" not in login:
            return
        token, root = login["auth"]["client_token"], self._deployment.root
        ask(_request("GET", "auth/token/lookup-self", token))
        ask(_request("POST", "auth/token/renew-self", token, {}))
        match dice.randrange(20):
            case 0:
                lease = json.loads(body(ask(_request("GET", "cloud/creds/existing", root))))
                if dice.random() < 0.5 and "lease_id" in lease:
                    ask(_request("POST", "sys/leases/revoke", root, {"lease_id": lease["lease_id"]}))
            case 1:
                role = {"bound_locations": "westeurope", "token_ttl": dice.randrange(60, 600)}
                ask(_request("POST", f"auth/cloud/role/soak-{dice.randrange(NAMES)}", root, role))
            case 2:
                policy = {"policy": f'path "a/{dice.random()}" {{ capabilities = ["read"] }}'}
                ask(_request("POST", f"sys/policies/acl/soak-{dice.randrange(NAMES)}", root, policy))
            case 3:
                ask(_request("POST", "auth/token/revoke-self", token))


def _request(method: str, path: str, token: str, document: object = None) -> bytes:
    content = b"" if document is None else json.dumps(document).encode()
    head = f"{method} /v1/{path} HTTP/1.1\r\nhost: localhost\r\nx-service-token: {token}\r\n"
    return f"{head}content-length: {len(content)}\r\n\r\n".encode() + content


def soak(name: str, folder: Path, minutes: float) -> tuple[Series, list[str]]:
    """The samples of one run, and what requests were refused."""
    with Running("cloudid_servers.provider_simulator", "--listen", "127.0.0.1:0") as cloud:
        deployment = Deployment.prepare(name, folder, cloud.url, SERVICE)
        with deployment.serving() as server, deployment.client(server) as client:
            deployment.configure(server, token_ttl=TTL, lease_ttl=TTL)
            with Load(deployment, server) as load:
                series = _sample(deployment, server, load, client, minutes * 60)
            return series, load.failures


def _sample(
    deployment: Deployment, server: Running, load: Load, client: httpx.Client, length: float
) -> dict[str, list[float]]:
    series: dict[str, list[float]] = {"seconds": [], **{measure.name: [] for measure in MEASURES}}
    began, tidied, identified = time.monotonic(), 0.0, 0.0
    while (seconds := time.monotonic() - began) < length or len(series["seconds"]) < FEWEST:
        if seconds - tidied > TIDY_SECONDS:
            client.post("auth/token/tidy").raise_for_status()
            tidied = seconds
        if seconds - identified > IDENTITY_SECONDS:
            deployment.identify()
            load.login = deployment.login_bytes()
            identified = seconds
        time.sleep(SAMPLE_SECONDS)
        latencies = load.take_latencies() or [0.0]
        sample = {
            "seconds": seconds,
            "memory": _memory(server.process.pid) / MEGABYTE,
            "descriptors": len(list(Path(f"/proc/{server.process.pid}/fd").iterdir())),
            "store": sum(path.stat().st_size for path in deployment.folder.glob("store.sqlite*")) / MEGABYTE,
            "stored tokens": deployment.stored_tokens(),
            "p50": latencies[len(latencies) // 2] * 1000,
            "p99": latencies[int(len(latencies) * 0.99)] * 1000,
        }
        for measure, value in sample.items():
            series[measure].append(value)
        if sys.stderr.isatty():
            shown = ", ".join(f"{one.name} {sample[one.name]:.1f} {one.unit}".strip() for one in MEASURES)
            tell(f"{seconds:.0f} of {length:.0f} s: {shown}")
    if sys.stderr.isatty():
        tell("")
    return series


def _memory(process: int) -> int:
    """Resident memory in bytes."""
    lines = Path(f"/proc/{process}/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) * 1024


WIDTH: Final = 760
LEFT: Final = 150
PANEL: Final = 70
LINE: Final = ".line { fill: none; stroke: #2f6fde; stroke-width: 1.5 } .warm { fill: #9aa4af; opacity: 0.15 }"


def draw(title: str, series: Series) -> str:
    """The picture, as SVG: a panel for each measure over time, from zero; the warm-up is shaded."""
    shapes = [f'<text class="title" x="0" y="18">{escape(title)}</text>']
    for number, verdict in enumerate(judge(series)):
        shapes += _panel(verdict, series, 36 + number * (PANEL + 16))
    height = 36 + len(MEASURES) * (PANEL + 16)
    shapes.append(f'<text class="small" x="{LEFT}" y="{height}">0 to {series["seconds"][-1]:.0f} s</text>')
    size = f'width="{WIDTH}" height="{height + 8}" viewBox="0 0 {WIDTH} {height + 8}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n<style>{STYLE}{LINE}</style>\n'
    return head + "\n".join(shapes) + "\n</svg>\n"


def _panel(verdict: Verdict, series: Series, top: int) -> list[str]:
    name, unit = verdict.measure.name, verdict.measure.unit
    seconds, values = series["seconds"], series[name]
    most, length = max(*values, 1.0), max(seconds[-1], 1.0)
    points = " ".join(
        f"{LEFT + (WIDTH - LEFT) * at / length:.1f},{top + PANEL * (1 - value / most):.1f}"
        for at, value in zip(seconds, values, strict=True)
    )
    return [
        f'<rect class="warm" x="{LEFT}" y="{top}" width="{(WIDTH - LEFT) * WARM_UP:.1f}" height="{PANEL}"/>',
        f'<text x="0" y="{top + 14}">{escape(name)}</text>',
        f'<text class="small" x="0" y="{top + 32}">mean {verdict.mean:,.1f} {unit}, at most {most:,.1f}</text>',
        f'<text class="small" x="0" y="{top + 48}">growth {verdict.growth:+,.1f}</text>',
        f'<polyline class="line" points="{points}"/>',
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.endurance.soak", description=__doc__.split("\n")[0])
    parser.add_argument("--server", choices=SERVERS, default=SERVERS[0])
    parser.add_argument("--minutes", type=float, default=MINUTES, help=f"how long (default: {MINUTES:g})")
    parser.add_argument("--plot", type=Path, help="SVG file to write")
    options = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as folder:
            series, failures = soak(options.server, Path(folder), options.minutes)
    except KeyboardInterrupt:
        return 130
    if options.plot:
        options.plot.parent.mkdir(parents=True, exist_ok=True)
        options.plot.write_text(draw(f"{options.server}, {options.minutes:g} minutes", series), "utf-8")
    verdicts = judge(series)
    lines = [f"{options.server}: growth after the warm-up", *(verdict.line() for verdict in verdicts)]
    lines += [f"{len(failures)} requests were refused", *failures[:5]]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0 if all(verdict.is_flat for verdict in verdicts) and not failures else 1


if __name__ == "__main__":
    sys.exit(main())
