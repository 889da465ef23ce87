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

import numpy
from scipy.optimize import least_squares
from time_model import NAME, TILE_K, TIMES, predict


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


def fit(name, shapes, common=None):
    """The kernel's four numbers, and the weighted error of the logarithm for each of its shapes. `common`: for each shape,
    an error that all kernels have there."""
    points = [
        (shape, times[name] * math.exp((common or {}).get(shape, 0)), weight(times[name] / min(times.values())))
        for shape, times in shapes.items()
        if name in times
    ]
    tile = NAME.match(name)
    # Multiply-adds at the rate of the tensor cores at 1.7 GHz; the power limit is predict()'s.
    ideal = 2 * int(tile["m"]) * int(tile["n2"]) * TILE_K / 4096 / 1700 if tile else 0.2

    def residuals(logs):
        return [weight * math.log(predict(name, *shape, numpy.exp(logs)) / time) for shape, time, weight in points]

    start = numpy.log([1.5 * ideal, 2 * ideal + 0.3, 2.0, 4000.0])
    # Streaming: at most a little more than the memory's 4.8 TB/s.
    least = 0.02 if not tile else (0.4 if stacked(tile) else 0.9) * ideal
    bounds = (numpy.log([least, 0.01, 0.01, 500.0]), numpy.log([ideal * 8, 20.0, 30.0, 5000.0]))
    found = least_squares(residuals, start, loss="soft_l1", f_scale=0.03, bounds=bounds)
    return numpy.exp(found.x), {shape: error for (shape, _, _), error in zip(points, residuals(found.x))}


def stacked(tile):
    """Their warpgroups multiply half as many rows."""
    return tile["family"] == "decode" and (tile["split"] or int(tile["n2"]) % 128 != 0)


def fit_all(shapes):
    """{kernel: numbers} and all weighted errors. In a second pass half of the error that the kernels of a shape have in
    common is taken out, since it does not decide between them."""
    names = sorted({name for times in shapes.values() for name in times})
    errors = {name: fit(name, shapes)[1] for name in names}
    common = {}
    for shape, times in shapes.items():
        weights = sum(weight(time / min(times.values())) for time in times.values())
        common[shape] = 0.5 * sum(errors[name][shape] for name in times) / weights
    fitted = {name: fit(name, shapes, common)[0] for name in names}
    return fitted, [error for of_kernel in errors.values() for error in of_kernel.values()]


def main(paths, check, folds):
    shapes = read(paths)
    (fitted, errors), lines = fit_all(shapes), []
    for name, (step_us, tile_us, part_us, gbps) in fitted.items():
        if not name.endswith("_sk"):
            part_us = 0.0
        lines.append(
            f'{{.kernel = "{name}", .step_us = {step_us:.5f}, .tile_us = {tile_us:.3f}, '
            f".part_us = {part_us:.3f}, .gbps = {gbps:.0f}}},\n"
        )
    TIMES.write_text("// Written by scripts/fit_times.py.\n" + "".join(lines), encoding="utf-8")
    rms = math.sqrt(sum(error * error for error in errors) / len(errors))
    print(f"{len(shapes)} shapes, {len(fitted)} kernels: weighted rms error of the model {rms:.1%}")
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
        losses += losses_of(left_out, fit_all(rest)[0])
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
