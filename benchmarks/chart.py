"""A picture of the results: how many times faster each case is than its best peer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness import Result


def draw(results: Sequence[Result], path: Path) -> None:
    """Write an SVG with a bar for each case and number of threads, and a tick at its goal."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    counts = sorted({r.threads for r in results})
    names = list(dict.fromkeys(r.case for r in results))
    height = 0.8 / len(counts)
    with rc_context({"svg.hashsalt": "stepwell", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(9, 1.2 + 0.45 * len(names)), layout="constrained")
        axes = figure.add_subplot()
        for i, count in enumerate(counts):
            mine = [r for r in results if r.threads == count]
            rows = [names.index(r.case) - 0.4 + height * (i + 0.5) for r in mine]
            label = f"{count} thread" + ("s" if count > 1 else "")
            bars = axes.barh(rows, [r.ratio for r in mine], height, label=label)
            axes.bar_label(bars, [f"{r.ratio:.2f} ({r.best_peer})" for r in mine], padding=3)
            goals = [(r.goal, row) for r, row in zip(mine, rows, strict=True) if r.goal]
            style = {"color": "black", "marker": "|", "markersize": 9, "linestyle": ""}
            axes.plot(*zip(*goals, strict=True), **style) if goals else None
        axes.axvline(1, color="grey", linewidth=0.8)
        axes.set_xscale("log", base=2)
        low = min(0.5, *(r.ratio for r in results))
        axes.set_xlim(low / 1.1, 2.2 * max(2, *(r.ratio for r in results)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        axes.set_xlabel("best peer's time over ours (bar), goal (tick); above 1 is faster")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, loc="lower right")
        figure.savefig(path, metadata={"Date": None})
