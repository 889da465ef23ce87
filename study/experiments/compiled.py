# SPDX-License-Identifier: Apache-2.0
"""torch.compile against eager and the planner's choice, with the number of kernels that each call runs: whether the
compiler fused is counted, not guessed. Few shapes, since each compiles for up to a minute."""

from .. import contenders, measure, profiling
from ..case import Case
from ..contenders import compiled
from ..shapes import shapes_of
from . import Unit

NAME = "compile"
COMPILE_SECONDS = 60  # of all its formulations together


def units(context):
    table = contenders.table()
    names = ["torch_eager", "torch_merged", *compiled.CONTENDERS, "tileglu"]
    chosen = {name: table[name] for name in names}
    for model, m in context.preset.compile_shapes:
        (shape,) = shapes_of([model], [m], context.dtype)
        seconds = context.race_seconds(shape, len(chosen)) + (COMPILE_SECONDS if context.arrays.name == "torch" else 0)
        yield Unit(NAME, shape.key, seconds, lambda shape=shape: run(context, shape, chosen))


def run(context, shape, chosen):
    case = Case(shape, context.arrays)
    if context.arrays.name == "torch":  # once a unit: it drops all compiled code, also that of contenders to be timed
        context.arrays.torch._dynamo.reset()

    def count(_name, prepared):
        if context.arrays.memory != "cuda":
            return {}
        try:
            found = profiling.kernels_of(context.arrays, [lambda: prepared.call(0)])
        except RuntimeError:
            return {"kernels_per_call": None}
        return {"kernels_per_call": sum(count for count, _ in found.values()), "kernel_names": sorted(found)}

    return {"rows": measure.rows_of(case, chosen, context.preset.timing, count), "buffer_sets": len(case.sets)}
