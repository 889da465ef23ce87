#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits the planner's numbers (src/plan/sm90_times.inc) to benchmark results of all kernels.

    scripts/fit_times.py benchmarks/h200/kernels.json benchmarks/h200/kernels_random.json      (needs numpy and scipy)

The model is src/plan/time_model.cpp's; what is fitted are four numbers for each kernel. It also says how good the choices
are: the time of the kernel that the model picks over the time of the fastest, for each shape of the files and of those
after --check. --folds 4 says it too for all shapes, each with times that were fitted without it and a quarter of the
others.
"""

import argparse
import json
import math
import pathlib
import re

import numpy
from scipy.optimize import least_squares

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = ROOT / "src/plan/sm90_times.inc"
TILE_K = 64


def constant(file, name):
    """A number that the planner's C++ defines."""
    return float(re.search(rf"\b{name} = ([\d.e]+)", (ROOT / "src/plan" / file).read_text())[1])


SM_COUNT = 132
LAUNCH_US = constant("time_model.cpp", "kLaunchUs")
SUSTAINED_TFLOPS = round(constant("time_model.cpp", "kSustainedFlopPerUs") * SM_COUNT * 1e-6)
L2_TBPS = constant("time_model.cpp", "kL2BytesPerUs") * 1e-6
OFF_LINE, OFF_SECTOR = constant("time_model.cpp", "kOffLine"), constant("time_model.cpp", "kOffSector")
LINE, SECTOR = int(constant("time_model.cpp", "kLine")), int(constant("time_model.cpp", "kSector"))
ALONE_DECODE = constant("time_model.cpp", "kAloneDecode")
ALONE_PREFILL = constant("time_model.cpp", "kAlonePrefill")
NORM, L2_NORM = constant("time_model.cpp", "kNorm"), constant("time_model.cpp", "kL2Norm")
SHORTEST_PART = int(constant("work_split.hpp", "kShortestPart"))
MOST_PARTS = int(constant("work_split.hpp", "kMostParts"))
NAME = re.compile(
    r"(?P<family>[a-z_]+)_(?P<m>\d+)x(?P<n2>\d+)_(?:pingpong|cooperative)_c(?P<cluster>\d)x1"
    r"(?:_x(?P<ctas>\d))?(?P<shared>_sk)?(?:_general)?(?:_g\d)?$"
)
STREAMED = re.compile(r"decode_(?P<m>\d+)x(?P<n2>\d+)x(?P<k>\d+)_(?P<kind>mma|vector)$")


