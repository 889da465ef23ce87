# SPDX-License-Identifier: Apache-2.0
"""The experiments, in the order in which a run does them: what most of the page needs comes first.

An experiment is a module with NAME and units(context). A unit is what is measured and kept as one file; run()
gives {"rows": [...], ...} and does not raise for a contender that fails."""

from dataclasses import dataclass
from typing import Callable

GPU_FLOPS, HOST_FLOPS = 550e12, 20e9  # a second; only for estimates of how long a unit takes


@dataclass(frozen=True)
class Unit:
    experiment: str
    key: str
    seconds: float  # estimated
    run: Callable


@dataclass
class Context:
    arrays: object
    preset: object
    dtype: str
    sensors: object = None  # nvml.Sensors
    checkpoint: object = None  # folder with real layers

    def estimated_us(self, shape):
        rate = GPU_FLOPS if self.arrays.memory == "cuda" else HOST_FLOPS
        return max(shape.flops / rate * 1e6, shape.bytes / 4e12 * 1e6, 5.0)

    def race_seconds(self, shape, contenders):
        """Set-up, checks and samples of so many contenders."""
        settings = self.preset.timing
        call = self.estimated_us(shape)
        ways = 2 if call < 1500 and self.arrays.memory == "cuda" else 1
        rounds = settings.samples + 4
        return 0.4 + contenders * (0.05 + ways * rounds * max(settings.sample_us, call) * 1e-6)


def modules():
    from . import compiled, end_to_end, energy, machine, numerics, share, speedup

    return (machine, speedup, share, numerics, end_to_end, energy, compiled)
