#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a tuning table (data/tuning/*.json) from result files of 'tileglu bench'.

    tileglu bench --kernel all --layout separate ... --output BENCH.json
    scripts/tuning_table.py BENCH.json [MORE.json ...] --output data/tuning/nvidia-h200.json

Of each shape and layout the fastest sm90 kernel, with its median; where the planner's own choice (contender 'tileglu') is
within 0.5 % of it, that one. A shape and layout with fewer than five kernels and without the planner's choice is left out:
nobody knows then whether the fastest kernel took part. A file further back replaces the rows of those before it.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

SCHEMA = 1
TIE = 1.005
FEWEST = 5
KEY = ("device", "sm_count", "version", "dtype", "activation", "layout", "n", "k", "m")


def problems(document, name):
    """key -> (medians by kernel, the planner's choice or None)."""
    try:
        device = document["environment"]["device"]
        head = (device["name"], device["sm_count"], document["version"])
    except (KeyError, TypeError) as error:
        raise SystemExit(f"tuning_table: {name} is not a result of 'tileglu bench' on a GPU: no {error}") from None
    found = {}
    for row in document["rows"]:
        if row["status"] != "ok" or row["backend"] != "sm90":
            continue
        key = head + tuple(row[field] for field in KEY[3:])
        medians, planned = found.get(key, ({}, None))
        medians.setdefault(row["config"], []).append(row["median_us"])
        found[key] = medians, row["config"] if row["contender"] == "tileglu" else planned
    return found


def fastest(medians, planned):
    # A kernel that ran under several names counts by its mean: the least of several would favour it.
    times = {kernel: statistics.fmean(values) for kernel, values in medians.items()}
    best = min(times, key=times.get)
    return (planned, times[planned]) if times.get(planned, 2 * times[best]) <= TIE * times[best] else (best, times[best])


def table(files):
    """key -> row, and the shapes that were left out."""
    rows, left_out = {}, 0
    for path in files:
        for key, (medians, planned) in problems(json.loads(path.read_text()), path).items():
            if planned is None and len(medians) < FEWEST:
                left_out += 1
                continue
            kernel, median = fastest(medians, planned)
            rows[key] = dict(zip(KEY, key)) | {"kernel": kernel, "median_us": round(median, 3)}
    return rows, left_out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    rows, left_out = table(arguments.files)
    sources = ", ".join(
        f"{path.name} (commit {json.loads(path.read_text())['commit']})" for path in arguments.files
    )
    about = f"fastest kernel of each problem, by scripts/tuning_table.py from {sources}"
    lines = ",\n".join(json.dumps(rows[key], separators=(",", ":")) for key in sorted(rows))
    text = f'{{"schema_version": {SCHEMA}, "about": {json.dumps(about)}, "rows": [\n{lines}\n]}}\n'
    arguments.output.write_text(text.replace("\n\n]", "\n]"))
    print(f"tuning_table: {len(rows)} rows in {arguments.output}; {left_out} left out with too few kernels")
    return 0


if __name__ == "__main__":
    sys.exit(main())
