"""Small line plots as SVG, without a library."""

import math
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#7f7f7f"]
STYLE = (
    "<style>text{font:11px sans-serif;fill:#777}.a{stroke:#999;stroke-width:1;fill:none}"
    ".l{fill:none;stroke-width:1.8}</style>"
)
PANEL_WIDTH, PANEL_HEIGHT = 220, 150
TICKS = [1, 1.5, 2, 3, 5, 10, 20, 50, 100]


def _document(width: int, height: int, parts: list[str]) -> str:
    box = f'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
    return f'<svg {box} width="{width}" height="{height}">{STYLE}{"".join(parts)}</svg>\n'


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{escape(text)}</text>'


def _line(points: Sequence[tuple[float, float]], colour: str) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline class="l" stroke="{colour}" points="{path}"/>'


def _legend(names: Sequence[str], y: float, column: int) -> list[str]:
    parts = []
    per_row = max(1, 3 * (PANEL_WIDTH + 50) // column)
    for at, name in enumerate(names):
        x, line = 40 + at % per_row * column, y + at // per_row * 16
        parts.append(_line([(x, line - 4), (x + 22, line - 4)], COLOURS[at % len(COLOURS)]))
        parts.append(_text(x + 28, line, name, "start"))
    return parts


def line_panels(panels: Mapping[str, Mapping[str, Sequence[float]]], labels: Sequence[str]) -> str:
    """One panel for each key, with a line for each name; the vertical axis is logarithmic."""
    values = [value for lines in panels.values() for line in lines.values() for value in line]
    top = math.log(max(value for value in values if not math.isnan(value)) * 1.05)
    parts: list[str] = []
    for at, (title, lines) in enumerate(panels.items()):
        left, base = 40 + at % 3 * (PANEL_WIDTH + 50), 30 + (at // 3 + 1) * (PANEL_HEIGHT + 50) - 50
        parts.append(f'<path class="a" d="M{left},{base - PANEL_HEIGHT}V{base}h{PANEL_WIDTH}"/>')
        parts.append(_text(left + PANEL_WIDTH / 2, base - PANEL_HEIGHT - 8, title))
        for tick in (tick for tick in TICKS if math.log(tick) <= top):
            y = base - math.log(tick) / top * PANEL_HEIGHT
            parts.append(_text(left - 4, y + 4, f"{tick:g}", "end"))
        step = PANEL_WIDTH / (len(labels) - 1)
        for number, label in enumerate(labels):
            parts.append(_text(left + number * step, base + 14, label))
        for number, line in enumerate(lines.values()):
            points = [
                (left + x * step, base - math.log(value) / top * PANEL_HEIGHT)
                for x, value in enumerate(line)
                if not math.isnan(value)
            ]
            parts.append(_line(points, COLOURS[number % len(COLOURS)]))
    rows = (len(panels) + 2) // 3
    foot = 30 + rows * (PANEL_HEIGHT + 50)
    names = list(next(iter(panels.values())))
    parts += _legend(names, foot, 130)
    return _document(3 * (PANEL_WIDTH + 50) + 20, foot + 16, parts)


def curves(samples: Mapping[str, Sequence[float]]) -> str:
    """The distribution of each sample: the share (horizontal) that is at most so large."""
    width, height, left, base, top = 3 * PANEL_WIDTH, 2 * PANEL_HEIGHT, 40, 320, math.log(20)
    parts = [f'<path class="a" d="M{left},{base - height}V{base}h{width}"/>']
    for tick in (tick for tick in TICKS if math.log(tick) <= top):
        parts.append(_text(left - 4, base - math.log(tick) / top * height + 4, f"{tick:g}", "end"))
    for percent in range(0, 101, 10):
        parts.append(_text(left + percent / 100 * width, base + 14, f"{percent} %"))
    for number, sample in enumerate(samples.values()):
        count = max(1, len(sample) - 1)
        steps = sorted({round(step * count / 200) for step in range(201)})
        points = [
            (left + at / count * width, base - min(math.log(sample[at]), top) / top * height)
            for at in steps
            if at < len(sample)
        ]
        parts.append(_line(points, COLOURS[number % len(COLOURS)]))
    parts += _legend(list(samples), base + 36, 270)
    return _document(3 * (PANEL_WIDTH + 50) + 20, base + 60, parts)
