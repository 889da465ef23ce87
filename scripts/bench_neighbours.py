#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the gated projection between its neighbours: RMSNorm before it, the down-projection after it.

    scripts/bench_neighbours.py --output FILE [--budget SECONDS] [--models A,B] [--m 1,8]

A case is a chain of layers, rms_norm -> gated projection -> F.linear, each on what the one before it gave and with
weights of its own; the down-projections' weights alone exceed three times the L2 cache, so all weights come cold. Each
contender's chain is a CUDA graph, repeated in it until it fills a sample; they take turns (A B C, B C A, ...).
Contenders: merged, backend cublas (one product over 2N, one activation kernel); eager, two F.linear, SiLU, product;
tileglu, the planner's choice; tileglu+prefetch, the same with weights read before the kernel ahead has ended; without,
rms_norm and F.linear alone. Times are of one layer: median, 5th and 95th percentile; marginal_us is the median less
that of `without`. Data are random normal. Before it is timed a graph is replayed on poisoned results, and every layer
checked against fp64 on its own input. The file is complete after each case. Exit codes: 1 if a contender has no time, 3
without a Hopper GPU.
"""

import argparse
import gc
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from neighbour_cases import CONTENDERS, PREFETCH, WITHOUT, Chain, failed_row, rows_of  # noqa: E402

from study import __main__ as command_line  # noqa: E402
from study import arrays as places  # noqa: E402
from study import locate, nvml, store  # noqa: E402
from study.experiments import machine  # noqa: E402
from study.shapes import shapes_of  # noqa: E402

locate.prepare()
import tileglu  # noqa: E402

MODELS = ",".join(f"qwen2.5-{size}" for size in ("0.5b", "1.5b", "3b", "7b", "14b", "72b"))


class Run:
    """The document, which is written after each case, and the time left."""

    def __init__(self, output, budget, arrays, sensors=None):
        self.output, self.arrays, self.sensors = output, arrays, sensors
        self.end, self.longest = time.monotonic() + budget, 0.0
        torch = arrays.torch
        on_gpu = arrays.memory == "cuda"
        self.environment = {
            "packages": {name: machine.version(name) for name in machine.PACKAGES},
            "python": sys.version.split()[0], "cuda": torch.version.cuda,
            "blas": str(torch.backends.cuda.preferred_blas_library()), "driver": sensors and sensors.driver(),
            "l2_bytes": arrays.cache_bytes(), "sensors_at_start": sensors and sensors.reading(),
        }  # fmt: skip
        self.document = {
            "schema_version": store.SCHEMA_VERSION, "command": "bench_neighbours", "version": tileglu.version(),
            "commit": tileglu.build_info(), "device": torch.cuda.get_device_name() if on_gpu else "cpu",
            "method": " ".join(__doc__.split()), "environment": self.environment, "rows": [],
        }  # fmt: skip

    def case(self, shape, contenders):
        started = time.monotonic()
        try:
            if started + self.longest > self.end:
                raise TimeoutError("the time of --budget is over")
            rows = rows_of(Chain(shape, self.arrays), contenders)
        except Exception as error:
            rows = [failed_row(shape, name, error) for name in contenders]
        else:
            self.longest = max(self.longest, time.monotonic() - started)
        self.document["rows"] += rows
        self.environment["sensors_at_end"] = self.sensors and self.sensors.reading()
        store.write_json(self.output, self.document)
        gc.collect()
        self.arrays.release()


def table(rows):
    """One line a case: microseconds of a layer, then how many times as long as tileglu+prefetch the gated projections
    of the others take by their marginal time; then what has no time."""
    shapes = {}
    for row in rows:
        shapes.setdefault((row["model"], row["m"]), {})[row["contender"]] = row
    others = [name for name in CONTENDERS if name not in (WITHOUT, PREFETCH)]
    titles = [*CONTENDERS, *(f"{name}, x" for name in others)]
    lines = ["model            m " + "".join(f"{title:>17}" for title in titles)]
    for (model, m), found in shapes.items():
        times = [found[name]["median_us"] for name in CONTENDERS]
        ours = found[PREFETCH]["marginal_us"]
        ratios = [found[name]["marginal_us"] / ours if ours and found[name]["marginal_us"] else None for name in others]
        cells = ["-" if value is None else f"{value:.2f}" for value in times + ratios]
        lines.append(f"{model:14} {m:>3} " + "".join(f"{cell:>17}" for cell in cells))
    failures = dict.fromkeys(f"{row['contender']} {row['status']}: {row['reason']}" for row in rows if row["reason"])
    return lines + list(failures)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--budget", type=float, default=300, help="seconds in all (%(default)s)")
    parser.add_argument("--models", type=command_line.comma_list, default=MODELS, help="%(default)s")
    parser.add_argument("--m", type=command_line.batch_list, default="1,8,16,64", help="%(default)s")
    options = parser.parse_args()
    try:
        arrays, missing = places.choose("cuda")[0], tileglu.backends()["sm90"]
    except (places.Unavailable, tileglu.LibraryNotFound) as error:
        missing = error
    if missing:
        parser.exit(3, f"no Hopper GPU that tileglu can use: {missing}\n")
    try:
        shapes = shapes_of(options.models, options.m)
    except ValueError as error:
        parser.error(str(error))
    torch = arrays.torch
    with torch.no_grad(), torch.cuda.stream(torch.cuda.Stream()):  # a side stream, as capturing asks of the warm-up
        run = Run(options.output, options.budget, arrays, nvml.sensors_of(torch))
        for shape in shapes:
            run.case(shape, CONTENDERS)
    print("\n".join(table(run.document["rows"])))
    return 0 if all(row["status"] == "ok" for row in run.document["rows"]) else 1


if __name__ == "__main__":
    sys.exit(main())
