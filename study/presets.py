# SPDX-License-Identifier: Apache-2.0
"""What a run measures. Each preset is a full description; options of the command line replace single fields."""

from dataclasses import dataclass, replace

from .timing import Settings

QWEN = tuple(f"qwen2.5-{size}" for size in ("0.5b", "1.5b", "3b", "7b", "14b", "32b", "72b"))
BATCHES = (1, 16, 64, 256, 512, 1024, 2048, 4096, 8192, 16384)
# The paper's 20 configurations: five sizes by four batch sizes. Only its abstract names numbers, so this is our reading
# of it: the sizes from the smallest to the largest that it names, and M up to 4096, where the intensity of its smallest
# model rises by the 247 % that it gives (docs/study.md).
PAPER_MODELS = tuple(f"qwen2.5-{size}" for size in ("0.5b", "1.5b", "7b", "32b", "72b"))
PAPER_BATCHES = (512, 1024, 2048, 4096)


@dataclass(frozen=True)
class Preset:
    name: str
    models: tuple
    batches: tuple
    share_batches: tuple  # of experiments share and end_to_end
    end_to_end_models: tuple
    compile_shapes: tuple  # (model, m)
    numerics_shapes: tuple
    energy_shapes: tuple
    energy_s: float  # of one contender, in two halves
    timing: Settings
    sensors: bool = True


_SMALL, _MIDDLE, _LARGE = "qwen2.5-0.5b", "qwen2.5-7b", "qwen2.5-72b"
FULL = Preset(
    name="full",
    models=QWEN,
    batches=BATCHES,
    share_batches=(16, 512, 2048, 8192),
    end_to_end_models=QWEN,
    compile_shapes=((_SMALL, 64), (_SMALL, 2048), (_MIDDLE, 2048), (_LARGE, 2048)),
    numerics_shapes=((_SMALL, 256), (_MIDDLE, 256)),
    energy_shapes=((_SMALL, 16), (_SMALL, 4096), (_MIDDLE, 4096), (_LARGE, 4096)),
    energy_s=5.0,
    timing=Settings(samples=21, sample_us=2000, warmup_s=0.1),
)
QUICK = replace(
    FULL,
    name="quick",
    batches=(1, 64, *PAPER_BATCHES, 8192),
    share_batches=(16, 2048),
    end_to_end_models=(_SMALL, _MIDDLE, _LARGE),
    compile_shapes=((_SMALL, 2048), (_MIDDLE, 2048)),
    energy_shapes=((_SMALL, 4096), (_MIDDLE, 4096)),
    energy_s=4.0,
    timing=Settings(samples=11, sample_us=1000, warmup_s=0.05),
)
# A machine without a GPU: the same path on shapes that take seconds. Its times say nothing about GPUs, and the page
# says so.
CPU = Preset(
    name="cpu",
    models=("smollm2-135m", "qwen3-30b-a3b-expert"),
    batches=(1, 16, 64),
    share_batches=(16,),
    end_to_end_models=("smollm2-135m",),
    compile_shapes=(("smollm2-135m", 16),),
    numerics_shapes=(("smollm2-135m", 64),),
    energy_shapes=(("smollm2-135m", 16),),
    energy_s=0.2,
    timing=Settings(samples=5, sample_us=500, warmup_s=0.01),
    sensors=False,
)
