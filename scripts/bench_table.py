#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the measured tables between their markers in README.md and docs/measurements.md, from benchmarks/h200/.

With --check nothing is written; exit code 1 if a file does not hold what would be written.
"""

import argparse
import json
import math
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

END = "<!-- end of table -->"
MISSING = "–"
PREFILL, DECODE = "benchmarks/h200/prefill.json", "benchmarks/h200/decode.json"
STUDY = "benchmarks/h200/study"
BASELINES = {
    "cublas_merged": "one GEMM over 2N, then one activation kernel",
    "cublas_two_gemms": "two GEMMs, a SiLU kernel, a product kernel",
    "cublas_gemm_only": "the 2N GEMM alone, no activation, the fastest of cuBLASLt's list",
}


# --- what a row or a cell shows of a shape, from {contender: its fastest good row} ------------------------------------


@dataclass
class Figure:
    form: str
    of: Callable  # of {contender: row}; None where that was not measured
    averaged: bool = False

    def text(self, contenders):
        return self.shown(self.of(contenders))

    def mean(self, shapes):
        return self.shown(geometric_mean(map(self.of, shapes))) if self.averaged else ""

    def shown(self, value):
        return MISSING if value is None else self.form.format(value)


def field(contender, name, form):
    return Figure(form, lambda contenders: contenders.get(contender, {}).get(name))


def time(contender):
    return field(contender, "median_us", "{:.1f}")


def share(contender):
    return field(contender, "share_of_read_ceiling", "{:.0%}")


def over(baseline, ours="tileglu"):
    return Figure("{:.2f}x", lambda contenders: ratio(contenders.get(baseline), contenders.get(ours)), averaged=True)


def ratio(row, ours):
    return None if row is None or ours is None else row["median_us"] / ours["median_us"]


def fastest_kernel(contenders):
    ours = [row for name, row in contenders.items() if name not in BASELINES]
    return min(ours, key=lambda row: row["median_us"])["config"] if ours else None


def fastest_tile(contenders):
    """"paired 128x192" of "paired_128x192_pingpong_c2x1"."""
    config = fastest_kernel(contenders)
    return config and re.sub(r"_(\d+x\d+)_.*", r" \1", config)


def geometric_mean(values):
    known = [value for value in values if value is not None]
    return math.exp(sum(map(math.log, known)) / len(known)) if known else None


# --- from a file of `tileglu bench` -----------------------------------------------------------------------------------


def family(contender):
    """"interleave" of "interleave_128x192_..."; other names as they are."""
    return next((name for name in ("interleave", "sync_pingpong") if contender.startswith(name + "_")), contender)


def fastest(rows):
    """(model, m, n, k) -> contender -> its fastest good row, in the order of the file."""
    best = {}
    for row in rows:
        contenders = best.setdefault((row["model"] or MISSING, row["m"], row["n"], row["k"]), {})
        name = family(row["contender"])
        known = contenders.get(name)
        if row["status"] == "ok" and (known is None or row["median_us"] < known["median_us"]):
            contenders[name] = row
    return best


def explained(contenders):
    return "; ".join(f"`{name}`: {text}" for name, text in contenders.items())


# --- the tables -------------------------------------------------------------------------------------------------------


@dataclass
class Long:
    """A row a shape, a column a figure."""

    source: str
    ours: dict  # contender: what it is
    compared: tuple  # those of ours whose ratios are shown
    bandwidth: bool = False  # show the share of the read bandwidth measured in the same run
    winner: bool = False  # show which kernel is the fastest
    kind = "table"

    def lines(self, document):
        shapes, columns = fastest(document["rows"]), self.columns()
        rows = [[*map(str, shape), *(figure.text(c) for figure in columns.values())] for shape, c in shapes.items()]
        means = [figure.mean(shapes.values()) for figure in columns.values()]
        return [
            f"{document['device']}, commit {document['commit']}; medians in microseconds. "
            f"{explained(self.ours | BASELINES)}. Ratios above 1 are in favour of tileglu.",
            "",
            *grid(["model", "M", "N", "K", *columns], [*rows, ["geometric mean", "", "", "", *means]]),
        ]

    def columns(self):
        """{title: figure}"""
        found = {f"`{name}` µs": time(name) for name in [*self.ours, *BASELINES]}
        if self.bandwidth:
            found |= {f"`{name}`, share of read bandwidth": share(name) for name in self.ours}
        for ours in self.compared:
            found |= {f"`{ours}` against `{baseline}`": over(baseline, ours) for baseline in BASELINES}
        return found | ({"fastest kernel": Figure("`{}`", fastest_kernel)} if self.winner else {})


@dataclass
class Matrix:
    """A row a model, a column a batch size, and in each cell some figures, one a line."""

    source: str
    text: str  # with {device} and other fields of the file
    figures: dict  # short name: figure
    least_m: int = 0
    kind: str = "matrix"

    def lines(self, document):
        shapes = {shape: c for shape, c in fastest(document["rows"]).items() if shape[1] >= self.least_m}
        batches = sorted({m for _, m, _, _ in shapes})
        rows = [
            [model, *(self.cell(shapes.get((model, m, n, k))) for m in batches)]
            for model, n, k in dict.fromkeys((model, n, k) for model, _, n, k in shapes)
        ]
        columns = [[c for (_, m, _, _), c in shapes.items() if m == batch] for batch in batches]
        rows.append(["geometric mean", *("<br>".join(self.means(column).values()) for column in columns)])
        overall = ", ".join(f"{mean} {name}" for name, mean in self.means(shapes.values()).items())
        return [
            self.text.format(**document),
            f"Geometric mean of all shapes: {overall}.",
            "",
            *grid(["<br>".join(self.figures), *(f"M = {m}" if m == batches[0] else str(m) for m in batches)], rows),
        ]

    def cell(self, contenders):
        return "<br>".join(figure.text(contenders) for figure in self.figures.values()) if contenders else MISSING

    def means(self, shapes):
        """{short name: mean}"""
        return {name: figure.mean(shapes) for name, figure in self.figures.items() if figure.averaged}


@dataclass
class Claims:
    """The paper's figures beside ours, from the file that `tileglu report` writes."""

    source: str
    report: str
    kind = "claims"

    def lines(self, document):
        unfinished = ", ".join(f"{name} {count}" for name, count in document["unfinished"].items())
        rows = [[row["claim"], row["paper"], row["ours"] or "not measured"] for row in document["rows"]]
        return [
            "The paper's figures are of an H100; ours are by the [study](docs/study.md): "
            f"{document['device']}, commit {document['commit']}. [Its page]({self.report}) says why they differ.",
            *([f"**Unfinished units of the study:** {unfinished}."] if unfinished else []),
            "",
            *grid(["claim", "paper", "ours"], rows, text_columns=3),
        ]


