# SPDX-License-Identifier: Apache-2.0
"""From contenders to rows: prepare, check against fp64, time against each other. Whatever a contender raises becomes
its row; the others go on."""

from . import timing
from .contenders import outcome


def rows_of(case, contenders, settings, after=None):
    """Rows of {name: contender} on one case. `after(name, prepared)` may add fields to the rows of a contender."""
    arrays, sets = case.arrays, len(case.sets)
    rows, prepared = [], {}
    for name, contender in contenders.items():
        try:
            made = contender(case)
            if made.external_us is not None:
                rows.append(external_row(case.shape, name, made))
                continue
            error = case.check(made)
            estimate = timing.first_estimate_us(arrays, made.call, sets)
            fields = {"relative_frobenius": error} | (after(name, made) if after else {})
            prepared[name] = made, estimate, fields
        except Exception as error:
            rows.append(failed_row(case.shape, name, error))
    # One decision for the shape, so that nobody's graph is compared with somebody else's single calls.
    shortest = min((estimate for _, estimate, _ in prepared.values()), default=0)
    for launch in timing.launches_of(arrays, shortest):
        runners = {}
        for name, (made, estimate, _) in prepared.items():
            try:
                runners[name] = timing.make_runner(arrays, made.call, sets, estimate, launch, settings)
            except Exception as error:
                rows.append(failed_row(case.shape, name, error, launch))
        for name, samples in timing.race(runners, settings).items():
            made, _, fields = prepared[name]
            if isinstance(samples, Exception):
                rows.append(failed_row(case.shape, name, samples, launch))
            else:
                rows.append(
                    row(case.shape, name, made, launch)
                    | timing.timed_fields(case.shape, samples, runners[name].calls)
                    | fields
                )
    return rows


def row(shape, name, made, launch):
    return shape.describe() | {
        "contender": name,
        "config": made.config,
        "layout": made.layout,
        "launch": launch,
        "status": "ok",
        "reason": "",
        "generated_kernels": made.generated_kernels,
    }


def external_row(shape, name, made):
    us = made.external_us
    rates = timing.timed_fields(shape, [us], 1)
    return row(shape, name, made, "external") | rates | {"reason": "timed by the program itself, not interleaved"}


def failed_row(shape, name, error, launch=None):
    status, reason = outcome(error)
    empty = dict.fromkeys(("median_us", "p5_us", "p95_us", "tflops", "gbps"))
    return (
        shape.describe()
        | {"contender": name, "config": "", "launch": launch, "status": status, "reason": reason}
        | empty
    )
