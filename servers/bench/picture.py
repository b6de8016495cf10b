"""The figures as a picture: a bar for each contender, as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

WIDTH: Final = 760
LABEL_WIDTH: Final = 200
VALUE_WIDTH: Final = 150
STEP: Final = 24
STYLE: Final = """
  text { font: 13px system-ui, sans-serif; fill: #24292f }
  .small { font-size: 11px; fill: #57606a }
  rect { fill: #2f6fde }
  @media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .small { fill: #9198a1 } rect { fill: #4c8dff } }
"""


def draw(title: str, rates: Mapping[str, float], captions: Sequence[str]) -> str:
    """Return a picture of rates, each a bar with its number a second."""
    scale = (WIDTH - LABEL_WIDTH - VALUE_WIDTH) / max(rates.values())
    shapes = [f'<text x="0" y="16">{escape(title)}</text>']
    y = 30
    for name, rate in rates.items():
        length = rate * scale
        shapes += [
            f'<text x="0" y="{y + 13}">{escape(name)}</text>',
            f'<rect x="{LABEL_WIDTH}" y="{y}" width="{length:.1f}" height="16" rx="2"/>',
            f'<text x="{LABEL_WIDTH + length + 6:.1f}" y="{y + 13}">{rate:,.0f} a second</text>',
        ]
        y += STEP
    for line in captions:
        shapes.append(f'<text class="small" x="0" y="{y + 14}">{escape(line)}</text>')
        y += 16
    size = f'width="{WIDTH}" height="{y + 6}" viewBox="0 0 {WIDTH} {y + 6}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n<style>{STYLE}</style>\n'
    return head + "\n".join(shapes) + "\n</svg>\n"