def grid(titles, rows, text_columns=1):
    marks = ["---"] * text_columns + ["---:"] * (len(titles) - text_columns)
    head, *body = ("| " + " | ".join(cells) + " |" for cells in [titles, *rows])
    return [head, "|" + "|".join(marks) + "|", *body]


PLANNED = "what the planner picks for separate weights"
PAGES = {
    "README.md": (
        Matrix(
            source=PREFILL,
            text=f"`tileglu`, {PLANNED}, nothing repacked: median time in µs; how many times as fast it is as "
            f"`cublas_merged` ({BASELINES['cublas_merged']}); and as `cublas_gemm_only` "
            f"({BASELINES['cublas_gemm_only']}), which computes less. {{device}}, commit {{commit}}.",
            figures={
                "µs": time("tileglu"),
                "over merged": over("cublas_merged"),
                "over GEMM only": over("cublas_gemm_only"),
            },
        ),
        Matrix(
            source=DECODE,
            text=f"`tileglu`, {PLANNED}: median time in µs; how many times as fast it is as `cublas_merged`; and its "
            "rate of reading and writing operands as a share of the read bandwidth measured in the same run "
            "({ceilings[read_gbps]:.0f} GB/s). {device}, commit {commit}.",
            figures={"µs": time("tileglu"), "over merged": over("cublas_merged"), "bandwidth": share("tileglu")},
        ),
        Matrix(
            source=PREFILL,
            kind="winners",
            least_m=512,
            text="Which kernel is the fastest, and how many times as fast the paper's Kernel-2 (`interleave`) is as its Kernel-1 "
            "(`sync_pingpong`), each with its fastest configuration. The paper has Kernel-2 ahead on 13 of its 20 "
            "configurations, up to M = 2048, and Kernel-1 on 7. {device}, commit {commit}.",
            figures={
                "fastest": Figure("{}", fastest_tile),
                "Kernel-2 over Kernel-1": over("sync_pingpong", "interleave"),
            },
        ),
        Claims(source=f"{STUDY}/data/claims.json", report=f"{STUDY}/report.md"),
    ),
    "docs/measurements.md": (
        Long(
            source=PREFILL,
            ours={
                "tileglu": f"{PLANNED}, nothing repacked",
                "interleave": "Kernel-2 on interleaved weights, its fastest configuration of each row",
                "sync_pingpong": "Kernel-1, likewise",
            },
            compared=("tileglu",),
            winner=True,
        ),
        Long(
            source=DECODE,
            ours={"tileglu": PLANNED, "tileglu+prefetch": "the same with TILEGLU_PREFETCH_WEIGHTS"},
            compared=("tileglu", "tileglu+prefetch"),
            bandwidth=True,
        ),
    ),
}


# --- the pages --------------------------------------------------------------------------------------------------------


def block(table, root):
    source = root / table.source
    if not source.exists():
        return ["", f"Not measured yet: there is no `{table.source}`.", ""]
    return ["", *table.lines(json.loads(source.read_text())), ""]


def rewritten(page, text, table, lines):
    marker = f"<!-- {table.kind} from {table.source} -->"
    before, begin, rest = text.partition(marker)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"bench_table: {page} lacks the marker '{END if begin else marker}'")
    return before + begin + "\n".join(lines) + END + after


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    arguments = parser.parse_args()
    stale = []
    for page, tables in PAGES.items():
        path = arguments.root / page
        text = new = path.read_text()
        for table in tables:
            new = rewritten(page, new, table, block(table, arguments.root))
        if new != text:
            stale.append(page)
            if not arguments.check:
                path.write_text(new)
    if arguments.check and stale:
        print(f"bench_table: out of date: {', '.join(stale)}; run scripts/bench_table.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
