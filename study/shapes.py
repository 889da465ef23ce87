# SPDX-License-Identifier: Apache-2.0
"""Shapes of the gated projection. The sizes of models are the tool's (`tileglu models`)."""

from dataclasses import dataclass

ELEMENT_BYTES = {"bf16": 2, "fp16": 2, "fp32": 4}


@dataclass(frozen=True)
class Shape:
    model: str
    m: int
    n: int
    k: int
    dtype: str = "bf16"

    @property
    def key(self):
        return f"{self.model}-m{self.m}"

    @property
    def flops(self):
        return 4 * self.m * self.n * self.k

    @property
    def weight_bytes(self):
        return 2 * self.n * self.k * ELEMENT_BYTES[self.dtype]

    @property
    def bytes(self):
        """What every path moves at least: A, both weights, Y."""
        return self.weight_bytes + (self.m * self.k + self.m * self.n) * ELEMENT_BYTES[self.dtype]

    def describe(self):
        return {"model": self.model, "m": self.m, "n": self.n, "k": self.k, "dtype": self.dtype}


def shapes_of(models, batch_sizes, dtype="bf16"):
    import tileglu

    known = {row["model"]: row for row in tileglu.models()}
    unknown = [name for name in models if name not in known]
    if unknown:
        raise ValueError(f"--models={','.join(unknown)}: unknown; `tileglu models` lists the names")
    return [Shape(name, m, known[name]["n"], known[name]["k"], dtype) for name in models for m in batch_sizes]
