"""Curves over seconds, or over something else, drawn as SVG in rows of small charts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from xml.sax.saxutils import escape

from attrs import frozen

from .plot import STYLE

Point = tuple[float, float]

WIDTH: Final = 250
HEIGHT: Final = 120
GAP: Final = 44
TITLE: Final = 30
COLOURS: Final = """
  polyline { fill: none; stroke-width: 2 } .a { stroke: #2f6fde } .b { stroke: #9aa4af } .c { stroke: #d29922 }
  .ka { fill: #2f6fde } .kb { fill: #6e7681 } .kc { fill: #b07d10 } .axis { stroke: #9aa4af; stroke-width: 1 }
"""


@frozen
class Chart:
    """Up to three curves by their names, with one scale that begins at 0."""

    title: str
    curves: dict[str, Sequence[Point]]
    unit: str = "s"
    """What they go over."""


def draw(rows: Sequence[tuple[str, Sequence[Chart]]], caption: str) -> str:
    """The picture: a title and its charts for each row."""
    shapes: list[str] = []
    y = 0
    for title, charts in rows:
        shapes.append(f'<text class="title" x="0" y="{y + 18}">{escape(title)}</text>')
        y += TITLE
        for place, chart in enumerate(charts):
            shapes += _chart(chart, place * (WIDTH + GAP), y)
        y += HEIGHT + 62
    shapes.append(f'<text class="small" x="0" y="{y}">{escape(caption)}</text>')
    width, height = max(len(charts) for _, charts in rows) * (WIDTH + GAP), y + 8
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n<style>{STYLE}{COLOURS}</style>\n'
    return head + "\n".join(shapes) + "\n</svg>\n"


def _chart(chart: Chart, left: int, top: int) -> list[str]:
    points = [point for curve in chart.curves.values() for point in curve]
    longest = max((at for at, _ in points), default=1.0) or 1.0
    most = max((value for _, value in points), default=1.0) or 1.0
    shown = f"{most:,.0f}" if most >= 10 else f"{most:.2f}"
    bottom, right = top + HEIGHT + 16, left + WIDTH
    shapes = [
        f'<text class="small" x="{left}" y="{top + 6}">{escape(chart.title)}: up to {shown}</text>',
        f'<line class="axis" x1="{left}" y1="{bottom}" x2="{right}" y2="{bottom}"/>',
        f'<text class="small" x="{left}" y="{bottom + 13}">0</text>',
        f'<text class="small" x="{right}" y="{bottom + 13}" text-anchor="end">{longest:,.0f} {chart.unit}</text>',
    ]
    for number, (name, curve) in enumerate(chart.curves.items()):
        kind = "abc"[number]
        line = " ".join(
            f"{left + at / longest * WIDTH:.1f},{bottom - value / most * HEIGHT:.1f}" for at, value in curve
        )
        shapes.append(f'<polyline class="{kind}" points="{line}"/>')
        shapes.append(f'<text class="small k{kind}" x="{left + number * 84}" y="{bottom + 27}">{escape(name)}</text>')
    return shapes
