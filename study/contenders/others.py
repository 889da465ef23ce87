# SPDX-License-Identifier: Apache-2.0
"""Fused kernels of others, where the user has them: Triton as one would write it, quack, CUTLASS example 113."""

import os
import re
import shutil
import subprocess

from . import NotFound, Prepared, Skip, eager

EXAMPLE_113 = "113_hopper_gemm_fused_gated_act"
EXAMPLE_113_PLACE = "CUTLASS_EXAMPLE_113"  # environment: path of the executable


def _need_gpu(case):
    eager.functional(case)
    if case.arrays.memory != "cuda":
        raise Skip("runs on GPUs only")


def triton_kernel(case):
    _need_gpu(case)
    try:
        from . import triton_glu
    except ImportError as error:
        raise NotFound(f"triton not installed ({error})") from error
    sets = case.sets
    call = lambda i: triton_glu.glu(sets[i].x, sets[i].gate, sets[i].up, sets[i].y)
    call(0)
    return Prepared(call, triton_glu.config_text())


def quack(case):
    _need_gpu(case)
    try:
        from quack.gemm_interface import gemm_gated
    except ImportError as error:
        raise NotFound(f"quack not installed ({error})") from error
    sets, weights = case.sets, case.interleaved(1)
    # [k,2n] with gate and up in turn; of the pair (pre-activation, result) only the second is asked for.
    call = lambda i: gemm_gated(sets[i].x, weights[i].T, activation="swiglu", store_preact=False)[1]
    call(0)
    return Prepared(call, "gemm_gated, tuned", "interleaved_1")


def cutlass_113(case):
    """A program of its own, which times itself with a warm cache and its own random data: not interleaved."""
    if case.arrays.memory != "cuda":
        raise Skip("runs on GPUs only")
    program = os.environ.get(EXAMPLE_113_PLACE) or shutil.which(EXAMPLE_113)
    if not program:
        raise NotFound(f"no {EXAMPLE_113} on PATH or in {EXAMPLE_113_PLACE}")
    shape = case.shape
    sizes = [f"--m={2 * shape.n}", f"--n={shape.m}", f"--k={shape.k}"]  # weights are its operand A
    done = subprocess.run(
        [program, *sizes, "--iterations=20", "--warmup=5", "--csv=1"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    times = re.findall(r"^Fused,([0-9.]+),", done.stdout, re.MULTILINE)
    if done.returncode != 0 or not times:
        raise RuntimeError(f"{program} ended with code {done.returncode} and no time: {done.stderr.strip()[:200]}")
    return Prepared(None, "fp16, warm cache, its own timing", "gate_up", external_us=float(times[0]) * 1e3)


CONTENDERS = {"triton": triton_kernel, "quack": quack, "cutlass_113": cutlass_113}
