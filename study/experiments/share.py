# SPDX-License-Identifier: Apache-2.0
"""(b) What share of the whole MLP's time goes into intermediates and activation, of eager with its down-projection:
by torch's profile, the kernels that are no matrix products; by time, what the MLP takes beyond its products alone."""

from .. import profiling, stats, timing
from ..case import Case
from ..contenders import eager, outcome
from ..shapes import shapes_of
from . import Unit

NAME = "share"
CALLS = 20


def units(context):
    preset = context.preset
    for shape in shapes_of(preset.models, preset.share_batches, context.dtype):
        seconds = 2 * context.race_seconds(shape, 2) * 1.5 + CALLS * context.estimated_us(shape) * 3e-6
        yield Unit(NAME, shape.key, seconds, lambda shape=shape: run(context, shape))


def run(context, shape):
    rows = []
    for name in ("torch_eager", "torch_merged"):
        row = shape.describe() | {"contender": name, "status": "ok", "reason": ""}
        try:
            whole, products, count = parts_of(Case(shape, context.arrays), name)
            row |= timed(context, whole, products, count)
            row |= profiled(context, whole)
        except Exception as error:
            row["status"], row["reason"] = outcome(error)
        rows.append(row)
    return {"rows": rows}


def parts_of(case, name):
    """(the MLP, its matrix products alone, number of sets): functions of the index of a set."""
    F, sets = eager.functional(case), case.sets
    down = [case.arrays.copy(s.gate.T.contiguous()) for s in sets]  # [k,n]; its values do not matter
    no_grad = case.arrays.torch.no_grad

    def whole(i):
        s = sets[i]
        with no_grad():
            merged = name == "torch_merged"
            hidden = eager.one_linear(F, s.x, s.gate_up) if merged else eager.two_linears(F, s.x, s.gate, s.up)
            return F.linear(hidden, down[i])

    def products(i):
        s = sets[i]
        with no_grad():
            if name == "torch_merged":
                F.linear(s.x, s.gate_up)
            else:
                F.linear(s.x, s.gate), F.linear(s.x, s.up)
            return F.linear(s.y, down[i])

    for s in sets:  # what the down-projection reads when the products are timed alone
        s.y.copy_(case.arrays.rounded(case.arrays.random(*s.y.shape), case.shape.dtype))
    return whole, products, len(sets)


def timed(context, whole, products, sets):
    """The share by time: what the MLP takes beyond its products alone, both timed in turn."""
    arrays, settings = context.arrays, context.preset.timing
    calls = {"mlp": whole, "products": products}
    estimate = max(timing.first_estimate_us(arrays, call, sets) for call in calls.values())
    launch = timing.launches_of(arrays, estimate)[0]
    runners = {name: timing.make_runner(arrays, call, sets, estimate, launch, settings) for name, call in calls.items()}
    samples = timing.race(runners, settings)
    for result in samples.values():
        if isinstance(result, Exception):
            raise result
    median = {name: stats.summary(result)["median_us"] for name, result in samples.items()}
    return {
        "launch": launch,
        "mlp_us": median["mlp"],
        "products_us": median["products"],
        "share_by_time": 1 - median["products"] / median["mlp"],
        "samples_us": samples,
    }


def profiled(context, whole):
    """The share by profile: kernels that are no matrix products."""
    try:
        found = profiling.kernels_of(context.arrays, [lambda: whole(0)] * CALLS)
    except RuntimeError as error:
        return {"share_by_profile": None, "reason": f"no profile: {error}"}
    total = sum(us for _, us in found.values())
    activation = sum(us for key, (_, us) in found.items() if profiling.is_elementwise(key))
    return {
        "share_by_profile": activation / total,
        "kernels": [
            {"name": key, "calls": count, "total_us": us, "elementwise": profiling.is_elementwise(key)}
            for key, (count, us) in sorted(found.items(), key=lambda item: -item[1][1])
        ],
    }
