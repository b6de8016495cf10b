"""The benchmarks run, and print what they promise to print."""

from __future__ import annotations

import asyncio
import json
import socketserver
import subprocess
import sys
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import httpx
import pytest
from attrs import evolve

from benchmarks import audit, audit_parts, boot_storm, bytecodes, figures, plot, scale, servers, walk
from benchmarks.baselines import fastapi_sqlalchemy
from benchmarks.figures import Figure
from benchmarks.fleet import AUDIENCE, ask_cloud, raise_fleet
from benchmarks.load import Load, Outcome, run_for, run_once
from benchmarks.report import environment
from benchmarks.servers import LIMIT, WORKLOADS, Results, Sample
from benchmarks.sweep import Removal
from tests.stores.cluster import require_installed
from tests.waiting import PATIENCE

ROOT: Final = Path(__file__).parent.parent
CONTENDERS: Final = ["raw_rsa", "pyjwt", "verify_cold", "verify_warm", "login", "request", "request_warm"]
TINY: Final = ("--machines", "8", "--seconds", "1", "--rounds", "1")
SVG: Final = "{http://www.w3.org/2000/svg}"
REQUEST: Final = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", f"benchmarks.{program}", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE)


def json_of(program: str, *arguments: str) -> Any:
    done = run(program, "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@contextmanager
def answering(answer: bytes, after: float = 0.0) -> Iterator[int]:
    """The port of a server that answers every request so, after some seconds; an empty answer closes the connection."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            while self.request.recv(65536) and answer:
                time.sleep(after)
                self.request.sendall(answer)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def assert_environment(found: dict[str, Any]) -> None:
    assert found["cpu"]
    assert found["cores"] >= 1
    assert {"cryptography", "trio", "aiohttp"} <= found["packages"].keys()


def test_login_verification_prints_figures_ratios_and_environment() -> None:
    found = json_of("login_verification", "--tokens", "16", "--rounds", "1")
    assert list(found) == [*(f"{name}_us" for name in CONTENDERS), "ratios", "environment"]
    assert all(found[f"{name}_us"] > 0 for name in CONTENDERS)
    assert list(found["ratios"]) == CONTENDERS
    assert found["ratios"]["raw_rsa"] == 1
    assert_environment(found["environment"])


def test_a_login_passes_through_no_more_functions_and_packages_than_it_may() -> None:
    stops = walk.walk()
    assert 0 < len([stop for stop in stops if stop.statements > 1]) <= walk.MOST_FUNCTIONS
    assert len({stop.package for stop in stops}) <= walk.MOST_PACKAGES


@pytest.mark.skipif(sys.version_info[:2] != bytecodes.VERSION, reason="other versions of Python have other bytecodes")
@pytest.mark.parametrize("kind", bytecodes.BOUNDS)
def test_a_login_takes_no_more_bytecodes_than_it_may(kind: str) -> None:
    assert 0 < bytecodes.count(kind).total() <= bytecodes.BOUNDS[kind]


@pytest.mark.parametrize("compared", [("trio",), pytest.param((*servers.SERVERS,), marks=pytest.mark.long)])
def test_servers_prints_rows_ratios_and_environment(compared: tuple[str, ...]) -> None:
    workload = "login_service"
    found = json_of("servers", *TINY, "--workloads", workload, "--connections", "1", "--servers", *compared)
    assert_environment(found["environment"])
    assert found["environment"]["fsync_us"] > 0
    cells = [LIMIT, *((server, workload, 1) for server in compared)]
    assert [(row["server"], row["workload"], row["connections"]) for row in found["rows"]] == cells
    for row in found["rows"]:
        members = ["server", "workload", "connections", "per_second", "p50_ms", "p99_ms", "cpu_us", "failures"]
        assert list(row) == members
        assert row["per_second"] > 0
        assert row["cpu_us"] > 0
        assert 0 < row["p50_ms"] <= row["p99_ms"]
        assert row["failures"] == {}
    for ratio in found["ratios"]:
        others = {"of_raw", *(f"of_{server}" for server in compared if server not in {"trio", "aiohttp"})}
        others -= {f"of_{ratio['server']}"}
        assert ratio.keys() == {"server", "workload", "connections", *others}


@pytest.mark.long
def test_growth_fills_a_store_and_measures_it_beside_a_new_one(tmp_path: Path) -> None:
    picture = tmp_path / "growth.svg"
    tiny = "--stores sqlite --tokens 200 --leases 20 --rounds 1 --machines 16".split()
    rows = json.loads(run("growth", "--json", "--plot", str(picture), *tiny).stdout)["rows"]
    assert [(row["store"], row["kind"], row["stored"]) for row in rows] == [
        ("sqlite", "tokens", 200),
        ("sqlite", "leases", 20),
    ]
    for row in rows:
        assert all(row[name] > 0 for name in ("start", "rss_mb", "bytes", "login", "page_ms", "backup", "ended"))
    assert len(ElementTree.parse(picture).findall(f"{SVG}polyline")) == 2 * 7


@pytest.mark.parametrize("grouped", [False, True])
def test_the_baseline_admits_a_machine_and_refuses_bad_tokens(tmp_path: Path, grouped: bool) -> None:
    """Otherwise it would do less than what it is compared with."""
    fleet = raise_fleet(1)
    keys = ask_cloud(fleet.cloud, "GET", "/login/common/discovery/keys")
    config = {"keys": keys, "audience": AUDIENCE, "issuer": fleet.issuer, "role": fleet.role, "grouped": grouped}
    form = json.loads(fleet.members[0].request.body)
    head, payload, signature = form["jwt"].split(".")
    others = {"bound_group_ids": ["another"], "bound_resource_groups": ["another"], "bound_subscription_ids": []}

    async def log_in(app: httpx.ASGITransport, form: dict[str, Any]) -> int:
        async with httpx.AsyncClient(transport=app, base_url="http://baseline") as client:
            answer = await client.post("/v1/auth/cloud/login", json=form)
            if answer.status_code == 200:
                token = {"x-service-token": answer.json()["auth"]["client_token"]}
                assert (await client.get("/v1/auth/token/lookup-self", headers=token)).status_code == 200
            return answer.status_code

    def status(form: dict[str, Any], **changed: Any) -> int:
        engine = fastapi_sqlalchemy.open_database(str(tmp_path / "tokens.sqlite"))
        app = httpx.ASGITransport(fastapi_sqlalchemy.application(config | changed, engine))
        try:
            return asyncio.run(log_in(app, form))
        finally:
            engine.dispose()

    assert status(form) == 200
    assert status(form | {"jwt": f"{head}.{payload}.{signature[:-8]}AAAAAAAA"}) == 403
    assert status(form | {"jwt": f"{head}.{payload[:-8]}AAAAAAAA.{signature}"}) == 403
    assert status(form | {"vm_name": "another"}) == 403
    assert status(form, audience="another") == status(form, issuer="another") == 403
    assert [status(form, role={**fleet.role, name: value}) for name, value in others.items()] == [403] * 3


@pytest.mark.long
def test_a_boot_storm_is_played_and_drawn(tmp_path: Path) -> None:
    picture = tmp_path / "storm.svg"
    small = ("--servers", "trio", "--scale", "0.004", "--alone", "1", "--plot", str(picture))
    found = json.loads(run("boot_storm", "--json", *small).stdout)
    assert_environment(found["environment"])
    machines = {f"{name}, trio": int(storm.machines * 0.004) for name, storm in boot_storm.STORMS.items()}
    assert {title: row["in"] for title, row in found["rows"].items()} == machines
    assert all(set(row["missed"]) <= {"known >= 0.8"} for row in found["rows"].values())  # that depends on the machine
    drawn = ElementTree.parse(picture)
    assert len(drawn.findall(f".//{SVG}polyline")) == 2 * 5


def test_a_storm_that_misses_its_bounds_says_which() -> None:
    course = boot_storm.Course(1.0)
    course.came = [0.0, 1.0, 2.0, 3.0]
    course.went_in = [(0.0, 250.0), (3.0, 4.0), (1.0, 5.0)]
    course.failures["503"] = 1
    course.reads = [(1.0, 0), (9.0, 5)]
    missed = boot_storm.summary("strangers", course, 1.0)["missed"]
    assert missed == ["all are in", "last_in <= 90", "reads <= 4", "known >= 0.8", "overtaken <= 2"]


def test_the_settings_on_the_page_about_storms_are_those_of_the_benchmark() -> None:
    text = (ROOT / "docs" / "why" / "capacity.md").read_text("utf-8")
    shown = tomllib.loads(text.partition("```toml\n")[2].partition("```")[0])
    measured = tomllib.loads(boot_storm.CONFIGURATION)
    assert all(shown[table].items() <= measured[table].items() for table in shown)


@pytest.mark.long
@pytest.mark.parametrize("connections", [1, 256])
def test_each_workload_can_be_measured(connections: int) -> None:
    """The one with checkpoints needs more traffic than there is here."""
    measured = {
        name: workload
        for name, workload in WORKLOADS.items()
        if connections == (1 if 1 in workload.connections else max(workload.connections))
    }
    found = json_of(
        "servers", *TINY, "--servers", "aiohttp", "--connections", str(connections), "--workloads", *measured
    )
    rows = {row["workload"]: row for row in found["rows"]}
    assert rows.keys() == {"raw_rsa_verify", *measured}
    assert {name: row["failures"] for name, row in rows.items() if row["failures"]} == {}


def test_a_status_that_is_not_2xx_is_a_failure() -> None:
    with answering(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 2\r\n\r\nno") as port:
        outcome = run_for(Load("127.0.0.1", port, [REQUEST], connections=2), seconds=1.0)
    assert outcome.latencies == []
    assert outcome.failures.keys() == {"503"}


def test_a_connection_that_is_lost_with_its_request_is_a_failure_and_is_replaced() -> None:
    with answering(b"") as port:
        outcome = run_for(Load("127.0.0.1", port, [REQUEST], connections=1), seconds=1.0)
    assert outcome.latencies == []
    assert outcome.failures["connection lost"] >= 2


def test_a_clock_that_runs_shorter_than_each_request_is_a_failure() -> None:
    """It says nothing about how many requests a second there are: 0 would be wrong."""
    with answering(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", after=2.0) as port:
        outcome = run_for(Load("127.0.0.1", port, [REQUEST], connections=2), seconds=0.1)
    assert outcome.answered == 2
    assert outcome.failures.keys() == {"the clock ran shorter than a request"}


def test_a_load_that_runs_once_sends_each_request_once() -> None:
    with answering(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n") as port:
        outcome = run_once(Load("127.0.0.1", port, [REQUEST] * 10, connections=3))
    assert len(outcome.latencies) == 10
    assert not outcome.failures


def test_a_load_goes_on_where_the_one_before_has_ended() -> None:
    with answering(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n") as port:
        outcome = run_once(Load("127.0.0.1", port, [REQUEST] * 10, connections=1, first=7))
        assert len(outcome.latencies) == 10
        outcome = run_for(Load("127.0.0.1", port, [REQUEST] * 10**6, connections=1, first=7), seconds=0.1)
    assert outcome.next >= 7 + len(outcome.latencies)


def sample(per_second: float, p99_ms: float = 2.0, **failures: int) -> Sample:
    return Sample(per_second, 1.0, p99_ms, Counter(failures))


def test_a_ratio_is_the_median_of_the_rounds_ratios() -> None:
    cell = ("trio", "echo", 32)
    pairs = [(100, 10), (400, 100), (900, 300)]
    results = Results([{LIMIT: sample(raw), cell: sample(rate)} for raw, rate in pairs], {})
    assert results.ratio(cell, LIMIT) == 0.25
    assert results.rows()[1]["per_second"] == 100


@pytest.mark.parametrize(
    ("figure", "verdict"),
    [
        (Figure("more is better", 0.2, 0.18), "held"),
        (Figure("more is better", 0.17, 0.18), "missed"),
        (Figure("less is better", 1.3, 1.35, is_ceiling=True), "held"),
        (Figure("less is better", 1.4, 1.35, is_ceiling=True), "missed"),
        (Figure("left out", None, 1.0), "not measured"),
        (Figure("only shown", 5.0), ""),
    ],
)
def test_a_figure_is_held_against_its_bound(figure: Figure, verdict: str) -> None:
    assert figure.verdict == verdict


def test_the_tail_of_logins_is_a_figure_of_the_servers() -> None:
    cells = {cell: sample(100.0, p99_ms=5.0) for cell in figures.needed_cells()}
    found = list(figures.served_figures(Results([{LIMIT: sample(1000.0), **cells}], {})))
    assert [figure.reached for figure in found if "p99" in figure.name] == [5.0, 5.0]
    assert {figure.verdict for figure in found if "p99" in figure.name} == {"missed"}


@pytest.mark.parametrize(
    ("reached", "failures", "is_held"), [(0.2, {}, True), (0.1, {}, False), (0.2, {"503": 1}, False)]
)
def test_the_figures_are_held_when_no_bound_is_missed_and_nothing_failed(
    reached: float, failures: dict[str, int], is_held: bool
) -> None:
    cell = ("trio", "login_service", 32)
    results = Results([{LIMIT: sample(1000.0), cell: sample(100.0, **failures)}], environment())
    text, verdict = figures.report(results, [Figure("logins", reached, 0.18)])
    assert verdict == is_held
    assert f"failed requests: {sum(failures.values())}" in text


def test_the_parts_of_audit_are_measured(tmp_path: Path) -> None:
    found = audit_parts.parts(8, 1, tmp_path)
    of_turns = [f"{part} of {turn}" for turn in audit_parts.TURNS for part in ("turn", "fsync")]
    assert list(found) == ["core", "entries", "hashes", *of_turns]
    assert found["core"] > 0


@pytest.mark.long
def test_audit_prints_a_row_for_each_device() -> None:
    done = run("audit", *TINY, "--servers", "trio")
    assert done.returncode in (0, 1), done.stderr  # bounds are for longer runs
    rows = [line.split() for line in done.stdout.splitlines()]
    assert [row[1] for row in rows if row[:1] == ["trio"]] == list(audit.BOUNDS)
    assert rows[-1] == ["failed", "requests:", "0"]


@pytest.mark.parametrize(
    ("cpu", "failures", "is_held"), [(120.0, {}, True), (130.0, {}, False), (120.0, {"503": 1}, False)]
)
def test_the_cost_of_audit_is_held_when_no_bound_is_missed_and_nothing_failed(
    cpu: float, failures: dict[str, int], is_held: bool
) -> None:
    samples = {("trio", name, 32): evolve(sample(1.0, **failures), cpu_us=cpu) for name in audit.BOUNDS}
    plain = evolve(sample(1.0), cpu_us=100.0)
    results = Results([{("trio", audit.PLAIN, 32): plain, **samples}], environment())
    assert audit.report(results, ["trio"], 32)[1] == is_held


@pytest.mark.parametrize(
    ("rate", "failures", "cores", "verdict"),
    [
        (150.0, {}, 4, "held"),
        (130.0, {}, 4, "missed"),
        (130.0, {}, 3, "does not count"),
        (150.0, {"503": 1}, 4, "failed"),
    ],
)
def test_a_row_of_scale_is_held_against_its_bound_where_there_are_cores_enough(
    rate: float, failures: dict[str, int], cores: int, verdict: str
) -> None:
    one, two = scale.Set("trio", "sqlite"), scale.Set("trio", "postgresql", workers=2)
    samples = {
        scale.Cell(one, 256): [scale.Sample(100.0, 2.0, Counter())],
        scale.Cell(two, 256): [scale.Sample(rate, 2.0, Counter(failures))],
    }
    base, row = scale.Results(samples, {"cores": cores}).rows()
    assert scale.verdict(base) == ""
    assert scale.verdict(row).startswith(verdict)


def test_scale_compares_workers_and_servers_with_one_process_on_either_store() -> None:
    for name in scale.MODULES:
        sets = [(one.server, one.store, one.workers, one.nodes) for one in scale.sets_of(name)]
        assert sets == [
            (name, "sqlite", 1, 1),
            *((name, "postgresql", workers, 1) for workers in (1, 2, 4)),
            (name, "postgresql", 1, 2),
            *((name, "etcd", workers, nodes) for workers, nodes in ((1, 1), (2, 1), (1, 2))),
        ]


PAIR: Final = scale.Set("trio", "postgresql", nodes=2)


@pytest.mark.tools
@pytest.mark.long
def test_scale_prints_a_row_for_each_set_and_one_for_stored_tokens(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two of the sets, since each takes seconds to start."""
    require_installed()
    one, two = (each for each in scale.sets_of("trio") if each.store == "sqlite" or each == PAIR)
    monkeypatch.setattr(scale, "sets_of", lambda name: [one, two])
    options = ("--json", *TINY, "--servers", "trio", "--connections", "32", "--tokens", "20")
    monkeypatch.setattr(sys, "argv", ["scale", *options])
    code = scale.main()
    found = json.loads(capsys.readouterr().out)
    assert_environment(found["environment"])
    shown = [(row["store"], row["workers"], row["nodes"], row["stored_tokens"]) for row in found["rows"]]
    assert shown == [("sqlite", 1, 1, 0), ("postgresql", 1, 2, 0), ("postgresql", 1, 1, 20)]
    base = found["rows"][0]
    for row in found["rows"]:
        assert (row["server"], row["connections"], row["failures"]) == ("trio", 32, {})
        assert row["per_second"] > 0 < row["p99_ms"]
        assert row["ratio"] == pytest.approx(row["per_second"] / base["per_second"], rel=0.01)
        assert row["counts"] == (row["cores"] >= row["workers"] * row["nodes"] + 2)
    assert code == 0, "none of these rows has a bound"


@pytest.mark.long
def test_sweep_prints_rates_and_what_is_left() -> None:
    tiny = ("--machines", "8", "--seconds", "2", "--stored", "20", "--patience", "0")
    done = run("sweep", "--json", *tiny, "--servers", "trio", "--kinds", "tokens")
    found = json.loads(done.stdout)
    assert_environment(found["environment"])
    (row,) = found["rows"]
    assert row["stored"] >= 20
    assert row["in_per_second"] > 0
    assert row["left"] == row["waiting"]
    assert done.returncode == (row["left"] > 0)
    assert row["failures"] == {}


@pytest.mark.long
def test_sweep_waits_until_no_ended_lease_is_left() -> None:
    tiny = ("--machines", "8", "--seconds", "2", "--stored", "20", "--patience", "60")
    (row,) = json_of("sweep", *tiny, "--servers", "aiohttp", "--kinds", "leases")["rows"]
    assert row["kind"] == "leases"
    assert row["stored"] > 0
    assert row["in_per_second"] > 0
    assert row["waiting"] > 0 == row["left"]
    assert row["failures"] == {}


def test_a_removal_counts_what_is_left() -> None:
    traffic = Outcome(2.0, [0.001] * 100, Counter(), next=0, answered=100)
    slower = Outcome(2.0, [0.001] * 80, Counter(), next=0, answered=90)
    removal = Removal(1000, 90, 40, 30, seconds=2.0, alone_seconds=5.0, control=traffic, beside=slower)
    row = removal.row("trio", "leases")
    assert (row["in_per_second"], row["out_per_second"], row["cost"]) == (45.0, 10.0, 0.2)
    assert (row["waiting"], row["left"]) == (50, 20)


def test_the_picture_has_a_bar_for_each_row_at_32_connections(tmp_path: Path) -> None:
    rates = {("trio", 32): 9000, ("aiohttp", 32): 8000, ("fastapi", 32): 1000, ("trio", 256): 9500}
    rows = [
        {"server": server, "workload": "login_service", "connections": connections, "per_second": rate}
        for (server, connections), rate in rates.items()
    ]
    limit = {"server": "limit", "workload": "raw_rsa_verify", "connections": 1, "per_second": 50_000}
    facts = {"cpu": "A & B", "cores": 4, "python": "CPython", "packages": {"trio": "1"}}
    (tmp_path / "results.json").write_text(json.dumps({"rows": [limit, *rows], "environment": facts}))
    done = run("plot", str(tmp_path / "results.json"), str(tmp_path / "picture.svg"))
    assert done.returncode == 0, done.stderr
    picture = ElementTree.parse(tmp_path / "picture.svg").getroot()
    texts = [text.text or "" for text in picture.iter(f"{SVG}text")]
    assert len(list(picture.iter(f"{SVG}rect"))) == 3
    assert any(text.startswith("9,000") for text in texts)
    assert any("A & B" in text for text in texts)


def test_a_picture_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no row"):
        plot.draw({"rows": []})
