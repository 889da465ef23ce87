# SPDX-License-Identifier: Apache-2.0
"""(g) The whole MLP: the gated projection, then the down-projection through cuBLASLt (torch.nn.functional.linear),
launched call by call and as a CUDA graph."""

from dataclasses import replace

from .. import contenders, measure
from ..case import Case
from ..contenders import eager
from ..shapes import shapes_of
from . import Unit

NAME = "end_to_end"
NAMES = ("torch_eager", "torch_merged", "cublas_merged", "tileglu")


def units(context):
    table = contenders.table()
    chosen = {name: with_down(table[name]) for name in NAMES}
    preset = context.preset
    for shape in shapes_of(preset.end_to_end_models, preset.share_batches, context.dtype):
        seconds = context.race_seconds(shape, len(chosen)) * 1.5
        yield Unit(NAME, shape.key, seconds, lambda shape=shape: run(context, shape, chosen))


def with_down(contender):
    """The contender followed by the down-projection."""

    def prepare(case):
        made = contender(case)
        F, down, call = eager.functional(case), case.down, made.call
        torch = case.arrays.torch

        def mlp(index):
            with torch.no_grad():
                return F.linear(call(index), down[index])

        return replace(made, call=mlp, config=f"{made.config}; F.linear", result="mlp")

    return prepare


class MlpCase(Case):
    """Adds the weights of the down-projection to each set, and the MLP's result to what is expected."""

    def __init__(self, shape, arrays):
        super().__init__(shape, arrays)
        values = arrays.rounded(arrays.random(shape.k, shape.n) * shape.n**-0.5, shape.dtype)
        self.down = [values] + [arrays.copy(values) for _ in self.sets[1:]]

    def expected(self):
        expected = super().expected()
        if "mlp" not in expected:
            expected["mlp"] = expected["glu"] @ self.arrays.to_fp64(self.down[0]).T
        return expected


def run(context, shape, chosen):
    case = MlpCase(shape, context.arrays)
    rows = measure.rows_of(case, chosen, context.preset.timing)
    for row in rows:  # 6mnk, and the down-projection's weights, its input and its result in place of Y
        if row["median_us"]:
            row["tflops"] *= 1.5
            row["gbps"] = None
    return {"rows": rows, "buffer_sets": len(case.sets)}
