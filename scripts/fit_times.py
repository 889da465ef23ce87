#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits the planner's numbers (src/plan/sm90_times.inc) to benchmark results of all kernels.

    scripts/fit_times.py benchmarks/h200/kernels.json benchmarks/h200/kernels_random.json      (needs numpy and scipy)

The model is src/plan/time_model.cpp's; what is fitted are four numbers for each kernel. It also says how good the choices
are: the time of the kernel that the model picks over the time of the fastest, for each shape of the files.
"""

import json
import math
import pathlib
import re
import sys

import numpy
from scipy.optimize import least_squares

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = ROOT / "src/plan/sm90_times.inc"
SM_COUNT = 132
LAUNCH_US = 2.2
SUSTAINED_TFLOPS = 715
SHORTEST_PART = 4  # work_split.hpp
TILE_K = 64
WIDE_TILE = 128 * 192
NAME = re.compile(
    r"[a-z_]+_(?P<m>\d+)x(?P<n2>\d+)_(?:pingpong|cooperative)_c(?P<cluster_m>\d)x(?P<cluster_n>\d)"
    r"(?:_x(?P<ctas>\d))?(?P<shared>_sk)?(?:_general)?(?:_g\d)?$"
)


def ceil_div(x, y):
    return -(-x // y)


def tiles_of_a_worker(name, m, n, k):
    """(tiles of the busiest worker, whether tiles are cut along k), as in work_split.hpp; vector kernels: (0, False)."""
    config = NAME.match(name)
    if not config:
        return 0.0, False
    cluster_m, cluster_n = int(config["cluster_m"]), int(config["cluster_n"])
    tiles = ceil_div(m, int(config["m"]) * cluster_m) * ceil_div(2 * n, int(config["n2"]) * cluster_n)
    most = SM_COUNT * int(config["ctas"] or 1) // (cluster_m * cluster_n)
    useful = tiles * ceil_div(ceil_div(k, TILE_K), SHORTEST_PART) if config["shared"] else tiles
    workers = min(useful, most)
    rest = tiles % workers
    shared = rest + (workers if tiles >= workers else 0) if rest and config["shared"] else 0
    return shared / workers + ceil_div(tiles - shared, workers), shared > 0


def predict(name, m, n, k, numbers):
    k_block_us, tile_us, exchange_us, gbps = numbers
    tiles, cut = tiles_of_a_worker(name, m, n, k)
    compute = tile_us
    if tiles:
        compute = tiles * (ceil_div(k, TILE_K) * k_block_us + tile_us) + exchange_us * cut
    memory = 2 * (m * k + 2 * n * k + m * n) / gbps * 1e-3
    return LAUNCH_US + max((compute**4 + memory**4) ** 0.25, 4 * m * n * k / SUSTAINED_TFLOPS * 1e-6)


def read(paths):
    """{(m, n, k): {kernel: median_us}}"""
    shapes = {}
    for path in paths:
        for row in json.loads(pathlib.Path(path).read_text())["rows"]:
            if row["status"] == "ok" and row["contender"] == row["config"]:
                shapes.setdefault((row["m"], row["n"], row["k"]), {})[row["config"]] = row["median_us"]
    return shapes


def fit(name, shapes):
    points = [(shape, times[name]) for shape, times in shapes.items() if name in times]
    tile = NAME.match(name)
    area = int(tile["m"]) * int(tile["n2"]) if tile else 0
    ideal = 2 * area * TILE_K / 4096 / 1700 if tile else 1e-4
    # On long problems the power limit leaves at most 3/4 of that; short ones alone do not show it.
    least = 1.33 * ideal if area >= WIDE_TILE else ideal / 4

    def residuals(logs):
        return [math.log(predict(name, *shape, numpy.exp(logs)) / time) for shape, time in points]

    start = numpy.log([1.5 * ideal, 2 * ideal + 0.3, 2.0, 4000.0])
    bounds = (numpy.log([least, 0.01, 0.01, 500.0]), numpy.log([ideal * 8, 20.0, 30.0, 6000.0]))
    found = least_squares(residuals, start, loss="soft_l1", f_scale=0.03, bounds=bounds)
    return numpy.exp(found.x), residuals(found.x)


def main(paths):
    shapes = read(paths)
    names = sorted({name for times in shapes.values() for name in times})
    fitted, errors, lines = {}, [], []
    for name in names:
        fitted[name], residuals = fit(name, shapes)
        errors += residuals
        k_block_us, tile_us, exchange_us, gbps = fitted[name]
        if not name.endswith("_sk"):
            exchange_us = 0.0
        lines.append(f'{{"{name}", {k_block_us:.5f}, {tile_us:.3f}, {exchange_us:.3f}, {gbps:.0f}}},\n')
    TARGET.write_text("// Written by scripts/fit_times.py.\n" + "".join(lines), encoding="utf-8")
    losses = []
    for shape, times in shapes.items():
        known = [name for name in times if not name.startswith("interleave")]
        picked = min(known, key=lambda name: predict(name, *shape, fitted[name]))
        losses.append(times[picked] / min(times[name] for name in known) - 1)
    rms = math.sqrt(sum(error * error for error in errors) / len(errors))
    print(f"{len(shapes)} shapes, {len(names)} kernels: rms error of the model {rms:.1%}")
    print(
        f"the pick against the fastest: mean {numpy.mean(losses):.1%} slower, at most {max(losses):.1%}, "
        f"within 3 % on {numpy.mean(numpy.array(losses) < 0.03):.0%} of the shapes"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
