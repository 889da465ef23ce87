#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the measured tables between their markers in README.md and docs/performance.md, from benchmarks/h200/.

With --check nothing is written; exit code 1 if a file does not hold what would be written.
"""

import argparse
import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path

PAGES = ("README.md", "docs/performance.md")
END = "<!-- end of table -->"
BASELINES = {
    "cublas_merged": "one GEMM over 2N, then one activation kernel",
    "cublas_two_gemms": "two GEMMs, a SiLU kernel, a product kernel",
    "cublas_gemm_only": "the 2N GEMM alone, no activation, the fastest of cuBLASLt's list",
}


@dataclass
class Table:
    source: str
    ours: dict  # contender: what it is
    compared: tuple  # those of ours whose ratios are shown
    bandwidth: bool = False  # show the share of the read bandwidth measured in the same run
    winner: bool = False  # show which kernel is the fastest

    @property
    def begin(self):
        return f"<!-- table from {self.source} -->"


TABLES = (
    Table(
        source="benchmarks/h200/prefill.json",
        ours={
            "tileglu": "what the planner picks for separate weights, nothing repacked",
            "interleave": "Kernel-2 on interleaved weights, its fastest configuration of each row",
            "sync_pingpong": "Kernel-1, likewise",
        },
        compared=("tileglu",),
        winner=True,
    ),
    Table(
        source="benchmarks/h200/decode.json",
        ours={
            "tileglu": "what the planner picks for separate weights",
            "tileglu+prefetch": "the same with TILEGLU_PREFETCH_WEIGHTS",
        },
        compared=("tileglu", "tileglu+prefetch"),
        bandwidth=True,
    ),
)


def family(contender):
    """"interleave" of "interleave_128x192_..."; other names as they are."""
    return next((name for name in ("interleave", "sync_pingpong") if contender.startswith(name + "_")), contender)


def fastest(rows):
    """(model, m, n, k) -> contender -> its fastest good row, in the order of the file."""
    best = {}
    for row in rows:
        contenders = best.setdefault((row["model"] or "–", row["m"], row["n"], row["k"]), {})
        name = family(row["contender"])
        known = contenders.get(name)
        if row["status"] == "ok" and (known is None or row["median_us"] < known["median_us"]):
            contenders[name] = row
    return best


def ratio(row, ours):
    return None if row is None or ours is None else row["median_us"] / ours["median_us"]


def geometric_mean(values):
    known = [value for value in values if value is not None]
    return math.exp(sum(map(math.log, known)) / len(known)) if known else None


def winner(contenders):
    ours = [row for name, row in contenders.items() if name not in BASELINES]
    return f"`{min(ours, key=lambda row: row['median_us'])['config']}`" if ours else "–"


def lines_of(table, document):
    show = lambda value, form: "–" if value is None else form.format(value)
    times = [*table.ours, *BASELINES]
    pairs = [(ours, baseline) for ours in table.compared for baseline in BASELINES]
    shares = list(table.ours) if table.bandwidth else []
    titles = ["model", "M", "N", "K", *(f"`{name}` µs" for name in times)]
    titles += [f"`{name}`, share of read bandwidth" for name in shares]
    titles += [f"`{ours}` against `{baseline}`" for ours, baseline in pairs]
    titles += ["fastest kernel"] * table.winner
    lines = ["| " + " | ".join(titles) + " |", "|---" + "|---:" * (len(titles) - 1) + "|"]
    ratios = {pair: [] for pair in pairs}
    for shape, contenders in fastest(document["rows"]).items():
        cells = [*map(str, shape)]
        cells += [show(contenders.get(name, {}).get("median_us"), "{:.1f}") for name in times]
        cells += [show(contenders.get(name, {}).get("share_of_read_ceiling"), "{:.0%}") for name in shares]
        for ours, baseline in pairs:
            ratios[ours, baseline].append(ratio(contenders.get(baseline), contenders.get(ours)))
            cells.append(show(ratios[ours, baseline][-1], "{:.2f}x"))
        cells += [winner(contenders)] * table.winner
        lines.append("| " + " | ".join(cells) + " |")
    means = [show(geometric_mean(ratios[pair]), "{:.2f}x") for pair in pairs] + [""] * table.winner
    lines.append("| geometric mean " + "| " * (3 + len(times) + len(shares)) + "| " + " | ".join(means) + " |")
    return lines


def block(table, source):
    if not source.exists():
        return ["", f"Not measured yet: there is no `{table.source}`.", ""]
    document = json.loads(source.read_text())
    explained = "; ".join(f"`{contender}`: {text}" for contender, text in (table.ours | BASELINES).items())
    return [
        "",
        f"{document['device']}, commit {document['commit']}; medians in microseconds. {explained}. "
        "Ratios above 1 are in favour of tileglu.",
        "",
        *lines_of(table, document),
        "",
    ]


def rewritten(page, text, table, lines):
    before, begin, rest = text.partition(table.begin)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"bench_table: {page} lacks the marker '{END if begin else table.begin}'")
    return before + begin + "\n".join(lines) + END + after


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    arguments = parser.parse_args()
    blocks = [(table, block(table, arguments.root / table.source)) for table in TABLES]
    stale = []
    for page in PAGES:
        path = arguments.root / page
        text = new = path.read_text()
        for table, lines in blocks:
            new = rewritten(page, new, table, lines)
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
