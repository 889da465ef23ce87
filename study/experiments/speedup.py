# SPDX-License-Identifier: Apache-2.0
"""(a) Every contender on every size and batch size. Utilisation (c), roofline (d) and fusion efficiency (e) are made
from the same rows."""

from .. import contenders, measure
from ..case import Case
from ..contenders import compiled
from ..shapes import shapes_of
from . import Unit

NAME = "speedup"


def units(context):
    chosen = {name: c for name, c in contenders.table().items() if name not in compiled.CONTENDERS}
    preset = context.preset
    for shape in shapes_of(preset.models, preset.batches, context.dtype):
        yield Unit(
            NAME,
            shape.key,
            context.race_seconds(shape, len(chosen) - 2),
            lambda shape=shape: run(context, shape, chosen),
        )


def run(context, shape, chosen):
    case = Case(shape, context.arrays)
    return {"rows": measure.rows_of(case, chosen, context.preset.timing), "buffer_sets": len(case.sets)}
