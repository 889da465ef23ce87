#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the measured table between its markers in README.md and docs/performance.md, from benchmarks/h200/prefill.json.

With --check nothing is written; exit code 1 if a file does not hold what would be written.
"""

import argparse
import json
import math
import sys
from pathlib import Path

BEGIN, END = "<!-- table from benchmarks/h200/prefill.json -->", "<!-- end of table -->"
SOURCE = "benchmarks/h200/prefill.json"
PAGES = ("README.md", "docs/performance.md")
OURS = {
    "tileglu": "what the planner picks for separate weights, nothing repacked",
    "interleave": "Kernel-2, its fastest configuration of each row",
}
BASELINES = {
    "cublas_merged": "one GEMM over 2N, then one activation kernel",
    "cublas_two_gemms": "two GEMMs, a SiLU kernel, a product kernel",
    "cublas_gemm_only": "the 2N GEMM alone, no activation, the fastest of cuBLASLt's list",
}


def fastest(rows):
    """(model, m, n, k) -> contender -> its fastest good row, in the order of the file."""
    best = {}
    for row in rows:
        contenders = best.setdefault((row["model"] or "–", row["m"], row["n"], row["k"]), {})
        name = "interleave" if row["contender"].startswith("interleave_") else row["contender"]  # a configuration by name
        known = contenders.get(name)
        if row["status"] == "ok" and (known is None or row["median_us"] < known["median_us"]):
            contenders[name] = row
    return best


def microseconds(row):
    return "–" if row is None else f"{row['median_us']:.1f}"


def ratio(row, ours):
    return None if row is None or ours is None else row["median_us"] / ours["median_us"]


def geometric_mean(values):
    known = [value for value in values if value is not None]
    return math.exp(sum(map(math.log, known)) / len(known)) if known else None


def table(document):
    cell = lambda value: "–" if value is None else f"{value:.2f}x"
    pairs = [(ours, baseline) for ours in OURS for baseline in BASELINES]
    lines = [
        "| model | M | N | K | " + " | ".join(f"`{name}` µs" for name in (*OURS, *BASELINES))
        + " | " + " | ".join(f"`{ours}` against `{baseline}`" for ours, baseline in pairs) + " |",
        "|---" + "|---:" * (3 + len(OURS) + len(BASELINES) + len(pairs)) + "|",
    ]
    speed_ups = {pair: [] for pair in pairs}
    for (model, m, n, k), contenders in fastest(document["rows"]).items():
        for ours, baseline in pairs:
            speed_ups[ours, baseline].append(ratio(contenders.get(baseline), contenders.get(ours)))
        lines.append(
            f"| {model} | {m} | {n} | {k} | "
            + " | ".join(microseconds(contenders.get(name)) for name in (*OURS, *BASELINES))
            + " | " + " | ".join(cell(speed_ups[pair][-1]) for pair in pairs) + " |"
        )
    means = " | ".join(cell(geometric_mean(speed_ups[pair])) for pair in pairs)
    lines.append("| geometric mean " + "| " * (3 + len(OURS) + len(BASELINES)) + f"| {means} |")
    return lines


def block(source):
    if not source.exists():
        return ["", f"Not measured yet: there is no `{SOURCE}`.", ""]
    document = json.loads(source.read_text())
    explained = "; ".join(f"`{contender}`: {text}" for contender, text in (OURS | BASELINES).items())
    return [
        "",
        f"{document['device']}, commit {document['commit']}; medians in microseconds. {explained}. "
        "Ratios above 1 are in favour of tileglu.",
        "",
        *table(document),
        "",
    ]


def rewritten(page, text, lines):
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"bench_table: {page} lacks the marker '{END if begin else BEGIN}'")
    return before + BEGIN + "\n".join(lines) + END + after


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    arguments = parser.parse_args()
    source = arguments.root / SOURCE
    lines = block(source)
    stale = []
    for page in PAGES:
        path = arguments.root / page
        text = path.read_text()
        new = rewritten(page, text, lines)
        if new != text:
            stale.append(page)
            if not arguments.check:
                path.write_text(new)
    if not source.exists():
        print(f"bench_table: there is no {SOURCE}; the pages say so")
    if arguments.check and stale:
        print(f"bench_table: out of date: {', '.join(stale)}; run scripts/bench_table.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
