# SPDX-License-Identifier: Apache-2.0
"""(b) What share of the whole MLP's time goes into intermediates and activation: in torch's profile of the eager MLP with its
down-projection, the kernels that are no matrix products."""

from .. import profiling
from ..case import Case
from ..contenders import eager, outcome
from ..shapes import shapes_of
from . import Unit

NAME = "share"
TITLE = "Share of intermediates and activation"
CALLS = 20


def units(context):
    preset = context.preset
    for shape in shapes_of(preset.models, preset.share_batches, context.dtype):
        seconds = 0.5 + 2 * CALLS * context.estimated_us(shape) * 1.6e-6
        yield Unit(NAME, shape.key, seconds, lambda shape=shape: run(context, shape))


def run(context, shape):
    rows = []
    for name in ("torch_eager", "torch_merged"):
        row = shape.describe() | {"contender": name, "status": "ok", "reason": "", "samples": []}
        try:
            row |= profiled(context, shape, name)
        except Exception as error:
            row["status"], row["reason"] = outcome(error)
        rows.append(row)
    return {"rows": rows}


def profiled(context, shape, name):
    case = Case(shape, context.arrays)
    F = eager.functional(case)
    down = [case.arrays.copy(s.gate.T.contiguous()) for s in case.sets]  # [k,n]; its values do not matter
    sets = case.sets

    def mlp(i):
        s = sets[i % len(sets)]
        hidden = eager.two_linears(F, s.x, s.gate, s.up) if name == "torch_eager" else eager.one_linear(F, s.x, s.gate_up)
        return F.linear(hidden, down[i % len(sets)])

    with case.arrays.torch.no_grad():
        for index in range(3):
            mlp(index)
        found = profiling.kernels_of(case.arrays, [lambda i=i: mlp(i) for i in range(CALLS)])
    total = sum(us for _, us in found.values())
    activation = sum(us for key, (_, us) in found.items() if profiling.is_elementwise(key))
    return {
        "mlp_us": total / CALLS,
        "activation_us": activation / CALLS,
        "share": activation / total,
        "kernels": [
            {"name": key, "calls": count, "total_us": us, "elementwise": profiling.is_elementwise(key)}
            for key, (count, us) in sorted(found.items(), key=lambda item: -item[1][1])
        ],
    }
