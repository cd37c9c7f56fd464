"""How step curves look when they are printed, shown in a notebook or turned into a frame."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

MAX_DRAWN = 12
WIDTH, HEIGHT = 260, 90
SIDE, FOOT = 34, 16  # for the ends of the axes
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


def describe_curves(curves: Any) -> str:
    """How far curves are known, in a few words."""
    starts = np.array([curve.start for curve in curves])
    ends = np.array([curve.end for curve in curves])
    is_open = np.isfinite(ends)
    if is_open.any():
        rest = "" if is_open.all() else "; others reach 0"
        return f"known up to {describe_range(ends[is_open])}{rest}"
    is_open = np.isfinite(starts)
    if is_open.any():
        rest = "" if is_open.all() else "; others reach 1"
        return f"known from {describe_range(starts[is_open])}{rest}"
    return "known at all times"


def describe_range(values: ArrayLike) -> str:
    """The smallest and the largest of some numbers."""
    low, high = np.min(values), np.max(values)
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def curves_frame(curves: Any, times: ArrayLike | None) -> Any:
    """The curves as a pandas frame: one row per step, or per curve and one column per time."""
    import pandas as pd

    index = pd.RangeIndex(len(curves)) if curves.index is None else curves.index
    if times is not None:
        at = np.atleast_1d(np.asarray(times, dtype=np.float64))
        return pd.DataFrame(curves(at), index=index, columns=at)
    lengths = np.diff(curves.offsets)
    return pd.DataFrame(
        {
            "row": np.repeat(np.asarray(index), lengths),
            "time": curves.times,
            "value": curves.values,
        }
    )


def curves_html(curves: Any) -> str:
    """A small picture of the first curves, up to where each is known."""
    drawn = list(islice(curves, MAX_DRAWN))
    more = "" if len(curves) <= MAX_DRAWN else f" The first {MAX_DRAWN} are drawn."
    return f"<div>{_draw(drawn)}<br><small>{curves!r}.{more}</small></div>"


def _draw(drawn: list[Any]) -> str:
    low, high = _time_range(drawn)
    top = max((np.max(curve.values, initial=curve.initial) for curve in drawn), default=1.0)
    lines = []
    for i, curve in enumerate(drawn):
        first, last = np.clip([curve.start, curve.end], low, high)
        is_shown = (curve.times >= first) & (curve.times <= last)
        at = np.concatenate([[first], curve.times[is_shown], [last]])
        values = np.atleast_1d(curve(at, beyond="extend"))
        x = WIDTH * (at - low) / ((high - low) or 1.0)
        y = 2 + (HEIGHT - 4) * (1 - values / (top or 1.0))
        path = f"M{x[0]:.1f} {y[0]:.1f}" + "".join(
            f"H{a:.1f}V{b:.1f}" for a, b in zip(x[1:], y[1:], strict=True)
        )
        color = COLORS[i % len(COLORS)]
        lines.append(f'<path d="{path}" fill="none" stroke="{color}" stroke-width="1.5"/>')
    axes = f"M0 0V{HEIGHT}H{WIDTH}"
    lines.append(f'<path d="{axes}" class="axes" fill="none" stroke="#888"/>')
    lines += [
        _write(-5, 10, "end", f"{top:.3g}"),
        _write(-5, HEIGHT, "end", "0"),
        _write(0, HEIGHT + FOOT - 3, "start", f"{low:.4g}"),
        _write(WIDTH, HEIGHT + FOOT - 3, "end", f"{high:.4g}"),
    ]
    return (
        f'<svg width="{WIDTH + SIDE + 2}" height="{HEIGHT + FOOT}" role="img" '
        f'aria-label="step curves"><g transform="translate({SIDE} 0)">{"".join(lines)}</g></svg>'
    )


def _write(x: float, y: float, anchor: str, text: str) -> str:
    place = f'x="{x}" y="{y}" text-anchor="{anchor}"'
    return f'<text {place} font-size="11" fill="currentColor">{text}</text>'


def _time_range(drawn: Iterable[Any]) -> tuple[float, float]:
    """Range of the steps and of the known times, from 0 if no step is negative."""
    known = [
        time
        for curve in drawn
        for time in (*curve.times, curve.start, curve.end)
        if np.isfinite(time)
    ]
    return (float(min(0.0, *known)), float(max(known))) if known else (0.0, 1.0)
