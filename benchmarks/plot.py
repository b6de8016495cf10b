"""Draw the comparison of the servers: `python -m benchmarks.plot RESULTS.json OUT.svg`

The results are what `python -m benchmarks.servers --json` prints; `-` reads them from stdin. A bar is the median of a
row at 32 connections, and every bar has the same scale.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

CONNECTIONS: Final = 32
PANELS: Final = {
    "login_service": "durable logins a second",
    "login_cold": "… with a JWT that was not seen before",
    "login_batch": "… answered with a batch token",
    "lookup_self": "token look-ups a second",
}
LABELS: Final = {
    "trio": "cloudid on trio",
    "aiohttp": "cloudid on aiohttp",
    "hypercorn": "cloudid core on hypercorn",
    "fastapi": "FastAPI + PyJWT + SQLAlchemy",
    "fastapi_grouped": "… with grouped commits",
    "peer": "peer",
}
WIDTH: Final = 760
LABEL_WIDTH: Final = 220
VALUE_WIDTH: Final = 140
BAR: Final = 16
STEP: Final = 22
TITLE: Final = 30
STYLE: Final = """
  text { font: 13px system-ui, sans-serif; fill: #24292f }
  .title { font-weight: 600 }
  .small { font-size: 11px; fill: #57606a }
  .own { fill: #2f6fde } .other { fill: #9aa4af }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .small { fill: #9198a1 } .own { fill: #4c8dff } .other { fill: #6e7681 }
  }
"""


def draw(results: Mapping[str, Any]) -> str:
    """The picture, as SVG. Raises `ValueError` when no row belongs in it."""
    panels = {name: bars for name in PANELS if (bars := _bars(results["rows"], name))}
    if not panels:
        raise ValueError(f"the results have no row at {CONNECTIONS} connections")
    limit = next(row["per_second"] for row in results["rows"] if row["server"] == "limit")
    most = max(row["per_second"] for bars in panels.values() for row in bars)
    scale = (WIDTH - LABEL_WIDTH - VALUE_WIDTH) / most
    shapes: list[str] = []
    y = 0
    for name, bars in panels.items():
        shapes.append(f'<text class="title" x="0" y="{y + 20}">{escape(PANELS[name])}</text>')
        y += TITLE
        for row in bars:
            shapes += _bar(row, y, scale, limit)
            y += STEP
        y += 8
    for line in _caption(results["environment"], limit):
        shapes.append(f'<text class="small" x="0" y="{y + 14}">{escape(line)}</text>')
        y += 16
    size = f'width="{WIDTH}" height="{y + 6}" viewBox="0 0 {WIDTH} {y + 6}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n<style>{STYLE}</style>\n'
    return head + "\n".join(shapes) + "\n</svg>\n"


def _bars(rows: Sequence[Mapping[str, Any]], workload: str) -> list[Mapping[str, Any]]:
    return [row for row in rows if (row["workload"], row["connections"]) == (workload, CONNECTIONS)]


def _bar(row: Mapping[str, Any], y: int, scale: float, limit: float) -> list[str]:
    kind = "own" if row["server"] in ("trio", "aiohttp") else "other"
    length = row["per_second"] * scale
    value = f"{row['per_second']:,.0f}  ({row['per_second'] / limit:.2f} × RSA)"
    return [
        f'<text x="0" y="{y + 13}">{escape(LABELS[row["server"]])}</text>',
        f'<rect class="{kind}" x="{LABEL_WIDTH}" y="{y}" width="{length:.1f}" height="{BAR}" rx="2"/>',
        f'<text x="{LABEL_WIDTH + length + 6:.1f}" y="{y + 13}">{value}</text>',
    ]


def _caption(environment: Mapping[str, Any], limit: float) -> list[str]:
    versions = environment["packages"]
    shown = [f"{name} {versions[name]}" for name in ("trio", "aiohttp", "hypercorn", "fastapi") if name in versions]
    return [
        f"One process each, {CONNECTIONS} connections, SQLite with fsync; "
        f"one CPU verifies {limit:,.0f} RSA signatures a second",
        f"{environment['cpu']}, {environment['cores']} cores; {environment['python']}; {', '.join(shown)}",
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plot", description=__doc__.split(":")[0])
    parser.add_argument("results", help="file with what `benchmarks.servers --json` has printed; -: stdin")
    parser.add_argument("picture", type=Path, help="SVG file to write")
    options = parser.parse_args()
    text = sys.stdin.read() if options.results == "-" else Path(options.results).read_text("utf-8")
    options.picture.write_text(draw(json.loads(text)), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
