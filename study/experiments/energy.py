# SPDX-License-Identifier: Apache-2.0
"""(h) Joules per call, from power samples while a contender runs for seconds on end. Contenders take turns twice (A B
A B)."""

import contextlib
import time

from .. import contenders, nvml, stats, timing
from ..case import Case
from ..contenders import outcome
from ..shapes import shapes_of
from . import Unit

NAME = "energy"
NAMES = ("torch_eager", "torch_merged", "cublas_merged", "interleave", "tileglu")
HALVES = 2
SETTLING = 0.5  # share of a half whose samples are dropped: the sensor averages over the last second


def units(context):
    for model, m in context.preset.energy_shapes:
        (shape,) = shapes_of([model], [m], context.dtype)
        seconds = 0.5 + len(NAMES) * (context.preset.energy_s + 0.2)
        yield Unit(NAME, shape.key, seconds, lambda shape=shape: run(context, shape))


def run(context, shape):
    case, table = Case(shape, context.arrays), contenders.table()
    rows, runners = {}, {}
    for name in NAMES:
        row = rows[name] = shape.describe() | {"contender": name, "status": "ok", "reason": "", "halves": []}
        try:
            made = table[name](case)
            case.check(made)
            estimate = timing.first_estimate_us(context.arrays, made.call, len(case.sets))
            launch = timing.launches_of(context.arrays, estimate)[0]
            runners[name] = timing.make_runner(
                context.arrays, made.call, len(case.sets), estimate, launch, timing.Settings(sample_us=10000)
            )
            row |= {"config": made.config, "launch": launch}
        except Exception as error:
            row["status"], row["reason"] = outcome(error)
    for _ in range(HALVES):
        for name, runner in runners.items():
            try:
                rows[name]["halves"].append(half(context, runner))
            except Exception as error:
                rows[name]["status"], rows[name]["reason"] = outcome(error)
    for row in rows.values():
        if row["status"] == "ok":
            conclude(row)
    return {"rows": list(rows.values())}


def half(context, runner):
    """Runs for half the time; what the sensors said."""
    sensors, wanted = context.sensors, context.preset.energy_s / HALVES
    log = nvml.PowerLog(sensors) if sensors else contextlib.nullcontext()
    joules = sensors.joules() if sensors else None
    started, calls = time.monotonic(), 0
    with log:
        while time.monotonic() - started < wanted:
            runner.sample_us()
            calls += runner.calls
    seconds = time.monotonic() - started
    return {
        "seconds": seconds,
        "calls": calls,
        "counter_joules": sensors.joules() - joules if joules is not None else None,
        "power_samples": log.samples if sensors else [],
        "sensors": sensors.reading() if sensors else None,
    }


def conclude(row):
    """Median power of the settled samples times the time of a call."""
    us = [half["seconds"] / half["calls"] * 1e6 for half in row["halves"]]
    watts = [w for half in row["halves"] for at, w in half["power_samples"] if at >= SETTLING * half["seconds"]]
    row["call_us"] = sum(us) / len(us)
    if not watts:
        row["status"], row["reason"] = "skipped", "no power sensor here"
        return
    row["watts"] = stats.percentile(watts, 0.5)
    row["joules_per_call"] = row["watts"] * row["call_us"] * 1e-6
    counters = [half["counter_joules"] for half in row["halves"]]
    if None not in counters:
        row["counter_joules_per_call"] = sum(counters) / sum(half["calls"] for half in row["halves"])