def ceil_div(x, y):
    return -(-x // y)


def work_of(name, m, n, k):
    """(tiles of the busiest worker, its steps along k, parts that a collector takes, bytes from L2): time_model.cpp."""
    streamed = STREAMED.match(name)
    if streamed:
        rows = int(streamed["n2"])
        mma = streamed["kind"] == "mma"
        blocks = ceil_div(n, rows // 2) if mma else ceil_div(n, 4 * (rows // 2))
        waves = max(1.0, blocks / (SM_COUNT * (4 if mma else 8)))
        return waves, ceil_div(k, int(streamed["k"])), 0, 2 * k * blocks * (m + (rows if mma else 4 * rows))
    config = NAME.match(name)
    tile_m, columns, ctas = int(config["m"]), int(config["n2"]) // 2, int(config["ctas"] or 1)
    cluster = int(config["cluster"])
    tiles_m, most = ceil_div(m, tile_m * cluster), SM_COUNT * ctas // cluster
    if config["family"] == "decode" and not config["shared"]:  # tile_columns()
        tiles_n = ceil_div(tiles_m * ceil_div(n, columns), most) * most // tiles_m
        columns = 8 * ceil_div(n, 8 * tiles_n)
    tiles, k_blocks = tiles_m * ceil_div(n, columns), ceil_div(k, TILE_K)
    useful = tiles * min(ceil_div(k_blocks, SHORTEST_PART), MOST_PARTS) if config["shared"] else tiles
    workers = min(useful, most)
    rest = tiles % workers
    shared = rest + (workers if tiles >= workers else 0) if rest and config["shared"] else 0
    waves = shared / workers + ceil_div(tiles - shared, workers)
    busy = workers / most if config["shared"] else tiles / (waves * most)
    alone = ALONE_DECODE if config["family"] == "decode" else ALONE_PREFILL
    busiest = waves * (1 - alone * (1 - busy))
    parts = max(1.0, workers / tiles) if shared else 0
    return busiest, k_blocks, parts, 2 * TILE_K * k_blocks * tiles * (cluster * tile_m + 2 * columns)


def predict(name, m, n, k, numbers):
    step_us, tile_us, part_us, gbps = numbers
    tiles, steps, parts, l2_bytes = work_of(name, m, n, k)
    worker = tiles * (steps * step_us + tile_us) + part_us * parts
    off_grid = 1 if k % LINE == 0 else OFF_LINE if k % SECTOR == 0 else OFF_SECTOR
    l2 = l2_bytes * off_grid / L2_TBPS * 1e-6
    memory = 2 * (m * k + 2 * n * k + m * n) / gbps * 1e-3
    sm = (worker**L2_NORM + l2**L2_NORM) ** (1 / L2_NORM)
    return LAUNCH_US + max((sm**NORM + memory**NORM) ** (1 / NORM), 4 * m * n * k / SUSTAINED_TFLOPS * 1e-6)


def read(paths):
    """{(m, n, k): {kernel: median_us}}"""
    shapes = {}
    for path in paths:
        for row in json.loads(pathlib.Path(path).read_text())["rows"]:
            if row["status"] == "ok" and row["contender"] == row["config"]:
                shapes.setdefault((row["m"], row["n"], row["k"]), {})[row["config"]] = row["median_us"]
    return shapes


def weight(slower):
    """Of a point, by its time over the fastest kernel's: far behind, it need only be known to lose."""
    return 1.0 if slower < 1.1 else 0.5 if slower < 1.3 else 0.15


def fit(name, shapes):
    points = [
        (shape, times[name], weight(times[name] / min(times.values())))
        for shape, times in shapes.items()
        if name in times
    ]
    tile = NAME.match(name)
    # Multiply-adds at the rate of the tensor cores at 1.7 GHz; the power limit is predict()'s.
    ideal = 2 * int(tile["m"]) * int(tile["n2"]) * TILE_K / 4096 / 1700 if tile else 0.2

    def residuals(logs):
        return [weight * math.log(predict(name, *shape, numpy.exp(logs)) / time) for shape, time, weight in points]

    start = numpy.log([1.5 * ideal, 2 * ideal + 0.3, 2.0, 4000.0])
    bounds = (numpy.log([0.9 * ideal if tile else 0.02, 0.01, 0.01, 500.0]), numpy.log([ideal * 8, 20.0, 30.0, 6000.0]))
    found = least_squares(residuals, start, loss="soft_l1", f_scale=0.03, bounds=bounds)
    return numpy.exp(found.x), residuals(found.x)


def main(paths, check, folds):
    shapes = read(paths)
    names = sorted({name for times in shapes.values() for name in times})
    fitted, errors, lines = {}, [], []
    for name in names:
        fitted[name], residuals = fit(name, shapes)
        errors += residuals
        step_us, tile_us, part_us, gbps = fitted[name]
        if not name.endswith("_sk"):
            part_us = 0.0
        lines.append(f'{{"{name}", {step_us:.5f}, {tile_us:.3f}, {part_us:.3f}, {gbps:.0f}}},\n')
    TARGET.write_text("// Written by scripts/fit_times.py.\n" + "".join(lines), encoding="utf-8")
    rms = math.sqrt(sum(error * error for error in errors) / len(errors))
    print(f"{len(shapes)} shapes, {len(names)} kernels: weighted rms error of the model {rms:.1%}")
    say_how_good(losses_of(shapes, fitted))
    if check:
        print("shapes that were not fitted to:")
        say_how_good(losses_of(read(check), fitted))
    if folds:
        print(f"each with times fitted without it, {folds} folds:")
        say_how_good(cross_validated(shapes | read(check), folds))


def cross_validated(shapes, folds):
    order = numpy.random.RandomState(0).permutation(len(shapes))
    every, losses = list(shapes), []
    for fold in range(folds):
        left_out = {every[i]: shapes[every[i]] for i in order[fold::folds]}
        rest = {shape: times for shape, times in shapes.items() if shape not in left_out}
        names = sorted({name for times in rest.values() for name in times})
        losses += losses_of(left_out, {name: fit(name, rest)[0] for name in names})
    return losses


def losses_of(shapes, fitted):
    losses = []
    for shape, times in shapes.items():
        known = [name for name in times if name in fitted and not name.startswith("interleave")]
        picked = min(known, key=lambda name: predict(name, *shape, fitted[name]))
        losses.append(times[picked] / min(times[name] for name in known) - 1)
    return losses


def say_how_good(losses):
    print(
        f"the pick against the fastest: mean {numpy.mean(losses):.1%} slower, at most {max(losses):.1%}, "
        f"within 3 % on {numpy.mean(numpy.array(losses) < 0.03):.0%} of the shapes"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", help="results of 'tileglu bench' with all kernels")
    parser.add_argument(
        "--check", nargs="*", default=[], help="more of them, to say how good the choices are, not to fit to"
    )
    parser.add_argument("--folds", type=int, default=0, help="cross-validate with so many parts")
    arguments = parser.parse_args()
    main(arguments.files, arguments.check, arguments.folds)
