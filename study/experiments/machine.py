# SPDX-License-Identifier: Apache-2.0
"""What the study ran on, and the ceilings of this very machine: the tool's bench on one small shape says all of it."""

import platform
import sys
from importlib import metadata

from . import Unit

NAME = "machine"
SHAPES = {"cuda": ["--model=qwen2.5-0.5b", "--m=512"], "host": ["--n=256", "--k=256", "--m=16", "--backend=cpu"]}
PACKAGES = ("torch", "triton", "numpy", "ml_dtypes", "transformers", "quack-kernels", "matplotlib")


def units(context):
    yield Unit(NAME, "bench", 8 if context.arrays.memory == "cuda" else 1, lambda: run(context))


def run(context):
    import tileglu
    from tileglu import _tool

    _, document = _tool.document(
        "bench", *SHAPES[context.arrays.memory], "--samples=7", "--min-time=0.02", "--warmup=0.02"
    )
    return {
        "rows": [],
        "bench": document,
        "python": sys.version.split()[0],
        "system": platform.platform(),
        "build": tileglu.build_info(),
        "packages": {name: version(name) for name in PACKAGES},
        "sensors": context.sensors.reading() if context.sensors else None,
    }


def version(package):
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
