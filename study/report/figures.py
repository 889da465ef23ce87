# SPDX-License-Identifier: Apache-2.0
"""Plots as SVG, each with the file that holds what it shows. They are read on light and on dark pages: lines and
letters take the colour of the page's text, the background is transparent, and series differ by marker as well as by
colour."""

import io
import re

from ..store import SCHEMA_VERSION, write_json, write_text

# Okabe and Ito's colours without the two that vanish on white or on black; told apart with every common colour
# blindness.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6D46")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
INK = "#123457"  # stands for the colour of the page's text until the SVG is written
OUTSIDE = "<style>svg{color:#1b1f24}@media (prefers-color-scheme:dark){svg{color:#e3e6ea}}</style>"


def pyplot():
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError("needs matplotlib, which this Python has not (pip install matplotlib)") from error
    matplotlib.use("svg")
    from matplotlib import pyplot as plt

    plt.rcParams.update(
        {name: INK for name in ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")}
    )
    plt.rcParams.update(
        {
            "svg.fonttype": "none",
            "svg.hashsalt": "tileglu",
            "font.family": "sans-serif",
            "font.size": 10,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.facecolor": "none",
            "legend.frameon": False,
            "figure.figsize": (9, 4.6),
        }
    )
    return plt


def draw(folder, figure, series, sources, x_label, y_label, log_x=False, log_y=False, levels=(), roof=None, bars=False):
    """series: {label: {"x": [...], "y": [...]}}; levels: {label: y} of horizontal lines; roof: of a roofline."""
    plt = pyplot()
    write_json(
        folder / figure.data,
        {
            "schema_version": SCHEMA_VERSION,
            "figure": figure.title,
            "x": x_label,
            "y": y_label,
            "series": series,
            "levels": dict(levels),
            "roof": roof,
            "sources": sorted(set(sources)),
        },
    )
    canvas, axes = plt.subplots()
    canvas.patch.set_alpha(0)
    (draw_bars if bars else draw_points)(axes, series, connect=roof is None)
    for label, y in dict(levels).items():
        axes.axhline(y, color=INK, linewidth=0.9, linestyle=":")
        axes.annotate(label, (1.0, y), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=8)
    if roof:
        draw_roof(axes, series, roof)
    if log_x:
        axes.set_xscale("log")
    if log_x and not roof:
        xs = sorted({x for points in series.values() for x in points["x"]})
        axes.set_xticks(xs, [str(x) for x in xs], fontsize=8)
        axes.minorticks_off()
    if log_y:
        axes.set_yscale("log")
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.grid(True, color=INK, alpha=0.15, linewidth=0.6)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=9)
    canvas.tight_layout()
    text = io.StringIO()
    canvas.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    plt.close(canvas)
    write_text(folder / figure.svg, themed(text.getvalue(), figure.name))
    return figure


def draw_points(axes, series, connect):
    for index, (label, points) in enumerate(series.items()):
        axes.plot(
            points["x"],
            points["y"],
            label=label,
            color=COLOURS[index % len(COLOURS)],
            marker=MARKERS[index % len(MARKERS)],
            markersize=5,
            linestyle="-" if connect else "none",
            alpha=1.0 if connect else 0.8,
        )


def draw_bars(axes, series, connect):
    del connect
    labels = list(dict.fromkeys(x for points in series.values() for x in points["x"]))
    width = 0.8 / max(1, len(series))
    hatches = ("", "//", "..", "xx", "\\\\", "--", "++")
    for index, (label, points) in enumerate(series.items()):
        places = [labels.index(x) + (index - (len(series) - 1) / 2) * width for x in points["x"]]
        axes.bar(
            places,
            points["y"],
            width * 0.95,
            label=label,
            color=COLOURS[index % len(COLOURS)],
            hatch=hatches[index % len(hatches)],
            edgecolor=INK,
            linewidth=0.4,
        )
    axes.set_xticks(range(len(labels)), labels, rotation=30, ha="right", fontsize=8)


def draw_roof(axes, series, roof):
    xs = [x for points in series.values() for x in points["x"]]
    left, right = min(xs) / 2, max(*xs, roof["ridge"]) * 2
    axes.plot(
        [left, roof["ridge"], right],
        [left * roof["gbps"] / 1e3, roof["tflops"], roof["tflops"]],
        color=INK,
        linewidth=1.2,
    )
    axes.axvline(roof["ridge"], color=INK, linewidth=0.8, linestyle=":")
    axes.annotate(f"ridge {roof['ridge']:.0f}", (roof["ridge"], 0.02), xycoords=("data", "axes fraction"), fontsize=8)


def themed(svg, name):
    """The colour of the page's text for INK; identifiers that differ between figures, since a page holds several."""
    svg = svg.replace(INK, "currentColor").replace(INK.upper(), "currentColor")
    svg = re.sub(r'(id="|url\(#|href="#)', rf"\g<1>{name}-", svg)
    start = svg.index(">", svg.index("<svg")) + 1
    return svg[:start] + OUTSIDE + svg[start:]
