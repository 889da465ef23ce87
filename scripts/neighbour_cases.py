# SPDX-License-Identifier: Apache-2.0
"""What scripts/bench_neighbours.py runs and how it checks and times it: a chain of layers, and the contenders in it."""

import math
from dataclasses import dataclass

from study import stats, timing
from study.case import ROTATION, SEED, TOLERANCE, Operands, gated, relative_frobenius
from study.contenders import Prepared, eager, fused, outcome
from study.shapes import ELEMENT_BYTES

EPSILON, LEAST_LAYERS, READ_BYTES_PER_US = 1e-6, 4, 4.5e6
SETTINGS = timing.Settings(samples=21, sample_us=4000)
WITHOUT, PREFETCH = "without", "tileglu+prefetch"


@dataclass
class Layer(Operands):
    norm: object  # [k]
    down: object  # [k,n]


def layers_of(shape, arrays):
    down_bytes = shape.n * shape.k * ELEMENT_BYTES[shape.dtype]
    needed = math.ceil(ROTATION * arrays.cache_bytes() / down_bytes) if arrays.memory == "cuda" else 0
    return max(LEAST_LAYERS, needed)


class Chain:
    """`sets` holds what the study's contenders read: the operands of each layer, x being set as the chain runs."""

    def __init__(self, shape, arrays):
        self.shape, self.arrays = shape, arrays
        arrays.seed(SEED)
        self.x, self.given = self._normal(shape.m, shape.k), self._normal(shape.m, shape.n)
        self.y = arrays.empty(shape.m, shape.n, shape.dtype)  # of all layers, as an allocator would have it
        self.sets = [self._layer() for _ in range(layers_of(shape, arrays))]

    def _normal(self, rows, columns, scale=1.0, offset=0.0):
        return self.arrays.rounded(self.arrays.random(rows, columns).mul_(scale).add_(offset), self.shape.dtype)

    def _layer(self):
        n, k = self.shape.n, self.shape.k
        both, norm, down = self._normal(2 * n, k, k**-0.5), self._normal(1, k, 0.1, 1.0)[0], self._normal(k, n, n**-0.5)
        return Layer(None, both, both[:n], both[n:], self.y, norm, down)

    def run_through(self, contender, results):
        """The chain as a call, which leaves what each layer gave in `results`."""
        F = self.arrays.torch.nn.functional

        def call(_index):
            hidden, found = self.x, []
            for index, layer in enumerate(self.sets):
                layer.x = F.rms_norm(hidden, (self.shape.k,), layer.norm, EPSILON)
                hidden = F.linear(contender.call(index), layer.down)
                found.append(hidden)
            results[:] = found

        return call

    def expected(self, contender, layer, hidden):
        wide, torch = hidden.double(), self.arrays.torch
        inner = self.given
        if contender.result == "glu":
            x = wide * (wide.square().mean(-1, keepdim=True) + EPSILON).rsqrt() * layer.norm.double()
            inner = torch.from_numpy(gated(self.arrays.products_fp64(x, layer.gate_up))).to(hidden.device)
        return self.arrays.products_fp64(inner, layer.down)

    def check(self, contender, runner, results):
        """The largest error of a layer; AssertionError if the contender is not to be timed."""
        for array in (self.y, *results):
            self.arrays.poison(array)
        runner.sample_us()
        errors = []
        for number, (layer, hidden, found) in enumerate(zip(self.sets, [self.x, *results], results)):
            expected = self.expected(contender, layer, hidden)
            errors.append(relative_frobenius(self.arrays.to_fp64(found), expected))
            if not errors[-1] <= TOLERANCE[self.shape.dtype]:
                raise AssertionError(f"wrong: relative Frobenius error {errors[-1]:.3g} against fp64 in layer {number}")
        return max(errors)


def prefetching(case):
    import tileglu

    shape, sets = case.shape, case.sets
    plan = tileglu.plan(shape.m, shape.n, shape.k, dtype=shape.dtype, memory=case.arrays.memory, prefetch_weights=True)
    call = lambda i: plan.run(sets[i].x, sets[i].gate, sets[i].up, out=sets[i].y)
    return Prepared(call, f"{plan.backend} {plan.kernel}")


CONTENDERS = {
    WITHOUT: lambda case: Prepared(lambda i: case.given, "F.rms_norm, F.linear", result="given"),
    "merged": fused.CONTENDERS["cublas_merged"],
    "eager": eager.eager,
    "tileglu": fused.CONTENDERS["tileglu"],
    PREFETCH: prefetching,
}


def make_runner(case, call, settings):
    """After warm-up; a graph is captured on a stream of torch's own, and what torch allocates in it belongs to it."""
    arrays, shape = case.arrays, case.shape
    for _ in range(2):
        call(0)
    arrays.synchronize()
    if arrays.memory == "host":
        return timing.HostRunner(call, 1, 1)
    least_us = len(case.sets) * shape.weight_bytes * 1.5 / READ_BYTES_PER_US
    return timing.GraphRunner(arrays.torch, call, 1, math.ceil(settings.sample_us / least_us))


def rows_of(case, contenders, settings=SETTINGS):
    """A row of each of {name: contender}: times of one layer, or why there are none."""
    rows, runners, layers = {}, {}, len(case.sets)
    for name, contender in contenders.items():
        results = []
        try:
            made = contender(case)
            runners[name] = make_runner(case, case.run_through(made, results), settings)
            error = case.check(made, runners[name], results)
            rows[name] = blank_row(case.shape, name) | {"config": made.config, "relative_frobenius": error}
        except Exception as error:
            runners.pop(name, None)
            rows[name] = failed_row(case.shape, name, error)
    for name, samples in timing.race(runners, settings).items():
        if isinstance(samples, Exception):
            rows[name] = failed_row(case.shape, name, samples)
            continue
        each = [us / layers for us in samples]
        rows[name] |= stats.summary(each) | {
            "launch": runners[name].launch, "layers": layers, "chains_per_sample": runners[name].calls,
            "samples_us": [round(us, 4) for us in each],
        }  # fmt: skip
    base = rows[WITHOUT]["median_us"]
    for row in rows.values():
        if base and row["median_us"]:
            row["marginal_us"] = row["median_us"] - base
    return list(rows.values())


def blank_row(shape, name):
    times = dict.fromkeys(("median_us", "p5_us", "p95_us", "marginal_us"))
    return shape.describe() | {"contender": name, "config": "", **times, "status": "ok", "reason": ""}


def failed_row(shape, name, error):
    status, reason = outcome(error)
    return blank_row(shape, name) | {"status": status, "reason": reason}
