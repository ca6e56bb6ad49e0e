"""Learning curves as an SVG, in the style of `fpac bench --plot`: labels stand at the ends of their curves."""

from __future__ import annotations

import math
from html import escape
from pathlib import Path
from typing import NamedTuple

# Told apart by people who see few colours, too (Okabe and Ito), on white.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#e69f00", "#56b4e9", "#7f6000")
LEFT, TOP, WIDTH, HEIGHT, LABELS, BOTTOM, STEP = 84, 56, 640, 440, 190, 64, 15  # pixels


class Series(NamedTuple):
    label: str
    points: list[tuple[float, float, float, float]]  # x, y, and the least and most around y


class Axis(NamedTuple):
    """Values from low to high, drawn from pixel `start` to pixel `end`."""

    low: float
    high: float
    start: float
    end: float

    def place(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        rough = (self.high - self.low) / 6
        decade = 10 ** math.floor(math.log10(rough))
        step = next(factor * decade for factor in (1, 2, 5, 10) if factor * decade >= rough)
        first = math.ceil(self.low / step - 1e-9)
        return [i * step for i in range(first, math.floor(self.high / step + 1e-9) + 1)]


def find_axes(series: list[Series]) -> tuple[Axis, Axis]:
    points = [point for one in series for point in one.points]
    low, high = min(point[2] for point in points), max(point[3] for point in points)
    room = 0.05 * (high - low or 1)
    x = Axis(0, 1.03 * max(point[0] for point in points), LEFT, LEFT + WIDTH)
    return x, Axis(low - room, high + room, TOP + HEIGHT, TOP)


def place_labels(series: list[Series], y: Axis) -> list[float]:
    """At their curves' ends, moved apart as far as they would cover each other: down, then up from the frame's edge."""
    places = [y.place(one.points[-1][1]) for one in series]
    order = sorted(range(len(series)), key=lambda i: places[i])
    for above, i in zip(order, order[1:]):
        places[i] = max(places[i], places[above] + STEP)
    for below, i in enumerate(reversed(order)):
        places[i] = min(places[i], TOP + HEIGHT - below * STEP)
    return places


def draw_text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{escape(text)}</text>'


def draw_frame(x: Axis, y: Axis) -> list[str]:
    lines = ['<g stroke="#dddddd">']
    lines += [f'<path d="M{x.place(at):.1f} {TOP}v{HEIGHT}"/>' for at in x.ticks()]
    lines += [f'<path d="M{LEFT} {y.place(at):.1f}h{WIDTH}"/>' for at in y.ticks()]
    lines.append(f'</g>\n<rect x="{LEFT}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#555555"/>')
    lines.append('<g fill="#333333">')
    lines += [draw_text(x.place(at), TOP + HEIGHT + 20, f"{at:,.0f}", ' text-anchor="middle"') for at in x.ticks()]
    lines += [draw_text(LEFT - 8, y.place(at) + 4, f"{at:.4g}", ' text-anchor="end"') for at in y.ticks()]
    lines.append("</g>")
    return lines


def draw_series(one: Series, colour: str, label_at: float, x: Axis, y: Axis) -> list[str]:
    middle = " ".join(f"{x.place(p[0]):.1f},{y.place(p[1]):.1f}" for p in one.points)
    around = [(p[0], p[3]) for p in one.points] + [(p[0], p[2]) for p in reversed(one.points)]
    band = " ".join(f"{x.place(at):.1f},{y.place(value):.1f}" for at, value in around)
    last = one.points[-1]
    return [
        f'<polygon fill="{colour}" fill-opacity="0.12" points="{band}"/>',
        f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{middle}"/>',
        f'<path stroke="{colour}" stroke-width="0.7" d="M{x.place(last[0]):.1f} {y.place(last[1]):.1f}'
        f'L{LEFT + WIDTH + 23} {label_at:.1f}"/>',
        draw_text(LEFT + WIDTH + 28, label_at + 4, one.label, f' fill="{colour}"'),
    ]


def write_chart(path: Path, title: str, series: list[Series]) -> None:
    """Curves over steps, each with the band from its least to its most."""
    x, y = find_axes(series)
    width, height = LEFT + WIDTH + LABELS, TOP + HEIGHT + BOTTOM
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="13">',
        f'<title>{escape(title)}</title>\n<rect width="{width}" height="{height}" fill="#ffffff"/>',
        *draw_frame(x, y),
        draw_text(LEFT, 30, title, ' font-size="17" font-weight="bold"'),
        draw_text(LEFT + WIDTH / 2, TOP + HEIGHT + 46, "steps", ' text-anchor="middle"'),
    ]
    for i, (one, label_at) in enumerate(zip(series, place_labels(series, y))):
        lines += draw_series(one, COLOURS[i % len(COLOURS)], label_at, x, y)
    path.write_text("\n".join([*lines, "</svg>"]) + "\n")
