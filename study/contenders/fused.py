# SPDX-License-Identifier: Apache-2.0
"""tileglu through its Python package: the planner's choice, the kernels by name, and the unfused cuBLASLt path."""

from . import Prepared, Skip

GROUPS = {"interleaved_1": 1, "interleaved_8": 8}


def contender(kernel="", backend="auto", layout="separate", memory=None):
    def prepare(case):
        import tileglu

        arrays, shape = case.arrays, case.shape
        if memory not in (None, arrays.memory):
            raise Skip("its backend needs a GPU" if memory == "cuda" else "its backend is for host memory")
        options = {"backend": backend, "kernel": kernel}
        try:
            plan = tileglu.plan(
                shape.m, shape.n, shape.k, dtype=shape.dtype, layout=layout, memory=arrays.memory, **options
            )
        except tileglu.NotSupported as error:
            raise Skip(str(error)) from error
        return Prepared(_call(case, layout, options), f"{plan.backend} {plan.kernel}", layout)

    return prepare


def _call(case, layout, options):
    import tileglu

    sets = case.sets
    if layout == "separate":
        return lambda i: tileglu.glu(sets[i].x, sets[i].gate, sets[i].up, out=sets[i].y, **options)
    weights = case.interleaved(GROUPS[layout]) if layout in GROUPS else [s.gate_up for s in sets]
    return lambda i: tileglu.glu_merged(sets[i].x, weights[i], order=layout, out=sets[i].y, **options)


CONTENDERS = {
    "cublas_two_gemms": contender("two_gemms_silu_mul", "cublas", memory="cuda"),
    "cublas_merged": contender("merged", "cublas", "gate_up", memory="cuda"),
    "cpu_two_gemms": contender("two_gemms_act_mul", "cpu", memory="host"),
    "sync_pingpong": contender("sync_pingpong", "sm90", memory="cuda"),
    "interleave": contender("interleave", "sm90", "interleaved_8", memory="cuda"),
    "interleave_by_1": contender("interleave", "sm90", "interleaved_1", memory="cuda"),
    "paired": contender("paired", "sm90", memory="cuda"),
    "decode": contender("decode", "sm90", memory="cuda"),
    "tileglu": contender(),
}
# Which of them are kernels of this project, and which of those the paper has.
KERNELS = ("sync_pingpong", "interleave", "interleave_by_1", "paired", "decode")
PAPER = {"sync_pingpong": "Kernel-1", "interleave_by_1": "Kernel-2", "interleave": "Kernel-2 by 8"}
