#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what a warm call through Python costs beside the library's own work, and adds it to a JSON file.

    TILEGLU_LIBRARY=build/bin/libtileglu.so.0 scripts/python_overhead.py --label NAME [--package python] FILE

overhead_us: CPU time of tileglu.glu on m = n = 8, k = 0, where the library checks its arguments and writes 64 zeros, less
that of the bare C call with a prepared argument struct; the two measured by turns, minimum of all rounds. The yardsticks
say how fast the machine was: an empty Python function, and for torch torch.nn.functional.linear of 8 x 8 x 8.
"""

import argparse
import ctypes
import json
import os
import platform
import sys
import time
import timeit

M, N, K = 8, 8, 0
SHAPES = (M, K), (N, K), (N, K), (M, N)
ROUNDS, CALLS = 40, 500


def minima(functions):
    """{name: microseconds a call}, the functions by turns."""
    found = dict.fromkeys(functions, float("inf"))
    for _ in range(ROUNDS):
        for name, function in functions.items():
            found[name] = min(found[name], timeit.timeit(function, number=CALLS, timer=time.thread_time) / CALLS * 1e6)
    return found


def bare_call(arrays):
    from tileglu import _library, plan

    made = plan(M, N, K, dtype="fp32", memory="host")
    buffer = ctypes.create_string_buffer(made.workspace + 255)
    args = _library.Args(workspace=ctypes.addressof(buffer) + 255 & ~255, workspace_bytes=made.workspace)
    args.a, args.gate, args.up, args.y = arrays
    run, pointer, reference = _library.library().tileglu_plan_run, made._pointer, ctypes.byref(args)
    return lambda: (run(pointer, reference), made, buffer)


def rows_of(kind, arrays, addresses, yardsticks):
    import tileglu

    x, gate, up, out = arrays
    times = minima({
        "glu": lambda: tileglu.glu(x, gate, up),
        "glu, out=": lambda: tileglu.glu(x, gate, up, out=out),
        "bare": bare_call(addresses),
        **yardsticks,
    })  # fmt: skip
    return [
        {
            "arrays": kind, "call": name, "total_us": round(times[name], 2), "bare_call_us": round(times["bare"], 2),
            "overhead_us": round(times[name] - times["bare"], 2),
            "yardsticks_us": {yardstick: round(times[yardstick], 3) for yardstick in yardsticks},
        }
        for name in ("glu", "glu, out=")
    ]  # fmt: skip


def measure():
    import numpy

    yardsticks = {"empty function": lambda: None}
    arrays = [numpy.ones(shape, numpy.float32) for shape in SHAPES]
    rows = rows_of("numpy", arrays, [array.ctypes.data for array in arrays], yardsticks)
    try:
        import torch
    except ImportError:
        return rows
    torch.set_num_threads(1)
    tensors, square = [torch.ones(shape) for shape in SHAPES], torch.ones(8, 8)
    yardsticks["torch.nn.functional.linear"] = lambda: torch.nn.functional.linear(square, square)
    return rows + rows_of("torch", tensors, [tensor.data_ptr() for tensor in tensors], yardsticks)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--label", required=True, help="replaces the rows of this label")
    parser.add_argument("--package", default="python", help="folder of the package to measure")
    options = parser.parse_args()
    sys.path.insert(0, options.package)
    rows = [{"label": options.label, "python": platform.python_version(), **row} for row in measure()]
    document = {"schema_version": 1, "method": " ".join(__doc__.split("\n\n")[2].split()), "rows": []}
    if os.path.exists(options.file):
        with open(options.file) as file:
            document["rows"] = [row for row in json.load(file)["rows"] if row["label"] != options.label]
    document["rows"] += rows
    with open(options.file + ".new", "w") as file:
        json.dump(document, file, indent=1)
        file.write("\n")
    os.replace(options.file + ".new", options.file)
    for row in rows:
        print(f"{row['arrays']:6} {row['call']:10} {row['overhead_us']:6.2f} us beside {row['bare_call_us']:.2f} us")


if __name__ == "__main__":
    main()
