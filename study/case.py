# SPDX-License-Identifier: Apache-2.0
"""One shape with its operands: enough sets of them that together they do not fit into the cache, all with the same
values, so that a result is right whichever set it came from; and the check of a contender against fp64."""

from dataclasses import dataclass

import numpy

SEED = 1
MOST_SETS = 64
ROTATION = 3.0  # times the last-level cache that the sets exceed together
MOST_HOST_BYTES = 64 << 20  # on the host, where the cache of a server may be larger than what CI should allocate
CHECKED_ROWS = 16
# Largest relative Frobenius error of a result that is timed. Rounding gate, up, act(gate) and the product to bf16 gives
# 0.004; a wrong half, a wrong activation or an unwritten tile gives far more.
TOLERANCE = {"bf16": 0.012, "fp16": 0.0015, "fp32": 1e-4}


@dataclass
class Operands:
    x: object  # [m,k]
    gate_up: object  # [2n,k], gate rows first; gate and up are its halves
    gate: object
    up: object
    y: object  # [m,n]


def random_values(arrays, shape, kind="normal"):
    """fp32 x [m,k] and weights [2n,k], before rounding. kind: a distribution of x; "uniform" is also that of the
    weights."""
    arrays.seed(SEED)
    weights = arrays.random(2 * shape.n, shape.k, "uniform" if kind == "uniform" else "normal")
    return arrays.random(shape.m, shape.k, kind), weights * shape.k**-0.5


class Case:
    def __init__(self, shape, arrays, values=None, rotate=True):
        """values: fp32 (x, weights); None: random normal. rotate: more than one set of operands."""
        self.shape, self.arrays = shape, arrays
        x, weights = (arrays.rounded(v, shape.dtype) for v in values or random_values(arrays, shape))
        self.sets = [self._set(x, weights)]
        for _ in range(self._sets_needed() - 1 if rotate else 0):
            self.sets.append(self._set(arrays.copy(x), arrays.copy(weights)))
        self._interleaved = {}

    def _set(self, x, gate_up):
        n = self.shape.n
        return Operands(x, gate_up, gate_up[:n], gate_up[n:], self.arrays.empty(self.shape.m, n, self.shape.dtype))

    def _sets_needed(self):
        wanted = ROTATION * self.arrays.cache_bytes()
        if self.arrays.memory == "host":
            wanted = min(wanted, MOST_HOST_BYTES)
        return min(MOST_SETS, max(1, -int(-wanted // self.shape.bytes)))

    def interleaved(self, group):
        """Of each set, its weights interleaved by `group` rows; made when first asked for."""
        if group not in self._interleaved:
            self._interleaved[group] = [self.arrays.interleaved(s.gate, s.up, group) for s in self.sets]
        return self._interleaved[group]

    # --- the check ---

    def checked_rows(self):
        m = self.shape.m
        return sorted({round(i * (m - 1) / max(1, CHECKED_ROWS - 1)) for i in range(CHECKED_ROWS)})

    def expected(self):
        """Of the checked rows, in fp64: the products [rows,2n] and the gated result [rows,n]."""
        if not hasattr(self, "_expected"):
            first = self.sets[0]
            products = self.arrays.products_fp64(self.arrays.rows(first.x, self.checked_rows()), first.gate_up)
            self._expected = {"product": products, "glu": gated(products)}
        return self._expected

    def check(self, prepared):
        """Runs a contender once on poisoned output. Returns its relative Frobenius error; AssertionError if it is not
        to be timed."""
        self.arrays.poison(self.sets[0].y)
        result = prepared.call(0)
        self.arrays.synchronize()
        missing = self.arrays.unwritten(result)
        if missing:
            raise AssertionError(f"wrong: {missing} elements are NaN or were not written")
        found = self.arrays.to_fp64(self.arrays.rows(result, self.checked_rows()))
        error = relative_frobenius(found, self.expected()[prepared.result])
        if not error <= TOLERANCE[self.shape.dtype]:
            raise AssertionError(
                f"wrong: relative Frobenius error {error:.3g} against fp64, more than {TOLERANCE[self.shape.dtype]}"
            )
        return error


def gated(products):
    """silu(gate) * up of fp64 products [rows,2n]."""
    gate, up = numpy.split(products, 2, axis=1)
    with numpy.errstate(over="ignore"):
        return gate / (1 + numpy.exp(-gate)) * up


def relative_frobenius(found, expected):
    return float(numpy.linalg.norm(found - expected) / numpy.linalg.norm(expected))


def share_over_1_percent(found, expected):
    """Of elements more than 1 % off; those whose expected value is 0 count if anything else was found."""
    return float(numpy.mean(numpy.abs(found - expected) > 0.01 * numpy.abs(expected)))
