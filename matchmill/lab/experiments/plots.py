"""Plots of a report, drawn by matplotlib: the same picture as SVG and as PNG.

The SVG has no colours of its own for text and axes: they take the page's, so that it can be read on
light and on dark. A contender has one colour and one marker in all pictures of a report.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from matchmill.errors import MissingDependencyError
from matchmill.lab.experiments.report_tables import number_text
from matchmill.lab.experiments.results import Results, Summary
from matchmill.lab.experiments.spec import MEASUREMENTS, Plot

__all__ = ["Picture", "caption", "draw", "styles_of"]

_COLOURS = (
    "#3b82d0", "#e0802b", "#2fa36b", "#d24d57", "#8f6bd1", "#a8783c", "#d468a8", "#7d8794",
    "#a9a22c", "#2ba7b8",
)  # fmt: skip
_MARKERS = "osD^vPX*<>"
_INK = "#010203"  # stands for the colour of the page's text
_COLUMNS = 3


class Picture(NamedTuple):
    """One plot as SVG, with its caption."""

    caption: str
    svg: str
    png: bytes


class Style(NamedTuple):
    colour: str
    marker: str
    line: str


def styles_of(names: Sequence[str]) -> dict[str, Style]:
    """Colours and markers for names, the same for the same list."""
    lines = ("-", "--", ":")
    return {
        name: Style(
            _COLOURS[i % len(_COLOURS)],
            _MARKERS[i % len(_MARKERS)],
            lines[(i // len(_COLOURS)) % len(lines)],
        )
        for i, name in enumerate(names)
    }


def draw(results: Results, plot: Plot, contenders: Mapping[str, Style]) -> Picture | None:
    """Draw one plot; None if there is nothing to show."""
    rows = [s for s in results.summaries() if s.status == "ok" and s.columns[plot.y] is not None]
    if not rows:
        return None
    panels: dict[tuple[Any, ...], list[Summary]] = {}
    for s in rows:
        panels.setdefault(tuple(_label(s, key) for key in plot.panels), []).append(s)
    names = list(dict.fromkeys(number_text(_label(s, plot.series)) for s in rows))
    styles = contenders if plot.series == "index" else styles_of(names)
    rc_context, figure_class = _matplotlib()
    with rc_context(_RC):
        figure = figure_class(figsize=_size(len(panels)), layout="constrained")
        columns = min(_COLUMNS, len(panels))
        n_rows = math.ceil(len(panels) / columns)
        axes = figure.subplots(n_rows, columns, squeeze=False, sharey=True).ravel()
        for ax, (key, inside) in zip(axes, panels.items(), strict=False):
            _draw_panel(ax, plot, inside, styles)
            ax.set_title(_panel_title(plot, key), fontsize=9)
        for ax in axes[len(panels) :]:
            ax.set_visible(False)
        # The panels share one axis, and a limit that is set ends its scaling: so, at the end.
        if plot.log_y and all(s.columns[plot.y] > 0 for s in rows):
            axes[0].set_yscale("log")
        else:
            axes[0].set_ylim(bottom=0)
        for ax in axes[: len(panels) : columns]:
            ax.set_ylabel(MEASUREMENTS[plot.y])
        handles: dict[str, Any] = {}
        for ax in axes[: len(panels)]:
            for handle, name in zip(*ax.get_legend_handles_labels(), strict=True):
                handles.setdefault(name, handle)
        figure.legend(
            list(handles.values()), list(handles), loc="outside lower center",
            ncols=_n_columns(list(handles)), frameon=False,
            title=None if plot.series == "index" else plot.series.replace("_", " "),
        )  # fmt: skip
        salt = f"{results.experiment.name} {results.scale} {plot.x} {plot.y}"
        return Picture(caption(plot), _svg(figure, salt), _png(figure))


def _n_columns(names: list[str]) -> int:
    """Of the legend: as many as fit the picture's width, of about a hundred letters."""
    longest = max(map(len, names), default=0)
    return max(1, min(6, len(names), 100 // (longest + 7)))


def _matplotlib() -> tuple[Any, Any]:
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingDependencyError(
            "plots need matplotlib; install it: pip install 'matchmill[report]'"
        ) from None
    return rc_context, Figure


_RC = {
    "font.size": 9,
    "svg.fonttype": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.18,
    "grid.linewidth": 0.7,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    **dict.fromkeys(
        ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color",
         "grid.color"),
        _INK,
    ),
}  # fmt: skip


def _size(n_panels: int) -> tuple[float, float]:
    columns = min(_COLUMNS, n_panels)
    return (6.4 if columns == 1 else 3.4 * columns), 2.9 * math.ceil(n_panels / columns) + 0.8


def _label(s: Summary, key: str) -> Any:
    return s.contender if key == "index" else s.labels.get(key)


def _panel_title(plot: Plot, key: tuple[Any, ...]) -> str:
    named = zip(plot.panels, key, strict=True)
    return ", ".join(f"{name} {number_text(v)}" for name, v in named)


def caption(plot: Plot) -> str:
    """Return the line below a picture."""
    return f"{MEASUREMENTS[plot.y]} against {plot.x.replace('_', ' ')}"


def _draw_panel(ax: Any, plot: Plot, rows: Sequence[Summary], styles: Mapping[str, Style]) -> None:
    xs = list(dict.fromkeys(_label(s, plot.x) for s in rows))
    is_numeric = all(isinstance(x, int | float) and not isinstance(x, bool) for x in xs)
    series: dict[str, list[Summary]] = {}
    for s in rows:
        series.setdefault(number_text(_label(s, plot.series)), []).append(s)
    if is_numeric:
        for name, inside in series.items():
            _draw_line(ax, plot, name, inside, styles[name])
        _numeric_axis(ax, plot, sorted(xs))
    else:
        _draw_bars(ax, plot, xs, series, styles)
    ax.set_xlabel(plot.x.replace("_", " "))
    ax.set_axisbelow(True)


def _draw_line(ax: Any, plot: Plot, name: str, rows: Sequence[Summary], style: Style) -> None:
    rows = sorted(rows, key=lambda s: _label(s, plot.x))
    xs, ys = [_label(s, plot.x) for s in rows], [s.columns[plot.y] for s in rows]
    ax.plot(
        xs, ys, style.line, marker=style.marker, markersize=4.5, linewidth=1.5, color=style.colour,
        label=name,
    )  # fmt: skip
    if plot.y == "us_per_event":
        lows = [s.columns["us_per_event_min"] for s in rows]
        highs = [s.columns["us_per_event_max"] for s in rows]
        ax.vlines(xs, lows, highs, color=style.colour, linewidth=1, alpha=0.6)


def _numeric_axis(ax: Any, plot: Plot, xs: list[float]) -> None:
    if plot.log_x and xs[0] > 0:
        ax.set_xscale("log")
    shown = xs if len(xs) <= 6 else xs[:: math.ceil(len(xs) / 6)]
    ax.set_xticks(shown, [_short(x) for x in shown])
    ax.set_xticks([], minor=True)


def _short(value: float) -> str:
    """Write a number for a tick: 300k, 2M."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size and value * 1000 % size == 0:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def _draw_bars(
    ax: Any,
    plot: Plot,
    xs: list[Any],
    series: Mapping[str, Sequence[Summary]],
    styles: Mapping[str, Style],
) -> None:
    width = 0.8 / len(series)
    for i, (name, rows) in enumerate(series.items()):
        shift = (i - (len(series) - 1) / 2) * width
        places = [xs.index(_label(s, plot.x)) + shift for s in rows]
        heights = [s.columns[plot.y] for s in rows]
        ax.bar(places, heights, width * 0.92, color=styles[name].colour, label=name)
    ax.set_xticks(range(len(xs)), [str(x) for x in xs])
    if sum(len(str(x)) for x in xs) > 36:
        ax.tick_params(axis="x", labelrotation=30)
    ax.grid(visible=False, axis="x")


def _svg(figure: Any, salt: str) -> str:
    from matplotlib import rc_context

    out = io.StringIO()
    with rc_context({"svg.hashsalt": salt}):
        figure.savefig(out, format="svg", metadata={"Date": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]  # neither prolog nor document type: it goes into a page
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    return text.replace(_INK, "currentColor")


def _png(figure: Any) -> bytes:
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=120, facecolor="white")
    return out.getvalue()
