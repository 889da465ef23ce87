# SPDX-License-Identifier: Apache-2.0
"""(f) Errors against fp64 for several kinds of data, each contender against two references: fp64 on the very operands
that it was given, and fp64 on the values before they were rounded to 16 bits. The second charges the rounding of the
inputs to whoever computes with them; which of the two a comparison uses decides what it finds."""

import contextlib

import numpy

from .. import contenders, layers
from ..case import Case, gated, random_values, relative_frobenius, share_over_1_percent
from ..contenders import outcome
from ..shapes import Shape, shapes_of
from . import Unit

NAME = "numerics"
KINDS = ("normal", "uniform", "heavy_tailed")
DTYPES = ("bf16", "fp16")
NAMES = (
    "torch_eager", "torch_merged", "cublas_two_gemms", "cublas_merged", "cpu_two_gemms", "triton", "sync_pingpong",
    "interleave", "paired", "decode", "tileglu",
)  # fmt: skip
# torch_eager once more under each of torch's settings: (reduced precision where split-K adds up its parts, split-K
# at all).
SETTINGS = {"reduced": (True, True), "fp32_sums": (False, True), "no_split_k": (False, False)}


def units(context):
    for dtype in DTYPES:
        for kind in KINDS:
            for model, m in context.preset.numerics_shapes:
                (shape,) = shapes_of([model], [m], dtype)
                values = lambda shape=shape, kind=kind: random_values(context.arrays, shape, kind)
                yield unit(context, shape, kind, values)
        if context.checkpoint:
            for layer in layers.chosen(context.checkpoint):
                x, weights = layers.load(context.checkpoint, layer)
                shape = Shape("smollm2-135m", x.shape[0], weights.shape[0] // 2, x.shape[1], dtype)
                values = lambda x=x, weights=weights: tuple(context.arrays.from_numpy(v, "fp32") for v in (x, weights))
                yield unit(context, shape, f"layer_{layer}", values)


def unit(context, shape, kind, values):
    seconds = 1.0 + len(NAMES) * 0.3
    return Unit(NAME, f"{shape.key}-{shape.dtype}-{kind}", seconds, lambda: run(context, shape, kind, values()))


def run(context, shape, kind, values):
    case = Case(shape, context.arrays, values, rotate=False)
    references = {
        "operands": gated(context.arrays.products_fp64(case.sets[0].x, case.sets[0].gate_up)),
        "unrounded": gated(context.arrays.products_fp64(*values)),
    }
    table = contenders.table()
    entries = [(name, table[name], None) for name in NAMES]
    entries[1:1] = [(f"torch_eager+{name}", table["torch_eager"], flags) for name, flags in SETTINGS.items()]
    rows = []
    for name, contender, flags in entries:
        row = shape.describe() | {"contender": name, "data": kind, "status": "ok", "reason": "", "config": ""}
        try:
            row |= measured(case, contender, flags, references)
        except Exception as error:
            row["status"], row["reason"] = outcome(error)
        rows.append(row)
    return {"rows": rows}


def measured(case, contender, flags, references):
    with settings(case, flags):
        prepared = contender(case)
        case.arrays.poison(case.sets[0].y)
        result = prepared.call(0)
        case.arrays.synchronize()
        found = case.arrays.to_fp64(result)
    wrong = int((~numpy.isfinite(found)).sum())
    if wrong:
        raise AssertionError(f"wrong: {wrong} of {found.size} elements are NaN, infinite or were not written")
    fields = {"config": prepared.config, "elements": found.size}
    for reference, expected in references.items():
        fields[reference] = {
            "share_over_1_percent": share_over_1_percent(found, expected),
            "relative_frobenius": relative_frobenius(found, expected),
        }
    return fields


@contextlib.contextmanager
def settings(case, flags):
    """torch's switches for sums of bf16 and fp16 products on GPUs."""
    if flags is None:
        yield
        return
    if case.arrays.memory != "cuda":
        raise contenders.Skip("a setting of cuBLAS")
    matmul = case.arrays.torch.backends.cuda.matmul
    name = f"allow_{case.shape.dtype}_reduced_precision_reduction"
    before = getattr(matmul, name), getattr(matmul, name + "_split_k")
    setattr(matmul, name, flags)
    try:
        yield
    finally:
        setattr(matmul, name, before)
